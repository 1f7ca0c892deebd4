/* SPDX-License-Identifier: MIT */
/*
 * A sweep's workers are OS threads: what comes out must not depend on how many there
 * are, and ThreadSanitizer must find nothing they share.
 */
#include "lab/sweep.h"
#include "lab/sweep_peers.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const settings[] = { "vm.dirty_bytes=1M,4M,16M", "device.iops=200,400" };

/* The whole result as JSON: a string of malloc's. */
static char *run(unsigned jobs, const char *const *done)
{
	struct selection selection = { .settings = settings, .setting_count = 2 };
	struct sweep_options o = { .jobs = jobs, .patience_ns = NSEC_PER_SEC };
	struct sweep_curves curves;
	struct experiment x;
	struct sweep s;
	struct peers alone = { .size = 1, .here = 1 };
	struct err e = { "" };
	char *text;
	size_t size;
	FILE *out;

	assert_int_equal(experiment_load(&x, SOURCE_ROOT "/tests/lab/small.ini", &e), 0);
	assert_int_equal(sweep_make(&s, &x, &selection, 1, &e), 0);
	assert_int_equal(s.count, 12);
	for (; done && *done; done++)
		assert_in_range(sweep_enter(&s, *done), 0, 11);
	assert_int_equal(sweep_run(&s, &alone, &o), 0);
	for (size_t i = 0; i < s.count; i++)
		assert_true(s.done[i] && !s.results[i].error);
	assert_int_equal(sweep_curves(&s, &curves), 0);
	out = open_memstream(&text, &size);
	assert_non_null(out);
	assert_int_equal(sweep_json(out, &s, &curves), 0);
	assert_int_equal(fclose(out), 0);
	sweep_curves_finish(&curves);
	sweep_finish(&s);
	experiment_finish(&x);
	return text;
}

static void many_workers_find_what_one_finds(void **state)
{
	char *one = run(1, NULL), *three = run(3, NULL), *many = run(40, NULL);

	(void)state;
	assert_string_equal(one, three);
	assert_string_equal(one, many);
	free(one);
	free(three);
	free(many);
}

static void what_is_done_is_not_run_again(void **state)
{
	static const char *const done[] = {
		"{\"point\":3,\"virtual_s\":7.5,\"predicted\":{\"write_iops\":123456.5}}", NULL
	};
	char *text = run(2, done);

	(void)state;
	assert_non_null(strstr(text, "123456.5"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_workers_find_what_one_finds),
		cmocka_unit_test(what_is_done_is_not_run_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
