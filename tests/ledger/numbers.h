/* SPDX-License-Identifier: MIT */
/* Random inputs of every magnitude, the same on each run. */
#ifndef SLUICE_TESTS_LEDGER_NUMBERS_H
#define SLUICE_TESTS_LEDGER_NUMBERS_H

#include "base/types.h"
#include <stdlib.h>

#define SOAK_FACTOR 100

struct numbers {
	u64 state;
};

/* How often to draw a case: n times, or many more when soaking. */
static inline int numbers_rounds(int n)
{
	return getenv("SLUICE_SOAK") ? n * SOAK_FACTOR : n;
}

/* Knuth's multiplier for 64-bit linear congruences; the upper bits are the random ones. */
static inline u64 numbers_next(struct numbers *n)
{
	n->state = n->state * 6364136223846793005ull + 1442695040888963407ull;
	return n->state >> 24;
}

static inline u64 numbers_below(struct numbers *n, u64 limit)
{
	assert(limit && limit <= 1ull << 40);
	return numbers_next(n) % limit;
}

/* Of 0 to `bits` bits (at most 40), each length as likely: small ones and large ones. */
static inline u64 numbers_sized(struct numbers *n, unsigned bits)
{
	return numbers_below(n, 1ull << numbers_below(n, bits + 1));
}

#endif
