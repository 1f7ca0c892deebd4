/* SPDX-License-Identifier: MIT */
/*
 * How long a throttled writer sleeps and how often a writer is looked at.
 * Linux writeback reference, sections 5.1, 5.2 and 5.6. Pauses are in jiffies,
 * intervals in pages dirtied.
 */
#ifndef SLUICE_WRITEBACK_PAUSE_H
#define SLUICE_WRITEBACK_PAUSE_H

#include "base/types.h"

#define DIRTY_POLL_PAGES    32u /* smallest wanted poll interval; a new task's */
#define EXCEEDED_POLL_PAGES 8u  /* cap on it while wb.dirty_exceeded */

/* The longest single sleep, in jiffies: 200 ms. */
static inline u64 pause_longest(u32 hz)
{
	return max_u64(hz / 5, 1);
}

struct pauses {
	u64 max_pause;        /* jiffies: longer sleeps are cut to this */
	u64 min_pause;        /* jiffies: shorter ones are put off */
	u64 nr_dirtied_pause; /* pages until the task's next look; 0 looks at every page */
};

/* avg_write_bw and dirty_ratelimit are at least 1, as struct bandwidth keeps them. */
struct pauses pause_plan(u64 wb_dirty, u64 avg_write_bw, u64 dirty_ratelimit, u64 task_ratelimit,
			 u32 hz);

/* Pages a task may dirty unseen while free running at `dirty` of `thresh`. */
u64 poll_interval(u64 dirty, u64 thresh);

/* Pages one CPU may dirty unseen, whoever dirties them. */
u64 ratelimit_pages(u64 thresh, u32 cpus);

#endif
