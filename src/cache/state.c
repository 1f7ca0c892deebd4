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
#include "cache/state.h"

/* Walks the blocks [at, end) word by word. */
struct cursor {
	struct index *ix;
	u64 at, end;
	struct leaf *leaf;
	u32 word;
	u64 mask; /* of blocks in the word */
};

static struct cursor cursor_over(struct mapping *m, u64 first_block, u64 count)
{
	return (struct cursor){ .ix = &m->index, .at = first_block, .end = first_block + count };
}

static bool cursor_next(struct cursor *c)
{
	u32 shift = c->ix->block_shift, bit, n;
	u64 local;

	if (c->at >= c->end)
		return false;
	c->leaf = index_leaf(c->ix, c->at >> shift);
	assert(c->leaf);
	local = c->at - (leaf_first(c->leaf) << shift);
	c->word = (u32)(local / 64);
	bit = local % 64;
	n = (u32)min_u64(64 - bit, c->end - c->at);
	c->mask = bits_mask(bit, n);
	c->at += n;
	return true;
}

static u64 *cursor_word(const struct cursor *c, enum block_state state)
{
	return &leaf_blocks(c->leaf, state, c->ix->block_shift)[c->word];
}

/* The pages, as bits of the leaf, that have any of these blocks of the cursor's word. */
static u64 cursor_pages(const struct cursor *c, u64 blocks)
{
	u32 shift = c->ix->block_shift, pages = 64u >> shift;
	u64 out = 0;

	if (!shift)
		return blocks;
	for (u32 i = 0; i < pages; i++)
		if (blocks >> (i << shift) & bits_mask(0, 1u << shift))
			out |= 1ull << i;
	return out << (c->word * pages);
}

static struct cursor folio_cursor(struct folio *f)
{
	u32 shift = f->mapping->block_shift;

	return cursor_over(f->mapping, (u64)f->index << shift, (u64)folio_pages(f) << shift);
}

static void assert_in_folio(const struct folio *f, u64 first_block, u64 count)
{
	u32 shift = f->mapping->block_shift;

	assert(count && first_block >= (u64)f->index << shift);
	assert(first_block + count <= folio_end(f) << shift);
}

/* Whether any page of the folio has the tag. */
static bool folio_tagged(struct folio *f, enum index_tag tag)
{
	struct index *ix = &f->mapping->index;

	if (f->order <= 6)
		return index_leaf(ix, f->index)->tag[tag] &
		       bits_mask(f->index % 64, folio_pages(f));
	for (u64 page = f->index; page < folio_end(f); page += LEAF_PAGES)
		if (index_leaf(ix, page)->tag[tag])
			return true;
	return false;
}

static void post(struct mapping *m, const struct ledger_entry *e)
{
	ledger_post_all(m->books, MAPPING_BOOKS, e, &m->cache->books_lock);
}

bool folio_is_uptodate(struct folio *f)
{
	u32 shift = f->mapping->block_shift;

	return folio_blocks_uptodate(f, (u64)f->index << shift, folio_pages(f) << shift);
}

bool folio_is_dirty(struct folio *f)
{
	bool dirty;

	spin_lock(&f->mapping->tree_lock);
	dirty = folio_tagged(f, TAG_DIRTY);
	spin_unlock(&f->mapping->tree_lock);
	return dirty;
}

bool folio_in_writeback(struct folio *f)
{
	struct mapping *m = folio_get(f->mapping);
	bool flying;

	if (!m)
		return false;
	spin_lock(&m->tree_lock);
	flying = f->mapping == m && folio_tagged(f, TAG_WRITEBACK);
	spin_unlock(&m->tree_lock);
	return flying;
}

u32 folio_dirty_pages(struct folio *f)
{
	struct mapping *m = f->mapping;
	u32 pages = 0;

	spin_lock(&m->tree_lock);
	for (u64 page = f->index; page < folio_end(f); page = round_down(page, 64) + 64) {
		u32 n = (u32)min_u64(64 - page % 64, folio_end(f) - page);

		pages += bits_count(index_leaf(&m->index, page)->tag[TAG_DIRTY] &
				    bits_mask(page % 64, n));
	}
	spin_unlock(&m->tree_lock);
	return pages;
}

bool mapping_blocks_uptodate(struct mapping *m, struct folio *f, u64 first_block, u32 count)
{
	struct cursor c = cursor_over(m, first_block, count);
	bool valid;

	spin_lock(&m->tree_lock);
	valid = f->mapping == m;
	while (valid && cursor_next(&c))
		valid = !(c.mask & ~*cursor_word(&c, BLOCK_UPTODATE));
	spin_unlock(&m->tree_lock);
	return valid;
}

bool folio_blocks_uptodate(struct folio *f, u64 first_block, u32 count)
{
	assert_in_folio(f, first_block, count);
	return mapping_blocks_uptodate(f->mapping, f, first_block, count);
}

struct block_run folio_next_invalid(struct folio *f, u64 first_block, u32 count)
{
	struct mapping *m = f->mapping;
	struct cursor c = cursor_over(m, first_block, count);
	struct block_run run = { 0 };

	assert_in_folio(f, first_block, count);
	spin_lock(&m->tree_lock);
	while (cursor_next(&c)) {
		u64 invalid = c.mask & ~*cursor_word(&c, BLOCK_UPTODATE);
		u32 word_first = bits_first(c.mask), bit;
		u64 base = c.at - bits_count(c.mask);

		if (run.count && !(invalid >> word_first & 1))
			break; /* the run ended with the word before */
		if (!invalid)
			continue;
		bit = bits_first(invalid);
		if (!run.count)
			run.first = base + bit - word_first;
		run.count += bits_run(invalid, bit);
		if (bit + bits_run(invalid, bit) <= bits_last(c.mask))
			break;
	}
	spin_unlock(&m->tree_lock);
	return run;
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

/* Makes the cursor's blocks dirty; returns how many pages that newly dirtied. */
static u32 mark_dirty(const struct cursor *c)
{
	u64 newly = cursor_pages(c, c->mask) & ~c->leaf->tag[TAG_DIRTY];

	if (c->ix->block_shift)
		index_store(cursor_word(c, BLOCK_DIRTY), *cursor_word(c, BLOCK_DIRTY) | c->mask);
	index_tag_set(c->leaf, TAG_DIRTY, newly);
	return bits_count(newly);
}

struct dirtied folio_set_dirty(struct folio *f, u64 first_block, u32 count)
{
	struct mapping *m = f->mapping;
	struct cursor c = cursor_over(m, first_block, count);
	struct ledger_entry e = { 0 };
	struct dirtied d = { 0 };
	s32 pages = (s32)folio_pages(f);

	assert_in_folio(f, first_block, count);
	assert(folio_is_locked(f));
	spin_lock(&m->tree_lock);
	if (!folio_tagged(f, TAG_DIRTY)) {
		d.folio_pages = (u32)pages;
		e.level[LEVEL_FOLIO_DIRTY] = pages;
		e.total[TOTAL_FOLIO_DIRTIED] = (u32)pages;
		if (!folio_tagged(f, TAG_WRITEBACK))
			e.level[LEVEL_PINNED] = pages;
	}
	while (cursor_next(&c)) {
		mark_uptodate(&c);
		d.pages += mark_dirty(&c);
	}
	assert(d.pages || !d.folio_pages);
	if (d.pages) {
		e.level[LEVEL_DEBT] = (s32)d.pages;
		e.total[TOTAL_PAGES_DIRTIED] = d.pages;
		post(m, &e);
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

	if (!folio_tagged(f, TAG_DIRTY))
		return;
	while (cursor_next(&c)) {
		u64 cleaned = mark_clean(&c);

		cancelled += bits_count(cleaned);
		index_tag_clear(c.leaf, TAG_FAILED, cleaned & ~c.leaf->tag[TAG_WRITEBACK]);
	}
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
	post(m, &e);
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

u32 folio_begin_writeback(struct folio *f, bool whole, struct block_run *runs)
{
	struct mapping *m = f->mapping;
	struct cursor c = folio_cursor(f);
	struct ledger_entry e = { 0 };
	s32 pages = (s32)folio_pages(f);
	u32 n = 0, flying = 0, cleaned = 0;

	assert(folio_is_locked(f));
	spin_lock(&m->tree_lock);
	assert(folio_tagged(f, TAG_DIRTY) && !folio_tagged(f, TAG_WRITEBACK));
	while (cursor_next(&c)) {
		u64 valid = *cursor_word(&c, BLOCK_UPTODATE) & c.mask;
		u64 dirty = *cursor_word(&c, BLOCK_DIRTY) & c.mask;
		u64 take = whole ? valid : dirty;
		u64 base = c.at - bits_count(c.mask) - bits_first(c.mask);

		assert(!(dirty & ~valid));
		cleaned += bits_count(mark_clean(&c));
		if (m->block_shift)
			*cursor_word(&c, BLOCK_WRITEBACK) |= take;
		index_tag_set(c.leaf, TAG_WRITEBACK, cursor_pages(&c, take));
		flying += bits_count(cursor_pages(&c, take));
		n = add_runs(runs, n, base, take);
	}
	assert(n && cleaned && flying >= cleaned);
	e.total[TOTAL_PAGES_REDIRTIED] = flying - cleaned; /* clean ones that go along */
	e.level[LEVEL_DEBT] = -(s32)cleaned;
	e.level[LEVEL_IN_FLIGHT] = (s32)flying;
	e.level[LEVEL_FOLIO_DIRTY] = -pages;
	e.level[LEVEL_FOLIO_WRITEBACK] = pages;
	post(m, &e);
	if (!m->in_flight && m->ops)
		m->ops->launched(m);
	m->in_flight += flying;
	spin_unlock(&m->tree_lock);
	return n;
}

/* What became of the blocks of one folio whose I/O ended; adds to the entry. */
static void end_folio_writeback(struct folio *f, u64 first_block, u64 count, int error,
				struct ledger_entry *e)
{
	struct mapping *m = f->mapping;
	struct cursor c = cursor_over(m, first_block, count);
	bool was_dirty = folio_tagged(f, TAG_DIRTY);
	s32 size = (s32)folio_pages(f);
	u32 landed = 0, redirtied = 0;

	while (cursor_next(&c)) {
		u64 pages = cursor_pages(&c, c.mask), landing = pages & c.leaf->tag[TAG_WRITEBACK];

		if (m->block_shift) {
			u64 *word = cursor_word(&c, BLOCK_WRITEBACK);

			*word &= ~c.mask;
			landing &= ~cursor_pages(&c, *word);
		}
		index_tag_clear(c.leaf, TAG_WRITEBACK, landing);
		landed += bits_count(landing);
		if (error) {
			redirtied += mark_dirty(&c);
			index_tag_set(c.leaf, TAG_FAILED, pages);
		} else { /* of a page with several blocks another one may have failed */
			index_tag_clear(c.leaf, TAG_FAILED,
					m->block_shift ? landing & ~c.leaf->tag[TAG_DIRTY]
						       : landing);
		}
	}
	e->level[LEVEL_IN_FLIGHT] -= (s32)landed;
	e->level[LEVEL_DEBT] += (s32)redirtied;
	e->total[TOTAL_PAGES_WRITTEN] += landed;
	e->total[TOTAL_PAGES_REDIRTIED] += redirtied;
	if (redirtied && !was_dirty) {
		e->level[LEVEL_FOLIO_DIRTY] += size;
		e->total[TOTAL_FOLIO_REDIRTIED] += (u32)size;
	}
	if (folio_tagged(f, TAG_WRITEBACK))
		return;
	e->level[LEVEL_FOLIO_WRITEBACK] -= size;
	if (!folio_tagged(f, TAG_DIRTY))
		e->level[LEVEL_PINNED] -= size;
	e->total[TOTAL_FOLIO_WRITTEN] += (u32)size;
	if (atomic_load_explicit(&f->flags, memory_order_relaxed) & FOLIO_RECLAIM) {
		atomic_fetch_and_explicit(&f->flags, ~(u32)FOLIO_RECLAIM, memory_order_relaxed);
		lru_deactivate(m->cache, f);
	}
	folio_wake(f);
	/* what cannot go now is the next to go */
	if (folio_is_to_drop(f) && !mapping_drop_landed(m, f))
		lru_deactivate(m->cache, f);
}

void mapping_end_writeback(struct mapping *m, u64 first_block, u32 count, int error)
{
	u64 at = first_block, end = first_block + count;
	struct cache *c = m->cache; /* the mapping may go as soon as its pages have landed */
	struct ledger_entry e = { 0 };

	spin_lock(&m->tree_lock);
	while (at < end) {
		u64 page = at >> m->block_shift, stop;
		struct leaf *leaf = index_leaf(&m->index, page);
		struct folio *f;

		assert(leaf && leaf->folio[page % 64]);
		f = &m->cache->folios[leaf->folio[page % 64]];
		stop = min_u64(end, folio_end(f) << m->block_shift);
		end_folio_writeback(f, at, stop - at, m->cache->config.forgets ? 0 : error, &e);
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
	post(m, &e);
	if (m->ops)
		m->ops->landed(m, &e, m->in_flight == 0);
	spin_unlock(&m->tree_lock);
	if (e.level[LEVEL_PINNED])
		cache_note_progress(c);
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
