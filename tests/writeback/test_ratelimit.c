// SPDX-License-Identifier: MIT
/* The rate of one dirtier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../ledger/numbers.h"
#include "writeback/ratelimit.h"

static struct bandwidth with(u64 limit, u64 avg_write_bw, u64 previous)
{
	return (struct bandwidth){
		.write_bw = avg_write_bw,
		.avg_write_bw = avg_write_bw,
		.dirty_ratelimit = limit,
		.balanced_dirty_ratelimit = previous,
	};
}

static void test_vectors(void **state)
{
	static const struct {
		u64 limit, pos, avg_bw, dirty_rate, previous, dirty, balanced, want;
	} v[] = {
		/* An old high balance blocks a decrease for one update. */
		{ 25600, 700, 131000, 395000, 25600, 5800000, 5804, 25600 },
		{ 25600, 700, 131000, 395000, 8000, 5800000, 5804, 25093 },
		{ 4000, 900, 110000, 128000, 4100, 5700000, 3021, 4000 },
		{ 1000, 1500, 30000, 20000, 2000, 5000000, 2197, 1029 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		struct bandwidth b = with(v[i].limit, v[i].avg_bw, v[i].previous);
		struct ratelimit_inputs in = {
			.pos_ratio = v[i].pos,
			.dirty_rate = v[i].dirty_rate,
			.goal = { .dirty = v[i].dirty, .setpoint = 5595000 },
		};

		assert_int_equal(ratelimit_update(&b, &in), v[i].want);
		assert_int_equal(b.dirty_ratelimit, v[i].want);
		assert_int_equal(b.balanced_dirty_ratelimit, v[i].balanced);
		assert_int_equal(b.avg_write_bw, v[i].avg_bw);
	}
}

static void test_edges(void **state)
{
	struct bandwidth b = with(1, 1, 1);
	struct ratelimit_inputs in = { .goal = { .dirty = 1 } };

	(void)state;
	/* Never below 1, whatever stands still. */
	assert_int_equal(ratelimit_update(&b, &in), 1);
	assert_int_equal(b.balanced_dirty_ratelimit, 1);
	/* The task that dirties nothing balances at the whole bandwidth. */
	b = with(1000, 500, 1000);
	in = (struct ratelimit_inputs){ .pos_ratio = 2048, .goal = { 1, 2 } };
	ratelimit_update(&b, &in);
	assert_int_equal(b.balanced_dirty_ratelimit, 500);
	/* Balanced and in force agree on 0: an eighth of the way down. */
	b = with(8000, 100, 0);
	in = (struct ratelimit_inputs){ .dirty_rate = 1000000, .goal = { 2, 1 } };
	assert_int_equal(ratelimit_update(&b, &in), 8000 - 1000);
	/* A 16th of the way apart: 60000 / 2^8 / 8, rounded up; a 40th: nothing. */
	b = with(1000000, 1, 940000);
	in = (struct ratelimit_inputs){ .dirty_rate = 1, .goal = { 2, 1 } };
	assert_int_equal(ratelimit_update(&b, &in), 999970);
	b = with(1000000, 1, 975000);
	assert_int_equal(ratelimit_update(&b, &in), 1000000);
	/* Large numbers do not overflow. */
	b = with(1ull << 40, 1ull << 40, 1ull << 40);
	in = (struct ratelimit_inputs){ .pos_ratio = INT64_MAX, .goal = { 1, 2 } };
	assert_int_equal(ratelimit_update(&b, &in), 1ull << 40);
	assert_int_equal(b.balanced_dirty_ratelimit, 1ull << 40);
}

static void test_direction_and_size_of_steps(void **state)
{
	struct numbers n = { 8 };
	unsigned up = 0, down = 0;

	(void)state;
	for (int i = 0, end = numbers_rounds(50000); i < end; i++) {
		u64 old = 1 + numbers_sized(&n, 40), avg = 1 + numbers_sized(&n, 40);
		struct bandwidth b = with(old, avg, numbers_sized(&n, 40));
		struct ratelimit_inputs in = {
			.pos_ratio = numbers_sized(&n, 20),
			.dirty_rate = numbers_sized(&n, 40),
			.goal = { numbers_sized(&n, 40), numbers_sized(&n, 40) },
		};
		u64 new = ratelimit_update(&b, &in);

		assert_true(b.balanced_dirty_ratelimit <= avg);
		assert_true(new >= 1);
		if (in.goal.dirty < in.goal.setpoint) {
			assert_true(new >= old);
			/* An eighth of the way to the balance, if all agree. */
			assert_true(new == old || new - old <= (avg - old) / 8 + 1);
			up += new > old;
		} else {
			assert_true(new <= old);
			assert_true(old - new <= old / 8 + 1);
			down += new < old;
		}
	}
	assert_true(up > 500 && down > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_direction_and_size_of_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
