// SPDX-License-Identifier: MIT
/*
 * Position control: from how much is dirty to how fast writers may go.
 *
 * The domain's part is a cubic in the number of dirty pages: 2 where throttling
 * begins, 1 at the setpoint and flat around it, 0 at the limit. It is multiplied
 * by the device's part, a straight line through 1 at the device's own setpoint
 * (its part of the domain's) that reaches 0 after `span` pages, about 8 s of its
 * writing if it is the only device, and is held at a quarter below that. A device
 * with less than half its part dirty gets a boost, up to 8 times, so that it
 * never runs dry.
 *
 * A strict device has a limit of its own: there the same cubic is applied to the
 * device, and the lower of the two wins.
 *
 * Ratios are scaled by 1024, weights of a device by 2^16. Inputs may be up to
 * 2^40 pages and the products of the line reach 2^100, hence 128 bits. Linux
 * wraps where the device's floor exceeds thresh by more than 8 s of writing (that
 * is, while dirty is under the limit by many times thresh); here the span is 0
 * then, and the ratio as large as it gets.
 *
 * Linux writeback reference, sections 5.3 and 5.7.
 */
#include "writeback/position.h"

#include "ledger/limits.h"

#define WEIGHT_SHIFT 16
#define SPAN_SECONDS 8
#define FLOOR        8            /* before 6.14: 1/8 of the room is everyone's */
#define STRICT_FREE  8            /* before 6.14: so few dirty pages are let go */
#define PAGES_MAX    (1ull << 44) /* with room above the 2^40 promised */
#define POSITION_MAX INT64_MAX

__extension__ typedef __int128 s128;

static u64 saturated(s128 ratio)
{
	return ratio < POSITION_MAX ? (u64)ratio : (u64)POSITION_MAX;
}

u64 position_setpoint(const struct position *at)
{
	return (limits_freerun(at->thresh, at->bg) + at->limit) / 2;
}

u64 position_cubic(u64 setpoint, u64 dirty, u64 limit)
{
	s64 x, cube;

	assert(setpoint <= limit && limit <= PAGES_MAX && dirty <= PAGES_MAX);
	x = ((s64)setpoint - (s64)dirty) * POSITION_ONE / (s64)((limit - setpoint) | 1);
	if (x >= (s64)POSITION_ONE)
		return 2ull * POSITION_ONE;
	if (x <= -(s64)POSITION_ONE)
		return 0;
	/* Shifts of negative numbers round down, as in Linux. */
	cube = (((x * x) >> POSITION_SHIFT) * x) >> POSITION_SHIFT;
	return (u64)(cube + POSITION_ONE);
}

static u64 strict_ratio(const struct position *at, u64 cubic)
{
	u64 setpoint = limits_freerun(at->wb_thresh, at->wb_bg_thresh);

	if (at->floor_in_position && at->wb_dirty < STRICT_FREE)
		return min_u64(2 * cubic, 2ull * POSITION_ONE);
	if (at->wb_dirty >= at->wb_thresh || !setpoint || setpoint == at->wb_thresh)
		return 0;
	return min_u64(cubic, position_cubic(setpoint, at->wb_dirty, at->wb_thresh));
}

/* The device's line: where it is 1, and over how many pages it falls to 0. */
struct line {
	s128 setpoint, span;
};

static struct line line_of(const struct position *at, u64 w)
{
	s128 weight = ((s128)w << WEIGHT_SHIFT) / (s128)(at->thresh | 1);
	s128 reach = (s128)at->thresh - w + SPAN_SECONDS * (s128)at->avg_write_bw;

	return (struct line){
		.setpoint = position_setpoint(at) * weight >> WEIGHT_SHIFT,
		.span = (reach > 0 ? reach : 0) * weight >> WEIGHT_SHIFT,
	};
}

static u64 line_ratio(const struct position *at, u64 cubic)
{
	u64 w = min_u64(at->wb_thresh, at->thresh), half;
	struct line line;
	s128 end, ratio;

	if (at->floor_in_position)
		w = max_u64(w, (at->limit - at->dirty) / FLOOR);
	line = line_of(at, w);
	end = line.setpoint + line.span;
	if (at->wb_dirty < end - line.span / 4)
		ratio = cubic * (end - at->wb_dirty) / ((end - line.setpoint) | 1);
	else
		ratio = cubic / 4;

	assert(ratio >= 0);
	ratio = saturated(ratio);
	half = w / 2;
	if (at->wb_dirty < half)
		ratio = at->wb_dirty > half / 8 ? ratio * half / at->wb_dirty : ratio * 8;
	return saturated(ratio);
}

u64 position_ratio(const struct position *at)
{
	u64 cubic;

	assert(at->bg <= at->thresh && at->thresh <= at->limit && at->limit <= PAGES_MAX);
	assert(at->wb_bg_thresh <= at->wb_thresh && at->wb_dirty <= PAGES_MAX);
	assert(at->avg_write_bw > 0 && at->avg_write_bw <= PAGES_MAX);
	if (at->dirty >= at->limit)
		return 0;
	cubic = position_cubic(position_setpoint(at), at->dirty, at->limit);
	return at->strictlimit ? strict_ratio(at, cubic) : line_ratio(at, cubic);
}

struct position_goal position_goal(const struct position *at)
{
	if (!at->strictlimit)
		return (struct position_goal){ at->dirty, position_setpoint(at) };
	if (at->floor_in_position && at->wb_dirty < STRICT_FREE)
		return (struct position_goal){ at->wb_dirty, at->wb_dirty + 1 };
	return (struct position_goal){ at->wb_dirty,
				       limits_freerun(at->wb_thresh, at->wb_bg_thresh) };
}

u64 position_scale(u64 rate, u64 pos_ratio)
{
	assert(rate <= POSITION_MAX && pos_ratio <= POSITION_MAX);
	return saturated((s128)rate * pos_ratio >> POSITION_SHIFT);
}
