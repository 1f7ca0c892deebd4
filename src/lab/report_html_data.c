/* SPDX-License-Identifier: MIT */
/*
 * The series of all cases as JSON, column by column:
 *
 *	{"seed": 1, "cases": [{"series": {"t_s": [0, 0.2, ...], "dirty_bytes": [...], ...}}, ...]}
 *
 * Columns in which nothing ever stood are left out; null is "no value here".
 */
#include "lab/report.h"
#include <math.h>

static bool has_data(const struct series *s, enum series_column c)
{
	for (size_t i = 0; i < s->count; i++) {
		double value = series_value(s, c, i);

		if (!isnan(value) && value > 0)
			return true;
	}
	return false;
}

static void column(FILE *out, const struct series *s, enum series_column c)
{
	fprintf(out, "\"%s\":[", series_key(c));
	for (size_t i = 0; i < s->count; i++) {
		double value = series_value(s, c, i);

		fputs(i ? "," : "", out);
		if (isnan(value))
			fputs("null", out);
		else if (value == floor(value))
			fprintf(out, "%.0f", value);
		else
			fprintf(out, "%.9g", value);
	}
	fputc(']', out);
}

static void series(FILE *out, const struct series *s)
{
	fputs("{\"series\":{", out);
	column(out, s, SERIES_T);
	for (enum series_column c = SERIES_T + 1; c < SERIES_COLUMNS; c++) {
		if (!has_data(s, c))
			continue;
		fputs(",\n", out);
		column(out, s, c);
	}
	fputs("}}", out);
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
