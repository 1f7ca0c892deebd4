/* SPDX-License-Identifier: MIT */
/*
 * The transitions of page state, each with its ledger entry. Blocks are numbered over
 * the file: block b of page p is p << block_shift | b. Every call takes the tree_lock;
 * callers hold the folio's lock unless said otherwise.
 */
#ifndef SLUICE_CACHE_STATE_H
#define SLUICE_CACHE_STATE_H

#include "cache/cache.h"

/* Blocks [first, first + count) of the file. */
struct block_run {
	u64 first;
	u32 count;
};

/* The most runs one folio can have: every other block of 2 MiB. */
#define FOLIO_MAX_RUNS ((1u << ARENA_MAX_ORDER) * 8 / 2)

/* What a write newly dirtied. */
struct dirtied {
	u32 pages;       /* pages that were clean */
	u32 folio_pages; /* all pages of the folio if it was clean as a whole, else 0 */
};

bool folio_is_uptodate(struct folio *f);
bool folio_is_dirty(struct folio *f);
bool folio_in_writeback(struct folio *f); /* no lock needed: false once it is out of its file */
/* How many of its pages have a dirty block. */
u32 folio_dirty_pages(struct folio *f);
/* Whether every block of the range is valid. */
bool folio_blocks_uptodate(struct folio *f, u64 first_block, u32 count);
/* The same for one who holds no lock: false also when the folio is no longer in `m`. */
bool mapping_blocks_uptodate(struct mapping *m, struct folio *f, u64 first_block, u32 count);
/* The first run of invalid blocks in the range; count 0 if all are valid. */
struct block_run folio_next_invalid(struct folio *f, u64 first_block, u32 count);

void folio_set_uptodate(struct folio *f, u64 first_block, u32 count);
/* Makes the clean ones of these blocks invalid. Nothing of the folio is in flight. */
void folio_forget(struct folio *f, u64 first_block, u32 count);
/* Makes blocks dirty; they are valid (set uptodate here too). */
struct dirtied folio_set_dirty(struct folio *f, u64 first_block, u32 count);
/* Cleans blocks whose data is discarded; cancels the debt of pages left without a dirty one. */
void folio_cancel_dirty(struct folio *f, u64 first_block, u32 count);

/*
 * Starts write-out of the folio's dirty blocks, or with `whole` of all its valid blocks: they are
 * clean and in flight from here on. Fills runs (room for FOLIO_MAX_RUNS) and returns how many.
 * The folio is dirty and not in flight.
 */
u32 folio_begin_writeback(struct folio *f, bool whole, struct block_run *runs);

/*
 * The same of the dirty pages of one tenant only, under ownership by page (owner.h); 0: there are
 * none, and nothing was done.
 */
u32 folio_begin_writeback_of(struct folio *f, u32 tenant, struct block_run *runs);

/*
 * Ends the flight of blocks (folio locks not needed; callable from events). With an error they
 * become dirty again, without counting as newly dirtied, and the mapping keeps the error. True if
 * folios that should have gone with it are still there, since somebody held them.
 */
bool mapping_end_writeback(struct mapping *m, u64 first_block, u32 count, int error);

/*
 * Somebody wants a folio that was made to be dropped: it stays. He holds a pin, or what else keeps
 * it in the cache; no lock is needed.
 */
void folio_keep(struct folio *f);

/* Marks what is dirty in [first, last] pages as to be written by a sync. */
void mapping_tag_towrite(struct mapping *m, u64 first_page, u64 last_page);

#endif
