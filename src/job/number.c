/* SPDX-License-Identifier: MIT */
/*
 * fio's numbers are whole numbers, decimal or 0x hexadecimal, with a unit at their
 * end. Where fio reads a number as far as it understands and silently drops the
 * rest ("1.5m" is 1 byte there, "1h" of size too), we refuse. One thing is odd and
 * kept, since job files depend on it: with fio's default kb_base=1024 the units k,
 * kb and ki mean 1024, while kib means 1000; with kb_base=1000 it is the other way
 * round (measured with fio 3.33).
 *
 * Where a number may stand, so may an expression of + - * / % ^ and parentheses, read
 * by recursive descent, one function to each strength of binding. A value is a plain
 * number or a time; a plain number beside a time, or at the end of a reading of times,
 * counts in the bare unit. fio, if it was built to, computes only what begins with a
 * parenthesis and reads "2*4k" as 2; job files that say so mean the product.
 */
#include "job/number.h"
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

typedef __int128 s128;

#define VALUE_LIMIT ((s128)1 << 100)
#define DEPTH_MAX   32

struct value {
	s128 n;
	bool time; /* in ns */
};

struct reader {
	const char *at;
	const struct number_rules *rules;
	int depth;
	bool wrong;
};

static struct value fail(struct reader *r)
{
	r->wrong = true;
	return (struct value){ 0 };
}

static void skip_blanks(struct reader *r)
{
	r->at += strspn(r->at, " \t");
}

static bool take(struct reader *r, char c)
{
	skip_blanks(r);
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

/* Reads digits; returns what follows them, or NULL if there are none or too many. */
static const char *read_digits(const char *text, u64 *out)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *c = hex ? text + 2 : text;
	const char *first = c;
	u64 value = 0, base = hex ? 16 : 10;

	for (; hex ? isxdigit((unsigned char)*c) : isdigit((unsigned char)*c); c++) {
		u64 digit = isdigit((unsigned char)*c)
				    ? (u64)(*c - '0')
				    : (u64)(tolower((unsigned char)*c) - 'a' + 10);

		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return NULL;
	}
	*out = value;
	return c == first ? NULL : c;
}

static int byte_factor(const char *unit, u64 kilo, u64 *factor)
{
	static const char letters[] = "kmgtp";
	const char *at;
	u64 base = kilo;

	*factor = 1;
	if (!strcasecmp(unit, "b"))
		return 0;
	at = strchr(letters, tolower((unsigned char)*unit));
	if (!at)
		return -EINVAL;
	if (!strcasecmp(unit + 1, "ib"))
		base = kilo == 1024 ? 1000 : 1024;
	else if (unit[1] && strcasecmp(unit + 1, "b") != 0 && strcasecmp(unit + 1, "i") != 0)
		return -EINVAL;
	for (const char *l = letters; l <= at; l++)
		*factor *= base;
	return 0;
}

static int time_factor(const char *unit, u64 *factor)
{
	static const struct {
		const char *name;
		u64 ns;
	} units[] = {
		{ "us", NSEC_PER_USEC },      { "usec", NSEC_PER_USEC },
		{ "ms", NSEC_PER_MSEC },      { "msec", NSEC_PER_MSEC },
		{ "s", NSEC_PER_SEC },        { "m", 60 * NSEC_PER_SEC },
		{ "h", 3600 * NSEC_PER_SEC }, { "d", 86400 * NSEC_PER_SEC },
	};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcasecmp(unit, units[i].name) != 0)
			continue;
		*factor = units[i].ns;
		return 0;
	}
	return -EINVAL;
}

static struct value checked(struct reader *r, struct value v)
{
	return v.n > VALUE_LIMIT || v.n < -VALUE_LIMIT ? fail(r) : v;
}

static struct value multiply(struct reader *r, struct value a, struct value b)
{
	s128 product;

	if ((a.time && b.time) || __builtin_mul_overflow(a.n, b.n, &product))
		return fail(r);
	return checked(r, (struct value){ product, a.time || b.time });
}

/* The unit right behind a number or a parenthesis, if there is one. */
static struct value read_unit(struct reader *r, struct value v)
{
	bool time = r->rules->bare_ns;
	char unit[8];
	size_t len = 0;
	u64 factor;

	while (isalpha((unsigned char)r->at[len]))
		len++;
	if (!len)
		return v;
	if (len >= sizeof(unit))
		return fail(r);
	memcpy(unit, r->at, len);
	unit[len] = 0;
	r->at += len;
	if (time ? time_factor(unit, &factor) : byte_factor(unit, r->rules->kilo, &factor))
		return fail(r);
	return multiply(r, v, (struct value){ factor, time });
}

static struct value read_sum(struct reader *r);

static struct value read_primary(struct reader *r)
{
	struct value v;
	u64 digits;

	if (take(r, '(')) {
		if (++r->depth > DEPTH_MAX)
			return fail(r);
		v = read_sum(r);
		r->depth--;
		return take(r, ')') && !r->wrong ? read_unit(r, v) : fail(r);
	}
	r->at = read_digits(r->at, &digits);
	if (!r->at) {
		r->at = "";
		return fail(r);
	}
	return read_unit(r, (struct value){ digits, false });
}

static struct value read_power(struct reader *r)
{
	struct value base, exponent, v = { 1, false };

	base = read_primary(r);
	if (!take(r, '^'))
		return base;
	if (++r->depth > DEPTH_MAX)
		return fail(r);
	exponent = read_power(r);
	r->depth--;
	if (exponent.time || exponent.n < 0 || exponent.n > 128)
		return fail(r);
	for (int i = 0; i < (int)exponent.n && !r->wrong; i++)
		v = multiply(r, v, base);
	return v;
}

static struct value read_signed(struct reader *r)
{
	bool minus = take(r, '-');
	struct value v;

	skip_blanks(r);
	v = read_power(r);
	return (struct value){ minus ? -v.n : v.n, v.time };
}

static struct value divide(struct reader *r, struct value a, struct value b, char operation)
{
	if (!b.n || (b.time && !a.time) || (operation == '%' && a.time != b.time))
		return fail(r);
	if (operation == '%')
		return (struct value){ a.n % b.n, a.time };
	return (struct value){ a.n / b.n, a.time && !b.time };
}

static struct value read_product(struct reader *r)
{
	struct value v = read_signed(r);

	while (!r->wrong) {
		skip_blanks(r);
		if (*r->at == '*') {
			r->at++;
			v = multiply(r, v, read_signed(r));
		} else if (*r->at == '/' || *r->at == '%') {
			char operation = *r->at++;

			v = divide(r, v, read_signed(r), operation);
		} else {
			break;
		}
	}
	return v;
}

/* Turns a plain number into a time. */
static struct value as_time(struct reader *r, struct value v)
{
	return v.time ? v : multiply(r, v, (struct value){ r->rules->bare_ns, true });
}

static struct value read_sum(struct reader *r)
{
	struct value v = read_product(r);

	while (!r->wrong) {
		struct value next;
		bool minus;

		skip_blanks(r);
		if (*r->at != '+' && *r->at != '-')
			break;
		minus = *r->at++ == '-';
		next = read_product(r);
		if (v.time || next.time) {
			v = as_time(r, v);
			next = as_time(r, next);
		}
		v.n = minus ? v.n - next.n : v.n + next.n;
		v = checked(r, v);
	}
	return v;
}

int number_read(const char *text, const struct number_rules *rules, u64 *out)
{
	struct reader r = { .at = text, .rules = rules };
	struct value v = read_sum(&r);

	if (rules->bare_ns && !r.wrong)
		v = as_time(&r, v);
	if (r.wrong || *r.at || v.n < 0 || v.n > (s128)~0ull)
		return -EINVAL;
	*out = (u64)v.n;
	return 0;
}

bool number_is_computed(const char *text)
{
	return text[0] != '(' && strpbrk(text, "*+/^()");
}

int number_bytes(const char *text, u64 *out)
{
	return number_read(text, &(struct number_rules){ .kilo = 1024 }, out);
}

int number_time(const char *text, u64 bare_ns, u64 *out)
{
	return number_read(text, &(struct number_rules){ .kilo = 1024, .bare_ns = bare_ns }, out);
}
