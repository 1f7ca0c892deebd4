/* SPDX-License-Identifier: MIT */
/*
 * Readahead: how much of a file is read on a miss, and in folios of what size.
 * Linux writeback reference, section 7; `file_order` is the flavour since 6.17.
 */
#ifndef SLUICE_CACHE_READAHEAD_H
#define SLUICE_CACHE_READAHEAD_H

#include "cache/cache.h"

/* Of one open file; its owner serialises calls. Page numbers and counts. Who reads what is cached
 * sets previous_end without asking. */
struct readahead {
	u64 start;                /* the current window */
	u32 size, async_size;     /* ... of which the last async_size pages start the next */
	u32 order;                /* file_order: of the last window */
	u32 ra_pages;             /* the largest window for small reads; 0: none */
	bool random;              /* FADV_RANDOM: read just what is asked for */
	_Atomic u64 previous_end; /* byte after the last one read; ~0 at first */
};

struct readahead_limits {
	u64 eof_page;    /* pages of the file: nothing is read past it */
	u32 io_pages;    /* largest I/O of the device */
	bool file_order; /* the flavour */
	bool nowait;     /* not for memory */
	u32 folio_flags; /* of the folios made */
	bool congested;  /* the device: leave out windows ahead of need */
};

void readahead_init(struct readahead *ra, u32 ra_pages);
/* A page that a read needs is not cached; `want` pages from there on will be read. */
void readahead_miss(struct mapping *m, struct readahead *ra, const struct readahead_limits *l,
		    u64 page, u64 want);
/* A read came to the marked folio. */
void readahead_mark(struct mapping *m, struct readahead *ra, const struct readahead_limits *l,
		    struct folio *f, u64 want);
/* A load or store of one who has the file mapped found no page: reads around it (7). */
void readahead_around(struct mapping *m, struct readahead *ra, const struct readahead_limits *l,
		      u64 page);
/* Starts reading [page, page + want) as it is, with small folios (WILLNEED, FADV_RANDOM). */
void readahead_force(struct mapping *m, const struct readahead *ra,
		     const struct readahead_limits *l, u64 page, u64 want);

/* The window sizes of reference 7.2 and 7.3. */
u32 readahead_first_size(u64 want, u32 max);
u32 readahead_next_size(u32 current, u32 max);

#endif
