/* SPDX-License-Identifier: MIT */
/*
 * Latency histograms by fio's bucket law: 128 buckets of 1 ns each, then groups
 * of 64 buckets, each group twice as wide as the one before, 29 groups in all
 * (the first 128 buckets count as two).
 * A value so stands in a bucket at most 1/64 of its size wide, and percentiles
 * computed here are those fio would print for the same samples.
 * Caller-owned memory, not thread safe.
 */
#ifndef SLUICE_BASE_HIST_H
#define SLUICE_BASE_HIST_H

#include "base/types.h"

#define HIST_BITS    6
#define HIST_GROUPS  29
#define HIST_BUCKETS (HIST_GROUPS << HIST_BITS)

struct hist {
	u64 bucket[HIST_BUCKETS];
	u64 samples;
	u64 min_ns, max_ns; /* exact; min is ~0 while there is no sample */
	double sum_ns;
	double sum_squares; /* of the distances from the mean */
};

void hist_init(struct hist *h);
void hist_add(struct hist *h, u64 value_ns);
void hist_merge(struct hist *into, const struct hist *from);

/* The value at `percent` (0 < percent <= 100) as fio reports it; 0 if empty. */
u64 hist_percentile(const struct hist *h, double percent);
double hist_mean(const struct hist *h);
double hist_stddev(const struct hist *h);

#endif
