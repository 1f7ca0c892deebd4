// SPDX-License-Identifier: MIT
/*
 * Questions about page state: each walks the words of its range under the tree_lock, and changes
 * nothing. Whoever wants to rely on an answer afterwards holds the folio's lock.
 */
#include "cache/cursor.h"

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
