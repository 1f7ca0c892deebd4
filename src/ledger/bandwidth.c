// SPDX-License-Identifier: MIT
/*
 * How fast a device writes, by what it wrote.
 *
 * Every 200 ms or more, the pages written since the last look become a rate, and
 * write_bw moves towards it as a moving average over a window of 3 s rounded up
 * to a power of two of jiffies: the time passed counts with the new rate, the
 * rest of the window with the old. After a gap longer than the window the new
 * rate stands alone. avg_write_bw follows write_bw by an eighth of the distance,
 * and only when write_bw keeps moving away from it, so that one burst or stall
 * leaves it alone.
 *
 * Linux writeback reference, section 5.4. Its second smoothing compares avg with
 * the write_bw *before* the update, and moves by an eighth of that distance.
 */
#include "ledger/bandwidth.h"

#include "base/bits.h"

#define RATE_MAX (1ull << 50) /* pages in a row of jiffies, or per second; nothing comes near */

void bandwidth_init(struct bandwidth *b, u64 now, u64 dirtied, u64 written)
{
	*b = (struct bandwidth){
		.write_bw = BANDWIDTH_INIT,
		.avg_write_bw = BANDWIDTH_INIT,
		.dirty_ratelimit = BANDWIDTH_INIT,
		.balanced_dirty_ratelimit = BANDWIDTH_INIT,
	};
	bandwidth_stamp(b, now, dirtied, written);
}

u64 bandwidth_elapsed(const struct bandwidth *b, u64 now)
{
	assert(now >= b->bw_stamp);
	return max_u64(now - b->bw_stamp, 1);
}

/* Totals may step back a little: a declined page is charged, then taken back. */
static u64 jiffy_pages(u64 total, u64 stamp, u32 hz)
{
	u64 pages = total > stamp ? total - stamp : 0;

	assert(hz && pages <= RATE_MAX);
	return pages * hz;
}

u64 bandwidth_dirty_rate(const struct bandwidth *b, u64 elapsed, u64 dirtied, u32 hz)
{
	assert(elapsed);
	return jiffy_pages(dirtied, b->dirtied_stamp, hz) / elapsed;
}

void bandwidth_update_write(struct bandwidth *b, u64 elapsed, u64 written, u32 hz)
{
	u64 window = roundup_pow2(3 * (u64)hz), old = b->write_bw, avg = b->avg_write_bw;
	u64 bw = jiffy_pages(written, b->written_stamp, hz);

	assert(elapsed && old <= RATE_MAX && avg <= RATE_MAX);
	if (elapsed >= bandwidth_interval(hz) / 2)
		b->recent = bw / elapsed;
	if (elapsed > window) {
		bw /= elapsed;
		avg = bw;
	} else {
		bw = (bw + old * (window - elapsed)) >> ilog2(window);
		if (avg > old && old >= bw)
			avg -= (avg - old) >> 3;
		if (avg < old && old <= bw)
			avg += (old - avg) >> 3;
	}
	b->write_bw = bw;
	b->avg_write_bw = max_u64(avg, 1);
}

void bandwidth_stamp(struct bandwidth *b, u64 now, u64 dirtied, u64 written)
{
	assert(now >= b->bw_stamp);
	b->bw_stamp = now;
	b->dirtied_stamp = dirtied;
	b->written_stamp = written;
}

bool bandwidth_restart_if_idle(struct bandwidth *b, u64 now, u64 dirtied, u64 written,
			       u64 inflight_inodes, u32 hz)
{
	if (inflight_inodes || now <= b->bw_stamp + hz)
		return false;
	bandwidth_stamp(b, now, dirtied, written);
	return true;
}
