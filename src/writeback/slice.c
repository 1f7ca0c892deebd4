// SPDX-License-Identifier: MIT
/*
 * Slices share a device among files: the flusher writes so many pages of one,
 * then goes on to the next, and comes back. Long slices make long sequential
 * writes, short ones let every file have its turn; half a second of writing is
 * the balance. Linux writeback reference, section 6.4.
 */
#include "writeback/slice.h"

#include "base/bits.h"

#define DIRTY_SCOPE 8 /* no file gets more than this part of the limit at once */

u64 writeback_slice(u64 avg_write_bw, u64 dirty_limit, u64 budget)
{
	u64 pages = min_u64(min_u64(avg_write_bw / 2, dirty_limit / DIRTY_SCOPE), budget);

	return round_down(pages + SLICE_MIN_PAGES, SLICE_MIN_PAGES);
}
