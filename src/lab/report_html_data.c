/* SPDX-License-Identifier: MIT */
/*
 * The series of all cases as JSON, column by column:
 *
 *	{"seed": 1, "cases": [{"series": {"t_s": [0, 0.2, ...], "dirty_bytes": [...], ...},
 *		"devices": [{"device_writes_per_s": [...], ...}, ...],
 *		"tenants": [{"dirty_bytes": [...], ...}, ...]}, ...]}
 *
 * "devices" is there where there are several; in the series are then their sums. "tenants" is
 * there where there are some.
 * Columns in which nothing ever stood are left out; null is "no value here".
 */
#include "lab/report.h"
#include <math.h>

/* Whose values a list of columns is of. */
enum whose { OF_ALL, OF_DEVICE, OF_TENANT };

static double value_of(const struct series *s, enum whose whose, u32 i, unsigned c, size_t point)
{
	if (whose == OF_TENANT)
		return series_tenant_value(s, c, i, point);
	return whose == OF_ALL ? series_value(s, c, point) : series_device_value(s, c, i, point);
}

static const char *key_of(enum whose whose, unsigned c)
{
	return whose == OF_TENANT ? series_tenant_key(c) : series_key(c);
}

/* Whether there is such a column, and anything stands in it. */
static bool has_data(const struct series *s, enum whose whose, u32 i, unsigned c)
{
	if (whose == OF_DEVICE && !series_of_device(c))
		return false;
	for (size_t point = 0; point < s->count; point++) {
		double value = value_of(s, whose, i, c, point);

		if (!isnan(value) && value > 0)
			return true;
	}
	return whose == OF_ALL && c == SERIES_T;
}

static void column(FILE *out, const struct series *s, enum whose whose, u32 i, unsigned c)
{
	fprintf(out, "\"%s\":[", key_of(whose, c));
	for (size_t point = 0; point < s->count; point++) {
		double value = value_of(s, whose, i, c, point);

		fputs(point ? "," : "", out);
		if (isnan(value))
			fputs("null", out);
		else if (value == floor(value))
			fprintf(out, "%.0f", value);
		else
			fprintf(out, "%.9g", value);
	}
	fputc(']', out);
}

static void columns(FILE *out, const struct series *s, enum whose whose, u32 i)
{
	unsigned count = whose == OF_TENANT ? (unsigned)SERIES_TENANT_COLUMNS : SERIES_COLUMNS;
	bool first = true;

	fputc('{', out);
	for (unsigned c = 0; c < count; c++) {
		if (!has_data(s, whose, i, c))
			continue;
		fputs(first ? "" : ",\n", out);
		column(out, s, whose, i, c);
		first = false;
	}
	fputc('}', out);
}

static void list(FILE *out, const struct series *s, enum whose whose, u32 count, const char *key)
{
	fprintf(out, ",\n\"%s\":[", key);
	for (u32 i = 0; i < count; i++) {
		fputs(i ? ",\n" : "", out);
		columns(out, s, whose, i);
	}
	fputc(']', out);
}

static void series(FILE *out, const struct series *s)
{
	fputs("{\"series\":", out);
	columns(out, s, OF_ALL, 0);
	if (s->device_count > 1)
		list(out, s, OF_DEVICE, s->device_count, "devices");
	if (s->tenant_count)
		list(out, s, OF_TENANT, s->tenant_count, "tenants");
	fputc('}', out);
}

void report_html_data(FILE *out, const struct report *r)
{
	fprintf(out, "{\"seed\":%ju,\"cases\":[\n", (uintmax_t)r->seed);
	for (size_t i = 0; i < r->count; i++) {
		if (r->results[i].series)
			series(out, r->results[i].series);
		else
			fputs("{}", out);
		fputs(i + 1 < r->count ? ",\n" : "\n", out);
	}
	fputs("]}\n", out);
}
