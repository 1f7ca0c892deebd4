/* SPDX-License-Identifier: MIT */
/*
 * Splitting folios. Since state lives in the index, a split only makes descriptors:
 * the half that goes its own way gets one, its slots are filled with the new id, and
 * the memory is divided as the buddy allocator would have. So even a dirty folio can be
 * split; only the folio-wise ledger levels change, by the halves that turn out clean.
 *
 * folio_split() goes down one side only, as a buddy allocator does on allocation: from
 * order o to r it leaves pieces of order o-1, o-2, ..., r+1, r and the one kept, r
 * (reference 11.6, non-uniform). folio_shed() goes down wherever dirty and clean pages
 * meet, so that afterwards every folio is either all dirty or all clean.
 *
 * Caller's duty: the folio is locked, and only the cache and the caller hold it.
 */
#include "cache/owner.h"

/* How many of the pages [first, end) are dirty. With the tree_lock held. */
static u64 count_dirty(struct mapping *m, u64 first, u64 end)
{
	u64 pages = 0;

	for (u64 page = first; page < end; page = round_down(page, LEAF_PAGES) + LEAF_PAGES) {
		u32 n = (u32)min_u64(LEAF_PAGES - page % 64, end - page);

		pages += bits_count(index_leaf(&m->index, page)->tag[TAG_DIRTY] &
				    bits_mask(page % 64, n));
	}
	return pages;
}

static bool in_flight(struct mapping *m, const struct folio *f)
{
	u64 page;

	return index_next(&m->index, TAG_WRITEBACK, f->index, &page) && page < folio_end(f);
}

static void set_slots(struct mapping *m, const struct folio *f)
{
	u32 id = folio_id(m->cache, f);

	for (u64 page = f->index; page < folio_end(f); page++)
		index_store(&index_leaf(&m->index, page)->folio[page % LEAF_PAGES], id);
}

/*
 * Halves f, which goes on as the half that holds `page`; the other half is returned, locked, with
 * the cache's pin only. NULL without descriptor memory. `relief` grows by the pages that are
 * no longer pinned by a dirty neighbour. With the tree_lock held.
 */
static struct folio *halve(struct mapping *m, struct folio *f, u64 page, u32 *relief)
{
	u32 half = folio_pages(f) / 2, flags = atomic_load(&f->flags);
	bool upper = page >= f->index + half;
	struct folio *other =
		folio_descriptor(m->cache, upper ? f->frame : f->frame + half, f->order - 1u);
	u64 dirty, other_dirty;

	assert(f->order > 0 && page >= f->index && page < folio_end(f));
	if (!other)
		return NULL;
	/* who found the descriptor in its last life may have it locked, but not for long */
	while (!folio_trylock(other))
		;
	folio_put(other->mapping, m);
	other->tenant = f->tenant;
	folio_put(other->index, upper ? f->index : f->index + half);
	atomic_fetch_or(&other->flags, flags & FOLIO_DROP);
	atomic_store(&other->uses, atomic_load(&f->uses));
	folio_change_begin(f);
	lru_halve(m->cache, f, other);
	if (upper) {
		folio_put(f->index, f->index + half);
		folio_put(f->frame, f->frame + half);
	}
	folio_change_end(other);
	set_slots(m, other);
	folio_change_end(f);
	dirty = count_dirty(m, f->index, folio_end(f));
	other_dirty = count_dirty(m, other->index, folio_end(other));
	if (dirty + other_dirty && (!dirty || !other_dirty))
		*relief += half;
	return other;
}

/* Enters that a split of f freed `relief` pages from their dirty neighbours. */
static void post_relief(struct mapping *m, struct folio *f, u32 relief)
{
	struct ledger_entry e = { 0 };
	struct bill b;

	if (!relief)
		return;
	e.level[LEVEL_FOLIO_DIRTY] = -(s32)relief;
	e.level[LEVEL_PINNED] = -(s32)relief;
	e.total[TOTAL_FOLIO_CANCELLED] = relief;
	if (folio_is_to_drop(f))
		e.level[LEVEL_FOLIO_DROP] = -(s32)relief;
	bill_begin(&b, m);
	if (likely(!b.tenants)) {
		ledger_post_all(m->books, MAPPING_BOOKS, &e, &m->cache->books_lock);
		return;
	}
	bill_folio(&b, f, NULL, &e);
	bill_post(&b, &e);
}

/* Whether nobody but the caller knows where its bytes are. */
static bool is_own(struct mapping *m, struct folio *f)
{
	assert(folio_is_locked(f) && f->mapping == m);
	return atomic_load(&f->pins) == 2 && !in_flight(m, f);
}

static void count_split(struct cache *c, bool to_shed)
{
	spin_lock(&c->lru_lock);
	c->stats.folios_split++;
	c->stats.folios_shed += to_shed;
	spin_unlock(&c->lru_lock);
}

struct folio *folio_split(struct folio *f, u64 page, unsigned order, bool dirty_too)
{
	struct mapping *m = f->mapping;
	u32 relief = 0;
	bool ok;

	spin_lock(&m->tree_lock);
	ok = is_own(m, f) && (dirty_too || !count_dirty(m, f->index, folio_end(f)));
	while (ok && f->order > order) {
		struct folio *other = halve(m, f, page, &relief);

		if (!other)
			break;
		folio_unlock(other);
	}
	post_relief(m, f, relief);
	spin_unlock(&m->tree_lock);
	ok = ok && f->order == order;
	if (ok)
		count_split(m->cache, false);
	return ok ? f : NULL;
}

/* Splits down to where f is all dirty or all clean; goes on as the half that holds `page`. */
static void shed(struct mapping *m, struct folio *f, u64 page, u32 *relief)
{
	u64 dirty = count_dirty(m, f->index, folio_end(f));
	struct folio *other;

	if (!dirty || dirty == folio_pages(f))
		return;
	other = halve(m, f, page, relief);
	if (!other)
		return;
	shed(m, f, page, relief);
	shed(m, other, other->index, relief);
	folio_unlock(other);
}

struct folio *folio_shed(struct folio *f, u64 page)
{
	struct mapping *m = f->mapping;
	unsigned order = f->order;
	u32 relief = 0;

	spin_lock(&m->tree_lock);
	if (is_own(m, f))
		shed(m, f, page, &relief);
	post_relief(m, f, relief);
	spin_unlock(&m->tree_lock);
	if (f->order != order)
		count_split(m->cache, true);
	return f;
}
