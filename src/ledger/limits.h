/* SPDX-License-Identifier: MIT */
/*
 * How much may be dirty: the thresholds of a domain (the whole cache, or one
 * tenant) from its dirtyable memory and the sysctl-like settings, and the
 * smoothed hard limit that follows a falling threshold slowly.
 * Linux writeback reference, sections 4.1 to 4.5. Pure arithmetic; the owner of
 * a struct serialises its use. `now` is in jiffies, of a clock in which one task
 * may be a little behind another; `hz` is jiffies per second.
 */
#ifndef SLUICE_LEDGER_LIMITS_H
#define SLUICE_LEDGER_LIMITS_H

#include "base/types.h"

struct limits {
	u64 thresh; /* writers are stopped here */
	u64 bg;     /* the flusher starts above this; < thresh unless both are 0 */
};

struct limits_config {
	u32 dirty_ratio, dirty_background_ratio; /* percent of dirtyable memory */
	u64 dirty_bytes, dirty_background_bytes; /* where not 0: instead of the ratio */
};

/* Dirtyable memory: what is free beyond the reserve, and all file pages. Never 0. */
u64 limits_avail(u64 free, u64 reserve, u64 file_inactive, u64 file_active);

/*
 * Dirtyable memory of a tenant. `headroom` is the least of limit - usage over the
 * tenant and its ancestors, `avail` and `dirty` are the whole cache's.
 */
u64 limits_tenant_avail(u64 file_pages, u64 headroom, u64 tenant_dirty, u64 avail, u64 dirty);

/* The global limits. `dirty_limit`, the domain's smoothed one, counts only for real-time tasks. */
struct limits limits_of(const struct limits_config *config, u64 avail, bool realtime,
			u64 dirty_limit);

/*
 * A tenant's limits: byte settings become a ratio of the whole cache's `avail`.
 * `dirty_limit` is the whole cache's, as above.
 */
struct limits limits_of_tenant(const struct limits_config *config, u64 tenant_avail, u64 avail,
			       bool realtime, u64 dirty_limit);

/* Up to and including this nobody is throttled. */
static inline u64 limits_freerun(u64 thresh, u64 bg)
{
	return (thresh + bg) / 2;
}

/* The smoothed hard limit of a domain. */
struct hard_limit {
	u64 dirty_limit;
	u64 stamp_jiffies; /* of the last update that counted */
};

/* Also what a changed setting asks for: the limit starts over at `thresh`. */
void hard_limit_init(struct hard_limit *h, u64 thresh, u64 now);

/* The limit in force: never below thresh. */
static inline u64 hard_limit_of(const struct hard_limit *h, u64 thresh)
{
	return max_u64(h->dirty_limit, thresh);
}

/* Moves the limit, at most once in 200 ms: up to thresh at once, down by 1/32 of the gap. */
void hard_limit_update(struct hard_limit *h, u64 thresh, u64 dirty, u64 now, u32 hz);

#endif
