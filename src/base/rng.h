/* SPDX-License-Identifier: MIT */
/*
 * Seeded random numbers: xoshiro256** (Blackman and Vigna, "Scrambled linear
 * pseudorandom number generators", 2018), seeded through splitmix64. The same
 * seed gives the same numbers on every machine. Not thread safe: one owner each.
 */
#ifndef SLUICE_BASE_RNG_H
#define SLUICE_BASE_RNG_H

#include "base/types.h"

struct rng {
	u64 s[4];
};

void rng_init(struct rng *r, u64 seed);
u64 rng_u64(struct rng *r);
u64 rng_below(struct rng *r, u64 n); /* uniform in [0, n), n > 0, unbiased */
double rng_double(struct rng *r);    /* uniform in [0, 1) */

#endif
