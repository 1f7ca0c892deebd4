// SPDX-License-Identifier: MIT
/* Position control: the cubic, the device's line, strict devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../ledger/numbers.h"
#include "ledger/limits.h"
#include "writeback/position.h"

/* 122 GiB of dirtyable memory. */
#define THRESH 6394752u
#define BG     3193472u

static struct position whole_at(u64 dirty, u64 avg_write_bw)
{
	return (struct position){
		.thresh = THRESH,
		.bg = BG,
		.limit = THRESH,
		.dirty = dirty,
		.wb_thresh = THRESH,
		.wb_bg_thresh = BG,
		.wb_dirty = dirty,
		.avg_write_bw = avg_write_bw,
	};
}

static void test_vectors_of_one_device(void **state)
{
	static const struct {
		u64 dirty, cubic, slow, fast;
	} want[] = {
		{ 5000000, 1442, 5626, 2259 }, { 5400000, 1038, 2023, 1230 },
		{ 5600000, 1024, 995, 1018 },  { 5800000, 1006, 251, 808 },
		{ 6000000, 891, 222, 546 },    { 6200000, 581, 145, 245 },
		{ 6390000, 20, 5, 5 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct position slow = whole_at(want[i].dirty, 25600);
		struct position fast = whole_at(want[i].dirty, 131000);

		assert_int_equal(position_setpoint(&slow), 5594432);
		assert_int_equal(position_cubic(5594432, want[i].dirty, THRESH), want[i].cubic);
		assert_int_equal(position_ratio(&slow), want[i].slow);
		assert_int_equal(position_ratio(&fast), want[i].fast);
	}
}

static void test_vectors_of_a_small_device(void **state)
{
	struct position at = whole_at(5600000, 25600);

	(void)state;
	at.wb_thresh = THRESH / 10;
	at.wb_bg_thresh = BG / 10;
	at.wb_dirty = 100000;
	assert_int_equal(position_ratio(&at), 5796);

	/* Before 6.14, idle: the floor and the boost of 8 let it go. */
	at.wb_thresh = at.wb_bg_thresh = 0;
	at.wb_dirty = 50;
	at.floor_in_position = true;
	assert_int_equal(position_ratio(&at), 15232);
	/* Since then the floor is in wb_thresh already. */
	at.floor_in_position = false;
	assert_int_equal(position_ratio(&at), 1024 / 4);
}

static struct position strict_at(u64 wb_dirty)
{
	struct position at = whole_at(1000000, 25600);

	at.wb_thresh = 8380;
	at.wb_bg_thresh = 4185;
	at.wb_dirty = wb_dirty;
	at.strictlimit = true;
	return at;
}

static void test_vectors_of_a_strict_device(void **state)
{
	static const u64 want[][2] = {
		{ 6300, 1024 }, { 7000, 983 }, { 7500, 824 },
		{ 8000, 463 },  { 8379, 2 },   { 8380, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct position at = strict_at(want[i][0]);

		assert_int_equal(position_cubic(5594432, at.dirty, THRESH), 2048);
		assert_int_equal(position_ratio(&at), want[i][1]);
	}
}

static void test_strict_takes_the_lower_of_both(void **state)
{
	struct position at = strict_at(7000);

	(void)state;
	at.dirty = 6200000;
	assert_int_equal(position_ratio(&at), 581);
	at.dirty = THRESH;
	assert_int_equal(position_ratio(&at), 0);
}

static void test_strict_without_a_threshold_stands_still(void **state)
{
	struct position at = strict_at(0);

	(void)state;
	at.wb_thresh = at.wb_bg_thresh = 0;
	assert_int_equal(position_ratio(&at), 0);
	at.wb_thresh = 1; /* its setpoint is 0 */
	assert_int_equal(position_ratio(&at), 0);
	at.wb_thresh = at.wb_bg_thresh = 5; /* its setpoint is its limit */
	assert_int_equal(position_ratio(&at), 0);
}

static void test_strict_before_614_lets_few_pages_go(void **state)
{
	struct position at = strict_at(7);

	(void)state;
	at.floor_in_position = true;
	at.wb_thresh = at.wb_bg_thresh = 0;
	assert_int_equal(position_ratio(&at), 2048);
	at.dirty = 6200000;
	assert_int_equal(position_ratio(&at), 2 * 581);
	at.wb_dirty = 8;
	assert_int_equal(position_ratio(&at), 0);
}

static void test_goal(void **state)
{
	struct position at = whole_at(5000000, 25600);
	struct position_goal goal = position_goal(&at);

	(void)state;
	assert_int_equal(goal.dirty, 5000000);
	assert_int_equal(goal.setpoint, 5594432);
	at = strict_at(7);
	goal = position_goal(&at);
	assert_int_equal(goal.dirty, 7);
	assert_int_equal(goal.setpoint, 6282);
	at.floor_in_position = true;
	goal = position_goal(&at);
	assert_int_equal(goal.dirty, 7);
	assert_int_equal(goal.setpoint, 8);
	at.wb_dirty = 8;
	assert_int_equal(position_goal(&at).setpoint, 6282);
}

/* 22.99 GiB of 24.4, on a device said to write 131,000 pages per second. */
static void test_worked_figures(void **state)
{
	struct position at = whole_at(6026691, 131000);
	u64 cubic = position_cubic(position_setpoint(&at), at.dirty, at.limit);

	(void)state;
	assert_in_range(cubic, 1024 * 840 / 1000, 1024 * 850 / 1000);
	assert_in_range(position_ratio(&at), 1024 * 49 / 100, 1024 * 51 / 100);
}

static void test_cubic_passes_its_three_points(void **state)
{
	(void)state;
	assert_int_equal(position_cubic(7500, 5001, 9999), 2048);
	assert_int_equal(position_cubic(7500, 7500, 9999), 1024);
	assert_int_equal(position_cubic(7500, 9999, 9999), 0);
	/* Not quite, where limit - setpoint is even: the divisor is made odd. */
	assert_int_equal(position_cubic(7500, 5000, 10000), 2045);
	assert_int_equal(position_cubic(7500, 10000, 10000), 2);
	assert_int_equal(position_cubic(7500, 10010, 10000), 0);
	assert_int_equal(position_cubic(7500, 0, 10000), 2048);
	assert_int_equal(position_cubic(0, 0, 0), 1024);
	assert_int_equal(position_cubic(10, 10, 10), 1024);
	assert_int_equal(position_cubic(10, 9, 10), 2048);
	assert_int_equal(position_cubic(10, 11, 10), 0);
	/* By hand: x = 512, -512 and -358, whose cube of -43.7 is rounded down. */
	assert_int_equal(position_cubic(1000, 500, 1999), 1024 + 128);
	assert_int_equal(position_cubic(1000, 1500, 1999), 1024 - 128);
	assert_int_equal(position_cubic(1000, 1350, 1999), 1024 - 44);
}

static struct position random_at(struct numbers *n)
{
	struct position at = {
		.bg = numbers_sized(n, 39),
		.dirty = numbers_sized(n, 40),
		.wb_dirty = numbers_sized(n, 40),
		.avg_write_bw = 1 + numbers_sized(n, 39),
		.strictlimit = numbers_below(n, 3) == 0,
		.floor_in_position = numbers_below(n, 3) == 0,
	};

	/* no more than the 2^40 pages promised, all together */
	at.thresh = at.bg + numbers_sized(n, 38);
	at.limit = at.thresh + numbers_sized(n, 38);
	at.wb_thresh = numbers_below(n, at.thresh + 1);
	at.wb_bg_thresh = at.wb_thresh / 2;
	if (numbers_below(n, 2) && at.limit)
		at.dirty = numbers_below(n, at.limit);
	if (numbers_below(n, 2) && at.dirty)
		at.wb_dirty = numbers_below(n, at.dirty);
	return at;
}

static void test_bounds(void **state)
{
	struct numbers n = { 6 };

	(void)state;
	for (int i = 0, end = numbers_rounds(50000); i < end; i++) {
		struct position at = random_at(&n);
		u64 cubic = position_cubic(position_setpoint(&at), at.dirty, at.limit);
		u64 ratio = position_ratio(&at);

		assert_true(cubic <= 2048);
		if (at.dirty >= at.limit)
			assert_int_equal(ratio, 0);
		else if (at.strictlimit)
			assert_true(ratio <= 2048);
		else
			assert_true(ratio >= cubic / 4);
	}
}

static void test_more_dirty_is_never_faster(void **state)
{
	struct numbers n = { 7 };

	(void)state;
	for (int i = 0, end = numbers_rounds(50000); i < end; i++) {
		struct position at = random_at(&n), more = at;
		u64 setpoint = position_setpoint(&at);

		more.dirty += numbers_sized(&n, 38);
		assert_true(position_cubic(setpoint, more.dirty, at.limit) <=
			    position_cubic(setpoint, at.dirty, at.limit));
		/* Before 6.14 more dirty pages also lower the device's floor. */
		if (!at.floor_in_position)
			assert_true(position_ratio(&more) <= position_ratio(&at));
	}
}

/* At the device's own setpoint the line is 1 (its reserve is half full by then). */
static void test_line_is_one_at_the_setpoint_of_the_device(void **state)
{
	(void)state;
	for (unsigned part = 1; part <= 8; part++) {
		struct position at = whole_at(5594432, 25600);

		at.wb_thresh = THRESH / part;
		at.wb_bg_thresh = BG / part;
		at.wb_dirty = 5594432 / part;
		assert_in_range(position_ratio(&at), 1016, 1024);
	}
}

/* Under half its part the device is boosted in proportion, under a sixteenth 8 times. */
static void test_reserve_of_the_device(void **state)
{
	static const u64 want[][2] = {
		{ 100, 15208 },  { 4500, 14768 }, { 5000, 14712 },
		{ 5001, 14709 }, { 39999, 1399 }, { 40000, 1399 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct position at = whole_at(5594432, 25600);

		at.wb_thresh = 80000;
		at.wb_bg_thresh = 40000;
		at.wb_dirty = want[i][0];
		assert_int_equal(position_ratio(&at), want[i][1]);
	}
}

static void test_extremes(void **state)
{
	struct position at = {
		.limit = 1ull << 40,
		.avg_write_bw = 1,
		.floor_in_position = true,
	};

	(void)state;
	/* thresh 0, far under the limit, next to no bandwidth: let go, and no overflow. */
	assert_true(position_ratio(&at) >= 2048);
	at.wb_dirty = 1ull << 40;
	assert_true(position_ratio(&at) >= 512);
	at.dirty = at.limit;
	assert_int_equal(position_ratio(&at), 0);
	at = (struct position){ .avg_write_bw = 1 };
	assert_int_equal(position_ratio(&at), 0);
	/* The largest machine, alone on the slowest device. */
	at = whole_at(3ull << 38, 1);
	at.thresh = at.limit = at.wb_thresh = 1ull << 40;
	at.bg = 1ull << 39;
	/* x = 1023, so the cubic is 2045; the weight is 65535/65536 and the span 7. */
	assert_int_equal(position_ratio(&at), 2045ull * ((1ull << 37) - (7ull << 21) + 7) / 7);
}

static void test_scale(void **state)
{
	(void)state;
	assert_int_equal(position_scale(25600, 700), 17500);
	assert_int_equal(position_scale(1, 1023), 0);
	assert_int_equal(position_scale(1ull << 40, 1ull << 20), 1ull << 50);
	assert_int_equal(position_scale(1ull << 40, INT64_MAX), INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors_of_one_device),
		cmocka_unit_test(test_vectors_of_a_small_device),
		cmocka_unit_test(test_vectors_of_a_strict_device),
		cmocka_unit_test(test_strict_takes_the_lower_of_both),
		cmocka_unit_test(test_strict_without_a_threshold_stands_still),
		cmocka_unit_test(test_strict_before_614_lets_few_pages_go),
		cmocka_unit_test(test_goal),
		cmocka_unit_test(test_worked_figures),
		cmocka_unit_test(test_cubic_passes_its_three_points),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_more_dirty_is_never_faster),
		cmocka_unit_test(test_line_is_one_at_the_setpoint_of_the_device),
		cmocka_unit_test(test_reserve_of_the_device),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_scale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
