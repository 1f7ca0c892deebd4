/* SPDX-License-Identifier: MIT */
/*
 * Reclaim: which clean folio goes when memory is needed. Two lists, as in Linux's
 * classic design (reference 11.1): a folio enters the inactive list; if it was used at
 * least twice by the time it reaches the end, it moves to the active one, else it goes.
 * The active list gives its oldest back while it is the longer one, so neither a long
 * scan nor a large working set takes all the memory.
 *
 * Dirty folios, and those in flight, are passed over: write-out is the flusher's work,
 * which is asked for when too little was clean. They are marked, so that they come back to the old
 * end of the list when they are written, and are the next to go (11.2). With `shed` a folio that is
 * only partly dirty is split first, and its clean pages go like any others.
 */
#include "cache/state.h"

#define RECLAIM_BATCH      32   /* folios looked at between checks of the active list */
#define RECLAIM_LOOK_LIMIT 8192 /* folios looked at in one call */
#define PROGRESS_WAIT_NS   (100 * NSEC_PER_MSEC)

/* Gives folios of the active list another life on the inactive one while it is shorter. */
static void balance_lists(struct cache *c)
{
	for (unsigned i = 0; i < RECLAIM_BATCH; i++) {
		struct folio *f;

		if (c->lru[LRU_ACTIVE].pages <= c->lru[LRU_INACTIVE].pages)
			return;
		f = lru_rotate(c, LRU_ACTIVE);
		if (!f)
			return;
		if (!(atomic_fetch_and_explicit(&f->flags, ~(u32)(FOLIO_HOT | FOLIO_REFERENCED),
						memory_order_relaxed) &
		      FOLIO_HOT))
			lru_move(c, f, LRU_INACTIVE);
		folio_unpin(c, f);
	}
}

enum verdict { KEPT, KEPT_DIRTY, FREED };

/* Tries to free one pinned folio; *pages says how much that gave. */
static enum verdict try_free(struct cache *c, struct folio *f, u64 *pages)
{
	enum verdict verdict = KEPT;

	if (!folio_trylock(f))
		return KEPT;
	*pages = folio_pages(f);
	if (f->mapping && mapping_evict(f, 1)) {
		verdict = FREED;
	} else if (f->mapping && (folio_is_dirty(f) || folio_in_writeback(f))) {
		verdict = KEPT_DIRTY;
		atomic_fetch_or_explicit(&f->flags, FOLIO_RECLAIM, memory_order_relaxed);
		if (c->config.shed && f->order)
			folio_shed(f, f->index);
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
	u64 freed = 0, looked = 0, idle = 0, dirty = 0, folios = 0;

	while (freed < want && looked < RECLAIM_LOOK_LIMIT && idle < 2 * lru_folios(c)) {
		struct folio *f;
		u64 pages = 0;

		if (looked % RECLAIM_BATCH == 0)
			balance_lists(c);
		f = lru_rotate(c, LRU_INACTIVE);
		if (!f)
			break;
		looked++;
		idle++; /* looks in vain; a third one at the same folio tells nothing new */
		if (atomic_fetch_and_explicit(&f->flags, ~(u32)FOLIO_HOT, memory_order_relaxed) &
		    FOLIO_HOT) {
			lru_move(c, f, LRU_ACTIVE);
		} else {
			enum verdict v = try_free(c, f, &pages);

			freed += v == FREED ? pages : 0;
			folios += v == FREED;
			idle = v == FREED ? 0 : idle;
			dirty += v == KEPT_DIRTY;
		}
		folio_unpin(c, f);
	}
	spin_lock(&c->lru_lock);
	c->stats.folios_reclaimed += folios;
	c->stats.pages_reclaimed += freed;
	spin_unlock(&c->lru_lock);
	if (dirty && freed < want && c->need_writeback)
		c->need_writeback(c);
	return freed;
}

void cache_wait_progress(struct cache *c)
{
	u32 seen = atomic_load(&c->progress);

	spin_lock(&c->lru_lock);
	c->stats.reclaim_waits++;
	spin_unlock(&c->lru_lock);
	atomic_fetch_add(&c->waiters, 1);
	world_park(&c->progress, seen, world_now() + PROGRESS_WAIT_NS);
	atomic_fetch_sub(&c->waiters, 1);
}

void cache_note_progress(struct cache *c)
{
	atomic_fetch_add(&c->progress, 1);
	if (atomic_load(&c->waiters))
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
			if (try_free(c, f, &pages) == FREED)
				freed += pages;
			folio_unpin(c, f);
		}
	}
	return freed;
}
