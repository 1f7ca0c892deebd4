/* SPDX-License-Identifier: MIT */
/*
 * Folios: naturally aligned power-of-two runs of pages, the unit in which memory is
 * allocated, put into the cache and reclaimed. A folio carries no page state: that
 * is in the index of its mapping (index.h). A descriptor is 32 bytes, so that it never lies on
 * two lines of the processor's cache, and 8 for its place in reclaim's lists, which only
 * reclaim looks at, elsewhere. It is named by a 32-bit id, its place in the cache's table. The
 * table is never given back while the cache lives, so a descriptor may be looked at by one who
 * only has the id, however old that is.
 *
 * Life: folio_alloc() gives it one pin, the caller's. Adding it to a mapping adds the
 * cache's pin. Whoever holds a pin may look at it; when the last one goes, memory and
 * descriptor are free again. The lock excludes those who change the folio's contents
 * or its place: readers filling it, writers, write-out, truncation, splitting. It
 * may be held across a park and is released from I/O completions.
 *
 * Who holds neither can still copy valid bytes: `seq` is even while the folio is at rest in a
 * mapping, and odd while it is in none or its place, its memory or the bytes of its valid
 * blocks are being changed. Who finds it even, looks and copies, and then finds it unchanged has
 * seen one moment's state (a sequence lock, as Linux's).
 */
#ifndef SLUICE_CACHE_FOLIO_H
#define SLUICE_CACHE_FOLIO_H

#include "base/types.h"
#include "world/epoch.h"
#include "world/world.h"
#include <stdatomic.h>

struct cache;
struct mapping;

enum folio_flags {
	FOLIO_WAITERS = 1 << 1, /* somebody parks on the flags */
	FOLIO_ACTIVE = 1 << 2,  /* is on the active list */
	FOLIO_MARK = 1 << 3,    /* reading it starts the next readahead window */
	FOLIO_RECLAIM = 1 << 4, /* reclaim met it dirty: goes first once it is written */
	/* nobody but who made it wants it: goes when done with; cleared under its tree_lock */
	FOLIO_DROP = 1 << 5,
};

#define FOLIO_HOT 2 /* uses: it belongs on the active list */

/* mapping, index, frame and order are set by folio_put() for those who look without a lock. */
struct folio {
	struct mapping *mapping; /* NULL once out of the cache; changes under its tree_lock */
	u32 index;               /* first page of the file, a multiple of 1 << order */
	u32 frame;               /* first frame of the arena */
	_Atomic u32 seq;         /* changes with the folio locked, or while it is in no mapping */
	_Atomic u32 flags;
	_Atomic u16 pins;
	u8 order;          /* changes under the tree_lock and the lru_lock, with the folio locked */
	_Atomic u8 uses;   /* since reclaim looked, up to FOLIO_HOT; one in a race may be lost */
	_Atomic u8 locked; /* 1: somebody has the lock. See folio_unlock() */
	u16 tenant;        /* whose memory it is; see owner.h; under the tree_lock */
};

/* A folio's neighbours on the list of reclaim it is on, by id; 0: none. cache.lru_lock. */
struct folio_links {
	u32 next, prev;
};

static_assert(sizeof(struct folio) == 32 && sizeof(struct folio_links) == 8,
	      "descriptor memory is bounded by design");

#define folio_get(field)        __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define folio_put(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

static inline u32 folio_pages(const struct folio *f)
{
	return 1u << f->order;
}

static inline u64 folio_end(const struct folio *f)
{
	return (u64)f->index + folio_pages(f);
}

/* Around a change of a locked folio that lies in a mapping; not nested. */
static inline void folio_change_begin(struct folio *f)
{
	u32 seq = atomic_load_explicit(&f->seq, memory_order_relaxed);

	assert(!(seq & 1));
#ifdef WORLD_TSAN
	atomic_exchange_explicit(&f->seq, seq + 1, memory_order_acq_rel);
#else
	atomic_store_explicit(&f->seq, seq + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); /* before any of the changes can be seen */
#endif
}

/* Also ends the making of a folio that is put into a mapping; not called when it is taken out. */
static inline void folio_change_end(struct folio *f)
{
	u32 seq = atomic_load_explicit(&f->seq, memory_order_relaxed);

	assert(seq & 1);
	atomic_store_explicit(&f->seq, seq + 1, memory_order_release);
}

/* True and *seq if the folio is at rest. */
static inline bool folio_look(const struct folio *f, u32 *seq)
{
	*seq = atomic_load_explicit(&f->seq, memory_order_acquire);
	return !(*seq & 1);
}

/* Whether nothing has changed since folio_look(). */
static inline bool folio_unchanged(const struct folio *f, u32 seq)
{
#ifdef WORLD_TSAN
	atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&f->seq, memory_order_acquire) == seq;
#else
	atomic_thread_fence(memory_order_acquire); /* after all that was looked at */
	return atomic_load_explicit(&f->seq, memory_order_relaxed) == seq;
#endif
}

/*
 * Copies bytes of a folio that may be changing: what comes out means something only if the
 * folio is unchanged afterwards.
 */
void folio_copy_racy(void *to, const void *from, size_t length);
/*
 * Zeroes bytes of a folio that the device may be reading: they will be dirty, so that it comes to
 * have the zeros, too.
 */
void folio_zero_racy(void *to, size_t length);

/*
 * Allocates a folio of `order`, not in any mapping, unlocked, with one pin. Reclaims if
 * need be; above order 0 it gives up early and returns NULL, at order 0 it waits for
 * memory and returns NULL only when there is no descriptor memory to be had, or when most of the
 * cache is dirty data that nobody can write.
 */
struct folio *folio_alloc(struct cache *c, unsigned order);
/* The same for those who hold what others wait for: gives up early at order 0 too. */
struct folio *folio_alloc_nowait(struct cache *c, unsigned order);
/* Charges the running task what making that folio costs. */
void folio_spend(struct cache *c, const struct folio *f);

/* A descriptor with one pin and in no mapping, its seq odd; NULL: table full. */
struct folio *folio_descriptor(struct cache *c, u32 frame, unsigned order);

void folio_pin(struct folio *f);
void folio_unpin(struct cache *c, struct folio *f);
/* The same for reclaim, whose looking at a folio is no reason to look at it again. */
void folio_unpin_looked(struct cache *c, struct folio *f);

/* For writeback completion: wakes those waiting on the folio. */
void folio_wake(struct folio *f);

void folio_lock(struct folio *f);
static inline bool folio_trylock(struct folio *f)
{
	return !atomic_exchange_explicit(&f->locked, 1, memory_order_acquire);
}

/* Callable from events. */
static inline void folio_unlock(struct folio *f)
{
	u32 flags;

	assert(atomic_load_explicit(&f->locked, memory_order_relaxed));
#ifdef WORLD_TSAN
	atomic_exchange(&f->locked, 0);
	flags = atomic_load(&f->flags);
#else
	atomic_store_explicit(&f->locked, 0, memory_order_release);
	world_fence_light();
	flags = atomic_load_explicit(&f->flags, memory_order_relaxed);
#endif
	/* by now it may be another's, or free: then a waiter wakes in vain */
	if (unlikely(flags & FOLIO_WAITERS))
		folio_wake(f);
}

static inline bool folio_is_locked(const struct folio *f)
{
	return atomic_load_explicit(&f->locked, memory_order_relaxed);
}

/* Waits until none of the folio's pages is being written. It may be dirty again by then. */
void folio_wait_writeback(struct folio *f);

/* Whether it was made to be dropped, and nobody has used it otherwise since. */
static inline bool folio_is_to_drop(const struct folio *f)
{
	return atomic_load_explicit(&f->flags, memory_order_relaxed) & FOLIO_DROP;
}

/* Where uses go that do not count. */
extern _Thread_local _Atomic u8 folio_vain_use TLS_DIRECT;

/*
 * Notes a use if it counts: cheap, and without a store to what others look at when there is nothing
 * to note. Nor is there a branch: whether a folio is hot is as good as random while a cache
 * warms up, and the processor would learn that it guessed wrong only when the descriptor has come
 * from afar, and throw away all that it has done meanwhile. Returns how many uses there are if it
 * counts.
 */
static inline u8 folio_note_if(struct folio *f, bool counts)
{
	u8 uses = atomic_load_explicit(&f->uses, memory_order_relaxed);
	uintptr_t note = -(uintptr_t)(counts & (uses < FOLIO_HOT));
	_Atomic u8 *at =
		(_Atomic u8 *)(((uintptr_t)&f->uses & note) | ((uintptr_t)&folio_vain_use & ~note));

	atomic_store_explicit(at, (u8)(uses + 1), memory_order_relaxed);
	return uses + 1;
}

/* The same in either world: in the simulated one to become hot costs something. */
static inline void folio_mark_if(struct folio *f, bool counts)
{
	u8 uses = folio_note_if(f, counts);

	if (world_is_sim() && counts && uses == FOLIO_HOT)
		world_spend(COST_ACTIVATE, 1);
}

static inline void folio_mark_accessed(struct folio *f)
{
	folio_mark_if(f, true);
}

/* Whether it is hot; if so, leaves it `uses`. */
static inline bool folio_take_hot(struct folio *f, u8 uses)
{
	if (atomic_load_explicit(&f->uses, memory_order_relaxed) < FOLIO_HOT)
		return false;
	atomic_store_explicit(&f->uses, uses, memory_order_relaxed);
	return true;
}

#endif
