/* SPDX-License-Identifier: MIT */
/*
 * Mappings: which folio holds which page of a file. A folio's id fills the index
 * slots of all its pages, so a lookup is one walk and one load; its state words
 * start clean and invalid.
 */
#include "cache/owner.h"
#include "cache/page_map.h"
#include "cache/state.h"
#include <errno.h>

#define GUESS_TRUST_MAX 64 /* so that a file that comes anew elsewhere is soon found there */

void mapping_init(struct mapping *m, struct cache *c, struct store *store, u32 block_shift,
		  u32 max_order, struct ledger *device_book)
{
	assert(max_order <= ARENA_MAX_ORDER);
	*m = (struct mapping){ .cache = c,
			       .id = 1 + atomic_fetch_add(&c->mappings, 1),
			       .store = store,
			       .block_shift = block_shift,
			       .max_order = max_order,
			       .books = { NULL, device_book, &c->ledger } };
	m->books[0] = &m->ledger;
	spin_init(&m->tree_lock, RANK_TREE);
	index_init(&m->index, block_shift);
	ledger_init(&m->ledger);
}

void mapping_finish(struct mapping *m)
{
	assert(!m->pages && !m->in_flight);
	for (unsigned i = 0; i < LEVEL_MAX; i++)
		assert(!ledger_level(&m->ledger, i));
	index_finish(&m->index);
}

void mapping_discard(struct mapping *m)
{
	index_discard(&m->index);
}

/* The pages of [page, end) in the leaf of `page`. */
static u64 leaf_part(u64 page, u64 end)
{
	u32 first = page % LEAF_PAGES;

	return bits_mask(first, (u32)min_u64(LEAF_PAGES - first, end - page));
}

/* The folio at a slot that is known to be taken, pinned. With the tree_lock held. */
static struct folio *pin_at(struct mapping *m, const struct leaf *leaf, u64 page)
{
	struct folio *f = &m->cache->folios[leaf->folio[page % LEAF_PAGES]];

	assert(f->mapping == m && page >= f->index && page < folio_end(f));
	folio_pin(f);
	return f;
}

struct folio *mapping_find(struct mapping *m, u64 page)
{
	struct folio *f = NULL;
	struct leaf *leaf;

	spin_lock(&m->tree_lock);
	leaf = index_leaf(&m->index, page);
	if (leaf && leaf->folio[page % LEAF_PAGES])
		f = pin_at(m, leaf, page);
	spin_unlock(&m->tree_lock);
	return f;
}

struct folio *mapping_find_from(struct mapping *m, u64 page)
{
	struct folio *f = NULL;

	spin_lock(&m->tree_lock);
	if (index_next(&m->index, TAG_PRESENT, page, &page))
		f = pin_at(m, index_leaf(&m->index, page), page);
	spin_unlock(&m->tree_lock);
	return f;
}

/* Releases the leaves of [index, end) that have become, or stayed, empty. */
static void release_leaves(struct mapping *m, u64 index, u64 end)
{
	for (u64 page = round_down(index, LEAF_PAGES); page < end; page += LEAF_PAGES) {
		struct leaf *leaf = index_leaf(&m->index, page);

		if (leaf && !leaf->tag[TAG_PRESENT])
			index_leaf_release(&m->index, leaf);
	}
}

static int add_locked(struct mapping *m, struct folio *f, u64 index, u64 end)
{
	u32 id = folio_id(m->cache, f);

	for (u64 page = index; page < end; page = round_down(page, LEAF_PAGES) + LEAF_PAGES) {
		struct leaf *leaf = index_leaf_create(&m->index, page);

		if (!leaf || leaf->tag[TAG_PRESENT] & leaf_part(page, end)) {
			release_leaves(m, index, end);
			return leaf ? -EEXIST : -ENOMEM;
		}
	}
	for (u64 page = index; page < end; page = round_down(page, LEAF_PAGES) + LEAF_PAGES) {
		struct leaf *leaf = index_leaf(&m->index, page);
		u64 mask = leaf_part(page, end);

		assert(!(leaf->uptodate & mask) && !(leaf->tag[TAG_DIRTY] & mask));
		index_tag_set(leaf, TAG_PRESENT, mask);
		folio_put(leaf->frames, f->frame + (u32)(page - index) - (u32)(page % LEAF_PAGES));
		for (u64 bits = mask; bits; bits &= bits - 1)
			index_store(&leaf->folio[bits_first(bits)], id);
	}
	return 0;
}

/*
 * Guesses where the file's pages are by a folio that has come. Which descriptor is theirs is put
 * to the vote (Boyer and Moore, "MJRTY", 1981): one that stands apart shall not change the guess,
 * and where no two lie in a row there shall be none.
 */
static void guess_by(struct mapping *m, const struct folio *f)
{
	u32 ids = folio_id(m->cache, f) - (f->index >> f->order), trust = m->trust;

	folio_put(m->frames, f->frame - f->index);
	if (m->ids == ids && m->order == f->order) {
		folio_put(m->trust, trust < GUESS_TRUST_MAX ? trust + 1 : trust);
	} else if (trust) {
		folio_put(m->trust, trust - 1);
	} else {
		folio_put(m->ids, ids);
		folio_put(m->order, f->order);
		folio_put(m->trust, 1);
	}
}

int mapping_add(struct mapping *m, struct folio *f, u64 index)
{
	u64 end = index + folio_pages(f);
	int rc;

	assert(!f->mapping && !(index & (folio_pages(f) - 1)));
	if (end > INDEX_MAX_PAGES)
		return -EFBIG;
	spin_lock(&m->tree_lock);
	rc = add_locked(m, f, index, end);
	if (!rc) {
		folio_put(f->mapping, m);
		folio_put(f->index, (u32)index);
		guess_by(m, f);
		folio_change_end(f);
		folio_put(m->pages, m->pages + folio_pages(f));
		folio_pin(f);
		if (unlikely(tenants_in(m->cache)))
			owner_adopt(m->cache, f);
		lru_add(m->cache, f);
	}
	spin_unlock(&m->tree_lock);
	return rc;
}

static void clear_valid(struct mapping *m, struct leaf *leaf, u64 mask)
{
	u32 shift = m->block_shift;

	index_store(&leaf->uptodate, leaf->uptodate & ~mask);
	for (u64 bits = shift ? mask : 0; bits; bits &= bits - 1) {
		u32 bit = bits_first(bits) << shift;
		u64 *word = &leaf_blocks(leaf, BLOCK_UPTODATE, shift)[bit / 64];

		index_store(word, *word & ~bits_mask(bit % 64, 1u << shift));
	}
}

/* With tree_lock and folio lock; the folio is clean and not in flight. Drops the cache's pin. */
static void remove_locked(struct mapping *m, struct folio *f)
{
	u64 end = folio_end(f);

	folio_change_begin(f); /* and it stays so until it is in a mapping again */
	if (unlikely(m->maps != NULL))
		mapping_unmap(m, f->index, end);
	for (u64 page = f->index; page < end; page = round_down(page, LEAF_PAGES) + LEAF_PAGES) {
		struct leaf *leaf = index_leaf(&m->index, page);
		u64 mask = leaf_part(page, end);

		assert(!(leaf->tag[TAG_DIRTY] & mask) && !(leaf->tag[TAG_WRITEBACK] & mask));
		index_tag_clear(leaf, TAG_PRESENT, mask);
		clear_valid(m, leaf, mask);
		for (u64 bits = mask; bits; bits &= bits - 1)
			index_store(&leaf->folio[bits_first(bits)], 0);
	}
	release_leaves(m, f->index, end);
	assert(m->pages >= folio_pages(f));
	folio_put(m->pages, m->pages - folio_pages(f));
	lru_del(m->cache, f);
	if (unlikely(tenants_in(m->cache)))
		owner_leave(m->cache, f);
	folio_put(f->mapping, NULL);
	folio_unpin(m->cache, f);
}

void mapping_remove(struct mapping *m, struct folio *f)
{
	assert(folio_is_locked(f) && f->mapping == m);
	folio_cancel_dirty(f, (u64)f->index << m->block_shift, folio_pages(f) << m->block_shift);
	spin_lock(&m->tree_lock);
	remove_locked(m, f);
	spin_unlock(&m->tree_lock);
}

static bool pages_tagged(struct mapping *m, u64 page, u64 end, enum index_tag tag)
{
	for (; page < end; page = round_down(page, LEAF_PAGES) + LEAF_PAGES)
		if (index_leaf(&m->index, page)->tag[tag] & leaf_part(page, end))
			return true;
	return false;
}

bool mapping_evict(struct folio *f, unsigned pins)
{
	struct mapping *m = f->mapping;
	bool gone = false;

	assert(m && folio_is_locked(f));
	spin_lock(&m->tree_lock);
	if (atomic_load(&f->pins) == pins + 1 &&
	    !pages_tagged(m, f->index, folio_end(f), TAG_DIRTY) &&
	    !pages_tagged(m, f->index, folio_end(f), TAG_WRITEBACK)) {
		remove_locked(m, f);
		gone = true;
	}
	spin_unlock(&m->tree_lock);
	return gone;
}

/* Takes it out if nobody locked it or holds it but the cache, and it has nothing to write. */
static bool remove_idle(struct mapping *m, struct folio *f)
{
	bool idle;

	if (atomic_load_explicit(&f->pins, memory_order_relaxed) != 1 || !folio_trylock(f))
		return false;
	idle = !pages_tagged(m, f->index, folio_end(f), TAG_DIRTY) &&
	       !pages_tagged(m, f->index, folio_end(f), TAG_WRITEBACK);
	if (idle)
		remove_locked(m, f);
	folio_unlock(f); /* of a descriptor, if it went */
	return idle;
}

void mapping_drop(struct folio *f)
{
	if (!folio_is_to_drop(f) || !folio_trylock(f))
		return;
	if (f->mapping && mapping_evict(f, 1))
		world_spend(COST_EVICT, 1);
	folio_unlock(f);
}

bool mapping_drop_landed(struct mapping *m, struct folio *f)
{
	return remove_idle(m, f);
}

void mapping_note_missed(struct mapping *m, const struct folio *f)
{
	m->missed_first = m->missed_end ? min_u64(m->missed_first, f->index) : f->index;
	m->missed_end = max_u64(m->missed_end, folio_end(f));
}

void mapping_drop_missed(struct mapping *m)
{
	u64 page, end;

	spin_lock(&m->tree_lock);
	page = m->missed_first;
	end = m->missed_end;
	m->missed_first = m->missed_end = 0;
	while (index_next(&m->index, TAG_PRESENT, page, &page) && page < end) {
		struct leaf *leaf = index_leaf(&m->index, page);
		struct folio *f = &m->cache->folios[leaf->folio[page % LEAF_PAGES]];

		page = folio_end(f);
		if (folio_is_to_drop(f))
			remove_idle(m, f);
	}
	spin_unlock(&m->tree_lock);
}

u64 mapping_evict_range(struct mapping *m, u64 first, u64 end, u64 *folios)
{
	u64 page, before, gone = 0;

	spin_lock(&m->tree_lock);
	before = m->pages;
	while (index_next(&m->index, TAG_PRESENT, first, &page) && page < end) {
		struct leaf *leaf = index_leaf(&m->index, page);
		struct folio *f = &m->cache->folios[leaf->folio[page % LEAF_PAGES]];

		first = folio_end(f);
		if (f->index >= page && folio_end(f) <= end && remove_idle(m, f))
			gone++;
	}
	*folios = gone;
	before -= m->pages;
	spin_unlock(&m->tree_lock);
	return before;
}

static void set_valid(struct mapping *m, struct leaf *leaf, u64 mask)
{
	u32 shift = m->block_shift;

	index_store(&leaf->uptodate, leaf->uptodate | mask);
	for (u64 bits = shift ? mask : 0; bits; bits &= bits - 1) {
		u32 bit = bits_first(bits) << shift;
		u64 *word = &leaf_blocks(leaf, BLOCK_UPTODATE, shift)[bit / 64];

		index_store(word, *word | bits_mask(bit % 64, 1u << shift));
	}
}

void mapping_filled(struct mapping *m, u64 first, u32 pages, bool valid)
{
	u64 end = first + pages;

	spin_lock(&m->tree_lock);
	for (u64 page = first; valid && page < end; page = round_down(page, 64) + LEAF_PAGES)
		set_valid(m, index_leaf(&m->index, page), leaf_part(page, end));
	for (u64 page = first; page < end;) {
		struct leaf *leaf = index_leaf(&m->index, page);
		struct folio *f = &m->cache->folios[leaf->folio[page % LEAF_PAGES]];

		assert(f->mapping == m && f->index == page && folio_is_locked(f));
		page = folio_end(f);
		folio_unlock(f);
		folio_unpin(m->cache, f); /* never the last: the cache has its own */
	}
	spin_unlock(&m->tree_lock);
}

u64 mapping_next_hole(struct mapping *m, u64 from, u64 limit)
{
	spin_lock(&m->tree_lock);
	while (from < limit) {
		struct leaf *leaf = index_leaf(&m->index, from);
		u32 run = leaf ? bits_run(leaf->tag[TAG_PRESENT], from % 64) : 0;

		from += run;
		if (!run || from % LEAF_PAGES)
			break;
	}
	spin_unlock(&m->tree_lock);
	return min_u64(from, limit);
}

u64 mapping_cached_before(struct mapping *m, u64 page, u64 max)
{
	u64 count = 0;

	spin_lock(&m->tree_lock);
	while (count < max && page > 0) {
		struct leaf *leaf = index_leaf(&m->index, page - 1);
		u32 bit = (page - 1) % LEAF_PAGES;
		/* shift the page before to the top, and count the ones from there down */
		u64 below = leaf ? leaf->tag[TAG_PRESENT] << (63 - bit) : 0;
		u32 run = ~below ? (u32)__builtin_clzll(~below) : 64;

		count += run;
		page -= run;
		if (run < bit + 1)
			break;
	}
	spin_unlock(&m->tree_lock);
	return min_u64(count, max);
}
