/* SPDX-License-Identifier: MIT */
/* Walking the state words of a range of blocks, for the files of this folder; see state.c. */
#ifndef SLUICE_CACHE_CURSOR_H
#define SLUICE_CACHE_CURSOR_H

#include "cache/state.h"

/* Walks the blocks [at, end) word by word. */
struct cursor {
	struct index *ix;
	u64 at, end;
	struct leaf *leaf;
	u32 word;
	u64 mask; /* of blocks in the word */
};

static inline struct cursor cursor_over(struct mapping *m, u64 first_block, u64 count)
{
	return (struct cursor){ .ix = &m->index, .at = first_block, .end = first_block + count };
}

static inline bool cursor_next(struct cursor *c)
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

static inline u64 *cursor_word(const struct cursor *c, enum block_state state)
{
	return &leaf_blocks(c->leaf, state, c->ix->block_shift)[c->word];
}

/* The pages, as bits of the leaf, that have any of these blocks of the cursor's word. */
static inline u64 cursor_pages(const struct cursor *c, u64 blocks)
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

/* The blocks of the cursor's word in these pages of the leaf. */
static inline u64 cursor_blocks(const struct cursor *c, u64 leaf_pages)
{
	u32 shift = c->ix->block_shift, pages = 64u >> shift;
	u64 out = 0;

	if (!shift)
		return leaf_pages;
	for (u64 bits = leaf_pages >> (c->word * pages) & bits_mask(0, pages); bits;
	     bits &= bits - 1)
		out |= bits_mask(bits_first(bits) << shift, 1u << shift);
	return out;
}

static inline struct cursor folio_cursor(struct folio *f)
{
	u32 shift = f->mapping->block_shift;

	return cursor_over(f->mapping, (u64)f->index << shift, (u64)folio_pages(f) << shift);
}

static inline void assert_in_folio(const struct folio *f, u64 first_block, u64 count)
{
	u32 shift = f->mapping->block_shift;

	assert(count && first_block >= (u64)f->index << shift);
	assert(first_block + count <= folio_end(f) << shift);
}

/* Whether any page of the folio has the tag. */
static inline bool folio_tagged(struct folio *f, enum index_tag tag)
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

#endif
