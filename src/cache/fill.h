/* SPDX-License-Identifier: MIT */
/* Bringing a file's data into its folios. */
#ifndef SLUICE_CACHE_FILL_H
#define SLUICE_CACHE_FILL_H

#include "cache/cache.h"

/*
 * A stretch of new, locked folios being collected for one read. Folios are added in file
 * order; a gap in the file, or fill_flush(), sends what there is.
 */
struct fill {
	struct mapping *m;
	u64 first_page;
	u32 pages;
	bool nowait; /* takes only memory that is at hand */
};

void fill_init(struct fill *fill, struct mapping *m);
/*
 * Makes a folio of `order` at `page` and adds it, locked, to the stretch; `flags` are set in
 * it. 0, -EEXIST when a page of it is cached already, -ENOMEM: waits for memory only while
 * the stretch is empty, and not with `nowait`.
 */
int fill_folio(struct fill *fill, u64 page, unsigned order, u32 flags);
/* Starts the read. Folios become valid and unlocked as it completes. May park. */
void fill_flush(struct fill *fill);

/*
 * Reads the invalid blocks of a range of a locked folio, and waits. Blocks of pages that
 * were never written become zeros without I/O. 0 or a negative errno.
 */
int folio_read(struct folio *f, u64 first_block, u32 count);
/* Zeroes bytes of a folio's memory, in a cache with contents. Offsets are of the file. */
void folio_zero_bytes(struct folio *f, u64 offset, u64 length);
/* The address of a byte of the file in its folio; NULL in a cache without contents. */
void *folio_address(struct folio *f, u64 offset);
/* The same for one who holds a pin, but nothing that keeps the folio in its file. */
void *folio_bytes(struct cache *c, const struct folio *f, u64 offset);

#endif
