// SPDX-License-Identifier: MIT
/* Log-normal times: their law, their limits, and that they are the same everywhere. */
#include "device/lognormal.h"
#include "rig.h"
#include <math.h>

#define DRAWS 200000

static void test_law(void **state)
{
	static const double sigmas[] = { 0.1, 0.5, 1.5 };
	struct rng r;

	(void)state;
	rng_init(&r, 3);
	for (size_t i = 0; i < ARRAY_SIZE(sigmas); i++) {
		double m1 = 0, m2 = 0, m3 = 0, m4 = 0;

		for (unsigned n = 0; n < DRAWS; n++) {
			/* The hour's limit is 6 sigma and more away. */
			double z = log(lognormal_draw(&r, 100000000, sigmas[i]) / 1e8) / sigmas[i];

			m1 += z;
			m2 += z * z;
			m3 += z * z * z;
			m4 += z * z * z * z;
		}
		/* Moments of the normal law: 0, 1, 0, 3; within four standard errors. */
		assert_true(fabs(m1 / DRAWS) < 4 * sqrt(1. / DRAWS));
		assert_true(fabs(m2 / DRAWS - 1) < 4 * sqrt(2. / DRAWS));
		assert_true(fabs(m3 / DRAWS) < 4 * sqrt(15. / DRAWS));
		assert_true(fabs(m4 / DRAWS - 3) < 4 * sqrt(96. / DRAWS));
	}
}

static void test_limits(void **state)
{
	struct rng r, untouched;

	(void)state;
	rng_init(&r, 1);
	untouched = r;
	assert_int_equal(lognormal_draw(&r, 12345, 0), 12345);
	assert_memory_equal(&r, &untouched, sizeof(r));
	for (unsigned i = 0; i < 10000; i++) {
		u64 low = lognormal_draw(&r, 1, 3), high = lognormal_draw(&r, 60000000000, 3);

		assert_true(low >= 1);
		assert_true(high <= 3600 * NSEC_PER_SEC);
	}
}

static void test_same_on_every_machine(void **state)
{
	/* Computed apart, with 60 digits. */
	static const u64 expected[] = {
		1266593672745, 826413645312,  1023942748295, 1049244755378,
		1297459751402, 1188910031449, 896716862781,  1455289053512
	};
	struct rng r;

	(void)state;
	rng_init(&r, 2024);
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_int_equal(lognormal_draw(&r, 1000000000000, 0.3), expected[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_law),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_same_on_every_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
