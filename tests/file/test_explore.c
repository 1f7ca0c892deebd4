// SPDX-License-Identifier: MIT
/*
 * The stress in a simulated world that shakes: at every lock a task may fall behind by a few
 * microseconds. Each seed is another order of events, and a failure comes again with its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "stress.h"
#include "world/sim.h"
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB (1ull << 20)

static u64 ended; /* when the last one was done */

static void run_one(void *arg)
{
	stress_run(arg);
	ended = world_now();
}

static void run(const struct stress *like, u64 seed, u64 shake)
{
	struct stress s = *like;
	struct sim_config c;
	struct world *w;
	char why[500] = "";

	s.seed = seed;
	sim_config_init(&c);
	c.cpus = 4;
	c.seed = seed;
	c.shake_seed = shake;
	w = sim_create(&c);
	assert_non_null(w);
	if (sim_run(w, run_one, &s, why, sizeof(why)))
		fail_msg("seed %llu: %s", (unsigned long long)seed, why);
	sim_destroy(w);
}

static void explore(const struct stress *like, u64 seeds)
{
	for (u64 seed = 1; seed <= seeds; seed++)
		run(like, seed, seed);
}

static u64 seeds(u64 n)
{
	return getenv("SLUICE_SOAK") ? 200 * n : n;
}

static struct stress small = { .device = "nvme",
			       .block_bytes = 4096,
			       .files = 2,
			       .blocks = 192,
			       .writers = 3,
			       .readers = 3,
			       .wreckers = 1,
			       .syncers = 2,
			       .steps = 150 };

static void test_a_seed_is_one_history(void **state)
{
	u64 unshaken, shaken;

	(void)state;
#ifndef SLUICE_CHECKS
	puts("# skip: the world does not shake, built without -Dchecks=true");
	skip();
#endif
	small.policy = "sluice";
	small.memory_bytes = MIB;
	run(&small, 1, 0);
	unshaken = ended;
	run(&small, 1, 1);
	shaken = ended;
	assert_int_not_equal(shaken, unshaken);
	run(&small, 1, 1);
	assert_int_equal(ended, shaken);
	run(&small, 1, 2);
	assert_int_not_equal(ended, shaken);
}

static void test_sluice(void **state)
{
	(void)state;
	small.policy = "sluice";
	small.memory_bytes = MIB;
	explore(&small, seeds(12));
}

static void test_linux(void **state)
{
	(void)state;
	small.policy = "linux-7.4";
	small.memory_bytes = MIB;
	explore(&small, seeds(4));
}

static void test_small_blocks(void **state)
{
	(void)state;
	small.policy = "sluice";
	small.block_bytes = 512;
	small.memory_bytes = MIB / 2;
	explore(&small, seeds(6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_seed_is_one_history),
		cmocka_unit_test(test_sluice),
		cmocka_unit_test(test_linux),
		cmocka_unit_test(test_small_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
