/* SPDX-License-Identifier: MIT */
/*
 * Changing the size of a cache in use. Growing is only more frames. Shrinking lowers the end of
 * the arena first, so that no new folio is put past it, and then empties what lies there:
 * reclaim frees as much as must go, the oldest first, wherever it lies; folios past the end
 * then move to frames that are free below it. A move changes nothing but where a folio's bytes
 * are, so that a dirty one moves like any other. What finds no free frames is evicted; what
 * can't be because it must be written waits for the flusher, a round at a time, and what somebody
 * holds, for him.
 *
 * Addresses past the end stay mapped: only the memory behind them goes.
 */
#include "cache/state.h"
#include <errno.h>

/* Makes a pinned folio leave the frames past the end, if it lies there. */
static void vacate(struct cache *c, struct folio *f)
{
	if (!folio_trylock(f))
		return;
	if (f->mapping && f->frame + folio_pages(f) > arena_frames(&c->arena) && !folio_move(f) &&
	    !mapping_evict(f, 1) && folio_is_dirty(f)) {
		atomic_fetch_or_explicit(&f->flags, FOLIO_RECLAIM, memory_order_relaxed);
		if (f->order && c->config.shed)
			folio_shed(f, f->index);
	}
	folio_unlock(f);
}

/* Looks at every folio once. */
static void vacate_all(struct cache *c)
{
	for (enum lru_list list = 0; list < LRU_LISTS; list++) {
		for (u64 left = c->lru[list].folios; left > 0 && arena_stuck(&c->arena); left--) {
			struct folio *f = lru_rotate(c, list);

			if (!f)
				break;
			vacate(c, f);
			folio_unpin_looked(c, f);
		}
	}
}

/* Frees, in the order of reclaim, as many pages as are stuck past the end and find no room. */
static void make_room(struct cache *c)
{
	for (;;) {
		u64 stuck = arena_stuck(&c->arena), free = arena_free_frames(&c->arena);

		if (stuck <= free || !cache_reclaim(c, stuck - free))
			return;
	}
}

static void empty_the_end(struct cache *c, u64 deadline)
{
	while (arena_stuck(&c->arena)) {
		u32 seen = cache_expect_progress(c);

		make_room(c);
		vacate_all(c);
		if (!arena_stuck(&c->arena) || world_now() >= deadline) {
			cache_forgo_progress(c);
			return;
		}
		if (ledger_level(&c->ledger, LEVEL_DEBT) && c->need_writeback)
			c->need_writeback(c);
		cache_wait_progress(c, seen, deadline);
	}
}

/* No descriptor lives so often while somebody copies a few bytes of a folio it once was. */
#define SEQ_STEP (1u << 24)

/* Gives back what is past the entries in use of an array in the table, from `start` to `end`. */
static void discard_entries(struct cache *c, u64 start, size_t size, u64 end)
{
	u64 first = round_up(start + (c->table_used + 1) * size, PAGE_SIZE);

	if (first < end)
		memory_discard(&c->table, first, end - first);
}

/*
 * Descriptors at the end of the table that are free go back to the system, once nobody can
 * find them any more. Some may be in use again by then, and stay. Who found one before and
 * still copies compares its seq when he is done: it will never be what he saw.
 */
static void trim_table(struct cache *c)
{
	u64 folios = (u64)((char *)c->folios - c->table.base);

	spin_lock(&c->table_lock);
	while (c->table_used && frameset_has(&c->table_free, c->table_used)) {
		frameset_del(&c->table_free, c->table_used--);
		c->table_free_count--;
	}
	c->table_seq += SEQ_STEP;
	spin_unlock(&c->table_lock);
	world_read_synchronize();
	spin_lock(&c->table_lock);
	discard_entries(c, 0, sizeof(struct folio_links), folios);
	discard_entries(c, folios, sizeof(struct folio), c->table.bytes);
	spin_unlock(&c->table_lock);
}

int cache_resize(struct cache *c, u64 pages, u64 timeout_ns, u64 *left)
{
	u64 max = c->arena.max_frames, deadline = world_now() + timeout_ns;
	int rc;

	*left = 0;
	if (pages <= c->config.reserve_pages || pages > max)
		return -EINVAL;
	mutex_lock(&c->resize_lock);
	rc = arena_resize(&c->arena, (u32)pages);
	if (!rc) {
		empty_the_end(c, deadline);
		trim_table(c);
		*left = arena_stuck(&c->arena);
	}
	mutex_unlock(&c->resize_lock);
	return rc ? rc : *left ? -EAGAIN : 0;
}
