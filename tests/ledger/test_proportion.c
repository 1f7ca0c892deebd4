// SPDX-License-Identifier: MIT
/* Shares of write-out, their ageing, and the thresholds they earn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ledger/proportion.h"
#include "numbers.h"

#define HZ     250
#define PERIOD (3 * HZ)

struct pair {
	u64 num, den;
};

static struct pair share(struct proportion_domain *d, struct proportion *p, u64 now)
{
	struct pair s;

	proportion_share(d, p, now, HZ, &s.num, &s.den);
	return s;
}

static void assert_share(struct pair s, u64 num, u64 den)
{
	assert_int_equal(s.num, num);
	assert_int_equal(s.den, den);
}

static void add(struct proportion_domain *d, struct proportion *p, u64 n, u64 now)
{
	proportion_add(d, p, n, PROPORTION_MAX_FRAC, now, HZ);
}

static void test_nothing_written_is_no_share(void **state)
{
	struct proportion_domain d;
	struct proportion p;

	(void)state;
	proportion_domain_init(&d);
	proportion_init(&p, &d);
	assert_share(share(&d, &p, 0), 0, 1);
	assert_share(share(&d, &p, 1000 * PERIOD), 0, 1);
	assert_int_equal(d.period, 0); /* no completion: no clock */
}

static void test_one_device_has_it_all(void **state)
{
	struct proportion_domain d;
	struct proportion p;
	struct pair s;

	(void)state;
	proportion_domain_init(&d);
	proportion_init(&p, &d);
	add(&d, &p, 1, 10);
	assert_share(share(&d, &p, 10), 1, 2);
	add(&d, &p, 999, 11);
	assert_share(share(&d, &p, 11), 1000, 1001);
	for (u64 now = 12; now < 20 * PERIOD; now++)
		add(&d, &p, 64, now);
	s = share(&d, &p, 20 * PERIOD);
	assert_true(s.den - s.num <= 2);
}

static void test_counts_halve_each_period(void **state)
{
	struct proportion_domain d;
	struct proportion a, b;

	(void)state;
	proportion_domain_init(&d);
	proportion_init(&a, &d);
	proportion_init(&b, &d);
	add(&d, &a, 1000, 100);
	add(&d, &b, 3000, 101);
	assert_share(share(&d, &a, 100 + PERIOD - 1), 1000, 4001);
	assert_share(share(&d, &a, 100 + PERIOD), 500, 2000);
	assert_int_equal(d.period, 1);
	/* b is only looked at a period later. */
	assert_share(share(&d, &b, 100 + 2 * PERIOD), 750, 1000);
	assert_share(share(&d, &a, 100 + 2 * PERIOD), 250, 1000);
}

static void test_idle_device_fades_beside_a_busy_one(void **state)
{
	struct proportion_domain d;
	struct proportion idle, busy;
	u64 now = 0;

	(void)state;
	proportion_domain_init(&d);
	proportion_init(&idle, &d);
	proportion_init(&busy, &d);
	for (; now < 10 * PERIOD; now++) {
		add(&d, &idle, 10, now);
		add(&d, &busy, 10, now);
	}
	for (int periods = 0; periods < 5; periods++) {
		struct pair before = share(&d, &idle, now), after;

		for (u64 end = now + PERIOD; now < end; now++)
			add(&d, &busy, 20, now);
		after = share(&d, &idle, now);
		/* Half the share, within 1 %. */
		assert_in_range(after.num * before.den * 200 / (before.num * after.den), 99, 101);
	}
}

static void test_idle_domain_keeps_shares_until_they_vanish(void **state)
{
	struct proportion_domain d;
	struct proportion a, b;
	struct pair s;

	(void)state;
	proportion_domain_init(&d);
	proportion_init(&a, &d);
	proportion_init(&b, &d);
	add(&d, &a, 1 << 20, 0);
	add(&d, &b, 1 << 20, 0);
	/* Nobody writes: both halve, the shares stay. */
	s = share(&d, &a, 5 * PERIOD);
	assert_int_equal(s.num, 1 << 15);
	assert_int_equal(s.den, 1 << 16);
	/* den is 1 after the 21st period; the clock stops at the 22nd end. */
	s = share(&d, &a, 1000 * PERIOD);
	assert_share(s, 0, 1);
	assert_false(d.running);
	assert_int_equal(d.period, 21);
}

static void test_clock_restarts_at_the_next_completion(void **state)
{
	struct proportion_domain d;
	struct proportion a;
	u64 now = 1000 * PERIOD + 7, period;

	(void)state;
	proportion_domain_init(&d);
	proportion_init(&a, &d);
	add(&d, &a, 100, 0);
	assert_share(share(&d, &a, now), 1, 1); /* it alone wrote: its share stays */
	period = d.period;
	add(&d, &a, 64, now);
	assert_true(d.running);
	assert_share(share(&d, &a, now + PERIOD - 1), 65, 65);
	assert_int_equal(d.period, period);
	assert_share(share(&d, &a, now + PERIOD), 32, 32);
	assert_int_equal(d.period, period + 1);
}

static void test_long_untouched_is_nothing(void **state)
{
	struct proportion_domain d;
	struct proportion old, busy;
	u64 now = 0;

	(void)state;
	proportion_domain_init(&d);
	proportion_init(&old, &d);
	proportion_init(&busy, &d);
	add(&d, &old, 1ull << 40, now);
	for (; now < 70 * PERIOD; now += HZ)
		add(&d, &busy, 1000, now);
	assert_int_equal(share(&d, &old, now).num, 0);
}

/* Ageing late is the same as a timer: whoever looks, and however often. */
static void test_lazy_ageing_is_exact(void **state)
{
	struct proportion_domain lazy, eager;
	struct proportion a, b, c, e;
	struct numbers n = { 2 };
	u64 now = 0;

	(void)state;
	proportion_domain_init(&lazy);
	proportion_domain_init(&eager);
	proportion_init(&a, &lazy);
	proportion_init(&b, &lazy);
	proportion_init(&c, &eager);
	proportion_init(&e, &eager);
	for (int i = 0, end = numbers_rounds(2000); i < end; i++) {
		u64 gap = numbers_sized(&n, 14), pages = 1 + numbers_sized(&n, 20);
		bool first = numbers_next(&n) & 1;
		struct pair x, y;

		for (u64 t = now; t < now + gap; t += 1 + gap / 40) {
			share(&eager, &c, t);
			share(&eager, &e, t);
		}
		now += gap;
		add(&lazy, first ? &a : &b, pages, now);
		add(&eager, first ? &c : &e, pages, now);
		x = share(&lazy, &a, now);
		y = share(&eager, &c, now);
		assert_int_equal(x.num, y.num);
		assert_int_equal(x.den, y.den);
		assert_int_equal(lazy.period, eager.period);
	}
}

static void test_max_frac_bounds_the_share(void **state)
{
	struct numbers n = { 3 };

	(void)state;
	for (int i = 0, end = numbers_rounds(2000); i < end; i++) {
		u32 frac = (u32)numbers_below(&n, PROPORTION_MAX_FRAC);
		struct proportion_domain d;
		struct proportion capped, other;
		struct pair s;

		proportion_domain_init(&d);
		proportion_init(&capped, &d);
		proportion_init(&other, &d);
		add(&d, &other, numbers_sized(&n, 30), 0);
		for (int k = 0; k < 4; k++)
			proportion_add(&d, &capped, numbers_sized(&n, 30), frac, 0, HZ);
		s = share(&d, &capped, 0);
		assert_true(s.num <= s.den);
		/* One page less would be below the bound. */
		assert_true(!s.num || (s.num - 1) * 1024 < (s.den - 1) * frac);
	}
}

static void test_max_frac_lets_the_share_saturate(void **state)
{
	struct proportion_domain d;
	struct proportion capped, other;

	(void)state;
	proportion_domain_init(&d);
	proportion_init(&capped, &d);
	proportion_init(&other, &d);
	add(&d, &other, 999, 0);
	proportion_add(&d, &capped, 100, 512, 0, HZ);
	assert_share(share(&d, &capped, 0), 100, 1100);
	/* Half of all: 900 of these. */
	proportion_add(&d, &capped, 5000, 512, 0, HZ);
	assert_share(share(&d, &capped, 0), 1000, 2000);
	proportion_add(&d, &capped, 5000, 512, 0, HZ);
	assert_share(share(&d, &capped, 0), 1000, 2000);
}

static const struct wb_share whole = {
	.num = 1,
	.den = 1,
	.max_ratio = RATIO_ALL,
	.floor_in_threshold = true,
};

static void test_thresh_of_an_idle_device(void **state)
{
	struct wb_share s = whole;

	(void)state;
	s.num = 0;
	/*
	 * A loop device seen live: 4,804,364 kB and 2,852 kB dirty give 600,192 kB, 150,048
	 * pages. It is a page less here, as the three were not read at one instant.
	 */
	assert_int_equal(wb_thresh(4804364 / 4, 2852 / 4, &s), 150047);
	s.strictlimit = true;
	assert_int_equal(wb_thresh(1000000, 0, &s), 10000);
	assert_int_equal(wb_thresh(1000000, 1000000, &s), 0);
	assert_int_equal(wb_thresh(1000000, 1000001, &s), 0);
	s.floor_in_threshold = false;
	assert_int_equal(wb_thresh(1000000, 0, &s), 0);
}

static void test_thresh_by_share(void **state)
{
	struct wb_share s = whole;

	(void)state;
	assert_int_equal(wb_thresh(6394752, 100, &s), 6394752);
	s.num = 1;
	s.den = 3;
	assert_int_equal(wb_thresh(9000, 9000, &s), 3000);
	assert_int_equal(wb_thresh(0, 0, &s), 0);
	/* Large counts do not overflow. */
	s.num = (1ull << 60) / 3;
	s.den = 1ull << 60;
	assert_int_equal(wb_thresh(1ull << 40, 1ull << 40, &s), (1ull << 40) / 3);
}

static void test_thresh_by_ratios(void **state)
{
	struct wb_share s = whole;

	(void)state;
	/* 16 GiB and FUSE's 1 %. */
	s.max_ratio = RATIO_ALL / 100;
	s.strictlimit = true;
	assert_int_equal(wb_thresh(838000, 0, &s), 8380);
	s.num = 0;
	assert_int_equal(wb_thresh(838000, 0, &s), 8380);
	assert_int_equal(wb_thresh(838000, 419000, &s), 4190);
	assert_int_equal(wb_bg_thresh(8380, 838000, 418500), 4185);
	assert_int_equal(wb_bg_thresh(0, 0, 0), 0);

	s = whole;
	s.num = 0;
	s.min_ratio = s.min_ratio_sum = 200000;
	assert_int_equal(wb_thresh(10000, 10000, &s), 2000);
	s.num = 1;
	assert_int_equal(wb_thresh(10000, 10000, &s), 10000);
	/* One of two wbs of the device, with a quarter of the bandwidth. */
	s.max_ratio = 400000;
	s.this_bw = 100;
	s.tot_bw = 400;
	assert_int_equal(wb_thresh(10000, 10000, &s), 1000);
	s.num = 0;
	assert_int_equal(wb_thresh(10000, 10000, &s), 500);
	/* max_ratio 100 % is never scaled. */
	s.max_ratio = RATIO_ALL;
	s.num = 1;
	assert_int_equal(wb_thresh(10000, 10000, &s), 8500);
}

static void test_thresh_is_bounded(void **state)
{
	struct numbers n = { 4 };

	(void)state;
	for (int i = 0, end = numbers_rounds(20000); i < end; i++) {
		struct wb_share s = whole;
		u64 t = numbers_sized(&n, 40), dirty = numbers_sized(&n, 40), w;

		s.den = 1 + numbers_sized(&n, 40);
		s.num = numbers_below(&n, s.den + 1 > 1ull << 40 ? s.den : s.den + 1);
		s.max_ratio = 1 + (u32)numbers_below(&n, RATIO_ALL);
		s.min_ratio = (u32)numbers_below(&n, s.max_ratio);
		s.min_ratio_sum = s.min_ratio;
		s.this_bw = numbers_sized(&n, 40);
		s.tot_bw = numbers_sized(&n, 40);
		s.strictlimit = i & 1;
		s.floor_in_threshold = i & 2;
		w = wb_thresh(t, dirty, &s);
		assert_true(w <= t);
		assert_true(wb_bg_thresh(w, t, t / 2) <= w);
		if (s.max_ratio == RATIO_ALL && s.floor_in_threshold && dirty < t)
			assert_true(w >= (t - dirty) / (s.strictlimit ? 100 : 8));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_written_is_no_share),
		cmocka_unit_test(test_one_device_has_it_all),
		cmocka_unit_test(test_counts_halve_each_period),
		cmocka_unit_test(test_idle_device_fades_beside_a_busy_one),
		cmocka_unit_test(test_idle_domain_keeps_shares_until_they_vanish),
		cmocka_unit_test(test_clock_restarts_at_the_next_completion),
		cmocka_unit_test(test_long_untouched_is_nothing),
		cmocka_unit_test(test_lazy_ageing_is_exact),
		cmocka_unit_test(test_max_frac_bounds_the_share),
		cmocka_unit_test(test_max_frac_lets_the_share_saturate),
		cmocka_unit_test(test_thresh_of_an_idle_device),
		cmocka_unit_test(test_thresh_by_share),
		cmocka_unit_test(test_thresh_by_ratios),
		cmocka_unit_test(test_thresh_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
