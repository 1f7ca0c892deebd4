// SPDX-License-Identifier: MIT
/* Pauses, poll intervals and flusher slices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../ledger/numbers.h"
#include "writeback/pause.h"
#include "writeback/slice.h"

#define THRESH 6394752u

static void assert_plan(struct pauses p, u64 max_pause, u64 nr_dirtied_pause, u64 min_pause)
{
	assert_int_equal(p.max_pause, max_pause);
	assert_int_equal(p.nr_dirtied_pause, nr_dirtied_pause);
	assert_int_equal(p.min_pause, min_pause);
}

static void test_vectors_of_pauses(void **state)
{
	(void)state;
	assert_plan(pause_plan(5800000, 131000, 25600, 20000, 250), 50, 600, 4);
	assert_plan(pause_plan(5800000, 131000, 4000, 3000, 250), 50, 218, 8);
	assert_plan(pause_plan(5800000, 131000, 4000, 3000, 100), 20, 156, 3);
	assert_plan(pause_plan(5800000, 32800, 1200, 900, 250), 50, 65, 8);
	assert_plan(pause_plan(7000, 25600, 200, 150, 250), 9, 5, 9);
}

static void test_edges_of_pauses(void **state)
{
	(void)state;
	/* Nothing dirty, one page a second: one jiffy, each page looked at. */
	assert_plan(pause_plan(0, 1, 1, 0, 250), 1, 0, 1);
	/* Much dirty, one page a second: the longest sleep. */
	assert_plan(pause_plan(1ull << 40, 1, 1, 1, 250), 50, 0, 50);
	/* Small intervals that fit once the sleep is long: 32 pages, in 26 jiffies. */
	assert_plan(pause_plan(1000000, 300, 300, 300, 250), 50, 32, 14);
	/* A coarse clock. */
	assert_plan(pause_plan(1000, 10000, 10000, 10000, 1), 1, 10000, 1);
}

static void test_bounds_of_pauses(void **state)
{
	static const u32 hz[] = { 1, 24, 100, 250, 300, 1000 };
	struct numbers n = { 9 };

	(void)state;
	for (int i = 0, end = numbers_rounds(50000); i < end; i++) {
		u32 h = hz[(size_t)i % ARRAY_SIZE(hz)];
		u64 dirty = numbers_sized(&n, 40), bw = 1 + numbers_sized(&n, 40);
		u64 limit = 1 + numbers_sized(&n, 40), task = numbers_sized(&n, 40);
		struct pauses p = pause_plan(dirty, bw, limit, task, h);
		struct pauses more = pause_plan(dirty * 2, bw, limit, task, h);

		assert_in_range(p.max_pause, 1, pause_longest(h));
		assert_in_range(p.min_pause, 0, p.max_pause);
		assert_true(more.max_pause >= p.max_pause);
		/* What is dirtied until the next look is slept off within max_pause. */
		assert_true(h * p.nr_dirtied_pause / (task + 1) <= p.max_pause);
	}
}

static void test_poll_interval(void **state)
{
	(void)state;
	assert_int_equal(poll_interval(0, THRESH), 2048);
	assert_int_equal(poll_interval(3000000, THRESH), 1024);
	assert_int_equal(poll_interval(4700000, THRESH), 1024);
	assert_int_equal(poll_interval(6000000, THRESH), 512);
	/* A strict device just below its edge. */
	assert_int_equal(poll_interval(8380 - 2098, 8380), 32);
	assert_int_equal(poll_interval(THRESH - 1, THRESH), 1);
	assert_int_equal(poll_interval(THRESH, THRESH), 1);
	assert_int_equal(poll_interval(THRESH + 1, THRESH), 1);
	assert_int_equal(poll_interval(0, 0), 1);
	assert_int_equal(poll_interval(0, 1ull << 40), 1 << 20);
}

static void test_ratelimit_pages(void **state)
{
	(void)state;
	assert_int_equal(ratelimit_pages(THRESH, 32), 6244);
	assert_int_equal(ratelimit_pages(0, 1), 16);
	assert_int_equal(ratelimit_pages(16 * 32 + 32, 1), 17);
}

static void test_slice(void **state)
{
	(void)state;
	assert_int_equal(writeback_slice(1, THRESH, SLICE_UNLIMITED), 1024);
	assert_int_equal(writeback_slice(25600, THRESH, SLICE_UNLIMITED), 13312);
	assert_int_equal(writeback_slice(131000, THRESH, SLICE_UNLIMITED), 65536);
	assert_int_equal(writeback_slice(5000000, THRESH, SLICE_UNLIMITED), 799744);
	/* What is left of the budget, and up to 4 MiB more. */
	assert_int_equal(writeback_slice(5000000, THRESH, 5000), 5120);
	assert_int_equal(writeback_slice(5000000, THRESH, 0), 1024);
	assert_int_equal(writeback_slice(5000000, 0, 5000), 1024);
	assert_int_equal(writeback_slice(1ull << 40, 1ull << 40, SLICE_UNLIMITED),
			 (1ull << 37) + 1024);
}

/*
 * A writer on a FUSE file system whose device's share of the limit is 0, from a trace (libfuse
 * issue 279, HZ 1000): bdi_dirty=32 dirty_ratelimit=32 (KiB/s) task_ratelimit=0 pause=33, then
 * bdi_dirty=33 pause=34. The bandwidth is not in it; it is under 128 pages a second, or pauses were
 * shorter.
 */
static void test_pauses_of_a_fuse_writer(void **state)
{
	(void)state;
	assert_int_equal(pause_plan(32, 29, 8, 0, 1000).max_pause, 33);
	assert_int_equal(pause_plan(33, 29, 8, 0, 1000).max_pause, 34);
	assert_int_equal(pause_plan(33, 127, 8, 0, 1000).max_pause, 34);
	assert_int_equal(pause_plan(33, 128, 8, 0, 1000).max_pause, 17);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors_of_pauses),
		cmocka_unit_test(test_edges_of_pauses),
		cmocka_unit_test(test_bounds_of_pauses),
		cmocka_unit_test(test_poll_interval),
		cmocka_unit_test(test_ratelimit_pages),
		cmocka_unit_test(test_slice),
		cmocka_unit_test(test_pauses_of_a_fuse_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
