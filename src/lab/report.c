/* SPDX-License-Identifier: MIT */
/*
 * The table: a row for each case, a group of columns for each figure, in which the
 * prediction stands beside what was published and how far it is off. A figure that
 * nobody predicted has no group, and one that nobody published has one column. All
 * cells are made first, then measured, then written, so that columns are as wide as
 * what stands in them.
 */
#include "lab/report.h"
#include "lab/compare.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct report_group report_groups[REPORT_GROUPS] = {
	{ METRIC_READ_IOPS, "read IOPS", true, false },
	{ METRIC_READ_MIBS, "read MiB/s", true, true },
	{ METRIC_READ_P99, "read p99 ms", false, false },
	{ METRIC_READ_MAX, "read max ms", false, false },
	{ METRIC_READ_HITS, "read hit %", false, false },
	{ METRIC_WRITE_IOPS, "write IOPS", true, false },
	{ METRIC_WRITE_MIBS, "write MiB/s", true, true },
	{ METRIC_WRITE_P99, "p99 ms", false, false },
	{ METRIC_WRITE_MAX, "max ms", false, false },
	{ METRIC_SLEEP, "sleep s", false, false },
	{ METRIC_MAX_DIRTY, "max dirty", false, false },
	{ METRIC_MAX_DEBT, "max debt", false, false },
	{ METRIC_MAX_PINNED, "max pinned", false, false },
};

#define COLUMNS_MAX (2 + 3 * REPORT_GROUPS)
#define CELL_MAX    256

enum part { PART_PREDICTED, PART_REFERENCE, PART_DIFF };

struct column {
	const struct report_group *group; /* NULL for the two columns of names */
	enum part part;
	size_t width;
};

struct table {
	struct column columns[COLUMNS_MAX];
	size_t count;
};

static void cell(char buf[CELL_MAX], const struct column *col, const struct lab_result *r)
{
	const struct metrics *ref = report_reference(r);
	enum metric m = col->group->metric;

	strcpy(buf, "-");
	if (col->part == PART_PREDICTED && report_known(&r->predicted, m))
		metric_print(buf, m, r->predicted.value[m]);
	else if (col->part == PART_REFERENCE && report_known(ref, m))
		metric_print(buf, m, ref->value[m]);
	else if (col->part == PART_DIFF && report_known(ref, m) && report_known(&r->predicted, m) &&
		 ref->value[m] > 0)
		snprintf(buf, CELL_MAX, "%+.1f",
			 100 * (r->predicted.value[m] - ref->value[m]) / ref->value[m]);
}

static void name_cell(char buf[CELL_MAX], size_t column, const struct lab_result *r)
{
	snprintf(buf, CELL_MAX, "%s", column == 0 ? r->c->name : r->policy);
}

static const char *part_title(const struct column *col)
{
	static const char *const titles[] = { "pred", "publ", "diff %" };

	return titles[col->part];
}

static void add_column(struct table *t, const struct report_group *g, enum part part,
		       const struct lab_result *results, size_t count)
{
	struct column *col = &t->columns[t->count];
	char buf[CELL_MAX];

	*col = (struct column){ .group = g, .part = part };
	if (g)
		col->width = strlen(part_title(col));
	else
		col->width = t->count == 0 ? strlen("case") : strlen("policy");
	for (size_t i = 0; i < count; i++) {
		if (g)
			cell(buf, col, &results[i]);
		else
			name_cell(buf, t->count, &results[i]);
		if (strlen(buf) > col->width)
			col->width = strlen(buf);
	}
	t->count++;
}

/* Two blanks between groups, one between the columns of a group. */
static size_t gap(const struct table *t, size_t i)
{
	if (i == 0)
		return 0;
	return t->columns[i].part == PART_PREDICTED ? 3 : 1;
}

/* How many columns the group that starts at column i has, and how wide it is. */
static size_t span(const struct table *t, size_t i, size_t *width)
{
	size_t n = 1;

	*width = t->columns[i].width;
	while (i + n < t->count && t->columns[i + n].group == t->columns[i].group) {
		*width += gap(t, i + n) + t->columns[i + n].width;
		n++;
	}
	return n;
}

static void lay_out(struct table *t, const struct lab_result *results, size_t count)
{
	add_column(t, NULL, PART_PREDICTED, results, count);
	add_column(t, NULL, PART_PREDICTED, results, count);
	for (size_t g = 0; g < REPORT_GROUPS; g++) {
		bool any = false, published = false;
		size_t first = t->count, width, n;

		for (size_t i = 0; i < count; i++) {
			any |= report_known(&results[i].predicted, report_groups[g].metric);
			published |= report_known(report_reference(&results[i]),
						  report_groups[g].metric);
		}
		if (!any || (report_groups[g].quiet && !published))
			continue;
		add_column(t, &report_groups[g], PART_PREDICTED, results, count);
		if (published)
			add_column(t, &report_groups[g], PART_REFERENCE, results, count);
		if (published && report_groups[g].diff)
			add_column(t, &report_groups[g], PART_DIFF, results, count);
		/* A title wider than its group widens the first column of it. */
		n = span(t, first, &width);
		assert(first + n == t->count);
		if (strlen(report_groups[g].title) > width)
			t->columns[first].width += strlen(report_groups[g].title) - width;
	}
}

static void put(FILE *out, size_t gap_width, size_t width, bool left, const char *text)
{
	fprintf(out, left ? "%*s%-*s" : "%*s%*s", (int)gap_width, "", (int)width, text);
}

static void write_heads(FILE *out, const struct table *t)
{
	size_t width;

	put(out, 0, t->columns[0].width, true, "");
	put(out, gap(t, 1), t->columns[1].width, true, "");
	for (size_t i = 2; i < t->count; i += span(t, i, &width)) {
		span(t, i, &width);
		put(out, gap(t, i), width, false, t->columns[i].group->title);
	}
	fputc('\n', out);
	put(out, 0, t->columns[0].width, true, "case");
	put(out, gap(t, 1), t->columns[1].width, true, "policy");
	for (size_t i = 2; i < t->count; i++)
		put(out, gap(t, i), t->columns[i].width, false, part_title(&t->columns[i]));
	fputc('\n', out);
}

static void write_row(FILE *out, const struct table *t, const struct lab_result *r)
{
	char buf[CELL_MAX];

	for (size_t i = 0; i < 2; i++) {
		name_cell(buf, i, r);
		put(out, gap(t, i), t->columns[i].width, true, buf);
	}
	for (size_t i = 2; i < t->count; i++) {
		cell(buf, &t->columns[i], r);
		put(out, gap(t, i), t->columns[i].width, false, buf);
	}
	fputc('\n', out);
}

/* Figures of single devices, below the table, where there are several. */
static void write_devices(FILE *out, const struct lab_result *results, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct setup *s = &results[i].c->setup;

		for (u32 d = 0; d < s->device_count && s->device_count > 1 && !results[i].error;
		     d++) {
			const struct metrics *m = &results[i].device[d];
			char bytes[METRIC_TEXT_MAX], busy[METRIC_TEXT_MAX];

			fprintf(out, "%s%s, %s: %s: %.0f reads, %.0f writes of %s, busy %s %%\n",
				d ? "" : "\n", results[i].c->name, results[i].policy,
				setup_device_name(&s->device[d]), m->value[METRIC_DEVICE_READS],
				m->value[METRIC_DEVICE_WRITES],
				metric_print(bytes, METRIC_DEVICE_WRITE_BYTES,
					     m->value[METRIC_DEVICE_WRITE_BYTES]),
				metric_print(busy, METRIC_DEVICE_BUSY,
					     m->value[METRIC_DEVICE_BUSY]));
		}
	}
}

/* Figures of single tenants, likewise. */
static void write_tenants(FILE *out, const struct lab_result *results, size_t count)
{
	static const enum metric shown[] = { METRIC_READ_IOPS, METRIC_WRITE_IOPS, METRIC_WRITE_P99,
					     METRIC_WRITE_MAX, METRIC_SLEEP,      METRIC_MAX_DIRTY,
					     METRIC_WRITTEN,   METRIC_ENDED };

	for (size_t i = 0; i < count; i++) {
		const struct setup *s = &results[i].c->setup;
		const struct metrics *all = &results[i].predicted;

		if (report_known(all, METRIC_CLOSE))
			fprintf(out,
				"%s%s: a tenant went away in %.3f s, no step longer than %.3f ms\n",
				i ? "" : "\n", results[i].c->name, all->value[METRIC_CLOSE],
				all->value[METRIC_CLOSE_STEP]);
		for (u32 t = 0; t < s->tenant_count && !results[i].error; t++) {
			const struct metrics *m = &results[i].tenant[t];
			char value[METRIC_TEXT_MAX];

			fprintf(out, "%s%s, tenant %s:", t ? "" : "\n", results[i].c->name,
				s->tenant[t].name);
			for (size_t k = 0; k < ARRAY_SIZE(shown); k++)
				if (report_known(m, shown[k]))
					fprintf(out, " %s %s", metric_key(shown[k]),
						metric_print(value, shown[k], m->value[shown[k]]));
			fputc('\n', out);
		}
	}
}

void report_table(FILE *out, const struct experiment *x, const struct lab_result *results,
		  size_t count)
{
	struct table t = { .count = 0 };

	if (x->title)
		fprintf(out, "%s: %s\n", x->name, x->title);
	else
		fprintf(out, "%s\n", x->name);
	if (x->source)
		fprintf(out, "source: %s\n", x->source);
	fputc('\n', out);
	lay_out(&t, results, count);
	write_heads(out, &t);
	for (size_t i = 0; i < count; i++)
		write_row(out, &t, &results[i]);
	write_devices(out, results, count);
	write_tenants(out, results, count);
	comparisons_table(out, x, results, count);
}

/* Misses among the figures of a case, or of one of its devices: then `prefix` says of which. */
static size_t misses(FILE *out, const struct experiment *x, const char *prefix,
		     const struct metrics *predictions, const struct metrics *ref)
{
	size_t count = 0;

	for (enum metric m = 0; m < METRIC_MAX; m++) {
		char predicted[METRIC_TEXT_MAX], published[METRIC_TEXT_MAX], why[128];

		if (!report_known(ref, m) || x->tolerance[m].kind == TOLERANCE_NONE)
			continue;
		metric_print(published, m, ref->value[m]);
		if (!report_known(predictions, m)) {
			fprintf(out, "%s%s is not predicted, published %s\n", prefix, metric_key(m),
				published);
			count++;
			continue;
		}
		if (tolerance_holds(&x->tolerance[m], ref->value[m], predictions->value[m], why,
				    sizeof(why)))
			continue;
		fprintf(out, "%s%s is predicted %s, published %s: %s\n", prefix, metric_key(m),
			metric_print(predicted, m, predictions->value[m]), published, why);
		count++;
	}
	return count;
}

static size_t case_misses(FILE *out, const struct experiment *x, const struct lab_result *r)
{
	const struct reference *ref = r->c->reference;
	const struct setup *s = &r->c->setup;
	char prefix[128];
	size_t count;

	if (!ref)
		return 0;
	snprintf(prefix, sizeof(prefix), "%s: ", r->c->name);
	count = misses(out, x, prefix, &r->predicted, &ref->values);
	for (size_t i = 0; i < ref->device_count; i++)
		for (u32 d = 0; d < s->device_count; d++) {
			if (strcmp(s->device[d].name, ref->device[i].name) != 0)
				continue;
			snprintf(prefix, sizeof(prefix), "%s: device %s: ", r->c->name,
				 s->device[d].name);
			count += misses(out, x, prefix, &r->device[d], &ref->device[i].values);
		}
	return count;
}

size_t report_misses(FILE *out, const struct experiment *x, const struct lab_result *results,
		     size_t count)
{
	size_t sum = 0;

	for (size_t i = 0; i < count; i++)
		if (!results[i].error)
			sum += case_misses(out, x, &results[i]);
	return sum + comparisons_misses(out, x, results, count);
}
