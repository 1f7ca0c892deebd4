/* SPDX-License-Identifier: MIT */
/*
 * The estimates one wb (flusher context) keeps: how fast its device writes, and
 * what rate its dirtiers are held to. Linux writeback reference, section 5.4; the
 * rate itself is moved by writeback/ratelimit.h. Rates are in pages per second,
 * `now` in jiffies. The owner serialises updates; who is a little behind the one before him is
 * never due, and so does not move the stamp back.
 *
 * One update: elapsed = bandwidth_elapsed(); in the throttle loop then
 * hard_limit_update() and ratelimit_update(), which want the old estimate; then
 * bandwidth_update_write(); at last bandwidth_stamp().
 */
#ifndef SLUICE_LEDGER_BANDWIDTH_H
#define SLUICE_LEDGER_BANDWIDTH_H

#include "base/types.h"

#define BANDWIDTH_INIT ((100ull << 20) / PAGE_SIZE) /* 100 MiB/s, in pages per second */

struct bandwidth {
	u64 bw_stamp;                     /* jiffies of the last update */
	u64 dirtied_stamp, written_stamp; /* the wb's running totals at that time */
	u64 write_bw;                     /* pages per second over about 4 s */
	u64 avg_write_bw;                 /* the same without spikes; never 0 */
	u64 recent;                       /* between the last two updates, or 0 */
	u64 dirty_ratelimit;              /* of one dirtier; never 0 */
	u64 balanced_dirty_ratelimit;     /* the last one that would balance in one step */
};

/* Time between updates, in jiffies: 200 ms. */
static inline u64 bandwidth_interval(u32 hz)
{
	return max_u64(hz / 5, 1);
}

/* Estimates start at BANDWIDTH_INIT; the totals are the wb's WB_DIRTIED and WB_WRITTEN. */
void bandwidth_init(struct bandwidth *b, u64 now, u64 dirtied, u64 written);

/* More than 200 ms have passed since the last update. */
static inline bool bandwidth_due(const struct bandwidth *b, u64 now, u32 hz)
{
	return now > b->bw_stamp + bandwidth_interval(hz);
}

/* Jiffies since the last update, at least 1. */
u64 bandwidth_elapsed(const struct bandwidth *b, u64 now);

/* Pages per second dirtied since the last update. */
u64 bandwidth_dirty_rate(const struct bandwidth *b, u64 elapsed, u64 dirtied, u32 hz);

/* Moves write_bw and avg_write_bw; `written` is the wb's running total. */
void bandwidth_update_write(struct bandwidth *b, u64 elapsed, u64 written, u32 hz);

/* Ends an update: the next one counts from here. */
void bandwidth_stamp(struct bandwidth *b, u64 now, u64 dirtied, u64 written);

/*
 * At the start of a writepages call: when no file of the wb is in flight and the
 * last update is more than 1 s old, stamps anew, so that idle time does not
 * dilute the estimate. True if it did.
 */
bool bandwidth_restart_if_idle(struct bandwidth *b, u64 now, u64 dirtied, u64 written,
			       u64 inflight_inodes, u32 hz);

#endif
