/* SPDX-License-Identifier: MIT */
/* The way of those who find what they want in the cache: see hit.c. */
#ifndef SLUICE_FILE_HIT_H
#define SLUICE_FILE_HIT_H

#include "file/inner.h"

/*
 * Copies from [position, end) what one folio holds of it, to `to` unless that is NULL: the bytes
 * copied, or 0 if the folio is not there, not valid, marked for readahead or being changed. `used`:
 * note the use. *goes_on: the two pages from the byte after the last on are known to be cached.
 */
u64 hit_read(struct inode *inode, void *to, u64 position, u64 end, bool used, bool *goes_on);

/*
 * The folio at a byte, locked, for a write of [position, position + bytes) as far as it reaches: if
 * it is cached and nobody has it locked, the write is within the file's size and leaves no part of
 * an invalid block, and nobody who holds the inode's lock exclusively is at work or waits.
 * Else NULL. *dirty: all blocks of the write are dirty already, and stay so under the lock.
 */
struct folio *hit_lock(struct inode *inode, u64 position, u64 bytes, bool *dirty);

#endif
