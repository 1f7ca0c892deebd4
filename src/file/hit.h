/* SPDX-License-Identifier: MIT */
/* The way of those who find what they want in the cache: see hit.c. */
#ifndef SLUICE_FILE_HIT_H
#define SLUICE_FILE_HIT_H

#include "file/inner.h"

/*
 * Reads what lies in one page, if the file is plain; false: it is not cached and valid, and
 * nothing was done but scribbling to the buffer.
 */
bool hit_read_page(struct file *f, void *to, size_t length, u64 offset);
/*
 * Copies what one folio holds of a read: the bytes copied, or 0 if the folio is not there, not
 * valid, marked for readahead or being changed. Moves only the buffers on. `used`: note the use.
 */
u64 hit_read(struct read *r, bool used);

/*
 * The folio at a byte, locked, for a write of [position, position + bytes) as far as it reaches: if
 * it is cached and nobody has it locked, the write is within the file's size, has its room on the
 * device and leaves no part of an invalid block, and nobody who holds the inode's lock exclusively
 * is at work or waits. Else NULL. *dirty: all blocks of the write are dirty already, and stay so
 * under the lock.
 */
struct folio *hit_lock(struct inode *inode, u64 position, u64 bytes, bool *dirty);

#endif
