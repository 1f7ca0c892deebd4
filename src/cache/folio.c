/* SPDX-License-Identifier: MIT */
/*
 * Folios: descriptors from a table, memory from the arena, their locks.
 *
 * The table is one reservation of address space for as many descriptors as there may be
 * frames; memory comes with use. Of the free descriptors the lowest is taken first, so the
 * table stays as small as the most folios that ever lived at once.
 *
 * The free ones, too, are looked at by those who got their id a moment ago, from an index slot that
 * has changed since; they may even lock one for as long as they need to see that. So a
 * descriptor's seq goes on counting from one life to the next, and its lock and FOLIO_WAITERS are
 * left alone.
 *
 * Waiting (for the lock, for write-out to end) is one protocol: set FOLIO_WAITERS,
 * then park on the flags as they were; whoever ends what is waited for takes the bit
 * away, which changes the word, and wakes all.
 *
 * The lock is a byte of its own, given up by a plain store. An atomic exchange would have the
 * processor wait until all that was copied into the folio has left its store buffer, as long as
 * the copy itself takes; so it goes on. That the store, and the look for waiters after it, may
 * then pass each other is the waiters' care, who are few and have time (world/fence.h).
 */
#include "base/alloc.h"
#include "cache/cache.h"
#include <string.h>

_Thread_local _Atomic u8 folio_vain_use;

#ifdef WORLD_TSAN
/*
 * The sanitizer knows nothing of sequence counts, nor that what the device reads meanwhile is
 * written once more: it is not shown these loads and stores.
 */
__attribute__((no_sanitize("thread"), noinline)) void folio_copy_racy(void *to, const void *from,
								      size_t length)
{
	volatile u8 *out = to;
	const volatile u8 *in = from;

	for (size_t i = 0; i < length; i++)
		out[i] = in[i];
}

__attribute__((no_sanitize("thread"), noinline)) void folio_zero_racy(void *to, size_t length)
{
	volatile u8 *out = to;

	for (size_t i = 0; i < length; i++)
		out[i] = 0;
}
#else
void folio_zero_racy(void *to, size_t length)
{
	memset(to, 0, length);
}

void folio_copy_racy(void *to, const void *from, size_t length)
{
	memcpy(to, from, length);
}
#endif

struct folio *folio_descriptor(struct cache *c, u32 frame, unsigned order)
{
	struct folio *f = NULL;

	if (alloc_frames_refused())
		return NULL;
	spin_lock(&c->table_lock);
	if (c->table_free_count) {
		u32 id = frameset_lowest(&c->table_free);

		frameset_del(&c->table_free, id);
		c->table_free_count--;
		f = &c->folios[id];
	} else if (c->table_used < c->arena.max_frames) {
		f = &c->folios[++c->table_used];
		if (!atomic_load_explicit(&f->seq, memory_order_relaxed)) /* its first life */
			atomic_store_explicit(&f->seq, c->table_seq, memory_order_relaxed);
	}
	spin_unlock(&c->table_lock);
	if (!f)
		return NULL;
	assert(!f->mapping && atomic_load(&f->seq) & 1 && !atomic_load(&f->pins));
	atomic_fetch_and_explicit(&f->flags, FOLIO_WAITERS, memory_order_relaxed);
	assert(!folio_links(c, f)->next && !folio_links(c, f)->prev);
	folio_put(f->frame, frame);
	folio_put(f->order, (u8)order);
	f->tenant = 0;
	atomic_store_explicit(&f->uses, 0, memory_order_relaxed);
	atomic_store_explicit(&f->pins, 1, memory_order_relaxed);
	return f;
}

static void descriptor_put(struct cache *c, struct folio *f)
{
	spin_lock(&c->table_lock);
	frameset_add(&c->table_free, folio_id(c, f));
	c->table_free_count++;
	spin_unlock(&c->table_lock);
}

/* False: nothing was freed, and there is no hope that anything will be. */
static bool reclaim_or_wait(struct cache *c, u64 want)
{
	u32 seen = cache_expect_progress(c);

	if (cache_reclaim(c, want)) {
		cache_forgo_progress(c);
		return true;
	}
	cache_wait_progress(c, seen, WORLD_NEVER);
	return !c->waits_in_vain || !c->waits_in_vain(c);
}

/* A frame run of that order, with reclaim; ARENA_NONE when there is none and we may not wait. */
static u32 frames_get(struct cache *c, unsigned order, bool wait)
{
	u64 low = cache_size(c) / 256, want = max_u64(1ull << order, 64);

	if (arena_free_frames(&c->arena) < low)
		cache_reclaim(c, want + low);
	for (;;) {
		u32 frame = arena_alloc(&c->arena, order);

		if (frame != ARENA_NONE)
			return frame;
		/* there is memory, in smaller pieces: better those than to drop what is cached */
		if (c->config.reclaim != RECLAIM_LRU2 && order &&
		    arena_free_frames(&c->arena) >= want)
			return ARENA_NONE;
		if (!wait) {
			cache_reclaim(c, want);
			return arena_alloc(&c->arena, order);
		}
		if (!reclaim_or_wait(c, want))
			return arena_alloc(&c->arena, order);
	}
}

static struct folio *alloc(struct cache *c, unsigned order, bool wait)
{
	u32 frame = frames_get(c, order, wait);
	struct folio *f;

	if (frame == ARENA_NONE)
		return NULL;
	f = folio_descriptor(c, frame, order);
	if (!f)
		arena_free(&c->arena, frame, order);
	return f;
}

struct folio *folio_alloc(struct cache *c, unsigned order)
{
	return alloc(c, order, !order);
}

struct folio *folio_alloc_nowait(struct cache *c, unsigned order)
{
	return alloc(c, order, false);
}

void folio_pin(struct folio *f)
{
	u16 before = atomic_fetch_add_explicit(&f->pins, 1, memory_order_relaxed);

	assert(before > 0 && before < UINT16_MAX);
	(void)before;
}

/* The last pin is gone. */
static void free_folio(struct cache *c, struct folio *f)
{
	u32 frame = f->frame;
	unsigned order = f->order;

	assert(!f->mapping);
	/* in this order: who gets a frame finds a descriptor for it */
	descriptor_put(c, f);
	arena_free(&c->arena, frame, order);
}

void folio_unpin_looked(struct cache *c, struct folio *f)
{
	u16 before = atomic_fetch_sub(&f->pins, 1);

	assert(before > 0);
	if (before > 1)
		return;
	free_folio(c, f);
	cache_note_progress(c);
}

void folio_unpin(struct cache *c, struct folio *f)
{
	u16 before = atomic_fetch_sub(&f->pins, 1); /* before looking for waiters */

	assert(before > 0);
	if (before > 2)
		return;
	if (before == 1)
		free_folio(c, f);
	if (unlikely(atomic_load(&c->waiters)))
		cache_note_progress(c);
}

/* Parks until the lock has been given up, perhaps taken again since. */
static void wait_for_lock(struct folio *f)
{
	u32 flags = atomic_fetch_or(&f->flags, FOLIO_WAITERS) | FOLIO_WAITERS;

	if (!world_is_sim())
		world_fence_heavy(); /* the holder sees the flag, or we what he has stored */
	if (atomic_load(&f->locked))
		world_park(&f->flags, flags, WORLD_NEVER);
}

void folio_lock(struct folio *f)
{
	world_shake();
	while (!folio_trylock(f))
		wait_for_lock(f);
}

void folio_wake(struct folio *f)
{
	if (atomic_fetch_and(&f->flags, ~(u32)FOLIO_WAITERS) & FOLIO_WAITERS)
		world_unpark(&f->flags, ~0u);
}

void folio_wait_writeback(struct folio *f)
{
	for (;;) {
		struct mapping *m = folio_get(f->mapping);
		u32 flags = atomic_load(&f->flags);
		bool flying = false;

		if (!m)
			return;
		spin_lock(&m->tree_lock);
		for (u64 page = f->index; f->mapping == m && page < folio_end(f) && !flying;
		     page = round_down(page, LEAF_PAGES) + LEAF_PAGES) {
			u32 n = (u32)min_u64(LEAF_PAGES - page % 64, folio_end(f) - page);
			struct leaf *leaf = index_leaf(&m->index, page);

			flying = leaf && leaf->tag[TAG_WRITEBACK] & bits_mask(page % 64, n);
		}
		if (flying && !(flags & FOLIO_WAITERS)) {
			/* announced under the tree_lock: completion cannot pass unseen */
			atomic_fetch_or(&f->flags, FOLIO_WAITERS);
			flags = atomic_load(&f->flags);
		}
		spin_unlock(&m->tree_lock);
		if (!flying)
			return;
		if (flags & FOLIO_WAITERS)
			world_park(&f->flags, flags, WORLD_NEVER);
	}
}
