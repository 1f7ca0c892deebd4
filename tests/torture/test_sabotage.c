/* SPDX-License-Identifier: MIT */
/* The torture finds what is wrong: each sabotage is noticed, and a failing run is made short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "torture/torture.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 150

static void find_either(enum torture_sabotage sabotage, u32 faults, const char *words,
			const char *or_words)
{
	struct torture_config c = {
		.seed = 1, .steps = STEPS, .faults = faults, .sabotage = sabotage
	};
	struct torture_report report = { 0 };

	assert_int_equal(torture_runs(&c, 60, 1, NULL, NULL, &report), 1);
	if (!strstr(report.why, words) && !strstr(report.why, or_words))
		fail_msg("seed %llu: \"%s\" does not say \"%s\"", (unsigned long long)report.seed,
			 report.why, words);
}

static void find(enum torture_sabotage sabotage, u32 faults, const char *words)
{
	find_either(sabotage, faults, words, words);
}

static void test_lost_flush(void **state)
{
	(void)state;
	find(SABOTAGE_FLUSH, TORTURE_POWER, "after a power loss");
}

static void test_lost_write(void **state)
{
	(void)state;
	find(SABOTAGE_WRITE, 0, "");
}

static void test_wrong_read(void **state)
{
	(void)state;
	find(SABOTAGE_READ, 0, "which nobody has left there");
}

static void test_lying_fsync(void **state)
{
	(void)state;
	find(SABOTAGE_FSYNC, TORTURE_POWER | TORTURE_EIO | TORTURE_GONE, "would be");
}

static void test_forgetful_recovery(void **state)
{
	(void)state;
	find(SABOTAGE_OWED, TORTURE_POWER, "killed here");
}

static void test_silent_device(void **state)
{
	(void)state;
	/* what is on its way there stays dirty, long before it is plain that all stands still */
	find_either(SABOTAGE_ANSWER, 0, "has been dirty for", "stuck: no operation began");
}

static void test_shrinking(void **state)
{
	struct torture_config c = { .seed = 1, .steps = STEPS, .sabotage = SABOTAGE_READ };
	struct torture_report report = { 0 };
	u8 keep[STEPS];
	int left;

	(void)state;
	assert_int_equal(torture_runs(&c, 60, 1, NULL, NULL, &report), 1);
	c.seed = report.seed;
	left = torture_shrink(&c, keep, &report);
	assert_in_range(left, 1, 20);
	c.keep = keep;
	memset(&report, 0, sizeof(report));
	assert_int_equal(torture_runs(&c, 1, 1, NULL, NULL, &report), 1);
	assert_true(strlen(report.why) > 0);
}

/* The first failure is told, by however many processes it was looked for. */
static void test_first_failure_is_told(void **state)
{
	struct torture_config c = { .seed = 1, .steps = STEPS, .sabotage = SABOTAGE_READ };
	struct torture_report one = { 0 }, three = { 0 };

	(void)state;
	assert_int_equal(torture_runs(&c, 60, 1, NULL, NULL, &one), 1);
	assert_int_equal(torture_runs(&c, 60, 3, NULL, NULL, &three), 1);
	assert_int_equal(one.seed, three.seed);
	assert_string_equal(one.why, three.why);
	assert_string_equal(one.doing, three.doing);
}

static void test_fault_lists(void **state)
{
	struct err e = { "" };
	u32 faults;

	(void)state;
	assert_int_equal(torture_faults_parse("eio,power", &faults, &e), 0);
	assert_int_equal(faults, TORTURE_EIO | TORTURE_POWER);
	assert_int_equal(torture_faults_parse("none", &faults, &e), 0);
	assert_int_equal(faults, 0);
	assert_int_not_equal(torture_faults_parse("eio,fire", &faults, &e), 0);
	assert_non_null(strstr(e.text, "\"fire\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_flush),
		cmocka_unit_test(test_lost_write),
		cmocka_unit_test(test_wrong_read),
		cmocka_unit_test(test_lying_fsync),
		cmocka_unit_test(test_forgetful_recovery),
		cmocka_unit_test(test_silent_device),
		cmocka_unit_test(test_shrinking),
		cmocka_unit_test(test_first_failure_is_told),
		cmocka_unit_test(test_fault_lists),
	};

	return cmocka_run_group_tests_name("sabotage", tests, NULL, NULL);
}
