/* SPDX-License-Identifier: MIT */
/*
 * Reading one value by the type its option has in the table. Every way to be wrong
 * ends in one line: file, line, option and value as written, and what would be
 * right: the range, the choices, or the nearest of the choices.
 */
#include "job/number.h"
#include "job/options.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_LIMIT (1ull << 62) /* so that sums of two do not overflow */
#define TIME_WORDS "a time is needed, as 500us, 20ms, 10, 10s, 3m, 1h or 2d"

/* Where a complaint about a value belongs. */
struct place {
	const struct option *option;
	const char *value, *file;
	int line;
	u64 kilo;
	struct err *e;
};

static int wrong(const struct place *p, const char *right)
{
	return err_set(p->e, p->file, p->line, "%s=%s: %s", p->option->name, p->value, right);
}

/* One number within the option's range. */
static int read_number(const struct place *p, const char *text, u64 *out)
{
	const struct option *o = p->option;
	struct number_rules rules = { .kilo = p->kilo, .bare_ns = o->bare_ns };
	bool bytes = o->type == OPTION_BYTES || o->type == OPTION_BYTES_DIR;
	char right[128];
	u64 value;

	if (o->type == OPTION_BYTES_DIR && strpbrk(text, "-:") && strspn(text, "-(") == 0)
		return wrong(p, "one size is needed; a range goes to bsrange or filesize");
	if (number_read(text, &rules, &value))
		return wrong(p, o->bare_ns ? TIME_WORDS
				: bytes    ? "a size is needed, as 4096, 4k or 1m"
					   : "a whole number is needed");
	if (value < o->min || (o->max && value > o->max)) {
		if (o->max)
			snprintf(right, sizeof(right), "it must be from %llu to %llu",
				 (unsigned long long)o->min, (unsigned long long)o->max);
		else
			snprintf(right, sizeof(right), "it must be %llu or more",
				 (unsigned long long)o->min);
		return wrong(p, right);
	}
	*out = value;
	return 0;
}

/*
 * "8k": all directions; "8k,4k": reads, then writes and trims; "8k,4k,1k"; a field
 * left empty stays at the default.
 */
static int read_per_direction(const struct place *p, u64 *out)
{
	char text[256], *field = text, *next;
	u64 values[JOB_DIRS];
	int count = 0;

	if (strlen(p->value) >= sizeof(text))
		return wrong(p, "it is too long");
	strcpy(text, p->value);
	memcpy(values, out, sizeof(values));
	for (; field; field = next, count++) {
		next = strchr(field, ',');
		if (next)
			*next++ = 0;
		if (count == JOB_DIRS)
			return wrong(p, "at most three values are possible: reads,writes,trims");
		if (*field) {
			int rc = read_number(p, field, &values[count]);

			if (rc)
				return rc;
			for (int i = count + 1; i < JOB_DIRS && !next; i++)
				values[i] = values[count];
		}
	}
	/* Alone, the first is for all; of two, the second is for writes and trims. */
	memcpy(out, values, sizeof(values));
	return 0;
}

static int read_amount(const struct place *p, struct amount *out)
{
	struct number_rules rules = { .kilo = p->kilo };
	size_t len = strlen(p->value);
	struct amount a = { 0 };
	char share[256];

	if (len && len < sizeof(share) && p->value[len - 1] == '%') {
		memcpy(share, p->value, len - 1);
		share[len - 1] = 0;
		if (number_read(share, &rules, &a.percent) || !a.percent || a.percent > 100)
			return wrong(p, "a percentage from 1 to 100 is needed");
	} else if (number_read(p->value, &rules, &a.bytes)) {
		return wrong(p, "a size is needed, as 4096, 4k or 1m, or a percentage");
	}
	if (a.bytes > SIZE_LIMIT)
		return wrong(p, "it must be at most 4096p");
	*out = a;
	return 0;
}

static int refuse_choice(const struct place *p, const char *word, bool known)
{
	const char *names[64] = { NULL }, *nearest;
	char list[320];
	size_t count = 0, at = 0;

	for (const struct option_choice *c = p->option->choices; c->name; c++)
		if (c->value >= 0 && count < ARRAY_SIZE(names))
			names[count++] = c->name;
	nearest = known ? NULL : err_nearest(word, names, count);
	for (size_t i = 0; i < count && at < sizeof(list); i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "",
				       names[i]);
	if (nearest)
		return err_set(p->e, p->file, p->line, "%s=%s is unknown, did you mean %s? (%s)",
			       p->option->name, p->value, nearest, list);
	return err_set(p->e, p->file, p->line, "%s=%s is %s; possible are %s", p->option->name,
		       p->value, known ? "not supported" : "unknown", list);
}

/* "NAME", or "NAME:..." where the option says what may follow. */
static int read_choice(const struct place *p, struct job_options *o, u64 *out)
{
	const struct option *option = p->option;
	size_t len = option->own ? strcspn(p->value, ":") : strlen(p->value);
	const char *problem;
	char word[64];

	snprintf(word, sizeof(word), "%.*s", (int)min_u64(len, sizeof(word) - 1), p->value);
	for (const struct option_choice *c = option->choices; c->name; c++) {
		if (strlen(c->name) != len || strncmp(c->name, p->value, len) != 0)
			continue;
		if (c->value < 0)
			return refuse_choice(p, word, true);
		*out = (u64)c->value;
		if (!option->own)
			return 0;
		problem = option->own(o, p->value + len + (p->value[len] == ':'));
		return problem ? wrong(p, problem) : 0;
	}
	return refuse_choice(p, word, false);
}

static int read_bool(const struct place *p, bool *out)
{
	bool flag = p->option->type == OPTION_FLAG;
	u64 value;

	if (number_bytes(p->value, &value) || (value > 1 && !flag))
		return wrong(p, flag ? "it stands alone, or with 0 or 1" : "0 or 1 is needed");
	*out = !!value != p->option->invert;
	return 0;
}

int options_set(struct job_options *o, const struct option *option, const char *value,
		const char *file, int line, struct err *e)
{
	struct place p = { option, value, file, line, o->kb_base, e };
	void *field = (char *)o + option->field;
	const char *right;

	if (!value && option->type == OPTION_FLAG)
		p.value = "1";
	else if ((!value || !*value) && option->type == OPTION_TEXT_MAYBE)
		p.value = "";
	else if (!value || !*value)
		return err_set(e, file, line, "%s needs a value", option->name);
	switch (option->type) {
	case OPTION_TEXT:
	case OPTION_TEXT_MAYBE:
		*(const char **)field = p.value;
		return 0;
	case OPTION_AMOUNT:
		return read_amount(&p, field);
	case OPTION_BYTES:
	case OPTION_COUNT:
	case OPTION_TIME:
		return read_number(&p, p.value, field);
	case OPTION_BYTES_DIR:
	case OPTION_COUNT_DIR:
	case OPTION_TIME_DIR:
		return read_per_direction(&p, field);
	case OPTION_BOOL:
	case OPTION_FLAG:
		return read_bool(&p, field);
	case OPTION_CHOICE:
		return read_choice(&p, o, field);
	case OPTION_OWN:
		right = option->own(o, p.value);
		return right ? wrong(&p, right) : 0;
	}
	return -EINVAL;
}
