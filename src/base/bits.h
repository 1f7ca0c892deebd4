/* SPDX-License-Identifier: MIT */
/* Bits of 64-bit words, and the powers of two that go with them. */
#ifndef SLUICE_BASE_BITS_H
#define SLUICE_BASE_BITS_H

#include "base/types.h"

static inline unsigned bits_count(u64 w)
{
	return (unsigned)__builtin_popcountll(w);
}

/* Index of the lowest set bit; w must not be 0. */
static inline unsigned bits_first(u64 w)
{
	assert(w);
	return (unsigned)__builtin_ctzll(w);
}

/* Index of the highest set bit; w must not be 0. */
static inline unsigned bits_last(u64 w)
{
	assert(w);
	return 63u - (unsigned)__builtin_clzll(w);
}

/* The word with bits [first, first + n) set; n may be 64. */
static inline u64 bits_mask(unsigned first, unsigned n)
{
	assert(first < 64 && n <= 64 - first);
	return n ? (~0ull >> (64 - n)) << first : 0;
}

/* The length of the run of set bits that starts at bit `first`. */
static inline unsigned bits_run(u64 w, unsigned first)
{
	u64 zeros = ~(w >> first);

	assert(first < 64);
	return zeros ? (unsigned)min_u64((u64)__builtin_ctzll(zeros), 64 - first) : 64 - first;
}

/* floor(log2(x)); x must not be 0. */
static inline unsigned ilog2(u64 x)
{
	return bits_last(x);
}

/* The smallest power of two >= x; x must not be 0 nor above 2^63. */
static inline u64 roundup_pow2(u64 x)
{
	assert(x && x <= 1ull << 63);
	return x == 1 ? 1 : 1ull << (ilog2(x - 1) + 1);
}

static inline u64 div_roundup(u64 a, u64 b)
{
	return a / b + (a % b != 0);
}

static inline u64 round_down(u64 x, u64 unit)
{
	return x - x % unit;
}

static inline u64 round_up(u64 x, u64 unit)
{
	return div_roundup(x, unit) * unit;
}

#endif
