/* SPDX-License-Identifier: MIT */
/*
 * The rules of Linux's writeback throttling (block/blk-wbt.c, blk-rq-qos.c), restated from its
 * observable behaviour: the tracepoints wbt_step, wbt_timer and wbt_stat of a 6.18 kernel.
 *
 * Write-out, unlike direct writes, may have only so many requests in flight: `background`
 * of them for background and periodic work, `normal` for other write-out, `max` when somebody
 * waits for it: for sync work, and for a second after a writer was put to sleep for the device.
 * They follow from a depth that starts at 16 and is halved or doubled (step) after each window
 * of 100 ms: up while there are only writes or reads are fast enough, up to 3/4 of the queue;
 * down while the fastest read of the window took longer than the target.
 *
 * A submitter over the limit waits, and is looked at again when
 *
 *	- nothing is in flight any more, if the device has a write cache and no writer was put to
 *	  sleep for a second: the queue is drained before it is filled again;
 *	- else when in_flight is at least background/2 below `normal`.
 *
 * The first of these shows: a flusher that nobody waits for keeps a device busy only
 * some 95 % of the time.
 */
#include "device/wbt.h"
#include "base/bits.h"
#include "device/device.h"

#define DEPTH_DEFAULT  16
#define WINDOW_NS      (100 * NSEC_PER_MSEC)
#define RECENT_NS      NSEC_PER_SEC
#define WRITES_FOR_MIX 3 /* so many writes in a window make its reads count */
#define QUIET_WINDOWS  5 /* so many without I/O bring the step back towards 0 */

static void set_limits(struct wbt *w)
{
	u32 top = (u32)max_u64(3ull * w->nr_requests / 4, 1);
	u64 depth = min_u64(DEPTH_DEFAULT, w->nr_requests);

	w->scaled_max = false;
	if (w->step > 0) {
		depth = 1 + ((depth - 1) >> min_u64(31, (u64)w->step));
	} else if (w->step < 0) {
		depth = 1 + ((depth - 1) << -w->step);
		if (depth > top) {
			depth = top;
			w->scaled_max = true;
		}
	}
	w->max = (u32)depth;
	if (depth <= 2) {
		w->normal = (u32)depth;
		w->background = 1;
	} else {
		w->normal = (u32)(depth + 1) / 2;
		w->background = (u32)(depth + 3) / 4;
	}
}

void wbt_init(struct wbt *w, u64 latency_ns, u32 nr_requests, bool write_cache)
{
	*w = (struct wbt){ .latency_ns = latency_ns,
			   .nr_requests = nr_requests,
			   .write_cache = write_cache,
			   .read_min_ns = ~0ull };
	list_init(&w->waiting);
	set_limits(w);
}

void wbt_configure(struct wbt *w, u64 latency_ns, u32 nr_requests, bool write_cache)
{
	w->latency_ns = latency_ns;
	w->nr_requests = nr_requests;
	w->write_cache = write_cache;
	set_limits(w);
}

static bool recently_throttled(const struct wbt *w, u64 now)
{
	return w->throttled_ns && now < w->throttled_ns + RECENT_NS;
}

u32 wbt_limit(const struct wbt *w, const struct io *io, u64 now)
{
	if (io->sync || recently_throttled(w, now))
		return w->max;
	return io->background ? w->background : w->normal;
}

bool wbt_wakes(const struct wbt *w, u64 now)
{
	if (!w->in_flight)
		return true;
	if (w->write_cache && !recently_throttled(w, now))
		return false;
	return w->in_flight < w->normal && w->normal - w->in_flight >= w->background / 2;
}

static bool step_up(struct wbt *w)
{
	if (w->scaled_max)
		return false;
	w->step--;
	set_limits(w);
	return true;
}

static void step_down(struct wbt *w, bool hard)
{
	if (w->max == 1)
		return;
	w->step = w->step < 0 && hard ? 0 : w->step + 1;
	set_limits(w);
}

/* What the window that has ended says; true if the limits were raised. */
static bool end_window(struct wbt *w)
{
	if (w->reads && w->writes >= WRITES_FOR_MIX) {
		if (w->read_min_ns <= w->latency_ns)
			return step_up(w);
		step_down(w, true);
		return false;
	}
	if (w->writes || w->in_flight)
		return step_up(w);
	if (++w->quiet_windows < QUIET_WINDOWS)
		return false;
	if (w->step > 0)
		return step_up(w);
	if (w->step < 0)
		step_down(w, false);
	return false;
}

bool wbt_note(struct wbt *w, bool read, u64 latency_ns, u64 now)
{
	bool raised = false;

	if (!w->window_end_ns)
		w->window_end_ns = now + WINDOW_NS;
	while (now >= w->window_end_ns) { /* also those that went by without I/O */
		raised |= end_window(w);
		w->reads = w->writes = 0;
		w->read_min_ns = ~0ull;
		w->window_end_ns += WINDOW_NS;
		if (!w->step && !w->in_flight) {
			w->window_end_ns = now + WINDOW_NS;
			break;
		}
	}
	if (read) {
		w->reads++;
		w->read_min_ns = min_u64(w->read_min_ns, latency_ns);
	} else {
		w->writes++;
	}
	w->quiet_windows = 0;
	return raised;
}
