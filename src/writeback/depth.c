/* SPDX-License-Identifier: MIT */
/*
 * How much background write-out is in flight (flush_depth=adaptive): as much as the device takes
 * while nobody reads from it, and so much less while somebody does that his reads take at most six
 * times as long as they take without write-out.
 *
 * The idea is that of the block layer's writeback throttling (wbt, src/device/wbt.c): look at
 * reads in windows of 100 ms, and halve or raise what write-out may have in flight by what they
 * show. What was taken: the window, halving at most, that it is for write-out which nobody waits
 * for, and that without reads there is no limit. What was not: a latency in absolute time (2 ms
 * there) as the target, since that is soon missed by readers who keep a device busy among
 * themselves, and then write-out starves; the fastest read of a window as the measure, since one
 * lucky read says that all is well, where the mean does not; and counts of requests, since one may
 * have 4 KiB or a MiB: the depth is in bytes.
 *
 * So it must be known what reads take without write-out. To learn it the flusher holds back, when
 * reads appear and every two seconds while they go on, until nothing of its own is in flight and
 * those reads are over that met it, and looks at the next ones.
 *
 * Only the flusher uses this, but for what lands and for whether somebody reads.
 */
#include "writeback/wb.h"

#define WINDOW_NS     (100 * NSEC_PER_MSEC)
#define PROBE_NS      (2 * NSEC_PER_SEC)   /* from one look at undisturbed reads to the next */
#define CLEAR_NS      (20 * NSEC_PER_MSEC) /* at most, for disturbed reads to be over */
#define LOOK_NS       (10 * NSEC_PER_MSEC) /* at most, for undisturbed ones */
#define ENOUGH        16                   /* reads that tell */
#define FACTOR_HALVES 9 /* of what undisturbed reads take, reads may take four and a half */
#define LIMIT_MIN     (2 * (u64)DEPTH_IO_BYTES)
#define LIMIT_MAX     (1ull << 30) /* more in flight is no limit */

struct reads {
	u64 done, ns, waiting;
};

static struct reads reads_of(const struct wb *wb)
{
	struct device_stats s;

	device_stats(wb->device, &s);
	return (struct reads){ s.reads_done, s.read_ns, s.reads_in_flight };
}

void depth_init(struct depth *d)
{
	d->limit = LIMIT_MAX;
}

static u64 in_flight(const struct depth *d)
{
	return atomic_load_explicit(&d->in_flight, memory_order_relaxed);
}

/* Until something of ours lands, or then. */
static void wait_landing(struct depth *d, u64 seen_bytes, u64 until)
{
	u32 seen = atomic_load(&d->landed);

	atomic_store(&d->waits, 1);
	if (in_flight(d) == seen_bytes)
		world_park(&d->landed, seen, until);
	atomic_store(&d->waits, 0);
}

/* Looks, each ms, until `count` reads are done since `from`, or time is over. */
static struct reads wait_reads(const struct wb *wb, const struct reads *from, u64 count, u64 ns)
{
	u64 until = world_now() + ns;
	struct reads now = reads_of(wb);

	while (now.done - from->done < count && world_now() < until) {
		world_sleep_until(world_now() + NSEC_PER_MSEC);
		now = reads_of(wb);
	}
	return now;
}

static u64 mean_ns(const struct reads *from, const struct reads *to)
{
	return to->done > from->done ? (to->ns - from->ns) / (to->done - from->done) : 0;
}

/* What reads take undisturbed: into base_ns, if there are any. */
static void probe(struct wb *wb)
{
	struct depth *d = &wb->depth;
	u64 until = world_now() + NSEC_PER_SEC, bytes, mean;
	struct reads before, clear, after;

	while ((bytes = in_flight(d)) && world_now() < until)
		wait_landing(d, bytes, until);
	before = reads_of(wb);
	clear = wait_reads(wb, &before, before.waiting, CLEAR_NS);
	after = wait_reads(wb, &clear, ENOUGH, LOOK_NS);
	mean = mean_ns(&clear, &after);
	if (mean)
		d->base_ns = d->base_ns ? (3 * d->base_ns + mean) / 4 : mean;
	d->probe_ns = world_now() + PROBE_NS;
}

static void begin_window(struct wb *wb)
{
	struct reads now = reads_of(wb);

	wb->depth.window_ns = world_now() + WINDOW_NS;
	wb->depth.reads_done = now.done;
	wb->depth.read_ns = now.ns;
}

u64 depth_next(u64 limit, u64 in_flight_bytes, u64 mean, u64 base)
{
	u64 from = min_u64(limit, max_u64(in_flight_bytes, LIMIT_MIN));

	if (mean > base * FACTOR_HALVES / 2)
		return max_u64(max_u64(from / 2, from * FACTOR_HALVES / 2 / mean * base),
			       LIMIT_MIN);
	return min_u64(limit + limit / 8, LIMIT_MAX);
}

/* At the end of a window: what its reads say. */
static void adapt(struct wb *wb)
{
	struct depth *d = &wb->depth;
	struct reads from = { d->reads_done, d->read_ns, 0 }, now;
	u64 mean;

	if (world_now() < d->window_ns)
		return;
	now = reads_of(wb);
	mean = mean_ns(&from, &now);
	atomic_store_explicit(&d->reading, mean || now.waiting, memory_order_relaxed);
	if (d->window_ns + WINDOW_NS <= world_now()) { /* the flusher was idle for that long */
		begin_window(wb);
		return;
	}
	if (!mean && !now.waiting) {
		d->limit = LIMIT_MAX;
	} else if (mean && (!d->base_ns || world_now() >= d->probe_ns)) {
		probe(wb);
	} else if (mean) {
		d->limit = depth_next(d->limit, in_flight(d), mean, d->base_ns);
	}
	begin_window(wb);
}

bool depth_reading(const struct wb *wb)
{
	return atomic_load_explicit(&wb->depth.reading, memory_order_relaxed);
}

/* What may be in flight now: `quiet` at most while nobody reads. */
static u64 limit_now(const struct wb *wb, u64 quiet)
{
	return depth_reading(wb) ? wb->depth.limit : quiet;
}

void depth_enter(struct wb *wb, u64 bytes, u64 quiet)
{
	struct depth *d = &wb->depth;
	u64 flying;

	adapt(wb);
	while ((flying = in_flight(d)) && flying + bytes > limit_now(wb, quiet)) {
		wait_landing(d, flying, d->window_ns);
		adapt(wb);
	}
	atomic_fetch_add_explicit(&d->in_flight, bytes, memory_order_relaxed);
}

void depth_leave(struct wb *wb, u64 bytes)
{
	struct depth *d = &wb->depth;

	atomic_fetch_sub(&d->in_flight, bytes);
	if (!atomic_load(&d->waits))
		return;
	atomic_fetch_add(&d->landed, 1);
	world_unpark(&d->landed, 1);
}
