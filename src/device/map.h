/* SPDX-License-Identifier: MIT */
/*
 * Which pages of a store were written, and (if kept) their bytes: sparse, so that
 * memory is only used around what was written. Not locked: the store is.
 */
#ifndef SLUICE_DEVICE_MAP_H
#define SLUICE_DEVICE_MAP_H

#include "base/types.h"

#define MAP_PAGES_MAX (1ull << 31)

struct map {
	void *root; /* a node, or at height 0 a leaf; NULL: nothing written */
	unsigned height;
};

/*
 * Allocates all that writing pages [page, page + n) may need, with `bytes` also room
 * for their bytes: 0 or -ENOMEM. What is written stays as it is either way.
 */
int map_reserve(struct map *m, u64 page, u64 n, bool bytes);
/* Marks pages written; they are reserved. */
void map_set(struct map *m, u64 page, u64 n);
/* Makes pages as if never written. */
void map_clear(struct map *m, u64 page, u64 n);
bool map_any(const struct map *m, u64 page, u64 n);
/* The first page of [page, end) that was written, or with `written` false was not; else end. */
u64 map_next(const struct map *m, u64 page, u64 end, bool written);
/* The PAGE_SIZE bytes of a page; NULL: all zero. */
u8 *map_bytes(const struct map *m, u64 page);

#endif
