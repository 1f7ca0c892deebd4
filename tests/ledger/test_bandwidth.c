// SPDX-License-Identifier: MIT
/* Bandwidth estimates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ledger/bandwidth.h"
#include "numbers.h"

#define HZ 250

/* One update from given estimates, with `pages` written in `elapsed` jiffies. */
static void assert_update(u64 write_bw, u64 avg, u64 elapsed, u64 pages, u64 want_bw, u64 want_avg)
{
	struct bandwidth b;

	bandwidth_init(&b, 1000, 70, 90);
	b.write_bw = write_bw;
	b.avg_write_bw = avg;
	bandwidth_update_write(&b, elapsed, 90 + pages, HZ);
	assert_int_equal(b.write_bw, want_bw);
	assert_int_equal(b.avg_write_bw, want_avg);
}

static void test_vectors(void **state)
{
	(void)state;
	/* avg does not move on the first rise: it equals the old write_bw. */
	assert_update(25600, 25600, 50, 26200, 30746, 25600);
	assert_update(120000, 100000, 52, 27000, 120498, 102500);
	assert_update(25600, 25600, 1100, 5000, 1136, 1136);
}

static void test_avg_follows_only_what_goes_on(void **state)
{
	(void)state;
	/* Above, and write_bw fell further: down by 1/8. */
	assert_update(80000, 100000, 50, 0, 76093, 97500);
	/* Above, but write_bw rose again: stays. */
	assert_update(80000, 100000, 50, 50000, 88300, 100000);
	/* Below, but write_bw fell: stays. */
	assert_update(120000, 100000, 50, 0, 114140, 100000);
}

static void test_edges(void **state)
{
	(void)state;
	/* avg is never 0. */
	assert_update(0, 1, 1025, 0, 0, 1);
	assert_update(0, 1, 50, 0, 0, 1);
	/* The window itself still counts as inside: the new rate alone either way. */
	assert_update(9999, 9999, 1024, 1024, 250, 9999);
	assert_update(9999, 9999, 1025, 1025, 250, 250);
}

static void test_totals_that_step_back_are_no_pages(void **state)
{
	struct bandwidth b;

	(void)state;
	bandwidth_init(&b, 0, 100, 100);
	bandwidth_update_write(&b, 2000, 99, HZ);
	assert_int_equal(b.write_bw, 0);
	assert_int_equal(b.avg_write_bw, 1);
	assert_int_equal(bandwidth_dirty_rate(&b, 50, 99, HZ), 0);
	assert_int_equal(bandwidth_dirty_rate(&b, 50, 1100, HZ), 5000);
	assert_int_equal(bandwidth_dirty_rate(&b, 1, 101, HZ), 250);
}

static void test_init_and_due(void **state)
{
	struct bandwidth b;

	(void)state;
	bandwidth_init(&b, 1000, 7, 9);
	assert_int_equal(b.write_bw, 25600);
	assert_int_equal(b.avg_write_bw, 25600);
	assert_int_equal(b.dirty_ratelimit, 25600);
	assert_int_equal(b.balanced_dirty_ratelimit, 25600);
	assert_false(bandwidth_due(&b, 1050, HZ));
	assert_true(bandwidth_due(&b, 1051, HZ));
	assert_int_equal(bandwidth_interval(100), 20);
	assert_int_equal(bandwidth_interval(1), 1);
	assert_int_equal(bandwidth_elapsed(&b, 1000), 1);
	assert_int_equal(bandwidth_elapsed(&b, 1007), 7);
	bandwidth_stamp(&b, 1007, 8, 10);
	assert_int_equal(bandwidth_elapsed(&b, 1010), 3);
}

static void test_idle_time_is_forgotten(void **state)
{
	struct bandwidth b;

	(void)state;
	bandwidth_init(&b, 1000, 0, 0);
	assert_false(bandwidth_restart_if_idle(&b, 1000 + HZ, 500, 600, 0, HZ));
	assert_false(bandwidth_restart_if_idle(&b, 1001 + HZ, 500, 600, 1, HZ));
	assert_int_equal(b.bw_stamp, 1000);
	assert_true(bandwidth_restart_if_idle(&b, 1001 + HZ, 500, 600, 0, HZ));
	assert_int_equal(b.bw_stamp, 1001 + HZ);
	assert_int_equal(b.dirtied_stamp, 500);
	assert_int_equal(b.written_stamp, 600);
	assert_int_equal(b.write_bw, 25600);
}

static void test_converges_to_a_steady_rate(void **state)
{
	static const u32 hz[] = { 100, 250, 1000 };
	static const u64 rate[] = { 300, 25000, 1000000, 1ull << 40 };

	(void)state;
	for (size_t h = 0; h < ARRAY_SIZE(hz); h++) {
		for (size_t r = 0; r < ARRAY_SIZE(rate); r++) {
			struct bandwidth b;
			u64 now = 0, step = bandwidth_interval(hz[h]) + 1, low, high;

			bandwidth_init(&b, now, 0, 0);
			while (now < 120 * hz[h]) {
				now += step;
				bandwidth_update_write(&b, step, rate[r] * now / hz[h], hz[h]);
				bandwidth_stamp(&b, now, 0, rate[r] * now / hz[h]);
			}
			/*
			 * Each update rounds down, which leaves write_bw up to 1/share of
			 * an update short, and avg rests within 8 of it.
			 */
			low = rate[r] - rate[r] / 100 - 25;
			high = rate[r] + rate[r] / 100 + 7;
			assert_in_range(b.write_bw, low, high);
			assert_in_range(b.avg_write_bw, low, high);
		}
	}
}

static void test_estimate_lies_between_old_and_new(void **state)
{
	struct numbers n = { 5 };

	(void)state;
	for (int i = 0, end = numbers_rounds(20000); i < end; i++) {
		struct bandwidth b;
		u64 elapsed = 1 + numbers_sized(&n, 12), pages = numbers_sized(&n, 40);
		u64 old = numbers_sized(&n, 40), avg = 1 + numbers_sized(&n, 40);
		u64 rate = pages * HZ / elapsed;

		bandwidth_init(&b, 0, 0, 0);
		b.write_bw = old;
		b.avg_write_bw = avg;
		bandwidth_update_write(&b, elapsed, pages, HZ);
		assert_true(b.write_bw >= min_u64(old, rate));
		assert_true(b.write_bw <= max_u64(old, rate + 1));
		assert_true(b.avg_write_bw >= 1);
		if (elapsed <= 1024) {
			assert_true(b.avg_write_bw >= min_u64(avg, old));
			assert_true(b.avg_write_bw <= max_u64(avg, old));
		}
	}
}

/* A task that is a tick behind the one that updated last changes nothing. */
static void test_who_is_behind_is_not_due(void **state)
{
	struct bandwidth b;

	(void)state;
	bandwidth_init(&b, 1000, 10, 20);
	assert_false(bandwidth_due(&b, 999, HZ));
	assert_false(bandwidth_restart_if_idle(&b, 999, 30, 40, 0, HZ));
	assert_int_equal(b.bw_stamp, 1000);
	assert_int_equal(b.written_stamp, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_avg_follows_only_what_goes_on),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_totals_that_step_back_are_no_pages),
		cmocka_unit_test(test_init_and_due),
		cmocka_unit_test(test_idle_time_is_forgotten),
		cmocka_unit_test(test_who_is_behind_is_not_due),
		cmocka_unit_test(test_converges_to_a_steady_rate),
		cmocka_unit_test(test_estimate_lies_between_old_and_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
