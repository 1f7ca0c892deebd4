// SPDX-License-Identifier: MIT
/* The last waits: kept in order, joined where they go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "writeback/waits.h"

#define MS 1000000ull

static void keeps_the_newest(void **state)
{
	struct waits w = { .count = 0 };
	struct wait out[WAITS_KEPT];

	(void)state;
	assert_int_equal(waits_copy(&w, out), 0);
	for (u64 i = 1; i <= 20; i++)
		waits_note(&w, &(struct wait){ .when_ns = i * 100 * MS, .wait_ns = i * MS });
	assert_int_equal(waits_copy(&w, out), WAITS_KEPT);
	assert_int_equal(out[0].wait_ns, 20 * MS);
	assert_int_equal(out[15].wait_ns, 5 * MS);
}

static void leaves_out_the_short(void **state)
{
	struct waits w = { .count = 0 };
	struct wait out[WAITS_KEPT];

	(void)state;
	waits_note(&w, &(struct wait){ .when_ns = MS, .wait_ns = MS - 1 });
	assert_int_equal(waits_copy(&w, out), 0);
	waits_note(&w, &(struct wait){ .when_ns = MS, .wait_ns = MS });
	assert_int_equal(waits_copy(&w, out), 1);
}

static void joins_looks_at_the_limit(void **state)
{
	struct waits w = { .count = 0 };
	struct wait out[WAITS_KEPT];

	(void)state;
	for (u64 i = 1; i <= 100; i++)
		waits_note(&w, &(struct wait){ .when_ns = i * 10 * MS,
					       .wait_ns = 8 * MS,
					       .why = WAIT_LIMIT,
					       .who = 7,
					       .dirty = i });
	assert_int_equal(waits_copy(&w, out), 1);
	assert_int_equal(out[0].when_ns, 10 * MS);
	assert_int_equal(out[0].wait_ns, 990 * MS + 8 * MS);
	assert_int_equal(out[0].dirty, 100);
	/* another one, another reason, a later one */
	waits_note(&w,
		   &(struct wait){ 1010 * MS, 8 * MS, WAIT_LIMIT, 8, 0, false, 1, 1, 1, 1, 1, 0 });
	waits_note(&w,
		   &(struct wait){ 1020 * MS, 8 * MS, WAIT_PACED, 8, 0, false, 1, 1, 1, 1, 1, 1 });
	waits_note(&w,
		   &(struct wait){ 1030 * MS, 8 * MS, WAIT_PACED, 8, 0, false, 1, 1, 1, 1, 1, 1 });
	waits_note(&w,
		   &(struct wait){ 1040 * MS, 8 * MS, WAIT_LIMIT, 8, 0, false, 1, 1, 1, 1, 1, 0 });
	/* the same process for another tenant */
	waits_note(&w,
		   &(struct wait){ 1041 * MS, 8 * MS, WAIT_LIMIT, 8, 77, true, 1, 1, 1, 1, 1, 0 });
	waits_note(&w,
		   &(struct wait){ 1099 * MS, 8 * MS, WAIT_LIMIT, 8, 0, false, 1, 1, 1, 1, 1, 0 });
	assert_int_equal(waits_copy(&w, out), 7);
}

static void acts_for_somebody(void **state)
{
	(void)state;
	assert_int_equal(waits_who(), 0);
	waits_act_for(42);
	assert_int_equal(waits_who(), 42);
	waits_act_for(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_newest),
		cmocka_unit_test(leaves_out_the_short),
		cmocka_unit_test(joins_looks_at_the_limit),
		cmocka_unit_test(acts_for_somebody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
