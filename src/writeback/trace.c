// SPDX-License-Identifier: MIT
/*
 * Events: one table of their names and fields, and one function for each, which gathers the fields
 * in their order, fires the probe and hands them to the cache's rings. Fields, units and names:
 * Linux writeback reference, 14.1.
 *
 * The probes are USDT: a nop in the code and a note in the ELF file that says where it is and where
 * its arguments are, so that bpftrace, perf or systemtap can put a breakpoint there. A tool counts
 * itself up in the probe's semaphore, which it finds by the note; all our probes name the low half
 * of trace_word, the word that says whether anybody looks. A probe takes 12 arguments; an event
 * with more passes the address of its fields as the 12th.
 */
#include "writeback/trace.h"
#include "writeback/pause.h"
#include "writeback/wb.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

/* The section is where tools look for semaphores. */
__attribute__((section(".probes"), visibility("hidden"))) _Atomic u32 trace_word = 0;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a semaphore is the low half of a word");

#define SEMAPHORE(kind, name, ...)                   \
	extern _Atomic u32 sluice_##name##_semaphore \
		__attribute__((alias("trace_word"), visibility("hidden")));
TRACE_EVENTS(SEMAPHORE)
#undef SEMAPHORE

#define WORK_FIELDS \
	"bdi", "nr_pages", "sync_mode", "for_kupdate", "range_cyclic", "for_background", "reason"
#define INODE_FIELDS \
	"bdi", "ino", "state", "dirtied_when", "age", "writeback_index", "nr_to_write", "wrote"

static const struct {
	const char *name;
	const char *field[TRACE_FIELDS + 1];
} events[] = {
#define ROW(kind, name, ...) [TRACE_##kind] = { #name, { __VA_ARGS__ } },
	TRACE_EVENTS(ROW)
#undef ROW
};

/* The texts of the field `reason`. */
static const char *const reasons[] = {
	[WB_REASON_BACKGROUND] = "background",
	[WB_REASON_VMSCAN] = "vmscan",
	[WB_REASON_SYNC] = "sync",
	[WB_REASON_PERIODIC] = "periodic",
	[WB_REASON_DONTCACHE] = "dontcache",
};

const char *trace_name(u32 kind)
{
	return kind < TRACE_KINDS ? events[kind].name : NULL;
}

const char *trace_field(u32 kind, u32 i)
{
	return kind < TRACE_KINDS && i < TRACE_FIELDS ? events[kind].field[i] : NULL;
}

/* snprintf() behind what is there already. */
__attribute__((format(printf, 4, 5))) static void add(char *buf, size_t size, size_t *used,
						      const char *format, ...)
{
	size_t room = *used < size ? size - *used : 0;
	va_list args;

	va_start(args, format);
	*used += (size_t)vsnprintf(room ? buf + *used : NULL, room, format, args);
	va_end(args);
}

int trace_print(const struct trace_event *e, char *buf, size_t size)
{
	size_t used = 0;
	const char *name;

	if (e->kind >= TRACE_KINDS)
		return -EINVAL;
	add(buf, size, &used, "%s:", events[e->kind].name);
	for (u32 i = 0; (name = trace_field(e->kind, i)); i++) {
		long long value = (long long)e->field[i];

		if (!strcmp(name, "bdi"))
			add(buf, size, &used, " bdi 0:%lld:", value);
		else if (!strcmp(name, "reason") && value >= 0 &&
			 value < (long long)ARRAY_SIZE(reasons))
			add(buf, size, &used, " reason=%s", reasons[value]);
		else
			add(buf, size, &used, " %s=%lld", name, value);
	}
	return (int)used;
}

/* --- the events */

static s64 ms_of(s64 jiffies)
{
	return jiffies * 1000 / (s64)world_hz();
}

static s64 kib_of(u64 pages)
{
	return (s64)(pages << (PAGE_SHIFT - 10));
}

static struct trace_slot *slot_of(struct wb *wb)
{
	return &wb->all->trace;
}

#define PUT(wb, kind, f) trace_put(slot_of(wb), kind, f, ARRAY_SIZE(f))

void trace_balance_dirty_pages(struct wb *wb, const struct trace_balance *b)
{
	const s64 f[] = {
		wb->index,
		(s64)b->limit,
		(s64)b->setpoint,
		(s64)b->dirty,
		(s64)b->wb_setpoint,
		(s64)b->wb_dirty,
		kib_of(b->dirty_ratelimit),
		kib_of(b->task_ratelimit),
		(s64)b->dirtied,
		(s64)b->dirtied_pause,
		ms_of((s64)b->paused),
		ms_of(b->pause),
		ms_of((s64)b->period),
		ms_of((s64)b->think),
	};

	STAP_PROBE12(sluice, balance_dirty_pages, f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7],
		     f[8], f[9], f[10], f);
	PUT(wb, TRACE_BALANCE_DIRTY_PAGES, f);
}

void trace_bdi_dirty_ratelimit(struct wb *wb, u64 dirty_rate, u64 task_ratelimit)
{
	const s64 f[] = {
		wb->index,
		kib_of(wb->bw.write_bw),
		kib_of(wb->bw.avg_write_bw),
		kib_of(dirty_rate),
		kib_of(wb->bw.dirty_ratelimit),
		kib_of(task_ratelimit),
		kib_of(wb->bw.balanced_dirty_ratelimit),
	};

	STAP_PROBE7(sluice, bdi_dirty_ratelimit, f[0], f[1], f[2], f[3], f[4], f[5], f[6]);
	PUT(wb, TRACE_BDI_DIRTY_RATELIMIT, f);
}

void trace_global_dirty_state(struct wb *wb, const struct limits *limits)
{
	struct writeback *all = wb->all;
	const struct ledger *l = &all->cache->ledger;
	s64 f[7];
	u64 limit;

	spin_lock(&all->lock);
	limit = hard_limit_of(&all->hard, limits->thresh);
	spin_unlock(&all->lock);
	f[0] = (s64)writeback_dirty(all);
	f[1] = (s64)writeback_in_flight(all);
	f[2] = (s64)limits->bg;
	f[3] = (s64)limits->thresh;
	f[4] = (s64)limit;
	f[5] = (s64)account_dirtied(&all->policy, l);
	f[6] = (s64)account_written(&all->policy, l);
	STAP_PROBE7(sluice, global_dirty_state, f[0], f[1], f[2], f[3], f[4], f[5], f[6]);
	PUT(wb, TRACE_GLOBAL_DIRTY_STATE, f);
}

void trace_wake_background(struct wb *wb)
{
	const s64 f[] = { wb->index };

	STAP_PROBE1(sluice, writeback_wake_background, f[0]);
	PUT(wb, TRACE_WRITEBACK_WAKE_BACKGROUND, f);
}

void trace_work(struct wb *wb, const struct wb_work *work, enum trace_kind kind)
{
	const s64 f[] = {
		wb->index,   work->pages,          work->sync,   work->for_kupdate,
		!work->sync, work->for_background, work->reason,
	};

	switch (kind) {
	case TRACE_WRITEBACK_QUEUE:
		STAP_PROBE7(sluice, writeback_queue, f[0], f[1], f[2], f[3], f[4], f[5], f[6]);
		break;
	case TRACE_WRITEBACK_EXEC:
		STAP_PROBE7(sluice, writeback_exec, f[0], f[1], f[2], f[3], f[4], f[5], f[6]);
		break;
	case TRACE_WRITEBACK_START:
		STAP_PROBE7(sluice, writeback_start, f[0], f[1], f[2], f[3], f[4], f[5], f[6]);
		break;
	default:
		assert(kind == TRACE_WRITEBACK_WRITTEN);
		STAP_PROBE7(sluice, writeback_written, f[0], f[1], f[2], f[3], f[4], f[5], f[6]);
		break;
	}
	PUT(wb, kind, f);
}

void trace_pages_written(struct wb *wb, s64 pages)
{
	const s64 f[] = { pages };

	STAP_PROBE1(sluice, writeback_pages_written, f[0]);
	PUT(wb, TRACE_WRITEBACK_PAGES_WRITTEN, f);
}

void trace_queue_io(struct wb *wb, const struct wb_work *work, u64 cutoff, u64 moved)
{
	u64 now = world_jiffies();
	/* a cutoff in the future takes all there is */
	const s64 f[] = { wb->index, cutoff > now ? 0 : (s64)cutoff,
			  cutoff > now ? 0 : ms_of((s64)(now - cutoff)), (s64)moved, work->reason };

	STAP_PROBE5(sluice, writeback_queue_io, f[0], f[1], f[2], f[3], f[4]);
	PUT(wb, TRACE_WRITEBACK_QUEUE_IO, f);
}

void trace_single_inode(struct wb *wb, const struct inode *inode, s64 to_write, s64 wrote,
			enum trace_kind kind)
{
	u64 now = world_jiffies();
	const s64 f[] = {
		wb->index,
		(s64)inode->ino,
		inode->state,
		(s64)inode->dirtied_when,
		now > inode->dirtied_when ? ms_of((s64)(now - inode->dirtied_when)) : 0,
		(s64)inode->m.write_cursor,
		to_write,
		wrote,
	};

	if (kind == TRACE_WRITEBACK_SINGLE_INODE_START) {
		STAP_PROBE8(sluice, writeback_single_inode_start, f[0], f[1], f[2], f[3], f[4],
			    f[5], f[6], f[7]);
	} else {
		assert(kind == TRACE_WRITEBACK_SINGLE_INODE);
		STAP_PROBE8(sluice, writeback_single_inode, f[0], f[1], f[2], f[3], f[4], f[5],
			    f[6], f[7]);
	}
	PUT(wb, kind, f);
}

void trace_write_failed(struct wb *wb, const struct inode *inode, u64 offset, u64 length, int error)
{
	const s64 f[] = { wb->index, (s64)inode->ino, (s64)offset, (s64)length, error };

	STAP_PROBE5(sluice, sluice_write_failed, f[0], f[1], f[2], f[3], f[4]);
	PUT(wb, TRACE_WRITE_FAILED, f);
}
