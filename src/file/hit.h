/* SPDX-License-Identifier: MIT */
/* The way of those who find what they want in the cache: see hit.c. */
#ifndef SLUICE_FILE_HIT_H
#define SLUICE_FILE_HIT_H

#include "file/inner.h"

/*
 * Keeps the compiler from choosing between two values without a branch, and from taking one for
 * another that it has just found equal: the processor shall go on with the likely one
 * instead of waiting for what that was compared with.
 */
#define BRANCH(value) __asm__("" : "+r"(value))

/*
 * Copies what one folio holds of a read: the bytes copied, or 0 if the folio is not there, not
 * valid, marked for readahead or being changed. Moves only the buffers on. `used`: note the use.
 */
u64 hit_read(struct read *r, bool used);

/* A write there comes next: has what it will lock fetched. */
void hit_expect(const struct inode *inode, u64 position);
/* The same where there is time to find it, and what the index has of it besides. */
void hit_expect_later(const struct inode *inode, u64 position);
/*
 * The folio at a byte, locked, for a write of [position, position + bytes) as far as it reaches: if
 * it is cached and nobody has it locked, the write is within the file's size, has its room on the
 * device and leaves no part of an invalid block, and nobody who holds the inode's lock exclusively
 * is at work or waits. Else NULL. *dirty: all blocks of the write are dirty already, and stay so
 * under the lock.
 */
struct folio *hit_lock(struct inode *inode, u64 position, u64 bytes, bool *dirty);

/*
 * Where a byte of a locked folio is, in a cache with contents: where the file's guess says, if the
 * folio says so too, so that the copying does not wait for the folio.
 */
static inline char *hit_bytes(const struct mapping *m, const struct folio *f, u64 position)
{
	u32 page = (u32)(position >> PAGE_SHIFT), guess = folio_get(m->frames) + page;
	u64 frame = guess;

	BRANCH(frame);
	if (unlikely(f->frame + (page - f->index) != guess)) {
		frame = f->frame + (page - f->index);
		BRANCH(frame);
	}
	return m->cache->arena.memory + (frame << PAGE_SHIFT) + position % PAGE_SIZE;
}

#endif
