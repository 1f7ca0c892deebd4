// SPDX-License-Identifier: MIT
/* Thresholds, tenants' thresholds and the smoothed hard limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ledger/limits.h"
#include "numbers.h"

#define HZ        250
#define PAGES_GIB (1ull << 18)

static const struct limits_config defaults = { .dirty_ratio = 20, .dirty_background_ratio = 10 };

static void test_vector_of_122_gib(void **state)
{
	struct limits l = limits_of(&defaults, 31981568, false, 0);

	(void)state;
	assert_int_equal(l.thresh, 6394752);
	assert_int_equal(l.bg, 3193472);
	assert_int_equal(limits_freerun(l.thresh, l.bg), 4794112);
}

static void test_16_gib_of_the_strict_example(void **state)
{
	struct limits l = limits_of(&defaults, 16 * PAGES_GIB, false, 0);

	(void)state;
	assert_int_equal(l.thresh, 838656);
	assert_int_equal(l.bg, 418816);
}

static void test_defaults_are_a_little_less_than_said(void **state)
{
	struct limits l = limits_of(&defaults, 100000000, false, 0);

	(void)state;
	assert_int_equal(l.thresh, 19995117); /* 19.995 % */
	assert_int_equal(l.bg, 9985351);      /* 9.985 % */
}

static void test_bytes_stand_before_ratios_and_round_up(void **state)
{
	struct limits_config c = defaults;
	struct limits l;

	(void)state;
	c.dirty_bytes = 100 * 4096 + 1;
	l = limits_of(&c, 31981568, false, 0);
	assert_int_equal(l.thresh, 101);
	assert_int_equal(l.bg, 50); /* 10 % would lie above */
	c.dirty_background_bytes = 4095;
	l = limits_of(&c, 31981568, false, 0);
	assert_int_equal(l.bg, 1);
}

static void test_background_stays_below_thresh(void **state)
{
	struct limits_config c = { .dirty_ratio = 10, .dirty_background_ratio = 10 };
	struct limits l = limits_of(&c, 409600, false, 0);

	(void)state;
	assert_int_equal(l.thresh, 40900);
	assert_int_equal(l.bg, 20450);
	l = limits_of(&c, 1, false, 0);
	assert_int_equal(l.thresh, 0);
	assert_int_equal(l.bg, 0);
}

static void test_realtime_tasks_get_more(void **state)
{
	struct limits l = limits_of(&defaults, 31981568, true, 6394752);

	(void)state;
	assert_int_equal(l.thresh, 6394752 + 1598688 + 199836);
	assert_int_equal(l.bg, 3193472 + 798368 + 199836);
}

static void test_thresh_fits_32_bits(void **state)
{
	struct limits l = limits_of(&defaults, 1ull << 40, false, 0);

	(void)state;
	assert_int_equal(l.thresh, UINT32_MAX);
	assert_int_equal(l.bg, UINT32_MAX / 2);
}

static void test_dirtyable_memory(void **state)
{
	(void)state;
	assert_int_equal(limits_avail(1000, 200, 30, 4), 835);
	assert_int_equal(limits_avail(100, 200, 30, 4), 35);
	assert_int_equal(limits_avail(0, 0, 0, 0), 1);
}

static void test_tenant_memory(void **state)
{
	(void)state;
	/* Bounded by its headroom. */
	assert_int_equal(limits_tenant_avail(1000, 300, 100, 100000, 5000), 1300);
	/* Bounded by what is clean and not its own: 100000 - 95000 - (1000 - 100). */
	assert_int_equal(limits_tenant_avail(1000, 9000, 100, 100000, 95000), 5100);
	/* Counts that are behind never make it negative. */
	assert_int_equal(limits_tenant_avail(1000, 9000, 2000, 100000, 100001), 1000);
	assert_int_equal(limits_tenant_avail(1000, 9000, 0, 1500, 1000), 1000);
}

static void test_tenant_limits(void **state)
{
	struct limits_config c = defaults;
	struct limits l = limits_of_tenant(&c, 409600, 31981568, false, 0);

	(void)state;
	assert_int_equal(l.thresh, 81900);
	assert_int_equal(l.bg, 40900);
	/* 1 GiB of 1000000 pages is ceil(1073.74) = 1074 parts of 4096. */
	c.dirty_bytes = 1ull << 30;
	l = limits_of_tenant(&c, 409600, 1000000, false, 0);
	assert_int_equal(l.thresh, 107400);
	/* No more than all of it. */
	l = limits_of_tenant(&c, 409600, 10, false, 0);
	assert_int_equal(l.thresh, 409600);
}

static void test_limits_are_ordered_and_grow_with_memory(void **state)
{
	struct numbers n = { 1 };

	(void)state;
	for (int i = 0, end = numbers_rounds(20000); i < end; i++) {
		struct limits_config c = {
			.dirty_ratio = (u32)numbers_below(&n, 101),
			.dirty_background_ratio = (u32)numbers_below(&n, 101),
			.dirty_bytes = i % 3 ? 0 : numbers_sized(&n, 40),
			.dirty_background_bytes = i % 4 ? 0 : numbers_sized(&n, 40),
		};
		u64 avail = 1 + numbers_sized(&n, 40), limit = numbers_sized(&n, 32);
		bool realtime = i & 1;
		struct limits l = limits_of(&c, avail, realtime, limit);
		struct limits more = limits_of(&c, avail + numbers_sized(&n, 30), realtime, limit);

		assert_true(l.bg < l.thresh || (!l.thresh && !l.bg));
		assert_true(l.thresh <= UINT32_MAX);
		assert_true(more.thresh >= l.thresh);
		assert_true(limits_freerun(l.thresh, l.bg) <= l.thresh);
	}
}

static void test_hard_limit_slides_down(void **state)
{
	struct hard_limit h;
	u64 now = 1000;

	(void)state;
	hard_limit_init(&h, 100000, now);
	/* 1/32 of the gap of 64000, once in 200 ms. */
	hard_limit_update(&h, 36000, 0, now + 49, HZ);
	assert_int_equal(h.dirty_limit, 100000);
	hard_limit_update(&h, 36000, 0, now + 50, HZ);
	assert_int_equal(h.dirty_limit, 98000);
	hard_limit_update(&h, 36000, 0, now + 99, HZ);
	assert_int_equal(h.dirty_limit, 98000);
	hard_limit_update(&h, 36000, 0, now + 100, HZ);
	assert_int_equal(h.dirty_limit, 96063); /* 62000 >> 5 is 1937 */
	assert_int_equal(hard_limit_of(&h, 36000), 96063);

	/* Not below what is dirty. */
	hard_limit_update(&h, 36000, 95999, now + 150, HZ);
	assert_int_equal(h.dirty_limit, 96061);
	hard_limit_update(&h, 36000, 99999, now + 200, HZ);
	assert_int_equal(h.dirty_limit, 96061);
}

static void test_hard_limit_falls_by_e_in_six_seconds(void **state)
{
	struct hard_limit h;
	u64 now = 0;

	(void)state;
	hard_limit_init(&h, 2000000, now);
	for (; now < 6300 * HZ / 1000; now++)
		hard_limit_update(&h, 1000000, 0, now + 1, HZ);
	/* 31 steps of 31/32: 1000000 * 0.3737. */
	assert_in_range(h.dirty_limit, 1373000, 1375000);
	for (; now < 120 * HZ; now++)
		hard_limit_update(&h, 1000000, 0, now + 1, HZ);
	/* Steps of whole pages: it stops where a 32nd of the gap is less than one. */
	assert_int_equal(h.dirty_limit, 1000031);
}

static void test_hard_limit_jumps_up(void **state)
{
	struct hard_limit h;

	(void)state;
	hard_limit_init(&h, 0, 0);
	assert_int_equal(hard_limit_of(&h, 77), 77);
	assert_int_equal(h.dirty_limit, 0);
	hard_limit_update(&h, 77, 1000, HZ, HZ);
	assert_int_equal(h.dirty_limit, 77);
	/* At a coarse clock, once a jiffy. */
	hard_limit_init(&h, 3200, 0);
	hard_limit_update(&h, 0, 0, 1, 3);
	assert_int_equal(h.dirty_limit, 3100);
}

static void test_hard_limit_is_not_moved_from_behind(void **state)
{
	struct hard_limit h;

	(void)state;
	hard_limit_init(&h, 3200, 1000);
	hard_limit_update(&h, 0, 0, 999, HZ);
	assert_int_equal(h.dirty_limit, 3200);
	assert_int_equal(h.stamp_jiffies, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vector_of_122_gib),
		cmocka_unit_test(test_16_gib_of_the_strict_example),
		cmocka_unit_test(test_defaults_are_a_little_less_than_said),
		cmocka_unit_test(test_bytes_stand_before_ratios_and_round_up),
		cmocka_unit_test(test_background_stays_below_thresh),
		cmocka_unit_test(test_realtime_tasks_get_more),
		cmocka_unit_test(test_thresh_fits_32_bits),
		cmocka_unit_test(test_dirtyable_memory),
		cmocka_unit_test(test_tenant_memory),
		cmocka_unit_test(test_tenant_limits),
		cmocka_unit_test(test_limits_are_ordered_and_grow_with_memory),
		cmocka_unit_test(test_hard_limit_slides_down),
		cmocka_unit_test(test_hard_limit_falls_by_e_in_six_seconds),
		cmocka_unit_test(test_hard_limit_jumps_up),
		cmocka_unit_test(test_hard_limit_is_not_moved_from_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
