/* SPDX-License-Identifier: MIT */
/*
 * A number with a unit is read as an exact decimal: all its digits as one integer,
 * and the power of ten they must be multiplied by. Only then is it multiplied by
 * its unit, in 128 bits, so "0.1s" is exactly 100,000,000 ns and "17e" overflows
 * instead of wrapping. What is left below one byte or nanosecond is cut off.
 *
 * Decimal points are points: the program keeps the C locale for numbers.
 */
#include "base/units.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef unsigned __int128 u128;

struct unit {
	const char *name;
	u64 factor;
};

static const struct unit byte_units[] = {
	{ "", 1 },           { "b", 1 },          { "k", 1ull << 10 }, { "m", 1ull << 20 },
	{ "g", 1ull << 30 }, { "t", 1ull << 40 }, { "p", 1ull << 50 }, { "e", 1ull << 60 },
};

static const struct unit time_units[] = {
	{ "ns", 1 },
	{ "us", NSEC_PER_USEC },
	{ "usec", NSEC_PER_USEC },
	{ "ms", NSEC_PER_MSEC },
	{ "msec", NSEC_PER_MSEC },
	{ "s", NSEC_PER_SEC },
	{ "sec", NSEC_PER_SEC },
	{ "m", 60 * NSEC_PER_SEC },
	{ "min", 60 * NSEC_PER_SEC },
	{ "h", 3600 * NSEC_PER_SEC },
	{ "d", 86400 * NSEC_PER_SEC },
};

/* digits * 10^exponent */
struct decimal {
	u64 digits;
	int exponent;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool append_digit(u64 *value, char digit)
{
	return __builtin_mul_overflow(*value, 10u, value) ||
	       __builtin_add_overflow(*value, (u64)(digit - '0'), value);
}

/* Reads "12", "1.5", ".5", "1e6" from the front of `text`; NULL, or what stands behind it. */
static const char *decimal_read(const char *text, struct decimal *d)
{
	bool any = false, point = false;
	const char *c = text;

	*d = (struct decimal){ 0 };
	for (; is_digit(*c) || (*c == '.' && !point); c++) {
		if (*c == '.') {
			point = true;
			continue;
		}
		any = true;
		if (append_digit(&d->digits, *c))
			return NULL;
		d->exponent -= point;
	}
	if (!any)
		return NULL;
	/* "1e6" has an exponent, "1e" and "1eib" have a unit. */
	if ((*c == 'e' || *c == 'E') && is_digit(c[1 + (c[1] == '-' || c[1] == '+')])) {
		char *end;
		long exponent = strtol(c + 1, &end, 10);

		if (exponent > 99 || exponent < -99)
			return NULL;
		d->exponent += (int)exponent;
		c = end;
	}
	return c;
}

static int decimal_scale(const struct decimal *d, u64 factor, u64 *out)
{
	u128 value = (u128)d->digits * factor;

	for (int i = d->exponent; i > 0 && value; i--) {
		value *= 10;
		if (value > UINT64_MAX)
			return -EINVAL;
	}
	for (int i = d->exponent; i < 0; i++)
		value /= 10;
	if (value > UINT64_MAX)
		return -EINVAL;
	*out = (u64)value;
	return 0;
}

static int factor_of(const struct unit *units, size_t count, const char *name, u64 *factor)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcasecmp(name, units[i].name)) {
			*factor = units[i].factor;
			return 0;
		}
	}
	return -EINVAL;
}

/* "128 KiB" is as good as "128KiB"; a unit must follow the blank. */
static const char *skip_blank(const char *c)
{
	return c[0] == ' ' && c[1] ? c + 1 : c;
}

int units_parse_bytes(const char *text, u64 *out_bytes)
{
	struct decimal d;
	const char *rest = decimal_read(text, &d);
	size_t len;
	char name[4];
	u64 factor;

	if (!rest)
		return -EINVAL;
	rest = skip_blank(rest);
	len = strlen(rest);
	if (len >= sizeof(name))
		return -EINVAL;
	memcpy(name, rest, len + 1);
	/* k, kb, ki and kib are the same; b alone is a unit of its own. */
	if (len > 1 && (name[len - 1] == 'b' || name[len - 1] == 'B'))
		name[--len] = 0;
	if (len > 1 && (name[len - 1] == 'i' || name[len - 1] == 'I'))
		name[--len] = 0;
	if (!strcasecmp(name, "b") && strcasecmp(rest, "b") != 0)
		return -EINVAL;
	if (factor_of(byte_units, ARRAY_SIZE(byte_units), name, &factor))
		return -EINVAL;
	return decimal_scale(&d, factor, out_bytes);
}

int units_parse_time(const char *text, u64 bare_ns, u64 *out_ns)
{
	struct decimal d;
	const char *rest = decimal_read(text, &d);
	u64 factor = bare_ns;

	if (!rest)
		return -EINVAL;
	rest = skip_blank(rest);
	if (*rest && factor_of(time_units, ARRAY_SIZE(time_units), rest, &factor))
		return -EINVAL;
	return decimal_scale(&d, factor, out_ns);
}

int units_parse_u64(const char *text, u64 *out)
{
	u64 value = 0;

	if (!*text)
		return -EINVAL;
	for (const char *c = text; *c; c++) {
		if (!is_digit(*c) || append_digit(&value, *c))
			return -EINVAL;
	}
	*out = value;
	return 0;
}

int units_parse_double(const char *text, double *out)
{
	double value;
	char *end;

	/* strtod() would also take blanks, signs, "0x10", "inf" and "nan". */
	if (!*text || strspn(text, "0123456789.eE+-") != strlen(text) || strchr("+-eE", *text))
		return -EINVAL;
	value = strtod(text, &end);
	if (end == text || *end || !isfinite(value))
		return -EINVAL;
	*out = value;
	return 0;
}

int units_parse_bool(const char *text, bool *out)
{
	static const char *const names[][2] = {
		{ "no", "yes" },
		{ "false", "true" },
		{ "off", "on" },
		{ "0", "1" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		for (int value = 0; value < 2; value++) {
			if (!strcasecmp(text, names[i][value])) {
				*out = value;
				return 0;
			}
		}
	}
	return -EINVAL;
}

/*
 * Small sizes are printed to the byte: "4096" says more than "4K". From 10 KiB on, the
 * unit is the one that leaves less than 1000 of it, so that three digits say it.
 */
const char *units_print_bytes(char buf[UNITS_TEXT_MAX], u64 bytes)
{
	static const char suffix[] = "BKMGTPE";
	double scaled = (double)bytes;
	unsigned unit = 0;
	int decimals;
	char *end;

	if (bytes < 10240) {
		snprintf(buf, UNITS_TEXT_MAX, "%u", (unsigned)bytes);
		return buf;
	}
	for (; scaled >= 999.5 && unit < sizeof(suffix) - 2; unit++)
		scaled /= 1024;
	decimals = scaled < 0.9995 ? 3 : scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
	snprintf(buf, UNITS_TEXT_MAX, "%.*f", decimals, scaled);
	end = buf + strlen(buf);
	if (decimals) { /* "1.50" is "1.5", "2.0" is "2" */
		while (end[-1] == '0')
			end--;
		if (end[-1] == '.')
			end--;
	}
	end[0] = suffix[unit];
	end[1] = 0;
	return buf;
}
