/* SPDX-License-Identifier: MIT */
/*
 * Folios: naturally aligned power-of-two runs of pages, the unit in which memory is
 * allocated, put into the cache and reclaimed. A folio carries no page state: that
 * is in the index of its mapping (index.h). A descriptor is 32 bytes, named by a
 * 32-bit id, its place in the cache's table.
 *
 * Life: folio_alloc() gives it one pin, the caller's. Adding it to a mapping adds the
 * cache's pin. Whoever holds a pin may look at it; when the last one goes, memory and
 * descriptor are free again. The lock excludes those who change the folio's contents
 * or its place: readers filling it, writers, write-out, truncation, splitting. It
 * may be held across a park and is released from I/O completions.
 */
#ifndef SLUICE_CACHE_FOLIO_H
#define SLUICE_CACHE_FOLIO_H

#include "base/types.h"
#include <stdatomic.h>

struct cache;
struct mapping;

enum folio_flags {
	FOLIO_LOCKED = 1 << 0,
	FOLIO_WAITERS = 1 << 1,    /* somebody parks on the flags */
	FOLIO_REFERENCED = 1 << 2, /* used once since reclaim looked */
	FOLIO_HOT = 1 << 3,        /* used again: belongs on the active list */
	FOLIO_ACTIVE = 1 << 4,     /* is on the active list */
	FOLIO_MARK = 1 << 5,       /* reading it starts the next readahead window */
	FOLIO_RECLAIM = 1 << 6,    /* reclaim met it dirty: goes first once it is written */
	FOLIO_DROP = 1 << 7,       /* nobody but who made it wants it: goes when done with */
};

struct folio {
	struct mapping *mapping; /* NULL once out of the cache; changes under its tree_lock */
	u32 index;               /* first page of the file, a multiple of 1 << order */
	u32 frame;               /* first frame of the arena */
	u32 lru_next, lru_prev;  /* cache.lru_lock */
	_Atomic u32 flags;
	_Atomic u16 pins;
	u8 order; /* changes under the tree_lock and the lru_lock, with the folio locked */
};

static_assert(sizeof(struct folio) == 32, "descriptor memory is bounded by design");

static inline u32 folio_pages(const struct folio *f)
{
	return 1u << f->order;
}

static inline u64 folio_end(const struct folio *f)
{
	return (u64)f->index + folio_pages(f);
}

/*
 * Allocates a folio of `order`, not in any mapping, unlocked, with one pin. Reclaims if
 * need be; above order 0 it gives up early and returns NULL, at order 0 it waits for
 * memory and returns NULL only when there is no descriptor memory to be had.
 */
struct folio *folio_alloc(struct cache *c, unsigned order);
/* The same for those who hold what others wait for: gives up early at order 0 too. */
struct folio *folio_alloc_nowait(struct cache *c, unsigned order);

/* A blank descriptor, for pieces of a folio that is being split; NULL: table full. */
struct folio *folio_descriptor(struct cache *c);

void folio_pin(struct folio *f);
void folio_unpin(struct cache *c, struct folio *f);

void folio_lock(struct folio *f);
bool folio_trylock(struct folio *f);
void folio_unlock(struct folio *f); /* callable from events */
static inline bool folio_is_locked(const struct folio *f)
{
	return atomic_load_explicit(&f->flags, memory_order_relaxed) & FOLIO_LOCKED;
}

/* Waits until none of the folio's pages is being written. It may be dirty again by then. */
void folio_wait_writeback(struct folio *f);
/* For writeback completion: wakes those waiting on the folio. */
void folio_wake(struct folio *f);

/* Whether it was made to be dropped, and nobody has used it otherwise since. */
static inline bool folio_is_to_drop(const struct folio *f)
{
	u32 flags = atomic_load_explicit(&f->flags, memory_order_relaxed);

	return (flags & (FOLIO_DROP | FOLIO_REFERENCED | FOLIO_HOT)) == FOLIO_DROP;
}

/* Notes a use: cheap, and without a store when there is nothing to note. */
static inline void folio_mark_accessed(struct folio *f)
{
	u32 flags = atomic_load_explicit(&f->flags, memory_order_relaxed);

	if (!(flags & FOLIO_REFERENCED))
		atomic_fetch_or_explicit(&f->flags, FOLIO_REFERENCED, memory_order_relaxed);
	else if (!(flags & FOLIO_HOT))
		atomic_fetch_or_explicit(&f->flags, FOLIO_HOT, memory_order_relaxed);
}

#endif
