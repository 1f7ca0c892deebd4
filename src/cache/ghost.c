/* SPDX-License-Identifier: MIT */
/*
 * The ghost queue of S3-FIFO, as its authors suggest to build it: a hash table of
 * fingerprints, each with the time at which it was entered, where time is counted in
 * pages that went. No list is kept: an entry is out of the queue when more than the queue's
 * length went after it, and is overwritten when its place in the table is needed.
 *
 * A folio is remembered under its first page in units of its own size, and its order. A page
 * that comes back is looked for under each order that has gone lately, so that it is known
 * again also when it comes in a folio of another size.
 *
 * Yang, Zhang, Qiu, Yue, Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023.
 */
#include "base/bits.h"
#include "cache/reclaim.h"
#include <errno.h>
#include <stdlib.h>

#define WAYS 4 /* entries of a bucket */

int ghost_init(struct ghost *g, u64 pages)
{
	u64 buckets = 1;

	while (buckets * WAYS < pages)
		buckets *= 2;
	*g = (struct ghost){ .buckets = (u32)buckets, .clock = 1 };
	g->slot = calloc(buckets * WAYS, sizeof(*g->slot));
	return g->slot ? 0 : -ENOMEM;
}

void ghost_finish(struct ghost *g)
{
	free(g->slot);
	g->slot = NULL;
}

/* Mixes well enough for a table: the finaliser of SplitMix64 (Steele, Lea, Flood, 2014). */
static u64 hash(u64 mapping, u64 page, unsigned order)
{
	u64 x = (mapping << 4 | order) * 0x9e3779b97f4a7c15ull + (page >> order);

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static u64 *bucket_of(struct ghost *g, u64 h)
{
	return g->slot + (h & (g->buckets - 1)) * WAYS;
}

/* An entry is the fingerprint in the upper half and the time in the lower one; 0: none. */
static u32 age(const struct ghost *g, u64 entry)
{
	return entry ? g->clock - (u32)entry : UINT32_MAX;
}

void ghost_add(struct ghost *g, u64 mapping, u64 page, unsigned order)
{
	u64 h = hash(mapping, page, order), *bucket = bucket_of(g, h), *oldest = bucket;

	g->clock += 1u << order;
	g->last[order] = g->clock;
	g->orders |= 1u << order;
	for (unsigned i = 1; i < WAYS; i++)
		if (age(g, bucket[i]) > age(g, *oldest))
			oldest = &bucket[i];
	*oldest = h >> 32 << 32 | g->clock;
}

bool ghost_take(struct ghost *g, u64 mapping, u64 page, u32 window)
{
	for (u32 orders = g->orders; orders; orders &= orders - 1) {
		unsigned order = bits_first(orders);
		u64 h = hash(mapping, page, order), *bucket = bucket_of(g, h);

		if (g->clock - g->last[order] >= window)
			continue;
		for (unsigned i = 0; i < WAYS; i++) {
			if (bucket[i] >> 32 != h >> 32 || age(g, bucket[i]) >= window)
				continue;
			bucket[i] = 0;
			return true;
		}
	}
	return false;
}
