/* SPDX-License-Identifier: MIT */
/* Sizes, times, numbers and truth values as people write them, and what is refused. */
#include "base/units.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void sizes(void **state)
{
	static const struct {
		const char *text;
		u64 bytes;
	} good[] = {
		{ "0", 0 },
		{ "4096", 4096 },
		{ "4k", 4096 },
		{ "4K", 4096 },
		{ "4kb", 4096 },
		{ "4Ki", 4096 },
		{ "128KiB", 131072 },
		{ "128 KiB", 131072 },
		{ "512b", 512 },
		{ "1m", 1048576 },
		{ "3g", 3221225472 },
		{ "1.5g", 1610612736 },
		{ ".5k", 512 },
		{ "2T", 2199023255552 },
		{ "1p", 1125899906842624 },
		{ "15e", 17293822569102704640u },
		{ "1e", 1ull << 60 }, /* a unit, not a broken exponent */
		{ "15EiB", 17293822569102704640u },
		{ "1e6", 1000000 },
		{ "1E+3k", 1024000 },
		{ "25e-1k", 2560 },
		{ "0.1k", 102 }, /* 102.4: parts of a byte are cut off */
		{ "1e-99", 0 },
		{ "0e99", 0 },
		{ "18446744073709551615", UINT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		u64 bytes = 7;

		assert_int_equal(units_parse_bytes(good[i].text, &bytes), 0);
		assert_int_equal(bytes, good[i].bytes);
	}
}

static void sizes_refused(void **state)
{
	static const char *const bad[] = {
		"",        "k",     "-1",
		"+1",      " 1",    "1 ",
		"1k ",     "1  k",  "1x",
		"1kx",     "1kbb",  "1bi",
		"1bib",    "1i",    "1kibi",
		"1.2.3",   ".",     "0x10",
		"16e",     "1e20",  "18446744073709551616",
		"1e-100k", "1e100", "20000000000000000000000",
		"1,5k",    "nan",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		u64 bytes = 7;

		assert_int_equal(units_parse_bytes(bad[i], &bytes), -EINVAL);
		assert_int_equal(bytes, 7);
	}
}

static void times(void **state)
{
	static const struct {
		const char *text;
		u64 ns;
	} good[] = {
		{ "500ms", 500000000 },
		{ "2", 2000000000 },
		{ "0", 0 },
		{ "0.25", 250000000 },
		{ "2s", 2000000000 },
		{ "2 sec", 2000000000 },
		{ "0.1s", 100000000 },
		{ "3m", 180000000000 },
		{ "3MIN", 180000000000 },
		{ "1h", 3600000000000 },
		{ "2d", 172800000000000 },
		{ "17us", 17000 },
		{ "17usec", 17000 },
		{ "9ns", 9 },
		{ "1.9ns", 1 },
		{ "1e3ms", 1000000000 },
		{ "5msec", 5000000 },
	};
	static const char *const bad[] = { "", "s", "-1s", "1 ", "1sx", "1y", "1s2", "1e12d" };
	u64 ns;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		ns = 7;
		assert_int_equal(units_parse_time(good[i].text, NSEC_PER_SEC, &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ns = 7;
		assert_int_equal(units_parse_time(bad[i], NSEC_PER_SEC, &ns), -EINVAL);
		assert_int_equal(ns, 7);
	}
	/* a bare number is in the unit the caller names; a written unit wins over it */
	assert_int_equal(units_parse_time("3", NSEC_PER_USEC, &ns), 0);
	assert_int_equal(ns, 3000);
	assert_int_equal(units_parse_time("3s", NSEC_PER_USEC, &ns), 0);
	assert_int_equal(ns, 3000000000);
}

static void whole_numbers(void **state)
{
	static const char *const bad[] = {
		"", "-1", "+1", " 1", "1 ", "1k", "0x1", "1.0", "18446744073709551616",
	};
	u64 value;

	(void)state;
	assert_int_equal(units_parse_u64("0", &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(units_parse_u64("007", &value), 0);
	assert_int_equal(value, 7);
	assert_int_equal(units_parse_u64("18446744073709551615", &value), 0);
	assert_int_equal(value, UINT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		value = 9;
		assert_int_equal(units_parse_u64(bad[i], &value), -EINVAL);
		assert_int_equal(value, 9);
	}
}

static void real_numbers(void **state)
{
	static const char *const bad[] = {
		"", ".", "-0.5", "+1", " 1", "1 ", "inf", "nan", "0x1p3", "1e999", "1.5x", "1..2",
	};
	double value;

	(void)state;
	assert_int_equal(units_parse_double("0.25", &value), 0);
	assert_true(value == 0.25);
	assert_int_equal(units_parse_double(".1", &value), 0);
	assert_true(value == 0.1);
	assert_int_equal(units_parse_double("12", &value), 0);
	assert_true(value == 12);
	assert_int_equal(units_parse_double("1e-3", &value), 0);
	assert_true(value == 0.001);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		value = 9;
		assert_int_equal(units_parse_double(bad[i], &value), -EINVAL);
		assert_true(value == 9);
	}
}

static void truth_values(void **state)
{
	static const char *const yes[] = { "yes", "true", "on", "1", "Yes", "TRUE" };
	static const char *const no[] = { "no", "false", "off", "0", "No", "OFF" };
	static const char *const bad[] = { "", "2", "y", "yess", "01", " 1" };
	bool value;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		value = false;
		assert_int_equal(units_parse_bool(yes[i], &value), 0);
		assert_true(value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		value = true;
		assert_int_equal(units_parse_bool(no[i], &value), 0);
		assert_false(value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		value = true;
		assert_int_equal(units_parse_bool(bad[i], &value), -EINVAL);
		assert_true(value);
	}
}

static void printed_sizes(void **state)
{
	static const struct {
		u64 bytes;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ 4096, "4096" },
		{ 10239, "10239" },
		{ 10240, "10K" },
		{ 10500, "10.3K" }, /* 10.254 */
		{ 524288, "512K" },
		{ 1023 << 10, "0.999M" },
		{ 1 << 20, "1M" },
		{ (1 << 20) - 1, "1M" }, /* 0.9999990 rounds up to the next form */
		{ 1610612736, "1.5G" },
		{ 25232932864, "23.5G" },
		{ 107374182400, "100G" },
		{ 1072693248, "0.999G" },
		{ 1099511627776, "1T" },
		{ UINT64_MAX, "16E" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char buf[UNITS_TEXT_MAX];

		assert_ptr_equal(units_print_bytes(buf, cases[i].bytes), buf);
		assert_string_equal(buf, cases[i].text);
	}
}

static void printed_sizes_read_back(void **state)
{
	(void)state;
	for (u64 bytes = 1; bytes < 1ull << 62; bytes += bytes / 7 + 1) {
		char buf[UNITS_TEXT_MAX];
		u64 back;

		assert_int_equal(units_parse_bytes(units_print_bytes(buf, bytes), &back), 0);
		/* three digits: half a unit of the last of "1.00" is 0.5 % */
		assert_true(fabs((double)back - (double)bytes) <= (double)bytes * 0.00501);
		assert_true(bytes >= 10240 || back == bytes);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),         cmocka_unit_test(sizes_refused),
		cmocka_unit_test(times),         cmocka_unit_test(whole_numbers),
		cmocka_unit_test(real_numbers),  cmocka_unit_test(truth_values),
		cmocka_unit_test(printed_sizes), cmocka_unit_test(printed_sizes_read_back),
	};

	return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
