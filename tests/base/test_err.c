/* SPDX-License-Identifier: MIT */
/* Messages for people: their form, that the first one stays, and whom they suggest. */
#include "base/err.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void message_names_file_and_line(void **state)
{
	struct err e = { "" };

	(void)state;
	assert_int_equal(err_set(&e, "a.ini", 7, "bad %s", "thing"), -EINVAL);
	assert_string_equal(e.text, "a.ini:7: bad thing");
}

static void message_leaves_out_what_is_unknown(void **state)
{
	struct err no_line = { "" }, no_file = { "" };

	(void)state;
	err_set(&no_line, "a.ini", 0, "is a directory");
	assert_string_equal(no_line.text, "a.ini: is a directory");
	err_set(&no_file, NULL, 0, "--size wants a number");
	assert_string_equal(no_file.text, "--size wants a number");
	/* a line without a file says nothing */
	no_file.text[0] = 0;
	err_set(&no_file, NULL, 3, "x");
	assert_string_equal(no_file.text, "x");
}

static void first_message_stays(void **state)
{
	struct err e = { "" };

	(void)state;
	err_set(&e, "a.ini", 1, "the cause");
	assert_int_equal(err_set(&e, "a.ini", 2, "the consequence"), -EINVAL);
	assert_string_equal(e.text, "a.ini:1: the cause");
}

static void no_struct_is_fine(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, "a.ini", 1, "nobody listens"), -EINVAL);
}

static void message_is_one_line_and_fits(void **state)
{
	struct err e = { "" };
	char longer[2000];

	(void)state;
	err_set(&e, "a.ini", 1, "key \"a\nb\tc\x7f\"");
	assert_string_equal(e.text, "a.ini:1: key \"a b c \"");

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	e.text[0] = 0;
	err_set(&e, "a.ini", 1, "%s", longer);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	e.text[0] = 0;
	err_set(&e, longer, 1, "never seen");
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	assert_null(strstr(e.text, "never"));
}

static const char *const keys[] = {
	"runtime", "ramp_time", "rw", "bs", "size", "dirty_ratio", "dirty_background_ratio",
};

static void nearest_finds_slips(void **state)
{
	static const struct {
		const char *word, *nearest;
	} slips[] = {
		{ "runtim", "runtime" },   /* a letter short */
		{ "runntime", "runtime" }, /* a letter more */
		{ "runtims", "runtime" },  /* a wrong letter */
		{ "rutnime", "runtime" },  /* two swapped */
		{ "wr", "rw" },            /* swapped: one step, not two */
		{ "ramp-time", "ramp_time" } /* the other dash */,
		{ "Dirty_Ratio", "dirty_ratio" },
		{ "dirty_backgroud_ration", "dirty_background_ratio" },
		{ "size", "size" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(slips); i++) {
		const char *found = err_nearest(slips[i].word, keys, ARRAY_SIZE(keys));

		assert_non_null(found);
		assert_string_equal(found, slips[i].nearest);
	}
}

static void nearest_refuses_the_far(void **state)
{
	static const char *const single[] = { "x" };
	char longer[2000];

	(void)state;
	assert_null(err_nearest("iodepth", keys, ARRAY_SIZE(keys)));
	assert_null(err_nearest("", keys, ARRAY_SIZE(keys)));
	assert_null(err_nearest("y", single, 1)); /* one letter changed of one */
	assert_null(err_nearest("size", keys, 0));
	memset(longer, 's', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	assert_null(err_nearest(longer, keys, ARRAY_SIZE(keys)));
}

static void nearest_prefers_the_first_of_equals(void **state)
{
	static const char *const ties[] = { "cart", "card", "care" };

	(void)state;
	assert_ptr_equal(err_nearest("carx", ties, 3), ties[0]);
	assert_ptr_equal(err_nearest("care", ties, 3), ties[2]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(message_names_file_and_line),
		cmocka_unit_test(message_leaves_out_what_is_unknown),
		cmocka_unit_test(first_message_stays),
		cmocka_unit_test(no_struct_is_fine),
		cmocka_unit_test(message_is_one_line_and_fits),
		cmocka_unit_test(nearest_finds_slips),
		cmocka_unit_test(nearest_refuses_the_far),
		cmocka_unit_test(nearest_prefers_the_first_of_equals),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
