/* SPDX-License-Identifier: MIT */
/*
 * [compare NAME] of an experiment: what was published, what is predicted, and what it is under a
 * policy of ours; of the figures of a case, or of how one changes from another case's, in percent.
 */
#ifndef SLUICE_LAB_COMPARE_H
#define SLUICE_LAB_COMPARE_H

#include "lab/lab.h"

/* A figure of a case: of the machine, or of one of its tenants. */
struct compared {
	const char *case_name;
	enum metric metric;
	char tenant[32]; /* or "" */
};

struct comparison {
	const char *name, *title; /* title may be NULL */
	struct origin at;
	struct compared against, of, ours; /* case_name NULL: there is none */
	const char *source;                /* of the published figure */
	bool published, bounded, bounded_above;
	double percent, within;           /* that figure; points that `of` may be off */
	double ours_within, ours_at_most; /* percent, if bounded; if bounded_above */
};

/* Reads all such sections; the cases have their setups. 0, or a negative errno with `e` set. */
int comparisons_read(struct experiment *x, struct err *e);
/* The table of those whose cases are among the results; nothing if there are none. */
void comparisons_table(FILE *out, const struct experiment *x, const struct lab_result *results,
		       size_t count);
/* A line for each that is not as it should be; returns how many. */
size_t comparisons_misses(FILE *out, const struct experiment *x, const struct lab_result *results,
			  size_t count);
/* The change of figure `f` in percent; false: it is not known. */
bool comparison_percent(const struct comparison *c, const struct compared *f,
			const struct lab_result *results, size_t count, double *percent);

#endif
