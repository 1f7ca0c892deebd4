/* SPDX-License-Identifier: MIT */
/* Numbers: units, and expressions of them. */
#include "job/number.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void numbers(void **state)
{
	static const struct {
		const char *text;
		u64 value;
	} good[] = {
		{ "0", 0 },
		{ "010", 10 },
		{ "0x10", 16 },
		{ "0XfF", 255 },
		{ "1k", 1024 },
		{ "1KB", 1024 },
		{ "1Ki", 1024 },
		{ "1KiB", 1000 },
		{ "2mib", 2000000 },
		{ "1m", 1 << 20 },
		{ "7b", 7 },
		{ "3P", 3ull << 50 },
		{ "18446744073709551615", ~0ull },
	};
	static const char *const bad[] = { "",     "k",     "1x",     "1kk",
					   "-1",   "+1",    "0x",     "1 k",
					   "1.5k", "1kibb", "16384p", "18446744073709551616" };
	u64 value = 99;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(number_bytes(good[i].text, &value), 0);
		assert_true(value == good[i].value);
	}
	value = 99;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(number_bytes(bad[i], &value), -EINVAL);
	assert_int_equal(value, 99);
	assert_int_equal(number_time("7", 5, &value), 0);
	assert_int_equal(value, 35);
	assert_int_equal(number_time("2M", 1, &value), 0); /* fio ignores case: minutes */
	assert_int_equal(value, 120 * NSEC_PER_SEC);
	assert_int_equal(number_time("999999999d", 1, &value), -EINVAL);
	assert_int_equal(number_time("3sec", 1, &value), -EINVAL);
}

static void expressions(void **state)
{
	static const struct {
		const char *text;
		u64 bare_ns, value;
	} good[] = {
		{ "2*4k", 0, 8192 },
		{ "(2+3)*4k", 0, 20480 },
		{ "(2+3)k", 0, 5120 },
		{ " 2 * ( 4k + 512 ) ", 0, 9216 },
		{ "2^10", 0, 1024 },
		{ "2^3^2", 0, 512 },
		{ "17%5", 0, 2 },
		{ "10-3-2", 0, 5 },
		{ "100/10/5", 0, 2 },
		{ "8/3*3", 0, 6 },
		{ "5-(-3)", 0, 8 },
		{ "-3+5", 0, 2 },
		{ "0x10*2", 0, 32 },
		{ "40+20", NSEC_PER_SEC, 60 * NSEC_PER_SEC },
		{ "1h/2", NSEC_PER_SEC, 1800 * NSEC_PER_SEC },
		{ "(2*3)ms", NSEC_PER_SEC, 6 * NSEC_PER_MSEC },
		{ "2*3m", NSEC_PER_SEC, 360 * NSEC_PER_SEC },
		{ "1m+30", NSEC_PER_SEC, 90 * NSEC_PER_SEC },
		{ "3m%50s", NSEC_PER_SEC, 30 * NSEC_PER_SEC },
		{ "1m/20s", NSEC_PER_SEC, 3 * NSEC_PER_SEC },
	};
	static const char *const bad[] = {
		"2*",
		"(2",
		"2)",
		"2**3",
		"()",
		"1/0",
		"5%0",
		"2^200",
		"2^(0-1)",
		"3-5",
		"2 3",
		"1m*1m",
		"10/1s",
		"2^1s",
		"k",
		"*2",
		"(2)(3)",
		"9999999999p*9999999999p",
		"((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))",
	};
	u64 value = 99;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct number_rules rules = { 1024, good[i].bare_ns };

		if (number_read(good[i].text, &rules, &value) || value != good[i].value)
			fail_msg("%s gives %llu", good[i].text, (unsigned long long)value);
	}
	value = 99;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!number_read(bad[i], &(struct number_rules){ 1024, NSEC_PER_SEC }, &value))
			fail_msg("%s gives %llu", bad[i], (unsigned long long)value);
	assert_int_equal(value, 99);
	assert_int_equal(number_read("2k+1kib", &(struct number_rules){ .kilo = 1000 }, &value), 0);
	assert_int_equal(value, 3024);
	assert_true(number_is_computed("2*3") && !number_is_computed("(2*3)") &&
		    !number_is_computed("4k"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(expressions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
