// SPDX-License-Identifier: MIT
/*
 * What was published, what is predicted, and what a policy of ours makes of the same, side by side.
 * Figures as they are, one row for each that the case's [reference] has:
 *
 *	[compare one-client]
 *	case = seq-kick			ours = seq-own
 *
 * Who publishes a comparison of two kernels often gives only how much more or less the second had.
 * Then neither figure is a reference, but their ratio is:
 *
 *	[compare rewrites]
 *	title = pages of the hot file that were written
 *	figure = tenant.hot.pages_written
 *	case = skip-shared		against = flush
 *	published = -69.6		within = 12	; percent; points
 *	source = P5
 *	ours = targeted			ours_at_most = -60
 *
 * `against` may name another figure of its case, as in "targeted:tenant.b.write_iops". A change is
 * known if both cases were run; from 0 nothing changes by a percentage.
 */
#include "lab/compare.h"
#include "base/bits.h"
#include "lab/report.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "METRIC" or "tenant.NAME.METRIC". 0 or -EINVAL. */
static int parse_figure(const char *text, struct compared *f)
{
	const char *dot;

	f->tenant[0] = 0;
	if (!strncmp(text, "tenant.", 7)) {
		text += 7;
		dot = strchr(text, '.');
		if (!dot || dot == text || (size_t)(dot - text) >= sizeof(f->tenant))
			return -EINVAL;
		memcpy(f->tenant, text, (size_t)(dot - text));
		f->tenant[dot - text] = 0;
		text = dot + 1;
	}
	f->metric = metric_find(text);
	return f->metric == METRIC_MAX ? -EINVAL : 0;
}

/* The case whose name is the first `length` bytes of the text, or NULL. */
static const struct experiment_case *find_case(const struct experiment *x, const char *text,
					       size_t length)
{
	for (size_t i = 0; i < x->case_count; i++)
		if (strlen(x->cases[i].name) == length && !memcmp(x->cases[i].name, text, length))
			return &x->cases[i];
	return NULL;
}

/* The index of the tenant, or tenant_count. */
static u32 find_tenant(const struct setup *s, const char *name)
{
	u32 t = 0;

	while (t < s->tenant_count && strcmp(s->tenant[t].name, name) != 0)
		t++;
	return t;
}

/* "CASE" or "CASE:FIGURE" */
static int read_figure(const struct experiment *x, const struct ini_entry *entry,
		       const struct compared *normal, struct compared *out, struct err *e)
{
	const char *colon = strchr(entry->value, ':');
	size_t length = colon ? (size_t)(colon - entry->value) : strlen(entry->value);
	const struct experiment_case *c = find_case(x, entry->value, length);

	if (!c)
		return err_set(e, x->path, entry->line, "%s names \"%.*s\", no case there is",
			       entry->key, (int)length, entry->value);
	*out = *normal;
	out->case_name = c->name;
	if (colon && parse_figure(colon + 1, out))
		return err_set(e, x->path, entry->line, "unknown figure \"%s\"", colon + 1);
	if (out->tenant[0] && find_tenant(&c->setup, out->tenant) == c->setup.tenant_count)
		return err_set(e, x->path, entry->line, "%s: case \"%s\" has no tenant \"%s\"",
			       entry->key, c->name, out->tenant);
	return 0;
}

static int read_number(const struct experiment *x, const struct ini_entry *entry, double *out,
		       struct err *e)
{
	char *end;

	*out = strtod(entry->value, &end);
	if (end != entry->value && !*end && isfinite(*out))
		return 0;
	return err_set(e, x->path, entry->line, "%s cannot be \"%s\", only a number", entry->key,
		       entry->value);
}

enum {
	TITLE,
	FIGURE,
	CASE,
	AGAINST,
	PUBLISHED,
	WITHIN,
	SOURCE,
	OURS,
	OURS_WITHIN,
	OURS_MOST,
	KEYS
};

static const char *const keys[KEYS] = { "title",  "figure", "case", "against",     "published",
					"within", "source", "ours", "ours_within", "ours_at_most" };

static int check_whole(const struct experiment *x, const struct comparison *c,
		       const struct ini_section *s, const struct ini_entry *const *entry,
		       struct err *e)
{
	if (!entry[FIGURE] != !entry[AGAINST])
		return err_set(e, x->path, s->line, "[%s] has \"%s\", and needs \"%s\" with it",
			       s->name, entry[FIGURE] ? "figure" : "against",
			       entry[FIGURE] ? "against" : "figure");
	if (!entry[FIGURE] && (!entry[CASE] || !entry[OURS] || entry[PUBLISHED] ||
			       entry[OURS_WITHIN] || entry[OURS_MOST]))
		return err_set(
			e, x->path, s->line,
			"[%s] has no \"figure\": it takes \"case\" and \"ours\", and no change",
			s->name);
	if (!entry[CASE] && !entry[OURS])
		return err_set(e, x->path, s->line, "[%s] needs \"case\", or \"ours\", or both",
			       s->name);
	if (c->published && (!entry[CASE] || !entry[SOURCE] || !entry[WITHIN]))
		return err_set(e, x->path, s->line,
			       "what was published needs \"case\", \"within\" and \"source\"");
	return 0;
}

static int read_figures(const struct experiment *x, struct comparison *c,
			const struct ini_entry *const *entry, struct err *e)
{
	struct compared f = { 0 };

	if (entry[FIGURE] && parse_figure(entry[FIGURE]->value, &f))
		return err_set(e, x->path, entry[FIGURE]->line, "unknown figure \"%s\"",
			       entry[FIGURE]->value);
	if ((entry[AGAINST] && read_figure(x, entry[AGAINST], &f, &c->against, e)) ||
	    (entry[CASE] && read_figure(x, entry[CASE], &f, &c->of, e)) ||
	    (entry[OURS] && read_figure(x, entry[OURS], &f, &c->ours, e)))
		return -EINVAL;
	return 0;
}

static int comparison_read(const struct experiment *x, struct comparison *c,
			   const struct ini_section *s, struct err *e)
{
	const struct ini_entry *entry[KEYS] = { NULL };

	c->at = (struct origin){ x->path, s->line };
	for (size_t i = 0; i < s->entry_count; i++) {
		size_t k = 0;

		while (k < KEYS && strcmp(keys[k], s->entries[i].key) != 0)
			k++;
		if (k == KEYS)
			return err_set(e, x->path, s->entries[i].line,
				       "unknown key \"%s\" in section [%s]", s->entries[i].key,
				       s->name);
		entry[k] = &s->entries[i];
	}
	c->title = entry[TITLE] ? entry[TITLE]->value : NULL;
	c->source = entry[SOURCE] ? entry[SOURCE]->value : NULL;
	c->published = entry[PUBLISHED] != NULL;
	c->bounded = entry[OURS_WITHIN] != NULL;
	c->bounded_above = entry[OURS_MOST] != NULL;
	if (check_whole(x, c, s, entry, e) || read_figures(x, c, entry, e) ||
	    (entry[PUBLISHED] && read_number(x, entry[PUBLISHED], &c->percent, e)) ||
	    (entry[WITHIN] && read_number(x, entry[WITHIN], &c->within, e)) ||
	    (entry[OURS_WITHIN] && read_number(x, entry[OURS_WITHIN], &c->ours_within, e)) ||
	    (entry[OURS_MOST] && read_number(x, entry[OURS_MOST], &c->ours_at_most, e)))
		return -EINVAL;
	return 0;
}

int comparisons_read(struct experiment *x, struct err *e)
{
	x->comparisons = calloc(x->ini.section_count + 1, sizeof(*x->comparisons));
	if (!x->comparisons)
		return experiment_no_memory(e);
	for (size_t i = 0; i < x->ini.section_count; i++) {
		const struct ini_section *s = &x->ini.sections[i];
		struct comparison *c = &x->comparisons[x->comparison_count];

		if (strncmp(s->name, "compare ", 8) != 0)
			continue;
		c->name = s->name + 8;
		if (comparison_read(x, c, s, e))
			return -EINVAL;
		x->comparison_count++;
	}
	return 0;
}

/* --- figures */

static const struct lab_result *find_result(const char *case_name, const struct lab_result *results,
					    size_t count)
{
	for (size_t i = 0; case_name && i < count; i++)
		if (!results[i].error && !strcmp(results[i].c->name, case_name))
			return &results[i];
	return NULL;
}

static bool figure_value(const struct compared *f, const struct lab_result *results, size_t count,
			 double *out)
{
	const struct lab_result *r = find_result(f->case_name, results, count);
	const struct metrics *m = r ? &r->predicted : NULL;

	if (r && f->tenant[0]) {
		u32 t = find_tenant(&r->c->setup, f->tenant);

		assert(t < r->c->setup.tenant_count);
		m = &r->tenant[t];
	}
	if (!report_known(m, f->metric))
		return false;
	*out = m->value[f->metric];
	return true;
}

bool comparison_percent(const struct comparison *c, const struct compared *f,
			const struct lab_result *results, size_t count, double *percent)
{
	double from, to;

	if (!figure_value(&c->against, results, count, &from) ||
	    !figure_value(f, results, count, &to) || from <= 0)
		return false;
	*percent = 100 * (to - from) / from;
	return true;
}

/* --- the table */

#define CELL 48

struct table {
	FILE *out;
	int width; /* of the first column */
	bool any;  /* the heads are there */
};

static void put_row(struct table *t, const char *name, const char *figure, const char *published,
		    const char *predicted, const char *ours)
{
	if (!t->any)
		fprintf(t->out, "\n%-*s   %-26s %-10s %-24s %s\n", t->width, "comparison", "of",
			"published", "predicted", "ours");
	t->any = true;
	fprintf(t->out, "%-*s   %-26s %-10s %-24s %s\n", t->width, name, figure, published,
		predicted, ours);
}

static const char *figure_text(char buf[METRIC_TEXT_MAX], const struct metrics *of, enum metric m)
{
	return report_known(of, m) ? metric_print(buf, m, of->value[m]) : "-";
}

/* Figures as they are: those that were published, and what is held in memory for them. */
static void put_figures(struct table *t, const char *name, const struct lab_result *r,
			const struct lab_result *ours)
{
	const struct metrics *published = report_reference(r);

	for (enum metric m = 0; m < METRIC_MAX; m++) {
		char text[3][METRIC_TEXT_MAX];

		if (!report_known(published, m) &&
		    (m != METRIC_MAX_DIRTY || !report_known(&ours->predicted, m)))
			continue;
		put_row(t, name, metric_key(m), figure_text(text[0], published, m),
			figure_text(text[1], &r->predicted, m),
			figure_text(text[2], &ours->predicted, m));
		name = "";
	}
}

static void cell(char buf[CELL], bool known, double percent, const char *of)
{
	if (!known)
		snprintf(buf, CELL, "-");
	else
		snprintf(buf, CELL, "%+.1f %%%s%s", percent, of ? " " : "", of ? of : "");
}

static void put_change(struct table *t, const char *name, const struct comparison *c,
		       const struct lab_result *results, size_t count)
{
	char published[CELL], predicted[CELL], ours[CELL], against[CELL];
	double of = 0, own = 0;
	bool of_known = comparison_percent(c, &c->of, results, count, &of);
	bool own_known = comparison_percent(c, &c->ours, results, count, &own);

	if (!of_known && !own_known)
		return;
	snprintf(against, sizeof(against), "change from %s", c->against.case_name);
	cell(published, c->published, c->percent, NULL);
	cell(predicted, of_known, of, c->of.case_name);
	cell(ours, own_known, own, c->ours.case_name);
	put_row(t, name, against, published, predicted, ours);
}

void comparisons_table(FILE *out, const struct experiment *x, const struct lab_result *results,
		       size_t count)
{
	struct table t = { .out = out, .width = 10 };

	for (size_t i = 0; i < x->comparison_count; i++) {
		const struct comparison *c = &x->comparisons[i];

		t.width = (int)max_u64((u64)t.width, strlen(c->title ? c->title : c->name));
	}
	for (size_t i = 0; i < x->comparison_count; i++) {
		const struct comparison *c = &x->comparisons[i];
		const char *name = c->title ? c->title : c->name;
		const struct lab_result *r, *ours;

		if (c->against.case_name) {
			put_change(&t, name, c, results, count);
			continue;
		}
		r = find_result(c->of.case_name, results, count);
		ours = find_result(c->ours.case_name, results, count);
		if (r && ours)
			put_figures(&t, name, r, ours);
	}
}

size_t comparisons_misses(FILE *out, const struct experiment *x, const struct lab_result *results,
			  size_t count)
{
	size_t misses = 0;

	for (size_t i = 0; i < x->comparison_count; i++) {
		const struct comparison *c = &x->comparisons[i];
		double p;

		if (c->published && comparison_percent(c, &c->of, results, count, &p) &&
		    fabs(p - c->percent) > c->within) {
			fprintf(out,
				"%s: predicted %+.1f %%, published %+.1f %%: %g points are "
				"allowed\n",
				c->name, p, c->percent, c->within);
			misses++;
		}
		if (!comparison_percent(c, &c->ours, results, count, &p))
			continue;
		if (c->bounded && fabs(p) > c->ours_within) {
			fprintf(out, "%s: ours is %+.1f %%, it should be within %g %%\n", c->name,
				p, c->ours_within);
			misses++;
		}
		if (c->bounded_above && p > c->ours_at_most) {
			fprintf(out, "%s: ours is %+.1f %%, it should be at most %+g %%\n", c->name,
				p, c->ours_at_most);
			misses++;
		}
	}
	return misses;
}
