/* SPDX-License-Identifier: MIT */
/* By which rule reclaim chooses. See reclaim.c and victim.c. */
#ifndef SLUICE_CACHE_RECLAIM_H
#define SLUICE_CACHE_RECLAIM_H

#include "base/types.h"

enum reclaim {
	RECLAIM_LRU2,   /* two lists, as Linux's classic design */
	RECLAIM_SIEVE,  /* one list and a hand */
	RECLAIM_S3FIFO, /* a small queue, a main one, and the memory of what went */
};

/* What reclaim remembers of folios that went out of the small queue. See ghost.c. */
struct ghost {
	u32 *slot; /* NULL: remembers nothing. Immutable, as are the next two */
	u32 buckets;
	u32 unit;     /* pages of a step of the clock */
	u64 clock;    /* pages that went, ever */
	u64 last[10]; /* by order: the clock when a folio of that order went */
	u32 orders;   /* bit o: one of order o ever went */
};

int ghost_init(struct ghost *g, u64 pages);
void ghost_finish(struct ghost *g);
/* The folio of `order` at `page` of a mapping goes. */
void ghost_add(struct ghost *g, u64 mapping, u64 page, unsigned order);
/* Whether the page went with one of the last `window` pages; then that is forgotten. */
bool ghost_take(struct ghost *g, u64 mapping, u64 page, u64 window);

#endif
