/* SPDX-License-Identifier: MIT */
/* Skewed random numbers: fio's random_distribution over the blocks of a file. */
#ifndef SLUICE_JOB_DISTRIBUTION_H
#define SLUICE_JOB_DISTRIBUTION_H

#include "base/rng.h"
#include "job/options.h"
#include "job/permute.h"

struct distribution {
	const struct spread *spread;
	const struct zones *zones;
	u64 n, block_bytes, shift;
	struct permute scatter;          /* where the hot blocks lie: zipf and pareto */
	double zeta, eta, alpha, second; /* zipf */
	double power;                    /* pareto */
	double middle, deviation;        /* normal */
};

/*
 * Numbers below n, of blocks of block_bytes; `spread` is kept by reference. `seed` places
 * the hot blocks, `dir` chooses among its zones.
 */
void distribution_init(struct distribution *d, const struct spread *spread, enum job_dir dir, u64 n,
		       u64 block_bytes, u64 seed);
u64 distribution_next(struct distribution *d, struct rng *r);

/* The natural logarithm, the same to the last bit on every machine; x > 0. */
double exact_log(double x);

#endif
