// SPDX-License-Identifier: MIT
/*
 * Pauses of a throttled writer.
 *
 * A writer sleeps for what it has dirtied since the last sleep. Looking at it more
 * often makes for shorter sleeps and more of them. The longest sleep is an eighth
 * of the time in which the device could write all that is dirty on it, so that it
 * never runs dry while its writers sleep, and never above 200 ms. The wanted sleep
 * is 10 ms, and 10 ms more for each doubling of the number of dirtiers (told by
 * bandwidth over the rate of one); but if a task would dirty fewer than 32 pages
 * in that time, sleeps grow towards the longest one instead. From the wanted sleep
 * follows after how many pages the task is looked at again, and below which sleep
 * it is not worth sleeping yet.
 *
 * Divisions by a number of jiffies per second are by HZ rounded up to a power of
 * two, as in Linux, so at HZ 250 a rate gives 2 % fewer pages than it says.
 *
 * Linux writeback reference, sections 5.1, 5.2 and 5.6.
 */
#include "writeback/pause.h"

#include "base/bits.h"

#define RATE_MAX (1ull << 50) /* pages per second; nothing comes near */

static u64 longest_for(u64 wb_dirty, u64 avg_write_bw, u32 hz)
{
	u64 drained = avg_write_bw / roundup_pow2(1 + hz / 8); /* pages per jiffy, 8-fold */

	return min_u64(wb_dirty / (1 + drained) + 1, pause_longest(hz));
}

/* The wanted sleep before small intervals are looked at. */
static u64 wanted_for(u64 avg_write_bw, u64 dirty_ratelimit, u64 max_pause, u32 hz)
{
	u64 t = max_u64(1, hz / 100);
	unsigned hi = ilog2(avg_write_bw), lo = ilog2(dirty_ratelimit);

	if (hi > lo)
		t += (u64)(hi - lo) * 10 * hz / 1024;
	return min_u64(t, 1 + max_pause / 2);
}

struct pauses pause_plan(u64 wb_dirty, u64 avg_write_bw, u64 dirty_ratelimit, u64 task_ratelimit,
			 u32 hz)
{
	u64 second = roundup_pow2(hz), max_pause = longest_for(wb_dirty, avg_write_bw, hz);
	u64 t = wanted_for(avg_write_bw, dirty_ratelimit, max_pause, hz);
	u64 pages = dirty_ratelimit * t / second;

	assert(hz && avg_write_bw && dirty_ratelimit);
	assert(dirty_ratelimit <= RATE_MAX && task_ratelimit < UINT64_MAX);
	if (pages < DIRTY_POLL_PAGES) {
		t = max_pause;
		pages = dirty_ratelimit * t / second;
		if (pages > DIRTY_POLL_PAGES) {
			pages = DIRTY_POLL_PAGES;
			t = (u64)hz * DIRTY_POLL_PAGES / dirty_ratelimit;
		}
	}
	if (hz * pages / (task_ratelimit + 1) > max_pause) {
		/* So task_ratelimit < hz * pages, and the product is small. */
		t = max_pause;
		pages = task_ratelimit * t / second;
	}
	return (struct pauses){
		.max_pause = max_pause,
		.min_pause = pages >= DIRTY_POLL_PAGES ? 1 + t / 2 : t,
		.nr_dirtied_pause = pages,
	};
}

u64 poll_interval(u64 dirty, u64 thresh)
{
	return thresh > dirty ? 1ull << (ilog2(thresh - dirty) / 2) : 1;
}

u64 ratelimit_pages(u64 thresh, u32 cpus)
{
	assert(cpus);
	return max_u64(16, thresh / (32 * (u64)cpus));
}
