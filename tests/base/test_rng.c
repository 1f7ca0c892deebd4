// SPDX-License-Identifier: MIT
#include "base/rng.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The generator of the paper: state 1, 2, 3, 4 gives these, worked out by hand below. */
static void test_known_values(void **state)
{
	struct rng r = { { 1, 2, 3, 4 } };

	(void)state;
	/* rotl(2 * 5, 7) * 9; then s1 = s1 ^ s2 ^ s0 = 0 gives 0; and so on */
	assert_int_equal(rng_u64(&r), 11520);
	assert_int_equal(rng_u64(&r), 0);
	assert_int_equal(rng_u64(&r), 1509978240);
	assert_int_equal(rng_u64(&r), 1215971899390074240);
}

/* splitmix64 from 0 gives the values published with its reference code. */
static void test_seeding(void **state)
{
	struct rng r, again;

	(void)state;
	rng_init(&r, 0);
	assert_int_equal(r.s[0], 0xe220a8397b1dcdafull);
	assert_int_equal(r.s[1], 0x6e789e6aa1b965f4ull);
	assert_int_equal(r.s[2], 0x06c45d188009454full);
	assert_int_equal(r.s[3], 0xf88bb8a8724c81ecull);
	rng_init(&again, 0);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(rng_u64(&r), rng_u64(&again));
	rng_init(&again, 1);
	assert_int_not_equal(rng_u64(&r), rng_u64(&again));
}

static void test_below(void **state)
{
	static const u64 limits[] = { 1, 2, 3, 7, 64, 1000, 1ull << 63, (1ull << 63) + 1, ~0ull };
	u64 count[7] = { 0 }, high = 0;
	struct rng r;

	(void)state;
	rng_init(&r, 42);
	for (unsigned i = 0; i < ARRAY_SIZE(limits); i++)
		for (unsigned j = 0; j < 1000; j++)
			assert_true(rng_below(&r, limits[i]) < limits[i]);
	for (unsigned i = 0; i < 70000; i++)
		count[rng_below(&r, 7)]++;
	for (unsigned i = 0; i < 7; i++) /* 5 standard deviations of 92.6 */
		assert_in_range(count[i], 10000 - 463, 10000 + 463);
	/* of 3 * 2^62 values a biased draw gives one third of them half of the time */
	for (unsigned i = 0; i < 30000; i++)
		high += rng_below(&r, 3ull << 62) >= 1ull << 63;
	assert_in_range(high, 10000 - 408, 10000 + 408);
}

static void test_double(void **state)
{
	struct rng r;
	double sum = 0, least = 1, most = 0;

	(void)state;
	rng_init(&r, 7);
	for (unsigned i = 0; i < 100000; i++) {
		double x = rng_double(&r);

		assert_true(x >= 0 && x < 1);
		sum += x;
		least = x < least ? x : least;
		most = x > most ? x : most;
	}
	assert_true(least < 0.0001 && most > 0.9999);
	/* the mean of 100,000: 5 standard deviations of 0.000913 */
	assert_true(sum / 100000 > 0.5 - 0.0046 && sum / 100000 < 0.5 + 0.0046);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_values),
		cmocka_unit_test(test_seeding),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_double),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
