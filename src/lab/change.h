/* SPDX-License-Identifier: MIT */
/*
 * Changes: what a figure of one case is against that of another, in percent, beside what was
 * published of that change, and what it is under a policy of ours. [change NAME] of an experiment.
 */
#ifndef SLUICE_LAB_CHANGE_H
#define SLUICE_LAB_CHANGE_H

#include "lab/lab.h"

/* A figure of a case: of the machine, or of one of its tenants. */
struct change_figure {
	const char *case_name;
	enum metric metric;
	char tenant[32]; /* or "" */
};

struct change {
	const char *name, *title; /* title may be NULL */
	struct origin at;
	struct change_figure against, of, ours; /* case_name NULL: there is none; `against` is */
	const char *source;                     /* of the published figure */
	bool published, bounded, bounded_above;
	double percent, within;           /* that figure; points that `of` may be off */
	double ours_within, ours_at_most; /* percent, if bounded; if bounded_above */
};

/* Reads all sections of changes; the cases are known. 0, or a negative errno with `e` set. */
int changes_read(struct experiment *x, struct err *e);
/* The table of changes whose cases are among the results; nothing if there are none. */
void changes_table(FILE *out, const struct experiment *x, const struct lab_result *results,
		   size_t count);
/* A line for each that is not as it should be; returns how many. */
size_t changes_misses(FILE *out, const struct experiment *x, const struct lab_result *results,
		      size_t count);
/* The change of figure `f` in percent; false: it is not known. */
bool change_percent(const struct change *c, const struct change_figure *f,
		    const struct lab_result *results, size_t count, double *percent);

#endif
