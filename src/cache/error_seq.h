/* SPDX-License-Identifier: MIT */
/*
 * How Linux remembers a failed write-out (reference 13): one word a file, with the error in bits 0
 * to 11, in bit 12 whether anybody was told, and above it a count that only moves on if somebody
 * was. Who opens the file keeps the word as it is, or 0 if nobody was told of what it holds, and
 * is told once when it differs from what he kept.
 */
#ifndef SLUICE_CACHE_ERROR_SEQ_H
#define SLUICE_CACHE_ERROR_SEQ_H

#include "base/types.h"
#include <stdatomic.h>

#define ERROR_SEQ_ERRNO 0xfffu
#define ERROR_SEQ_SEEN  0x1000u
#define ERROR_SEQ_ONE   0x2000u

static inline void error_seq_set(_Atomic u32 *seq, int error)
{
	u32 old = atomic_load(seq), new;

	assert(error < 0 && -error <= (int)ERROR_SEQ_ERRNO);
	do {
		new = (old & ~(ERROR_SEQ_ERRNO | ERROR_SEQ_SEEN)) | (u32)-error;
		if (old & ERROR_SEQ_SEEN)
			new += ERROR_SEQ_ONE;
	} while (!atomic_compare_exchange_weak(seq, &old, new));
}

static inline u32 error_seq_sample(_Atomic u32 *seq)
{
	u32 now = atomic_load(seq);

	return now & ERROR_SEQ_SEEN ? now : 0;
}

/* 0 or the error that whoever keeps *since was not told of; he is now. */
static inline int error_seq_tell(_Atomic u32 *seq, u32 *since)
{
	u32 now = atomic_load(seq);

	if (now == *since)
		return 0;
	while (!atomic_compare_exchange_weak(seq, &now, now | ERROR_SEQ_SEEN))
		;
	*since = now | ERROR_SEQ_SEEN;
	return -(int)(now & ERROR_SEQ_ERRNO);
}

#endif
