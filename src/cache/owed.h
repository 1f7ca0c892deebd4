/* SPDX-License-Identifier: MIT */
/*
 * Owner records: for each page frame one record, outside of the process's own memory, that says
 * which blocks of which page of which file were accepted and are not written yet. See owner.c.
 */
#ifndef SLUICE_CACHE_OWED_H
#define SLUICE_CACHE_OWED_H

#include "cache/cache.h"
#include "cache/persist.h"

#define OWED_BLOCKS 0xffull /* in struct owed.blocks */
#define OWED_ORDER  8       /* above them */

/* Of a frame. */
struct owed {
	_Atomic u64 page; /* file number << 32 | page of the file; means something while owed */
	/*
	 * The blocks of the page that are dirty or in flight, a bit each, and above them which of
	 * the file's pages it was, in the order in which they came to be owed.
	 */
	_Atomic u64 blocks;
};

static_assert(sizeof(struct owed) == 16, "a 256th of the memory");

void owed_note_changed(struct folio *f, u64 first_block, u64 count);
/*
 * The states of these blocks of a folio have changed: its frames' records come to say what the
 * states say. With the tree_lock held; if blocks became dirty, their bytes are there already.
 */
static inline void owed_note(struct folio *f, u64 first_block, u64 count)
{
	if (unlikely(f->mapping->cache->config.persist != NULL))
		owed_note_changed(f, first_block, count);
}

/* The bytes of a folio are in `frame`, too: its records go there. With the tree_lock held. */
void owed_move(struct folio *f, u32 frame);

/* Whether the record of a page's frame says what its states say. With the tree_lock held. */
bool owed_is_right(struct folio *f, u64 page);

#endif
