// SPDX-License-Identifier: MIT
/* Real threads at a cache that is far too small for what they do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "stress.h"
#include <cmocka.h>
#include <stdlib.h>

#define MIB (1ull << 20)

static u32 steps(u32 n)
{
	return getenv("SLUICE_SOAK") ? 50 * n : n;
}

static void test_nothing_is_torn_stale_or_lost(void **state)
{
	struct stress s = { .policy = "sluice",
			    .device = "memory",
			    .memory_bytes = 2 * MIB,
			    .block_bytes = 4096,
			    .files = 2,
			    .blocks = 480,
			    .writers = 2,
			    .readers = 3,
			    .wreckers = 1,
			    .syncers = 1,
			    .steps = steps(3000),
			    .seed = 1 };

	(void)state;
	stress_run(&s);
}

/* One file that fits: nothing but hits, on few blocks. */
static void test_hits_only(void **state)
{
	struct stress s = { .policy = "sluice",
			    .device = "memory",
			    .memory_bytes = 8 * MIB,
			    .block_bytes = 4096,
			    .files = 1,
			    .blocks = 48,
			    .writers = 2,
			    .readers = 2,
			    .steps = steps(10000),
			    .seed = 2 };

	(void)state;
	stress_run(&s);
}

static void test_blocks_smaller_than_pages(void **state)
{
	struct stress s = { .policy = "sluice",
			    .device = "memory",
			    .memory_bytes = 1 * MIB,
			    .block_bytes = 512,
			    .files = 1,
			    .blocks = 480,
			    .writers = 2,
			    .readers = 2,
			    .wreckers = 1,
			    .syncers = 1,
			    .steps = steps(2000),
			    .seed = 3 };

	(void)state;
	stress_run(&s);
}

static void test_under_the_inode_lock(void **state)
{
	struct stress s = { .policy = "linux-7.4",
			    .device = "memory",
			    .memory_bytes = 2 * MIB,
			    .block_bytes = 4096,
			    .files = 2,
			    .blocks = 480,
			    .writers = 2,
			    .readers = 2,
			    .wreckers = 1,
			    .syncers = 1,
			    .steps = steps(1500),
			    .seed = 4 };

	(void)state;
	stress_run(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_torn_stale_or_lost),
		cmocka_unit_test(test_hits_only),
		cmocka_unit_test(test_blocks_smaller_than_pages),
		cmocka_unit_test(test_under_the_inode_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
