/* SPDX-License-Identifier: MIT */
/* Which folio reclaim looks at next, by the rule of the cache. See victim.c. */
#ifndef SLUICE_CACHE_VICTIM_H
#define SLUICE_CACHE_VICTIM_H

#include "cache/cache.h"

/* What one call of reclaim has seen so far. */
struct look {
	u64 looked;          /* folios */
	enum lru_list from;  /* RECLAIM_S3FIFO: the queue of the last one */
	u64 vain[LRU_LISTS]; /* and how many stayed in it since something was freed */
};

/*
 * The next folio, pinned; NULL: there is none, or no use in looking on. With *spare it has been
 * used and gets another round, else it is to go if it can.
 */
struct folio *victim_next(struct cache *c, struct look *look, bool *spare);
/* A folio that was to go is dirty, and stays; it is pinned and locked. */
void victim_is_dirty(struct cache *c, struct folio *f);

#endif
