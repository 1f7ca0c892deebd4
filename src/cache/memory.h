/* SPDX-License-Identifier: MIT */
/*
 * Memory of the system for the arena and the table of descriptors: a range of addresses that
 * stays mapped for life, of which the part in use grows and shrinks. See memory.c.
 */
#ifndef SLUICE_CACHE_MEMORY_H
#define SLUICE_CACHE_MEMORY_H

#include "base/types.h"

#define HUGE_PAGE_BYTES (2ull << 20)

/* Whether to put memory on pages of 2 MiB. */
enum huge_pages {
	HUGE_AUTO,   /* where the system grants them */
	HUGE_NEVER,  /* nowhere */
	HUGE_ALWAYS, /* on those the administrator has set aside, or there is no memory */
};

struct memory {
	char *mapping; /* NULL: none. Immutable, as are the next three */
	u64 mapped_bytes;
	char *base;         /* on a 2 MiB border */
	u64 reserved_bytes; /* from the base on */
	u64 bytes;          /* in use, from the base on */
	bool adopted;       /* not ours to give back; immutable */
	u64 set_aside_end;  /* HUGE_ALWAYS: up to here the addresses are of huge pages */
	enum huge_pages huge;
};

/* Reserves addresses for max_bytes and puts the first `bytes` in use: 0 or -ENOMEM. */
int memory_init(struct memory *m, u64 bytes, u64 max_bytes, enum huge_pages huge);
/*
 * The same over memory that somebody else has mapped for all of max_bytes, and takes back: none of
 * it goes back to the system before.
 */
void memory_adopt(struct memory *m, char *base, u64 bytes, u64 max_bytes, enum huge_pages huge);
void memory_finish(struct memory *m);

/* Makes the part in use larger: 0 or -ENOMEM. */
int memory_grow(struct memory *m, u64 bytes);
/*
 * Makes it smaller. What is past it goes back piece by piece afterwards, by memory_discard(): not
 * before, or the system might make whole huge pages of what is left.
 */
void memory_shrink(struct memory *m, u64 bytes);
/* Gives the pages of a range back to the system. Reading it gives zeros then. */
void memory_discard(struct memory *m, u64 from, u64 bytes);

/* How much of it is in memory, and on huge pages, at the moment. Reads files: slow. */
struct memory_use {
	u64 resident_bytes, huge_bytes;
};
struct memory_use memory_use(const struct memory *m);

#endif
