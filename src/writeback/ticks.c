// SPDX-License-Identifier: MIT
/*
 * Linux's pauses are of whole jiffies, one at least, and what a writer may dirty between them comes
 * from rates that are learned over seconds. That is right while a device needs long for what may
 * be dirty. A small cache over a fast device is another matter: all that lies between free running
 * and the limit is drained in a few jiffies, so that each pause ends long after the device has run
 * dry; most is dirtied in bursts that nobody owes anything for, and so the rates, which are made of
 * what was dirtied and what was allowed, stay where they began.
 *
 * There our own law counts in parts of a jiffy, and no pause is longer than the device needs, by
 * what it wrote last, to bring dirty down to where everybody is free again: longer ones serve
 * nobody. With more writers dirty settles higher, and pauses grow with it. Not so if most of what
 * is dirty is another device's, which this one cannot drain, or if the device or the writer's
 * tenant has a limit of its own.
 */
#include "writeback/ticks.h"
#include "ledger/limits.h"
#include "world/world.h"

#define FEW_JIFFIES 16 /* that what may be dirty above the free running ceiling lasts */

struct ticks ticks_for(const struct position *at, const struct bandwidth *bw, u64 now, bool fine)
{
	struct ticks t = { .hz = world_hz(), .parts = TICK_PARTS, .now = now, .longest = ~0ull };
	u64 rate = max_u64(bw->avg_write_bw, bw->recent), begun = world_jiffies_ns(now);
	u64 free = limits_freerun(at->thresh, at->bg);

	assert(at->limit >= free);
	if (!fine || at->strictlimit || 2 * at->wb_dirty < at->dirty ||
	    (at->limit - free) * t.hz / rate >= FEW_JIFFIES)
		return t;
	t.hz *= TICK_PARTS;
	t.parts = 1;
	t.now *= TICK_PARTS;
	if (world_now() > begun)
		t.now += (world_now() - begun) * t.hz / NSEC_PER_SEC;
	t.longest = (at->dirty - min_u64(free, at->dirty)) * t.hz / rate + 1;
	return t;
}

void ticks_sleep(const struct ticks *t, u64 n)
{
	if (t->parts == TICK_PARTS)
		world_sleep_jiffies(n);
	else
		world_sleep_until(world_now() + n * NSEC_PER_SEC / t->hz);
}
