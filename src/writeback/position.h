/* SPDX-License-Identifier: MIT */
/*
 * Where a domain and a device stand between free running and the limit, as one
 * factor on the writers' rate. Linux writeback reference, sections 5.3 and 5.7.
 */
#ifndef SLUICE_WRITEBACK_POSITION_H
#define SLUICE_WRITEBACK_POSITION_H

#include "base/types.h"

#define POSITION_SHIFT 10
#define POSITION_ONE   (1u << POSITION_SHIFT) /* ratio 1.0 */

struct position {
	u64 thresh, bg;         /* of the domain */
	u64 limit;              /* its hard_limit_of(), >= thresh */
	u64 dirty;              /* its dirty pages and those in flight */
	u64 wb_thresh;          /* the device's part of thresh */
	u64 wb_bg_thresh;       /* and of bg */
	u64 wb_dirty;           /* its dirty pages and those in flight */
	u64 avg_write_bw;       /* its bandwidth, pages per second */
	bool strictlimit;       /* the device's part is a limit of its own */
	bool floor_in_position; /* rules before 6.14: (limit - dirty)/8 is everyone's, and a
				   strict wb with < 8 dirty pages is let go */
};

/* Half way between free running and the limit: where the control settles. */
u64 position_setpoint(const struct position *at);

/* The cubic through (limit, 0) and (setpoint, 1.0), clamped to 0..2.0; scaled by 1024. */
u64 position_cubic(u64 setpoint, u64 dirty, u64 limit);

/* The factor, scaled by 1024: 0 at the limit; not bounded above. */
u64 position_ratio(const struct position *at);

/* What the ratelimit (5.5) steers by: raise while dirty < setpoint, else lower. */
struct position_goal {
	u64 dirty, setpoint;
};

struct position_goal position_goal(const struct position *at);

/* A rate times a position ratio, as in task_ratelimit = dirty_ratelimit * pos; saturates. */
u64 position_scale(u64 rate, u64 pos_ratio);

#endif
