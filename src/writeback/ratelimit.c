// SPDX-License-Identifier: MIT
/*
 * The rate of one dirtier.
 *
 * If N tasks dirty at the rate `task` each and the device is dirtied at
 * dirty_rate = N * task, then the rate that would balance dirtying and writing is
 * task * avg_write_bw / dirty_rate, without anybody counting tasks. The limit
 * moves towards it with care: only upwards below the setpoint and only downwards
 * above it, only as far as the current and the previous balanced rate and the
 * rate in force agree, by an eighth of that distance at most, and by ever less
 * the smaller the distance is, so that it does not shake around the balance.
 *
 * Linux writeback reference, section 5.5.
 */
#include "writeback/ratelimit.h"

#include "base/bits.h"

__extension__ typedef unsigned __int128 u128;

/* The part of the distance to go at once. */
static u64 step_of(u64 limit, u64 distance)
{
	u64 shift = limit / (2 * distance + 1);

	return shift < 64 ? div_roundup(distance >> shift, 8) : 0;
}

u64 ratelimit_update(struct bandwidth *b, const struct ratelimit_inputs *in)
{
	u64 limit = b->dirty_ratelimit, previous = b->balanced_dirty_ratelimit, distance, step;
	u64 task = position_scale(limit, in->pos_ratio) + 1;
	u128 balance = (u128)task * b->avg_write_bw / (in->dirty_rate | 1);
	u64 balanced = balance < b->avg_write_bw ? (u64)balance : b->avg_write_bw;

	assert(limit && b->avg_write_bw);
	if (in->goal.dirty < in->goal.setpoint) {
		u64 rate = min_u64(min_u64(previous, balanced), task);

		distance = rate > limit ? rate - limit : 0;
	} else {
		u64 rate = max_u64(max_u64(previous, balanced), task);

		distance = rate < limit ? limit - rate : 0;
	}
	step = step_of(limit, distance);
	assert(limit < balanced || step <= limit);
	limit = limit < balanced ? limit + step : limit - step;
	b->dirty_ratelimit = max_u64(limit, 1);
	b->balanced_dirty_ratelimit = balanced;
	return b->dirty_ratelimit;
}
