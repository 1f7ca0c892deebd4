/* SPDX-License-Identifier: MIT */
/*
 * A plan under several seeds. Some outcomes hang on a moment: whether writers begin to sleep just
 * before the jobs end or would have just after, say. One seed is then one throw of the dice; a
 * median over several says what to expect. Each figure's median is its own, so the figures of a
 * case need not be those of one run. What never happened counts as later than all that did.
 */
#include "lab/lab.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct metrics *figures(const struct lab_result *r, u32 device)
{
	return device ? &r->device[device - 1] : &r->predicted;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Puts into `to` the median of each figure over all runs; device 0 is the whole machine. */
static void take_medians(struct metrics *to, struct lab_result *const *runs, u32 count, size_t i,
			 u32 device)
{
	double values[LAB_SEEDS_MAX];

	for (enum metric m = 0; m < METRIC_MAX; m++) {
		u32 known = 0;

		for (u32 n = 0; n < count; n++) {
			const struct metrics *f = figures(&runs[n][i], device);

			if (f->state[m] == METRIC_KNOWN)
				values[known++] = f->value[m];
		}
		qsort(values, known, sizeof(*values), compare);
		if (known > count / 2)
			metric_put(to, m, values[count / 2]);
		else if (to->state[m] == METRIC_KNOWN)
			to->state[m] = METRIC_NEVER;
	}
}

/* Makes the first of the runs of case i their median, or the failure of the first that failed. */
static void join(struct lab_result *const *runs, u32 count, size_t i)
{
	struct lab_result all = runs[0][i];

	for (u32 n = 1; n < count && !all.error; n++) {
		double wall_s = all.wall_s + runs[n][i].wall_s;

		if (runs[n][i].error)
			all = runs[n][i];
		all.wall_s = wall_s;
	}
	if (!all.error)
		for (u32 device = 0; device <= all.c->setup.device_count; device++)
			take_medians(device ? &all.device[device - 1] : &all.predicted, runs, count,
				     i, device);
	runs[0][i] = all;
}

int lab_run_seeds(const struct plan *plan, const struct lab_options *o, u32 seeds,
		  struct lab_result *results)
{
	struct lab_result *runs[LAB_SEEDS_MAX] = { results };
	struct lab_options one = *o;
	int error = 0;

	assert(seeds % 2 && seeds <= LAB_SEEDS_MAX && (seeds == 1 || !(o->record || o->trace)));
	for (u32 n = 0; n < seeds && !error; n++) {
		one.seed = o->seed + n;
		if (n)
			runs[n] = calloc(plan->count, sizeof(*results));
		error = runs[n] ? lab_run(plan, &one, runs[n]) : -ENOMEM;
	}
	for (size_t i = 0; i < plan->count && !error && seeds > 1; i++)
		join(runs, seeds, i);
	for (u32 n = 1; n < seeds; n++)
		free(runs[n]);
	return error;
}
