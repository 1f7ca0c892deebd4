/* SPDX-License-Identifier: MIT */
/* Results as people read them: the table's columns, and a report as a page for a browser. */
#ifndef SLUICE_LAB_REPORT_H
#define SLUICE_LAB_REPORT_H

#include "lab/lab.h"

/* A figure of the table, with what was published beside it, and how far off that is. */
struct report_group {
	enum metric metric;
	const char *title;
	bool diff;
	bool quiet; /* only where something was published */
};

#define REPORT_GROUPS 13
extern const struct report_group report_groups[REPORT_GROUPS];

/* Whether a case has that figure; `m` may be NULL. */
static inline bool report_known(const struct metrics *m, enum metric metric)
{
	return m && m->state[metric] == METRIC_KNOWN;
}

static inline const struct metrics *report_reference(const struct lab_result *r)
{
	return r->c->reference ? &r->c->reference->values : NULL;
}

/* A report: results of a plan that was recorded, and what was asked for. */
struct report {
	const struct experiment *x;
	const struct selection *selection;
	u64 seed;
	const struct lab_result *results;
	size_t count;
};

/* Writes the page, complete in itself. Look at ferror(). */
void report_html(FILE *out, const struct report *r);
/* report_html() into a file that appears whole or not at all. */
int report_html_file(const char *path, const struct report *r, struct err *e);

/* --- shared by the files that write the page */

/* Text as it may stand in HTML and in attributes. */
void html_text(FILE *out, const char *text);
/* The sections on single cases. */
void report_html_cases(FILE *out, const struct report *r);
/* All series as one JSON object: only numbers, and keys of ours. */
void report_html_data(FILE *out, const struct report *r);

#endif
