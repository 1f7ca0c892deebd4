/* SPDX-License-Identifier: MIT */
/* What the flusher writes of one file before it turns to the next. Reference section 6.4. */
#ifndef SLUICE_WRITEBACK_SLICE_H
#define SLUICE_WRITEBACK_SLICE_H

#include "base/types.h"

#define SLICE_MIN_PAGES 1024u     /* 4 MiB */
#define SLICE_UNLIMITED INT64_MAX /* pages: the slice, or budget, of sync work */

/*
 * Pages to write of one file: half a second of bandwidth, at most an eighth of
 * the limit, at most the budget left; plus up to 4 MiB, in steps of 4 MiB.
 */
u64 writeback_slice(u64 avg_write_bw, u64 dirty_limit, u64 budget);

#endif
