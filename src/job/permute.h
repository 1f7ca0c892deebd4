/* SPDX-License-Identifier: MIT */
/* A random permutation of 0..n-1 that takes no memory, walked from its beginning or asked. */
#ifndef SLUICE_JOB_PERMUTE_H
#define SLUICE_JOB_PERMUTE_H

#include "base/types.h"

#define PERMUTE_ROUNDS 4

struct permute {
	u64 n, a, b; /* a * b >= n, both near the square root of n */
	u64 key[PERMUTE_ROUNDS];
	u64 left, right; /* the next index of the walk is right * a + left */
};

void permute_init(struct permute *p, u64 n, u64 seed); /* n > 0 */
/* What stands at `index` < n. */
u64 permute_at(const struct permute *p, u64 index);
/* The next of the walk; false, without a value, when all n were given. */
bool permute_next(struct permute *p, u64 *value);

#endif
