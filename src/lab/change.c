// SPDX-License-Identifier: MIT
/*
 * Who publishes a comparison of two kernels often gives only how much more or less the second had.
 * Then neither figure is a reference, but their ratio is:
 *
 *	[change rewrites]
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
#include "lab/change.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int parse_figure(const char *text, struct change_figure *f)
{
	const char *dot;

	f->tenant[0] = 0;
	if (!strncmp(text, "tenant.", 7)) {
		text += 7;
		dot = strchr(text, '.');
		if (!dot || dot == text || (size_t)(dot - text) >= sizeof(f->tenant))
			return -1;
		memcpy(f->tenant, text, (size_t)(dot - text));
		f->tenant[dot - text] = 0;
		text = dot + 1;
	}
	f->metric = metric_find(text);
	return f->metric == METRIC_MAX ? -1 : 0;
}

static int find_case(const struct experiment *x, const struct ini_entry *entry, size_t length,
		     const char **out, struct err *e)
{
	for (size_t i = 0; i < x->case_count; i++)
		if (strlen(x->cases[i].name) == length &&
		    !strncmp(x->cases[i].name, entry->value, length)) {
			*out = x->cases[i].name;
			return 0;
		}
	return err_set(e, x->path, entry->line, "%s names \"%.*s\", no case there is", entry->key,
		       (int)length, entry->value);
}

/* "CASE" or "CASE:FIGURE" */
static int read_figure(const struct experiment *x, const struct ini_entry *entry,
		       const struct change_figure *normal, struct change_figure *out, struct err *e)
{
	const char *colon = strchr(entry->value, ':');
	size_t length = colon ? (size_t)(colon - entry->value) : strlen(entry->value);

	*out = *normal;
	if (find_case(x, entry, length, &out->case_name, e))
		return -EINVAL;
	if (colon && parse_figure(colon + 1, out))
		return err_set(e, x->path, entry->line, "unknown figure \"%s\"", colon + 1);
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

static int check_whole(const struct experiment *x, const struct change *c,
		       const struct ini_section *s, const struct ini_entry *const *entry,
		       struct err *e)
{
	if (!entry[FIGURE] || !entry[AGAINST])
		return err_set(e, x->path, s->line, "[%s] needs \"figure\" and \"against\"",
			       s->name);
	if (!entry[CASE] && !entry[OURS])
		return err_set(e, x->path, s->line, "[%s] needs \"case\", or \"ours\", or both",
			       s->name);
	if (c->published && (!entry[CASE] || !entry[SOURCE] || !entry[WITHIN]))
		return err_set(e, x->path, s->line,
			       "what was published needs \"case\", \"within\" and \"source\"");
	return 0;
}

static int read_figures(const struct experiment *x, struct change *c,
			const struct ini_entry *const *entry, struct err *e)
{
	struct change_figure f = { 0 };

	if (parse_figure(entry[FIGURE]->value, &f))
		return err_set(e, x->path, entry[FIGURE]->line, "unknown figure \"%s\"",
			       entry[FIGURE]->value);
	if (read_figure(x, entry[AGAINST], &f, &c->against, e) ||
	    (entry[CASE] && read_figure(x, entry[CASE], &f, &c->of, e)) ||
	    (entry[OURS] && read_figure(x, entry[OURS], &f, &c->ours, e)))
		return -EINVAL;
	return 0;
}

static int change_read(const struct experiment *x, struct change *c, const struct ini_section *s,
		       struct err *e)
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

int changes_read(struct experiment *x, struct err *e)
{
	x->changes = calloc(x->ini.section_count + 1, sizeof(*x->changes));
	if (!x->changes)
		return experiment_no_memory(e);
	for (size_t i = 0; i < x->ini.section_count; i++) {
		const struct ini_section *s = &x->ini.sections[i];
		struct change *c = &x->changes[x->change_count];

		if (strncmp(s->name, "change ", 7) != 0)
			continue;
		c->name = s->name + 7;
		if (change_read(x, c, s, e))
			return -EINVAL;
		x->change_count++;
	}
	return 0;
}

/* --- figures */

static bool figure_value(const struct change_figure *f, const struct lab_result *results,
			 size_t count, double *out)
{
	for (size_t i = 0; f->case_name && i < count; i++) {
		const struct lab_result *r = &results[i];
		const struct metrics *m = &r->predicted;
		const struct setup *s = &r->c->setup;

		if (r->error || strcmp(r->c->name, f->case_name) != 0)
			continue;
		for (u32 t = 0; f->tenant[0] && t < s->tenant_count; t++)
			if (!strcmp(s->tenant[t].name, f->tenant))
				m = &r->tenant[t];
		if ((f->tenant[0] && m == &r->predicted) || m->state[f->metric] != METRIC_KNOWN)
			return false;
		*out = m->value[f->metric];
		return true;
	}
	return false;
}

bool change_percent(const struct change *c, const struct change_figure *f,
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

static void cell(char buf[CELL], bool known, double percent, const char *of)
{
	if (!known)
		snprintf(buf, CELL, "-");
	else
		snprintf(buf, CELL, "%+.1f %%%s%s", percent, of ? " " : "", of ? of : "");
}

void changes_table(FILE *out, const struct experiment *x, const struct lab_result *results,
		   size_t count)
{
	int width = 6;
	bool any = false;

	for (size_t i = 0; i < x->change_count; i++) {
		const struct change *c = &x->changes[i];
		int length = (int)strlen(c->title ? c->title : c->name);

		width = length > width ? length : width;
	}
	for (size_t i = 0; i < x->change_count; i++) {
		const struct change *c = &x->changes[i];
		char published[CELL], predicted[CELL], ours[CELL];
		double of = 0, own = 0;
		bool of_known = change_percent(c, &c->of, results, count, &of);
		bool own_known = change_percent(c, &c->ours, results, count, &own);

		if (!of_known && !own_known)
			continue;
		if (!any)
			fprintf(out, "\n%-*s   %-16s %-10s %-24s %s\n", width, "change", "against",
				"published", "predicted", "ours");
		any = true;
		cell(published, c->published, c->percent, NULL);
		cell(predicted, of_known, of, c->of.case_name);
		cell(ours, own_known, own, c->ours.case_name);
		fprintf(out, "%-*s   %-16s %-10s %-24s %s\n", width, c->title ? c->title : c->name,
			c->against.case_name, published, predicted, ours);
	}
}

size_t changes_misses(FILE *out, const struct experiment *x, const struct lab_result *results,
		      size_t count)
{
	size_t misses = 0;

	for (size_t i = 0; i < x->change_count; i++) {
		const struct change *c = &x->changes[i];
		double p;

		if (c->published && change_percent(c, &c->of, results, count, &p) &&
		    fabs(p - c->percent) > c->within) {
			fprintf(out,
				"%s: predicted %+.1f %%, published %+.1f %%: %g points are "
				"allowed\n",
				c->name, p, c->percent, c->within);
			misses++;
		}
		if (!change_percent(c, &c->ours, results, count, &p))
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
