/* SPDX-License-Identifier: MIT */
/*
 * A random job visits every block of its file once before it visits one again. fio
 * remembers the visited blocks in a bitmap and draws until it hits a free one; here
 * the order is a permutation that is computed, so that a file of any size takes a few
 * words, and every step the same few nanoseconds to its last block. The distribution
 * is the same: each block once, in an order that looks random.
 *
 * It is a Feistel network over mixed radices (Black and Rogaway, "Ciphers with
 * arbitrary finite domains", CT-RSA 2002): an index is split into a pair (left,
 * right) with left < a and right < b, and each round adds to one half, modulo its
 * radix, a keyed hash of the other. Every round can be undone, so the whole is a
 * permutation of 0..a*b-1. As a*b may exceed n by less than a, a value that falls out
 * is put in again until it falls within ("cycle walking"): rarely more than once.
 */
#include "job/permute.h"
#include <math.h>

static u64 mix(u64 x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* A hash of x under a key, below radix. */
static inline u64 hash(u64 x, u64 key, u64 radix)
{
	x = (x ^ key) * 0x9e3779b97f4a7c15ull;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ull;
	return (u64)((unsigned __int128)x * radix >> 64);
}

void permute_init(struct permute *p, u64 n, u64 seed)
{
	u64 a = (u64)sqrt((double)n);

	assert(n);
	while (a * a < n)
		a++;
	*p = (struct permute){ .n = n, .a = a, .b = n / a + (n % a != 0) };
	for (unsigned i = 0; i < PERMUTE_ROUNDS; i++) {
		seed += 0x9e3779b97f4a7c15ull;
		p->key[i] = mix(seed);
	}
}

static u64 permute_pair(const struct permute *p, u64 left, u64 right)
{
	u64 value;

	for (;;) {
		for (unsigned i = 0; i < PERMUTE_ROUNDS; i += 2) {
			left += hash(right, p->key[i], p->a);
			left -= left >= p->a ? p->a : 0;
			right += hash(left, p->key[i + 1], p->b);
			right -= right >= p->b ? p->b : 0;
		}
		value = right * p->a + left;
		if (likely(value < p->n))
			return value;
	}
}

u64 permute_at(const struct permute *p, u64 index)
{
	assert(index < p->n);
	return permute_pair(p, index % p->a, index / p->a);
}

bool permute_next(struct permute *p, u64 *value)
{
	if (p->right * p->a + p->left >= p->n)
		return false;
	*value = permute_pair(p, p->left, p->right);
	if (++p->left == p->a) {
		p->left = 0;
		p->right++;
	}
	return true;
}
