/* SPDX-License-Identifier: MIT */
/*
 * The series of all cases as JSON, column by column:
 *
 *	{"seed": 1, "cases": [{"series": {"t_s": [0, 0.2, ...], "dirty_bytes": [...], ...},
 *		"devices": [{"device_writes_per_s": [...], ...}, ...]}, ...]}
 *
 * "devices" is there where there are several; in the series are then their sums.
 * Columns in which nothing ever stood are left out; null is "no value here".
 */
#include "lab/report.h"
#include <math.h>

/* Which value: of all devices together, or of one of them. */
#define ALL_DEVICES UINT32_MAX

static double value_of(const struct series *s, enum series_column c, u32 device, size_t i)
{
	return device == ALL_DEVICES ? series_value(s, c, i) : series_device_value(s, c, device, i);
}

static bool has_data(const struct series *s, enum series_column c, u32 device)
{
	for (size_t i = 0; i < s->count; i++) {
		double value = value_of(s, c, device, i);

		if (!isnan(value) && value > 0)
			return true;
	}
	return false;
}

static void column(FILE *out, const struct series *s, enum series_column c, u32 device)
{
	fprintf(out, "\"%s\":[", series_key(c));
	for (size_t i = 0; i < s->count; i++) {
		double value = value_of(s, c, device, i);

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

static void device(FILE *out, const struct series *s, u32 device)
{
	bool first = true;

	fputs(device ? ",\n{" : "{", out);
	for (enum series_column c = 0; c < SERIES_COLUMNS; c++) {
		if (!series_of_device(c) || !has_data(s, c, device))
			continue;
		fputs(first ? "" : ",\n", out);
		column(out, s, c, device);
		first = false;
	}
	fputc('}', out);
}

static void series(FILE *out, const struct series *s)
{
	fputs("{\"series\":{", out);
	column(out, s, SERIES_T, ALL_DEVICES);
	for (enum series_column c = SERIES_T + 1; c < SERIES_COLUMNS; c++) {
		if (!has_data(s, c, ALL_DEVICES))
			continue;
		fputs(",\n", out);
		column(out, s, c, ALL_DEVICES);
	}
	fputc('}', out);
	if (s->device_count > 1) {
		fputs(",\n\"devices\":[", out);
		for (u32 i = 0; i < s->device_count; i++)
			device(out, s, i);
		fputc(']', out);
	}
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
