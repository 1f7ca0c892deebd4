/* SPDX-License-Identifier: MIT */
/*
 * Reclaim: clean folios go when memory is needed, in the order that victim.c says.
 *
 * Dirty folios, and those in flight, are passed over: write-out is the flusher's work,
 * which is asked for when too little was clean. They are marked, so that they come back to the old
 * end of the list when they are written, and are the next to go (reference 11.2). With `shed` a
 * folio that is only partly dirty is split first, and its clean pages are the next to be
 * looked at.
 */
#include "cache/state.h"
#include "cache/victim.h"

#define RECLAIM_LOOK_LIMIT 8192 /* folios looked at in one call */
#define PINNED_WAIT_NS     (100 * NSEC_PER_MSEC)
#define IDLE_WAIT_NS       NSEC_PER_SEC

enum verdict { KEPT, KEPT_DIRTY, FREED };

/* A folio that cannot go for what is dirty in it. */
static void pass_over(struct cache *c, struct folio *f, bool shed)
{
	atomic_fetch_or_explicit(&f->flags, FOLIO_RECLAIM, memory_order_relaxed);
	if (shed && f->order) {
		u64 end = folio_end(f);

		folio_shed(f, f->index);
		if (folio_end(f) < end)
			folio_move_strays(f, end);
	}
	victim_is_dirty(c, f);
}

/* Remembers a folio that went out of the small queue. It was in the mapping, and is not now. */
static void remember(struct cache *c, u64 mapping, const struct folio *f)
{
	if (!c->ghost.slot || atomic_load_explicit(&f->flags, memory_order_relaxed) & FOLIO_ACTIVE)
		return;
	spin_lock(&c->lru_lock);
	ghost_add(&c->ghost, mapping, f->index, f->order);
	spin_unlock(&c->lru_lock);
}

/* Tries to free one pinned folio; *pages says how much that gave. `shed`: or part of it, later. */
static enum verdict try_free(struct cache *c, struct folio *f, bool shed, u64 *pages)
{
	enum verdict verdict = KEPT;
	u64 mapping;

	if (!folio_trylock(f))
		return KEPT;
	*pages = folio_pages(f);
	mapping = f->mapping ? f->mapping->id : 0;
	if (f->mapping && mapping_evict(f, 1)) {
		verdict = FREED;
		remember(c, mapping, f);
	} else if (f->mapping && (folio_is_dirty(f) || folio_in_writeback(f))) {
		verdict = KEPT_DIRTY;
		pass_over(c, f, shed);
	}
	folio_unlock(f);
	if (verdict == FREED)
		world_spend(COST_EVICT, 1);
	return verdict;
}

static u64 lru_folios(const struct cache *c)
{
	return c->lru[LRU_INACTIVE].folios + c->lru[LRU_ACTIVE].folios;
}

u64 cache_reclaim(struct cache *c, u64 want)
{
	u64 freed = 0, idle = 0, dirty = 0, folios = 0;
	struct look look = { 0 };

	while (freed < want && look.looked < RECLAIM_LOOK_LIMIT && idle < 2 * lru_folios(c)) {
		bool spare = false;
		struct folio *f = victim_next(c, &look, &spare);
		u64 pages = 0;

		if (!f)
			break;
		idle++; /* looks in vain; a third one at the same folio tells nothing new */
		if (!spare) {
			enum verdict v = try_free(c, f, c->config.shed, &pages);

			dirty += v == KEPT_DIRTY;
			look.vain[LRU_INACTIVE] += v == KEPT && look.from == LRU_INACTIVE;
			if (v == FREED) {
				freed += pages;
				folios++;
				idle = look.vain[LRU_INACTIVE] = look.vain[LRU_ACTIVE] = 0;
			}
		}
		folio_unpin_looked(c, f);
	}
	spin_lock(&c->lru_lock);
	c->stats.folios_reclaimed += folios;
	c->stats.pages_reclaimed += freed;
	spin_unlock(&c->lru_lock);
	if (dirty && freed < want && c->need_writeback)
		c->need_writeback(c);
	return freed;
}

u32 cache_expect_progress(struct cache *c)
{
	atomic_fetch_add(&c->waiters, 1);
	return atomic_load(&c->progress);
}

void cache_forgo_progress(struct cache *c)
{
	atomic_fetch_sub(&c->waiters, 1);
}

void cache_wait_progress(struct cache *c, u32 seen, u64 deadline)
{
	/* those who let go of a lock only are not heard: hence an end to the wait */
	u64 most = ledger_level(&c->ledger, LEVEL_PINNED) ? PINNED_WAIT_NS : IDLE_WAIT_NS;

	spin_lock(&c->lru_lock);
	c->stats.reclaim_waits++;
	spin_unlock(&c->lru_lock);
	world_park(&c->progress, seen, min_u64(deadline, world_now() + most));
	cache_forgo_progress(c);
}

void cache_note_progress(struct cache *c)
{
	if (!atomic_load(&c->waiters))
		return;
	atomic_fetch_add(&c->progress, 1);
	world_unpark(&c->progress, ~0u);
}

u64 cache_drop_clean(struct cache *c)
{
	u64 freed = 0;

	for (enum lru_list list = 0; list < LRU_LISTS; list++) {
		for (u64 left = c->lru[list].folios; left > 0; left--) {
			struct folio *f = lru_rotate(c, list);
			u64 pages = 0;

			if (!f)
				break;
			if (try_free(c, f, false, &pages) == FREED)
				freed += pages;
			folio_unpin_looked(c, f);
		}
	}
	return freed;
}
