// SPDX-License-Identifier: MIT
/*
 * The parts put together as the throttle loop does, against a device of a constant
 * rate and tasks that dirty as fast as they may: does the control hold?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ledger/limits.h"
#include "ledger/proportion.h"
#include "writeback/pause.h"
#include "writeback/ratelimit.h"

#define HZ 250

struct loop {
	struct limits limits;
	struct hard_limit hard;
	struct proportion_domain domain;
	struct proportion completions;
	struct bandwidth bw;
	u64 now, dirty, dirtied, written;
	u64 peak;
};

static void loop_init(struct loop *l, u64 avail)
{
	static const struct limits_config config = { .dirty_ratio = 20,
						     .dirty_background_ratio = 10 };

	*l = (struct loop){ .limits = limits_of(&config, avail, false, 0) };
	hard_limit_init(&l->hard, l->limits.thresh, 0);
	proportion_domain_init(&l->domain);
	proportion_init(&l->completions, &l->domain);
	bandwidth_init(&l->bw, 0, 0, 0);
}

static struct position loop_position(struct loop *l)
{
	struct wb_share share = { .max_ratio = RATIO_ALL, .floor_in_threshold = true };
	u64 w;

	proportion_share(&l->domain, &l->completions, l->now, HZ, &share.num, &share.den);
	w = wb_thresh(l->limits.thresh, l->dirty, &share);
	return (struct position){
		.thresh = l->limits.thresh,
		.bg = l->limits.bg,
		.limit = hard_limit_of(&l->hard, l->limits.thresh),
		.dirty = l->dirty,
		.wb_thresh = w,
		.wb_bg_thresh = wb_bg_thresh(w, l->limits.thresh, l->limits.bg),
		.wb_dirty = l->dirty,
		.avg_write_bw = l->bw.avg_write_bw,
	};
}

static void loop_estimate(struct loop *l, const struct position *at, u64 ratio)
{
	u64 elapsed = bandwidth_elapsed(&l->bw, l->now);
	struct ratelimit_inputs in = {
		.pos_ratio = ratio,
		.dirty_rate = bandwidth_dirty_rate(&l->bw, elapsed, l->dirtied, HZ),
		.goal = position_goal(at),
	};

	hard_limit_update(&l->hard, l->limits.thresh, l->dirty, l->now, HZ);
	ratelimit_update(&l->bw, &in);
	bandwidth_update_write(&l->bw, elapsed, l->written, HZ);
	bandwidth_stamp(&l->bw, l->now, l->dirtied, l->written);
}

/* One jiffy: `tasks` dirty at their rate, the device writes at `rate` pages per second. */
static void loop_step(struct loop *l, u64 tasks, u64 demand, u64 rate)
{
	struct position at = loop_position(l);
	u64 freerun = limits_freerun(l->limits.thresh, l->limits.bg), ratio, task = demand, pages;

	l->now++;
	if (l->dirty > freerun) {
		ratio = position_ratio(&at);
		if (bandwidth_due(&l->bw, l->now, HZ))
			loop_estimate(l, &at, ratio);
		task = min_u64(demand, position_scale(l->bw.dirty_ratelimit, ratio));
	}
	/* What a rate comes to up to now, less what it came to a jiffy ago. */
	pages = task * tasks * l->now / HZ - task * tasks * (l->now - 1) / HZ;
	l->dirty += pages;
	l->dirtied += pages;
	pages = min_u64(rate * l->now / HZ - rate * (l->now - 1) / HZ, l->dirty);
	l->dirty -= pages;
	l->written += pages;
	proportion_add(&l->domain, &l->completions, pages, PROPORTION_MAX_FRAC, l->now, HZ);
	l->peak = max_u64(l->peak, l->dirty);
}

static void test_dirty_settles_at_the_setpoint(void **state)
{
	static const u64 rates[] = { 3000, 25600, 131000 };
	static const u64 tasks[] = { 1, 8, 32 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(tasks); k++) {
			struct loop l;
			u64 freerun, before, room;

			loop_init(&l, 1 << 23); /* 32 GiB */
			freerun = limits_freerun(l.limits.thresh, l.limits.bg);
			while (l.now < 300 * HZ)
				loop_step(&l, tasks[k], 1 << 20, rates[i]);
			before = l.dirtied;
			while (l.now < 360 * HZ)
				loop_step(&l, tasks[k], 1 << 20, rates[i]);

			/* Writers get what the device gives, within 3 %. */
			assert_in_range(l.dirtied - before, rates[i] * 60 * 97 / 100,
					rates[i] * 60 * 103 / 100);
			/* Half way from free running to the limit, give or take. */
			room = l.limits.thresh - freerun;
			assert_in_range(l.dirty, freerun + room * 35 / 100,
					freerun + room * 65 / 100);
			assert_in_range(l.bw.avg_write_bw, rates[i] * 98 / 100,
					rates[i] * 102 / 100);
			/* The limit holds, up to what a jiffy at full rate adds. */
			assert_true(l.peak <= l.limits.thresh + tasks[k] * ((1 << 20) / HZ + 1));
		}
	}
}

static void test_slow_writers_are_left_alone(void **state)
{
	struct loop l;

	(void)state;
	loop_init(&l, 1 << 23);
	while (l.now < 60 * HZ)
		loop_step(&l, 4, 5000, 25600);
	assert_int_equal(l.dirtied, 4 * 5000 * 60);
	assert_int_equal(l.dirty, 0);
}

/* Half the memory goes to a program: writers are slowed over seconds, not stopped. */
static void test_falling_threshold_never_stops_writers(void **state)
{
	struct loop l, small;
	u64 rate = 100000;

	(void)state;
	loop_init(&l, 1 << 23);
	loop_init(&small, 1 << 22);
	while (l.now < 120 * HZ)
		loop_step(&l, 8, 1 << 20, rate);
	l.limits = small.limits;
	assert_true(l.dirty > l.limits.thresh);
	for (unsigned second = 0; second < 60; second++) {
		u64 before = l.dirtied;

		for (unsigned i = 0; i < HZ; i++)
			loop_step(&l, 8, 1 << 20, rate);
		assert_true(l.dirtied > before);
	}
	assert_true(l.dirty < l.limits.thresh);
	assert_true(l.hard.dirty_limit < l.limits.thresh * 102 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dirty_settles_at_the_setpoint),
		cmocka_unit_test(test_slow_writers_are_left_alone),
		cmocka_unit_test(test_falling_threshold_never_stops_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
