/* SPDX-License-Identifier: MIT */
/*
 * The decisions of the throttle and the flusher as events, under the names of the kernel's
 * tracepoints and with their fields (Linux writeback reference, 14.1): sizes in pages, rates in
 * KiB/s, times in ms. An event goes to whoever traces the cache it happened in (rings, or a sink),
 * and fires a USDT probe of the same name, provider "sluice".
 *
 * While nobody looks an event costs one load of trace_word and a branch. Places with something to
 * tell ask trace_on() first and build nothing otherwise.
 */
#ifndef SLUICE_WRITEBACK_TRACE_H
#define SLUICE_WRITEBACK_TRACE_H

#include "base/types.h"
#include <stdatomic.h>
#include <sys/types.h>

/*
 * kind, name, fields. The first field of most is the device (bdi), by its number in the cache. The
 * last event is ours, the kernel has none like it: write-out failed, of so many bytes of a file.
 * Files have numbers (ino) in the order in which the cache came to know them.
 */
#define TRACE_EVENTS(X)                                                                            \
	X(BALANCE_DIRTY_PAGES, balance_dirty_pages, "bdi", "limit", "setpoint", "dirty",           \
	  "wb_setpoint", "wb_dirty", "dirty_ratelimit", "task_ratelimit", "dirtied",               \
	  "dirtied_pause", "paused", "pause", "period", "think")                                   \
	X(BDI_DIRTY_RATELIMIT, bdi_dirty_ratelimit, "bdi", "write_bw", "avg_write_bw",             \
	  "dirty_rate", "dirty_ratelimit", "task_ratelimit", "balanced_dirty_ratelimit")           \
	X(GLOBAL_DIRTY_STATE, global_dirty_state, "nr_dirty", "nr_writeback", "background_thresh", \
	  "dirty_thresh", "dirty_limit", "nr_dirtied", "nr_written")                               \
	X(WRITEBACK_WAKE_BACKGROUND, writeback_wake_background, "bdi")                             \
	X(WRITEBACK_QUEUE, writeback_queue, WORK_FIELDS)                                           \
	X(WRITEBACK_EXEC, writeback_exec, WORK_FIELDS)                                             \
	X(WRITEBACK_START, writeback_start, WORK_FIELDS)                                           \
	X(WRITEBACK_WRITTEN, writeback_written, WORK_FIELDS)                                       \
	X(WRITEBACK_PAGES_WRITTEN, writeback_pages_written, "pages")                               \
	X(WRITEBACK_QUEUE_IO, writeback_queue_io, "bdi", "older", "age", "enqueue", "reason")      \
	X(WRITEBACK_SINGLE_INODE_START, writeback_single_inode_start, INODE_FIELDS)                \
	X(WRITEBACK_SINGLE_INODE, writeback_single_inode, INODE_FIELDS)                            \
	X(WRITE_FAILED, sluice_write_failed, "bdi", "ino", "offset", "length", "error")

#define TRACE_FIELDS 14 /* most of an event */

enum trace_kind {
#define TRACE_ENUM(kind, name, ...) TRACE_##kind,
	TRACE_EVENTS(TRACE_ENUM) TRACE_KINDS
#undef TRACE_ENUM
};

struct trace_event {
	u64 time_ns; /* world time */
	u32 kind;
	u32 thread; /* real world: gettid(); simulated: the task's number */
	s64 field[TRACE_FIELDS];
};

/* Not 0 while anybody looks: the low half counts the tools on our probes, as they enter
 * themselves; the high half counts the caches that are traced. */
extern _Atomic u32 trace_word;

static inline bool trace_on(void)
{
	return unlikely(atomic_load_explicit(&trace_word, memory_order_relaxed) != 0);
}

/* --- who looks at one cache: trace_ring.c */

struct trace;

/* What a cache has for it; zero it. */
struct trace_slot {
	_Atomic(struct trace *) on; /* NULL: nobody traces */
	struct trace *all;          /* made so far: kept, since a writer may be at work in one */
};

#define TRACE_RING_MAX (1u << 18)

/*
 * Starts recording into a ring for each thread of at least `events` events, 1..TRACE_RING_MAX.
 * -EBUSY: it is on. -ENOMEM. Starts and stops of one slot are the caller's to serialise.
 */
int trace_start(struct trace_slot *slot, u32 events);
/* Passes each event on as it happens instead; for the simulated world. */
int trace_start_sink(struct trace_slot *slot, void (*sink)(void *ctx, const struct trace_event *e),
		     void *ctx);
/* Oldest first; what was lost since the start in *lost. -ENODATA: off. One reader at a time. */
ssize_t trace_read(struct trace_slot *slot, struct trace_event *out, size_t count, u64 *lost);
int trace_stop(struct trace_slot *slot); /* 0, -ENODATA */
/* Frees everything; nobody is at work in the cache. */
void trace_finish(struct trace_slot *slot);
/* Adds an event with its first n fields. */
void trace_put(struct trace_slot *slot, enum trace_kind kind, const s64 *field, u32 n);

/* --- names and text: trace.c */

/* NULL past the end. */
const char *trace_name(u32 kind);
const char *trace_field(u32 kind, u32 i);
/* "NAME: bdi 0:0: FIELD=VALUE ...", as snprintf(3); -EINVAL: no such kind. */
int trace_print(const struct trace_event *e, char *buf, size_t size);

/* --- the events; called where trace_on(): trace.c */

struct wb;
struct wb_work;
struct inode;
struct limits;
struct pauses;

/* A look at a writer above the free running ceiling. Times in jiffies, rates in pages/s. */
struct trace_balance {
	u64 limit, setpoint, dirty, wb_setpoint, wb_dirty;
	u64 dirty_ratelimit, task_ratelimit, dirtied, dirtied_pause;
	u64 paused, period, think;
	s64 pause;
};

void trace_balance_dirty_pages(struct wb *wb, const struct trace_balance *b);
void trace_bdi_dirty_ratelimit(struct wb *wb, u64 dirty_rate, u64 task_ratelimit);
void trace_global_dirty_state(struct wb *wb, const struct limits *limits);
void trace_wake_background(struct wb *wb);
/* `kind`: one of the four of a piece of work. */
void trace_work(struct wb *wb, const struct wb_work *work, enum trace_kind kind);
void trace_pages_written(struct wb *wb, s64 pages);
void trace_queue_io(struct wb *wb, const struct wb_work *work, u64 cutoff, u64 moved);
void trace_single_inode(struct wb *wb, const struct inode *inode, s64 to_write, s64 wrote,
			enum trace_kind kind);
/* Bytes; error: a negative errno. */
void trace_write_failed(struct wb *wb, const struct inode *inode, u64 offset, u64 length,
			int error);

#endif
