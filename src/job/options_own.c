/* SPDX-License-Identifier: MIT */
/*
 * Options with a syntax of their own. Each function reads one value into its fields and
 * returns NULL, or in a few words what is wrong with it.
 */
#include "base/units.h"
#include "job/number.h"
#include "job/options.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 2048 /* letters of a list */

static int read_bytes(const struct job_options *o, const char *text, u64 *out)
{
	return number_read(text, &(struct number_rules){ .kilo = o->kb_base }, out);
}

/*
 * Calls `one` for each part of a list that has one for reads, writes and trims, as
 * fio does: alone, the first is for all; of two, the second is for writes and trims; an
 * empty one is left as it was.
 */
static const char *per_direction(struct job_options *o, const char *value,
				 const char *(*one)(struct job_options *o, int dir, char *text))
{
	char text[VALUE_MAX], part[VALUE_MAX], *rest = text, *field;
	const char *wrong = NULL;

	if (strlen(value) >= sizeof(text))
		return "it is too long";
	strcpy(text, value);
	for (int dir = 0; (field = strsep(&rest, ",")) && !wrong; dir++) {
		if (dir == JOB_DIRS)
			return "at most three values are possible: reads,writes,trims";
		for (int d = dir; d < (rest ? dir + 1 : JOB_DIRS) && *field && !wrong; d++) {
			strcpy(part, field);
			wrong = one(o, d, part);
		}
	}
	return wrong;
}

/* "17m" of rw=read:17m, "-8k" of rw=read:-8k, "8" of rw=randrw:8. */
const char *set_rw_suffix(struct job_options *o, const char *text)
{
	bool back;
	u64 value;

	text += strspn(text, " \t");
	back = *text == '-';
	o->rw_skip = 0;
	o->rw_burst = 1;
	if (!*text)
		return NULL;
	if (read_bytes(o, text + back, &value) || value > 1ull << 62)
		return "behind the colon a number is needed, as in read:17m or randread:8";
	if (!(o->rw & RW_RANDOM))
		o->rw_skip = back ? -(s64)value : (s64)value;
	else if (back || !value)
		return "behind the colon of a random job a number from 1 is needed";
	else
		o->rw_burst = value;
	return NULL;
}

const char *set_rwmixwrite(struct job_options *o, const char *value)
{
	u64 percent;

	if (number_bytes(value, &percent) || percent > 100)
		return "a number from 0 to 100 is needed";
	o->rwmixread = 100 - percent;
	return NULL;
}

/* Cuts "4k-16k" (or with a colon) in two; NULL if it is no range. Parentheses hold together. */
static char *cut_range(char *text)
{
	int depth = 0;
	char *c = text;

	for (; *c && (depth || (*c != '-' && *c != ':')); c++)
		depth += (*c == '(') - (*c == ')');
	if (!*c)
		return NULL;
	*c = 0;
	return c + 1;
}

/* One number, or a range of them. */
static int read_range(const struct job_options *o, const char *value, u64 bare_ns, u64 *low,
		      u64 *high)
{
	struct number_rules rules = { .kilo = o->kb_base, .bare_ns = bare_ns };
	char text[256], *second;

	if (strlen(value) >= sizeof(text))
		return -EINVAL;
	strcpy(text, value);
	second = cut_range(text);
	if (number_read(text, &rules, low) || number_read(second ? second : text, &rules, high))
		return -EINVAL;
	if (*low > *high) {
		u64 swap = *low;

		*low = *high;
		*high = swap;
	}
	return 0;
}

static const char *one_bsrange(struct job_options *o, int dir, char *text)
{
	u64 low, high;

	if (!strpbrk(text, "-:") || read_range(o, text, 0, &low, &high) || !low || high > 1 << 30)
		return "a range of sizes from 1 to 1g is needed, as 4k-64k";
	o->bsrange_min[dir] = low;
	o->bsrange_max[dir] = high;
	o->splits[dir].count = 0;
	return NULL;
}

const char *set_bsrange(struct job_options *o, const char *value)
{
	return per_direction(o, value, one_bsrange);
}

/* What is missing to 100 percent is shared by the parts without a percentage. */
static const char *complete_splits(struct splits *s, u32 missing)
{
	u64 sum = 0;

	for (u32 i = 0; i < s->count; i++)
		sum += s->part[i].percent;
	if (sum > 100)
		return "the percentages add up to more than 100";
	for (u32 i = 0; i < s->count && missing; i++)
		if (!s->part[i].percent)
			s->part[i].percent = (100 - sum) / missing;
	for (u32 i = 0; i < s->count; i++)
		if (s->part[i].percent)
			return NULL;
	return "no size has a share";
}

static const char *one_bssplit(struct job_options *o, int dir, char *text)
{
	struct splits *s = &o->splits[dir];
	u32 missing = 0;
	char *field;

	*s = (struct splits){ 0 };
	while ((field = strsep(&text, ":")) && *field) {
		struct split *p = &s->part[s->count];
		char *percent = strchr(field, '/');

		if (s->count == SPLITS_MAX)
			return "at most 64 sizes are possible";
		if (percent)
			*percent++ = 0;
		if (read_bytes(o, field, &p->bytes) || !p->bytes || p->bytes > 1 << 30)
			return "sizes and percentages are needed, as in 4k/60:64k/40";
		if (percent && *percent && (number_bytes(percent, &p->percent) || p->percent > 100))
			return "a percentage must be from 0 to 100, as in 4k/60:64k/40";
		missing += !p->percent;
		s->count++;
	}
	return s->count ? complete_splits(s, missing) : NULL;
}

const char *set_bssplit(struct job_options *o, const char *value)
{
	return per_direction(o, value, one_bssplit);
}

static const char *read_zone(struct job_options *o, struct spread *s, char *field, struct zone *z)
{
	char *size = strchr(field, '/');
	u64 access = 0;

	if (!size)
		return "zones are pairs, as in 60/10:40/90";
	*size++ = 0;
	if (*field && (number_bytes(field, &access) || access > 100))
		return "the first of a pair is a percentage of the accesses";
	z->access_percent = (u32)access;
	z->size = 0;
	if (*size && (s->absolute ? read_bytes(o, size, &z->size) : number_bytes(size, &z->size)))
		return s->absolute ? "the second of a pair is a size, as in 60/10g:40/20g"
				   : "the second of a pair is a percentage of the file";
	if (s->absolute ? z->size > 1ull << 62 : z->size > 100)
		return "a zone is too large";
	return NULL;
}

/* "60/10:30/20:8/30:2/": percent of the accesses / size; empty ones share what is missing. */
static const char *read_zones(struct job_options *o, struct spread *s, char *text,
			      struct zones *out)
{
	u64 sums[2] = { 0 }, missing[2] = { 0 };
	const char *wrong;
	char *field;

	while ((field = strsep(&text, ":")) && *field) {
		struct zone *z = &out->zone[out->count];

		if (out->count == ZONES_MAX)
			return "at most 64 zones are possible";
		wrong = read_zone(o, s, field, z);
		if (wrong)
			return wrong;
		out->count++;
		sums[0] += z->access_percent;
		sums[1] += z->size;
		missing[0] += !z->access_percent;
		missing[1] += !z->size;
	}
	if (!out->count)
		return "zones are needed, as in zoned:60/10:40/90";
	for (u32 i = 0; i < out->count; i++) {
		struct zone *z = &out->zone[i];

		if (!z->access_percent && sums[0] < 100)
			/* NOLINTNEXTLINE: this zone is one of those missing */
			z->access_percent = (u32)((100 - sums[0]) / missing[0]);
		if (!z->size && !s->absolute && sums[1] < 100)
			z->size = (100 - sums[1]) / missing[1]; /* NOLINT: likewise */
	}
	sums[0] = sums[1] = 0;
	for (u32 i = 0; i < out->count; i++) {
		sums[0] += out->zone[i].access_percent;
		sums[1] += out->zone[i].size;
	}
	if (sums[0] != 100)
		return "the access shares of the zones must add up to 100";
	if (!s->absolute && sums[1] != 100)
		return "the size shares of zoned must add up to 100";
	return s->absolute && !sums[1] ? "zoned_abs needs sizes" : NULL;
}

static const char *set_zones(struct job_options *o, struct spread *s, const char *value)
{
	char text[VALUE_MAX], *rest = text, *field;
	const char *wrong = NULL;

	if (strlen(value) >= sizeof(text))
		return "it is too long";
	strcpy(text, value);
	for (int dir = 0; (field = strsep(&rest, ",")) && dir < JOB_DIRS && !wrong; dir++) {
		if (!*field || dir >= 2) /* zones of trims are no use */
			continue;
		s->zones[dir].count = 0;
		wrong = read_zones(o, s, field, &s->zones[dir]);
		if (!dir)
			s->zones[1] = s->zones[0];
	}
	if (!wrong && (!s->zones[0].count || !s->zones[1].count))
		wrong = "zones are needed, as in zoned:60/10:40/90";
	return wrong;
}

/* "1.2" or "1.2:0.5" */
static const char *set_spread_value(struct spread *s, const char *value)
{
	static const char need[] = "zipf, pareto and normal need a number, as in zipf:1.2";
	char text[64], *center;

	if (strlen(value) >= sizeof(text))
		return need;
	strcpy(text, value);
	center = strchr(text, ':');
	if (center)
		*center++ = 0;
	if (units_parse_double(text, &s->value))
		return need;
	if (center && (units_parse_double(center, &s->center) || s->center < 0 || s->center > 1))
		return "the center must be from 0 to 1";
	if (s->kind == SPREAD_ZIPF && (!(s->value > 0) || s->value == 1.0 || s->value > 100))
		return "zipf needs a theta above 0 that is not 1";
	if (s->kind == SPREAD_PARETO && !(s->value > 0 && s->value < 1))
		return "pareto needs a value between 0 and 1";
	if (s->kind == SPREAD_NORMAL && !(s->value > 0 && s->value < 100))
		return "normal needs a deviation between 0 and 100 (percent)";
	return NULL;
}

const char *set_spread(struct job_options *o, const char *value)
{
	static const struct {
		const char *name, *normal; /* fio's value where none is given */
		enum job_spread kind;
	} kinds[] = {
		{ "random", NULL, SPREAD_UNIFORM }, { "zipf", "1.1", SPREAD_ZIPF },
		{ "pareto", "0.2", SPREAD_PARETO }, { "normal", "", SPREAD_NORMAL },
		{ "zoned", "", SPREAD_ZONED },      { "zoned_abs", "", SPREAD_ZONED },
	};
	size_t len = strcspn(value, ":");
	struct spread s = { .center = -1 };
	const char *wrong = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *rest = value[len] ? value + len + 1 : kinds[i].normal;

		if (strlen(kinds[i].name) != len || strncmp(kinds[i].name, value, len) != 0)
			continue;
		s.kind = kinds[i].kind;
		s.absolute = !strcmp(kinds[i].name, "zoned_abs");
		if (s.kind == SPREAD_ZONED)
			wrong = set_zones(o, &s, rest);
		else if (s.kind != SPREAD_UNIFORM)
			wrong = set_spread_value(&s, rest);
		else if (value[len])
			wrong = "random takes no value";
		if (!wrong)
			o->spread = s;
		return wrong;
	}
	return "random, zipf:THETA, pareto:H, normal:PERCENT, zoned:LIST or zoned_abs:LIST is "
	       "needed";
}

/* Behind the colon: how many I/Os a file gets at a time, or the number of a distribution. */
const char *set_service_suffix(struct job_options *o, const char *text)
{
	static const struct {
		enum job_service service;
		enum job_spread kind;
		const char *normal;
	} kinds[] = { { SERVICE_ZIPF, SPREAD_ZIPF, "1.1" },
		      { SERVICE_PARETO, SPREAD_PARETO, "0.2" },
		      { SERVICE_NORMAL, SPREAD_NORMAL, "" } };

	o->file_service_nr = 1;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].service != o->file_service)
			continue;
		o->file_spread = (struct spread){ .kind = kinds[i].kind, .center = -1 };
		return set_spread_value(&o->file_spread, *text ? text : kinds[i].normal);
	}
	if (*text && (number_bytes(text, &o->file_service_nr) || !o->file_service_nr))
		return "behind the colon a number of I/Os is needed, as in random:16";
	return NULL;
}

const char *set_randseed(struct job_options *o, const char *value)
{
	return number_bytes(value, &o->randseed) ? "a number is needed" : NULL;
}

const char *set_filesize(struct job_options *o, const char *value)
{
	u64 low, high;

	if (read_range(o, value, 0, &low, &high))
		return "a size is needed, as 4096, 4k or 1m, or a range, as 4k-1m";
	if (!low || high > 1ull << 62)
		return "it must be from 1 to 4096p";
	o->filesize_bytes = low;
	o->filesize_max_bytes = high;
	return NULL;
}

const char *set_startdelay(struct job_options *o, const char *value)
{
	u64 low, high;

	if (read_range(o, value, NSEC_PER_SEC, &low, &high))
		return "a time is needed, as 500us, 20ms, 10, 10s, 3m, 1h or 2d, or a range, as "
		       "5s-10s";
	o->startdelay_ns = low;
	o->startdelay_max_ns = high;
	return NULL;
}

/* "wait_before,write:8" */
const char *set_sync_range(struct job_options *o, const char *value)
{
	static const struct {
		const char *name;
		u64 flag;
	} flags[] = { { "wait_before", JOB_RANGE_WAIT_BEFORE },
		      { "write", JOB_RANGE_WRITE },
		      { "wait_after", JOB_RANGE_WAIT_AFTER } };
	char text[256], *rest = text, *count, *word;
	u64 every = 1, wanted = 0;

	if (strlen(value) >= sizeof(text))
		return "it is too long";
	strcpy(text, value);
	count = strchr(text, ':');
	if (count)
		*count++ = 0;
	if (count && number_bytes(count, &every))
		return "behind the colon a number of writes is needed, as in write:8";
	while ((word = strsep(&rest, ","))) {
		size_t i = 0;

		while (i < ARRAY_SIZE(flags) && strcmp(word, flags[i].name) != 0)
			i++;
		if (i == ARRAY_SIZE(flags))
			return "wait_before, write and wait_after are possible, as in "
			       "wait_before,write:8";
		wanted |= flags[i].flag;
	}
	o->sync_range = every;
	o->sync_range_flags = wanted;
	return NULL;
}

static const char *read_percentiles(struct percentiles *p, const char *value)
{
	char text[512], *rest = text, *field;

	if (strlen(value) >= sizeof(text))
		return "it is too long";
	strcpy(text, value);
	p->count = 0;
	while ((field = strsep(&rest, ":,"))) {
		double *to = &p->percent[p->count];

		field += strspn(field, " \t");
		if (!*field)
			continue;
		if (p->count == PERCENTILES_MAX)
			return "at most 20 percentiles are possible";
		if (units_parse_double(field, to) || !(*to > 0 && *to <= 100))
			return "percentages above 0 and up to 100 are needed, as 50:99:99.9";
		p->count++;
	}
	return p->count ? NULL : "percentages are needed, as 50:99:99.9";
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

const char *set_percentiles(struct job_options *o, const char *value)
{
	struct percentiles p;
	const char *wrong = read_percentiles(&p, value);

	if (wrong)
		return wrong;
	qsort(p.percent, p.count, sizeof(p.percent[0]), compare_doubles);
	o->percentiles = p;
	return NULL;
}

const char *set_latency_percentile(struct job_options *o, const char *value)
{
	struct percentiles p;
	const char *wrong = read_percentiles(&p, value);

	if (wrong || p.count != 1)
		return wrong ? wrong : "one percentage is needed";
	o->latency_percentile = p;
	return NULL;
}

const char *set_verify_suffix(struct job_options *o, const char *text)
{
	u64 ignored; /* where in a block the sum of it lies: we have our own place */

	(void)o;
	return *text && number_bytes(text, &ignored) ? "behind the colon a number is needed" : NULL;
}

/* One item of a pattern: "text", 0x hexadecimal, a number below 2^32, or %o. */
static const char *pattern_item(struct pattern *p, const char **at)
{
	const char *c = *at;
	u8 bytes[PATTERN_MAX];
	size_t count = 0, digits;

	if (*c == '"') {
		for (c++; *c && *c != '"' && count < sizeof(bytes); c++)
			bytes[count++] = (u8)*c;
		if (*c++ != '"')
			return "a text in it has no end";
	} else if (c[0] == '%' && c[1] == 'o') {
		p->offset_at[p->length] = true;
		memset(bytes, 0, sizeof(u64));
		count = sizeof(u64);
		c += 2;
	} else if (c[0] == '0' && (c[1] == 'x' || c[1] == 'X')) {
		digits = strspn(c + 2, "0123456789abcdefABCDEF");
		if (!digits || (digits + 1) / 2 > sizeof(bytes))
			return "hexadecimal digits are needed behind 0x";
		/* an odd first digit is a byte of its own */
		for (size_t i = 0; i < digits; i += i ? 2 : 2 - digits % 2) {
			char pair[3] = { 0 };

			memcpy(pair, c + 2 + i, i || digits % 2 == 0 ? 2 : 1);
			bytes[count++] = (u8)strtoul(pair, NULL, 16);
		}
		c += 2 + digits;
	} else {
		bool minus = *c == '-';
		u64 value = strtoul(c + minus, NULL, 10);

		digits = strspn(c + minus, "0123456789");
		if (!digits || digits > 10 || value > UINT32_MAX)
			return "text in quotes, a number, 0x... or %o is needed";
		value = minus ? -value : value;
		do
			bytes[count++] = (u8)value;
		while (value >>= 8, value && count < sizeof(u32));
		c += minus + digits;
	}
	if (p->length + count > PATTERN_MAX)
		return "it is too long";
	memcpy(p->byte + p->length, bytes, count);
	p->length += (u32)count;
	*at = c;
	return NULL;
}

const char *set_verify_pattern(struct job_options *o, const char *value)
{
	struct pattern p = { 0 };
	const char *wrong = NULL;

	while (*value && !wrong)
		wrong = pattern_item(&p, &value);
	if (!wrong && !p.length)
		wrong = "it is empty";
	if (!wrong)
		o->verify_pattern = p;
	return wrong;
}
