/* SPDX-License-Identifier: MIT */
/*
 * xoshiro256** (Blackman and Vigna 2018, figure 3): 256 bits of state moved by
 * shifts, rotations and xors that are linear over GF(2), and scrambled on the way
 * out by two multiplications so that the linearity does not show. The state may not
 * be all zero and should not be simple, so splitmix64 (Steele, Lea and Flood 2014)
 * spreads the seed over it.
 */
#include "base/rng.h"

static u64 splitmix64(u64 *x)
{
	u64 z = *x += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline u64 rotate_left(u64 x, unsigned n)
{
	return x << n | x >> (64 - n);
}

void rng_init(struct rng *r, u64 seed)
{
	for (unsigned i = 0; i < 4; i++)
		r->s[i] = splitmix64(&seed);
}

u64 rng_u64(struct rng *r)
{
	u64 out = rotate_left(r->s[1] * 5, 7) * 9;
	u64 t = r->s[1] << 17;

	assert(r->s[0] | r->s[1] | r->s[2] | r->s[3]);
	r->s[2] ^= r->s[0];
	r->s[3] ^= r->s[1];
	r->s[1] ^= r->s[2];
	r->s[0] ^= r->s[3];
	r->s[2] ^= t;
	r->s[3] = rotate_left(r->s[3], 45);
	return out;
}

/*
 * The high half of a 64 x 64 bit product maps 2^64 values on n; the few low halves
 * that would make some results more likely are drawn again (Lemire, "Fast random
 * integer generation in an interval", 2019).
 */
u64 rng_below(struct rng *r, u64 n)
{
	unsigned __int128 product;
	u64 uneven;

	assert(n);
	product = (unsigned __int128)rng_u64(r) * n;
	if (unlikely((u64)product < n)) {
		uneven = -n % n;
		while ((u64)product < uneven)
			product = (unsigned __int128)rng_u64(r) * n;
	}
	return (u64)(product >> 64);
}

double rng_double(struct rng *r)
{
	return (double)(rng_u64(r) >> 11) * 0x1p-53;
}
