/* SPDX-License-Identifier: MIT */
/*
 * The ghost queue of S3-FIFO, as its authors suggest to build it: a hash table of fingerprints,
 * each with the time at which it was entered, where time is counted in pages that went, in
 * steps of a thousandth of the cache. No list is kept: an entry is out of the queue when more
 * than the queue's length went after it, and is overwritten when its place in the table is
 * needed, long before its time comes round again. A page of the cache costs eight bytes of
 * table.
 *
 * A folio is remembered under its first page in units of its own size, and its order. A page
 * that comes back is looked for under each order that has gone lately, so that it is known
 * again also when it comes in a folio of another size.
 *
 * What comes back is forgotten: if it then goes out of the main queue unused, it has to prove
 * itself anew. Without that, a loop over more than the cache would turn the main queue over
 * and over.
 *
 * Yang, Zhang, Qiu, Yue, Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023.
 */
#include "base/bits.h"
#include "cache/reclaim.h"
#include <errno.h>
#include <stdlib.h>

#define WAYS      8    /* entries of a bucket: it has room for twice what it is likely to hold */
#define TIME_FINE 1024 /* units of time in as many pages as the cache has */

/* An entry is a fingerprint, which is not 0, in the upper half, and a time in the lower one. */
static u32 entry_of(u64 hash, u16 time)
{
	u32 print = (u32)hash >> 16;

	return (print ? print : 1) << 16 | time;
}

int ghost_init(struct ghost *g, u64 pages)
{
	u64 unit = pages / TIME_FINE;

	*g = (struct ghost){ .buckets = (u32)div_roundup(2 * pages, WAYS),
			     .unit = unit ? (u32)unit : 1 };
	g->slot = calloc((size_t)g->buckets * WAYS, sizeof(*g->slot));
	return g->slot ? 0 : -ENOMEM;
}

void ghost_finish(struct ghost *g)
{
	free(g->slot);
	g->slot = NULL;
}

/* Mixes well enough for a table: the finaliser of SplitMix64 (Steele, Lea, Flood, 2014). */
static u64 hash_of(u64 mapping, u64 page, unsigned order)
{
	u64 x = (mapping << 4 | order) * 0x9e3779b97f4a7c15ull + (page >> order);

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static u32 *bucket_of(struct ghost *g, u64 hash)
{
	return g->slot + ((hash >> 32) * g->buckets >> 32) * WAYS;
}

/* In units of time; an entry that is none is older than any. */
static u32 age(const struct ghost *g, u32 entry)
{
	return entry ? (u16)((u16)(g->clock / g->unit) - (u16)entry) : UINT32_MAX;
}

void ghost_add(struct ghost *g, u64 mapping, u64 page, unsigned order)
{
	u64 hash = hash_of(mapping, page, order);
	u32 *bucket = bucket_of(g, hash), *oldest = bucket;

	g->clock += 1u << order;
	g->last[order] = g->clock;
	g->orders |= 1u << order;
	for (unsigned i = 1; i < WAYS; i++)
		if (age(g, bucket[i]) > age(g, *oldest))
			oldest = &bucket[i];
	*oldest = entry_of(hash, (u16)(g->clock / g->unit));
}

bool ghost_take(struct ghost *g, u64 mapping, u64 page, u64 window)
{
	for (u32 orders = g->orders; orders; orders &= orders - 1) {
		unsigned order = bits_first(orders);
		u64 hash = hash_of(mapping, page, order);
		u32 *bucket = bucket_of(g, hash);

		if (g->clock - g->last[order] >= window)
			continue;
		for (unsigned i = 0; i < WAYS; i++) {
			if (bucket[i] >> 16 != entry_of(hash, 0) >> 16 ||
			    (u64)age(g, bucket[i]) * g->unit >= window)
				continue;
			bucket[i] = 0;
			return true;
		}
	}
	return false;
}
