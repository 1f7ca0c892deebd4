// SPDX-License-Identifier: MIT
/* One server's clock: exact to the nanosecond however long it runs. */
#include "device/server.h"
#include "rig.h"

static void test_thirds_of_a_nanosecond_add_up(void **state)
{
	struct server s = { 0 };
	fine_ns third = fine_period(3000);
	u64 end = 0;

	(void)state;
	assert_int_equal(server_take(&s, 0, third), 333333);
	assert_int_equal(server_take(&s, 0, third), 666666);
	assert_int_equal(server_take(&s, 0, third), 1000000);
	for (unsigned i = 3; i < 3000 * 3600; i++)
		end = server_take(&s, 0, third);
	assert_int_equal(end, 3600 * NSEC_PER_SEC);
}

/* A year at 7 I/Os a second, taken in steps of a million. */
static void test_a_year_does_not_drift(void **state)
{
	struct server s = { 0 };
	fine_ns million = fine_period(7) * 1000000;
	u64 end = 0;

	(void)state;
	for (unsigned i = 0; i < 7 * 30; i++)
		end = server_take(&s, 0, million);
	assert_int_equal(end, 30 * 1000000 * NSEC_PER_SEC);
}

static void test_periods_are_exact(void **state)
{
	(void)state;
	assert_true(fine_period(1) == (fine_ns)NSEC_PER_SEC << FINE_BITS);
	assert_true(fine_period(1e9) == (fine_ns)1 << FINE_BITS);
	assert_true(fine_period(1e12) == ((fine_ns)1 << FINE_BITS) / 1000 + 1);
	assert_true(fine_period(2.5) == (fine_ns)400000000 << FINE_BITS);
	/* The last bits of a double count. */
	assert_true(fine_period(0x1.0000000001p10) < fine_period(0x1p10));
}

static void test_idle_server_starts_at_arrival(void **state)
{
	struct server s = { 0 };
	fine_ns third = fine_period(3000);

	(void)state;
	assert_int_equal(server_take(&s, 5, third), 333338);
	/* Arrives while the one before still has a third of a nanosecond to go. */
	assert_int_equal(server_take(&s, 333338, third), 666671);
	/* Arrives later: the fraction is forgotten, the server was idle. */
	assert_int_equal(server_take(&s, 666672, third), 1000005);
	assert_int_equal(server_take(&s, 2000000, third), 2333333);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thirds_of_a_nanosecond_add_up),
		cmocka_unit_test(test_a_year_does_not_drift),
		cmocka_unit_test(test_periods_are_exact),
		cmocka_unit_test(test_idle_server_starts_at_arrival),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
