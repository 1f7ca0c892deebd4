/* SPDX-License-Identifier: MIT */
/*
 * All transitions of page state, and the only place that posts to ledgers.
 *
 * A state is a bit per block. With blocks of a page (block_shift 0) the block words
 * are the page words of the leaf; with smaller blocks each leaf has arrays of block
 * words besides, and a page bit is the or (dirty, writeback) or the and (uptodate)
 * of its blocks. A transition walks the words of its range with a cursor, changes each
 * by one operation, counts the pages that changed by a population count, and posts one
 * entry at the end.
 *
 * What the folio-wise levels need is only known at the folio's edges: whether any of its
 * pages was dirty or in flight before, and whether any is after. A folio of order up to 6
 * lies in one leaf, so that is one test of one word; larger ones take up to eight.
 *
 *	pinned(f) = dirty(f) or writeback(f); each folio-wise level is the sum of
 *	folio_pages(f) over the folios for which the predicate holds.
 */
#include "cache/cursor.h"
#include "cache/owed.h"
#include "cache/owner.h"
#include "cache/page_map.h"

static void post(struct bill *b, const struct ledger_entry *e)
{
	struct mapping *m = b->m;

	if (unlikely(b->tenants))
		bill_post(b, e);
	else
		ledger_post_all(m->books, MAPPING_BOOKS, e, &m->cache->books_lock);
}

/* Marks the cursor's blocks valid, and the pages that so became valid as a whole. */
static void mark_uptodate(const struct cursor *c)
{
	u64 *word = cursor_word(c, BLOCK_UPTODATE);

	index_store(word, *word | c->mask);
	if (c->ix->block_shift)
		index_store(&c->leaf->uptodate, c->leaf->uptodate | (cursor_pages(c, c->mask) &
								     ~cursor_pages(c, ~*word)));
}

void folio_set_uptodate(struct folio *f, u64 first_block, u32 count)
{
	struct mapping *m = f->mapping;
	struct cursor c = cursor_over(m, first_block, count);

	assert_in_folio(f, first_block, count);
	spin_lock(&m->tree_lock);
	while (cursor_next(&c))
		mark_uptodate(&c);
	spin_unlock(&m->tree_lock);
}

void folio_forget(struct folio *f, u64 first_block, u32 count)
{
	struct mapping *m = f->mapping;
	struct cursor c = cursor_over(m, first_block, count);

	assert_in_folio(f, first_block, count);
	assert(folio_is_locked(f));
	spin_lock(&m->tree_lock);
	assert(!folio_tagged(f, TAG_WRITEBACK));
	folio_change_begin(f); /* what the device holds may be newer from here on */
	while (cursor_next(&c)) {
		u64 *word = cursor_word(&c, BLOCK_UPTODATE);

		index_store(word, *word & (~c.mask | *cursor_word(&c, BLOCK_DIRTY)));
		if (m->block_shift)
			index_store(&c.leaf->uptodate,
				    c.leaf->uptodate & ~cursor_pages(&c, c.mask & ~*word));
	}
	folio_change_end(f);
	spin_unlock(&m->tree_lock);
}

/* Makes the cursor's blocks of f dirty; returns the pages that that newly dirtied. */
static u64 mark_dirty(const struct cursor *c, const struct folio *f)
{
	u64 newly = cursor_pages(c, c->mask) & ~c->leaf->tag[TAG_DIRTY];

	if (c->ix->block_shift)
		index_store(cursor_word(c, BLOCK_DIRTY), *cursor_word(c, BLOCK_DIRTY) | c->mask);
	index_tag_set(c->leaf, TAG_DIRTY, newly);
	if (folio_is_to_drop(f))
		index_tag_set(c->leaf, TAG_DROP, newly);
	return newly;
}

/* What of an entry's change of dirty pages is in a folio that is to be dropped. */
static void enter_drop(const struct folio *f, struct ledger_entry *e, s32 pages, s32 folio_pages)
{
	if (!folio_is_to_drop(f))
		return;
	e->level[LEVEL_DROP] += pages;
	e->level[LEVEL_FOLIO_DROP] += folio_pages;
}

struct dirtied folio_set_dirty(struct folio *f, u64 first_block, u32 count)
{
	struct mapping *m = f->mapping;
	struct cursor c = cursor_over(m, first_block, count);
	struct ledger_entry e = { 0 };
	struct dirtied d = { 0 };
	s32 pages = (s32)folio_pages(f);
	struct bill b;
	u16 owner = 0;

	assert_in_folio(f, first_block, count);
	assert(folio_is_locked(f));
	spin_lock(&m->tree_lock);
	bill_begin(&b, m);
	if (!folio_tagged(f, TAG_DIRTY)) {
		d.folio_pages = (u32)pages;
		e.level[LEVEL_FOLIO_DIRTY] = pages;
		e.total[TOTAL_FOLIO_DIRTIED] = (u32)pages;
		if (!folio_tagged(f, TAG_WRITEBACK))
			e.level[LEVEL_PINNED] = pages;
	}
	if (unlikely(b.tenants)) {
		owner = owner_of_dirt(&b, f, e.level[LEVEL_PINNED] != 0);
		bill_folio(&b, f, NULL, &e);
	}
	while (cursor_next(&c)) {
		u64 newly;

		mark_uptodate(&c);
		newly = mark_dirty(&c, f);
		d.pages += bits_count(newly);
		if (unlikely(b.tenants))
			bill_dirtied(&b, c.leaf, newly, owner);
	}
	assert(d.pages || !d.folio_pages);
	owed_note(f, first_block, count);
	if (d.pages) {
		e.level[LEVEL_DEBT] = (s32)d.pages;
		e.total[TOTAL_PAGES_DIRTIED] = d.pages;
		enter_drop(f, &e, (s32)d.pages, (s32)d.folio_pages);
		post(&b, &e);
	}
	spin_unlock(&m->tree_lock);
	return d;
}

/* Cleans the cursor's blocks; returns the pages that have no dirty block any more. */
static u64 mark_clean(const struct cursor *c)
{
	u64 *word = cursor_word(c, BLOCK_DIRTY);
	u64 before = c->leaf->tag[TAG_DIRTY], cleaned;

	if (c->ix->block_shift) {
		index_store(word, *word & ~c->mask);
		cleaned = cursor_pages(c, c->mask) & before & ~cursor_pages(c, *word);
	} else {
		cleaned = c->mask & before;
	}
	index_tag_clear(c->leaf, TAG_DIRTY, cleaned);
	index_tag_clear(c->leaf, TAG_TOWRITE, cleaned);
	index_tag_clear(c->leaf, TAG_DROP, cleaned);
	return cleaned;
}

/* When nothing that failed is left, all of it is safe, or was discarded. */
static void forgive(struct mapping *m)
{
	if (m->error && !index_tagged(&m->index, TAG_FAILED))
		m->error = 0;
}

/* With the tree_lock held. */
static void cancel_dirty(struct folio *f, u64 first_block, u64 count)
{
	struct mapping *m = f->mapping;
	struct cursor c = cursor_over(m, first_block, count);
	struct ledger_entry e = { 0 };
	s32 pages = (s32)folio_pages(f);
	u32 cancelled = 0;
	struct bill b;

	if (!folio_tagged(f, TAG_DIRTY))
		return;
	if (unlikely(m->maps != NULL)) /* who stores there next owes again */
		mapping_unmap(m, f->index, folio_end(f));
	bill_begin(&b, m);
	while (cursor_next(&c)) {
		u64 cleaned = mark_clean(&c);

		cancelled += bits_count(cleaned);
		if (unlikely(b.tenants))
			bill_cancelled(&b, f, c.leaf, cleaned);
		index_tag_clear(c.leaf, TAG_FAILED, cleaned & ~c.leaf->tag[TAG_WRITEBACK]);
	}
	owed_note(f, first_block, count);
	if (!cancelled)
		return;
	forgive(m);
	e.level[LEVEL_DEBT] = -(s32)cancelled;
	e.total[TOTAL_PAGES_CANCELLED] = cancelled;
	if (!folio_tagged(f, TAG_DIRTY)) {
		e.level[LEVEL_FOLIO_DIRTY] = -pages;
		e.total[TOTAL_FOLIO_CANCELLED] = (u32)pages;
		if (!folio_tagged(f, TAG_WRITEBACK))
			e.level[LEVEL_PINNED] = -pages;
	}
	enter_drop(f, &e, e.level[LEVEL_DEBT], e.level[LEVEL_FOLIO_DIRTY]);
	if (unlikely(b.tenants))
		bill_folio(&b, f, NULL, &e);
	post(&b, &e);
}

void folio_cancel_dirty(struct folio *f, u64 first_block, u32 count)
{
	struct mapping *m = f->mapping;

	assert_in_folio(f, first_block, count);
	assert(folio_is_locked(f));
	spin_lock(&m->tree_lock);
	cancel_dirty(f, first_block, count);
	spin_unlock(&m->tree_lock);
}

/* Adds the set bits of a word, whose bit 0 is block `base`, to the runs. */
static u32 add_runs(struct block_run *runs, u32 n, u64 base, u64 word)
{
	while (word) {
		u32 bit = bits_first(word), length = bits_run(word, bit);
		struct block_run *last = n ? &runs[n - 1] : NULL;

		if (last && last->first + last->count == base + bit)
			last->count += length;
		else
			runs[n++] = (struct block_run){ .first = base + bit, .count = length };
		assert(n <= FOLIO_MAX_RUNS);
		word &= ~bits_mask(bit, length);
	}
	return n;
}

#define OF_ALL (-1) /* tenants */

/* Starts write-out of what is dirty of one tenant's, or OF_ALL; nothing is, if it returns 0. */
static u32 begin_writeback(struct folio *f, bool whole, s32 tenant, struct block_run *runs)
{
	struct mapping *m = f->mapping;
	struct cursor c = folio_cursor(f);
	struct ledger_entry e = { 0 };
	s32 pages = (s32)folio_pages(f);
	u32 n = 0, flying = 0, cleaned = 0;
	struct bill b;

	assert(folio_is_locked(f));
	spin_lock(&m->tree_lock);
	assert(folio_tagged(f, TAG_DIRTY) && !folio_tagged(f, TAG_WRITEBACK));
	bill_begin(&b, m);
	while (cursor_next(&c)) {
		u64 valid = *cursor_word(&c, BLOCK_UPTODATE) & c.mask;
		u64 dirty = *cursor_word(&c, BLOCK_DIRTY) & c.mask, take, newly, taken;
		u64 base = c.at - bits_count(c.mask) - bits_first(c.mask);
		struct cursor part = c;

		assert(!(dirty & ~valid));
		if (tenant != OF_ALL)
			part.mask = dirty &= cursor_blocks(&c, owner_pages(b.tenants, c.leaf,
									   cursor_pages(&c, dirty),
									   (u32)tenant));
		take = whole ? valid : dirty;
		newly = mark_clean(&part);
		taken = cursor_pages(&c, take);
		cleaned += bits_count(newly);
		if (m->block_shift)
			*cursor_word(&c, BLOCK_WRITEBACK) |= take;
		index_tag_set(c.leaf, TAG_WRITEBACK, taken);
		flying += bits_count(taken);
		n = add_runs(runs, n, base, take);
		if (unlikely(b.tenants))
			bill_launched(&b, f, c.leaf, newly, taken);
	}
	assert((n && cleaned && flying >= cleaned) || (!n && tenant != OF_ALL));
	if (n) {
		owed_note(f, (u64)f->index << m->block_shift, folio_pages(f) << m->block_shift);
		e.total[TOTAL_PAGES_REDIRTIED] = flying - cleaned; /* clean ones that go along */
		e.level[LEVEL_DEBT] = -(s32)cleaned;
		e.level[LEVEL_IN_FLIGHT] = (s32)flying;
		if (tenant != OF_ALL && folio_tagged(f, TAG_DIRTY))
			e.total[TOTAL_FOLIO_REDIRTIED] = (u32)pages; /* it stays what it was */
		else
			e.level[LEVEL_FOLIO_DIRTY] = -pages;
		e.level[LEVEL_FOLIO_WRITEBACK] = pages;
		enter_drop(f, &e, -(s32)cleaned, e.level[LEVEL_FOLIO_DIRTY]);
		if (unlikely(b.tenants))
			bill_folio(&b, f, NULL, &e);
		post(&b, &e);
		if (!m->in_flight && m->ops)
			m->ops->launched(m);
		m->in_flight += flying;
	}
	spin_unlock(&m->tree_lock);
	return n;
}

u32 folio_begin_writeback(struct folio *f, bool whole, struct block_run *runs)
{
	return begin_writeback(f, whole, OF_ALL, runs);
}

u32 folio_begin_writeback_of(struct folio *f, u32 tenant, struct block_run *runs)
{
	return begin_writeback(f, false, (s32)tenant, runs);
}

/* What became of the blocks of one folio whose I/O ended; adds to the entry. */
static void end_folio_writeback(struct folio *f, u64 first_block, u64 count, int error,
				struct ledger_entry *e, struct bill *b)
{
	struct mapping *m = f->mapping;
	struct cursor c = cursor_over(m, first_block, count);
	struct ledger_entry before = { 0 };
	bool was_dirty = folio_tagged(f, TAG_DIRTY);
	s32 size = (s32)folio_pages(f);
	u32 landed = 0, redirtied = 0;

	if (unlikely(b->tenants))
		before = *e;

	while (cursor_next(&c)) {
		u64 pages = cursor_pages(&c, c.mask), landing = pages & c.leaf->tag[TAG_WRITEBACK];
		u64 again = 0;

		if (m->block_shift) {
			u64 *word = cursor_word(&c, BLOCK_WRITEBACK);

			*word &= ~c.mask;
			landing &= ~cursor_pages(&c, *word);
		}
		index_tag_clear(c.leaf, TAG_WRITEBACK, landing);
		landed += bits_count(landing);
		if (error) {
			again = mark_dirty(&c, f);
			redirtied += bits_count(again);
			index_tag_set(c.leaf, TAG_FAILED, pages);
		} else { /* of a page with several blocks another one may have failed */
			index_tag_clear(c.leaf, TAG_FAILED,
					m->block_shift ? landing & ~c.leaf->tag[TAG_DIRTY]
						       : landing);
		}
		if (unlikely(b->tenants))
			bill_landed(b, f, c.leaf, landing, again);
	}
	owed_note(f, first_block, count);
	e->level[LEVEL_IN_FLIGHT] -= (s32)landed;
	e->level[LEVEL_DEBT] += (s32)redirtied;
	e->total[TOTAL_PAGES_WRITTEN] += landed;
	e->total[TOTAL_PAGES_REDIRTIED] += redirtied;
	if (redirtied && !was_dirty) {
		e->level[LEVEL_FOLIO_DIRTY] += size;
		e->total[TOTAL_FOLIO_REDIRTIED] += (u32)size;
	}
	enter_drop(f, e, (s32)redirtied, redirtied && !was_dirty ? size : 0);
	if (!folio_tagged(f, TAG_WRITEBACK)) {
		e->level[LEVEL_FOLIO_WRITEBACK] -= size;
		if (!folio_tagged(f, TAG_DIRTY))
			e->level[LEVEL_PINNED] -= size;
		e->total[TOTAL_FOLIO_WRITTEN] += (u32)size;
	}
	if (unlikely(b->tenants))
		bill_folio(b, f, &before, e);
	if (folio_tagged(f, TAG_WRITEBACK))
		return;
	if (atomic_load_explicit(&f->flags, memory_order_relaxed) & FOLIO_RECLAIM) {
		atomic_fetch_and_explicit(&f->flags, ~(u32)FOLIO_RECLAIM, memory_order_relaxed);
		lru_deactivate(m->cache, f);
	}
	folio_wake(f);
	/* what cannot go now is the next to go */
	if (folio_is_to_drop(f) && !mapping_drop_landed(m, f)) {
		mapping_note_missed(m, f);
		lru_deactivate(m->cache, f);
	}
}

bool mapping_end_writeback(struct mapping *m, u64 first_block, u32 count, int error)
{
	u64 at = first_block, end = first_block + count;
	struct cache *c = m->cache; /* the mapping may go as soon as its pages have landed */
	struct ledger_entry e = { 0 };
	struct bill b;
	bool missed;

	spin_lock(&m->tree_lock);
	bill_begin(&b, m);
	while (at < end) {
		u64 page = at >> m->block_shift, stop;
		struct leaf *leaf = index_leaf(&m->index, page);
		struct folio *f;

		assert(leaf && leaf->folio[page % 64]);
		f = &m->cache->folios[leaf->folio[page % 64]];
		stop = min_u64(end, folio_end(f) << m->block_shift);
		end_folio_writeback(f, at, stop - at, m->cache->config.forgets ? 0 : error, &e, &b);
		at = stop;
	}
	if (error) {
		m->failures++;
		atomic_fetch_add(&m->cache->failures, 1);
		if (m->cache->config.forgets)
			error_seq_set(&m->error_seq, error);
		else
			m->error = m->error ? m->error : error;
	}
	forgive(m);
	assert(m->in_flight >= (u64)-e.level[LEVEL_IN_FLIGHT]);
	m->in_flight -= (u64)-e.level[LEVEL_IN_FLIGHT];
	post(&b, &e);
	if (m->ops)
		m->ops->landed(m, unlikely(b.tenants) ? &b.rest : &e, m->in_flight == 0);
	missed = m->missed_end != 0;
	spin_unlock(&m->tree_lock);
	if (e.level[LEVEL_PINNED])
		cache_note_progress(c);
	return missed;
}

void folio_keep(struct folio *f)
{
	struct mapping *m = folio_get(f->mapping);
	struct ledger_entry e = { 0 };
	s32 pages = 0;

	if (!m)
		return;
	spin_lock(&m->tree_lock);
	if (f->mapping == m && folio_is_to_drop(f)) {
		for (u64 page = f->index; page < folio_end(f); page = round_down(page, 64) + 64) {
			struct leaf *leaf = index_leaf(&m->index, page);
			u32 n = (u32)min_u64(64 - page % 64, folio_end(f) - page);
			u64 mask = leaf->tag[TAG_DROP] & bits_mask(page % 64, n);

			index_tag_clear(leaf, TAG_DROP, mask);
			pages += (s32)bits_count(mask);
		}
		enter_drop(f, &e, -pages, pages ? -(s32)folio_pages(f) : 0);
		atomic_fetch_and_explicit(&f->flags, ~(u32)FOLIO_DROP, memory_order_relaxed);
		if (pages) /* tenants have no book of what is to be dropped */
			ledger_post_all(m->books, MAPPING_BOOKS, &e, &m->cache->books_lock);
	}
	spin_unlock(&m->tree_lock);
}

void mapping_tag_towrite(struct mapping *m, u64 first_page, u64 last_page)
{
	u64 page;

	spin_lock(&m->tree_lock);
	for (u64 from = first_page; index_next(&m->index, TAG_DIRTY, from, &page);) {
		struct leaf *leaf = index_leaf(&m->index, page);
		u64 past =
			last_page - leaf_first(leaf) + 1; /* pages of the leaf that are in range */

		if (page > last_page)
			break;
		index_tag_set(leaf, TAG_TOWRITE,
			      leaf->tag[TAG_DIRTY] & (~0ull << page % 64) &
				      bits_mask(0, (u32)min_u64(past, 64)));
		from = leaf_first(leaf) + LEAF_PAGES;
	}
	spin_unlock(&m->tree_lock);
}
