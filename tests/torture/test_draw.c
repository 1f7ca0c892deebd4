/* SPDX-License-Identifier: MIT */
/*
 * The runs that the checks make meet what they are to meet: each choice of whose pages are written
 * for whom, as the engine takes it, with tenants who are several.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "torture/inner.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 2000 /* as tests/cli/torture.py */

/* As writeback_init() has it: what is charged by folios cannot be told apart. */
static enum policy_foreign taken(const struct policy *p)
{
	return p->foreign == FOREIGN_TARGETED && p->accounting != ACCOUNT_DEBT ? FOREIGN_FLUSH
									       : p->foreign;
}

static void test_tenants_meet_every_choice(void **state)
{
	struct torture *t = calloc(1, sizeof(*t));
	unsigned of[4][2] = { 0 }, own[4] = { 0 }, going = 0;

	(void)state;
	assert_non_null(t);
	for (u64 seed = 1; seed <= RUNS; seed++) {
		struct torture_config c = { .seed = seed, .steps = 300, .faults = TORTURE_ALL };
		const struct policy *p = &t->engine_config.policy;

		memset(t, 0, sizeof(*t));
		t->config = &c;
		rng_init(&t->rng, seed);
		draw_machine(t);
		if (t->tenants < 2 || t->tasks < 2)
			continue;
		of[taken(p)][p->tenant_limits]++;
		own[taken(p)] += p->dontcache == DONTCACHE_OWN;
		going++;
	}
	for (unsigned foreign = 0; foreign < 4; foreign++) {
		assert_true(of[foreign][TENANT_LIMITS_MEMCG] >= 20);
		assert_true(of[foreign][TENANT_LIMITS_PLAIN] >= 20);
		assert_true(own[foreign] >= 10); /* whose inodes stay with their device */
	}
	assert_true(going >= RUNS / 5);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tenants_meet_every_choice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
