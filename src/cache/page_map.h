/* SPDX-License-Identifier: MIT */
/*
 * What a process has mapped of a file: which pages its loads find, and which its stores. Of a
 * simulated world only: nothing here is safe from other threads but under the tree_lock.
 */
#ifndef SLUICE_CACHE_PAGE_MAP_H
#define SLUICE_CACHE_PAGE_MAP_H

#include "cache/cache.h"

struct page_map {
	struct page_map *next; /* of the mapping's */
	u64 first, end;        /* pages of the file */
	u64 *mapped;           /* bits: the page can be loaded from */
	u64 *writable;         /* ... and stored to, without a fault */
};

/* Of pages [first, end), none mapped yet; known to the mapping until page_map_leave(). */
int page_map_join(struct page_map *p, struct mapping *m, u64 first, u64 end);
void page_map_leave(struct page_map *p, struct mapping *m);

bool page_map_has(const struct page_map *p, u64 page, bool writable);
/* A cached page; to be stored to only if it is dirty from here on. */
void page_map_enter(struct page_map *p, struct mapping *m, u64 page, bool writable);

/* From now on stores to [first, end) fault. True if they did not somewhere. */
bool mapping_write_protect(struct mapping *m, u64 first, u64 end);
/* From now on all of it faults; with the tree_lock held. */
void mapping_unmap(struct mapping *m, u64 first, u64 end);

#endif
