// SPDX-License-Identifier: MIT
/*
 * What must hold all the time, looked at after each operation, once a second of the world's time,
 * and with each decision of the throttle:
 *
 *	the books are those of the state words, and no more memory is used than there is;
 *	nobody sleeps for dirty memory while there is little of it;
 *	nobody writes for long while no device has anything to do and little is dirty;
 *	no file stays dirty for much longer than it may, unless something is wrong with a device;
 *	what is unsafe is named, and is all of it;
 *	something happens.
 */
#include "base/bits.h"
#include "torture/inner.h"
#include "writeback/wb.h"

#define LOOK_NS    NSEC_PER_SEC
#define STUCK_NS   (2000 * NSEC_PER_SEC) /* so long nothing ends only if something is stuck */
#define IDLE_LOOKS 10
#define SLACK_NS   (10 * NSEC_PER_SEC)

static struct writeback *writeback_of(struct torture *t)
{
	return engine_writeback(t->engine);
}

static void check_memory(struct torture *t, const struct engine_stats *stats)
{
	u64 stuck = arena_stuck(&writeback_of(t)->cache->arena);

	if (stats->cached + stats->free > stats->memory + stuck)
		torture_fail(t, "%llu pages cached and %llu free, of %llu",
			     (unsigned long long)stats->cached, (unsigned long long)stats->free,
			     (unsigned long long)stats->memory);
}

void watch_audit(struct torture *t)
{
	struct engine_stats stats;
	char why[256];

	if (!engine_audit(t->engine, why, sizeof(why)))
		torture_fail(t, "the books are wrong: %s", why);
	engine_stats(t->engine, &stats);
	check_memory(t, &stats);
	for (u32 i = 0; i < t->devices; i++)
		if (t->disk[i].overruns)
			torture_fail(t, "the device was full when accepted data was written");
}

/* --- the throttle */

void watch_throttle(void *ctx, const struct trace_event *e)
{
	struct torture *t = ctx;
	u64 *freerun = &t->freerun[e->thread % LOOKERS];
	s64 dirty = e->field[3], pause = e->field[11];

	if (e->kind == TRACE_GLOBAL_DIRTY_STATE)
		*freerun = (u64)(e->field[2] + e->field[3]) / 2;
	if (e->kind == TRACE_BALANCE_DIRTY_PAGES && pause > 0 && !t->strict &&
	    (u64)dirty <= *freerun)
		torture_fail(t, "a writer sleeps with %lld pages dirty, though up to %llu are free",
			     (long long)dirty, (unsigned long long)*freerun);
	if (e->kind == TRACE_WRITE_FAILED && !t->injected)
		torture_fail(t, "a write of %lld bytes at %lld gave %lld without any reason",
			     (long long)e->field[3], (long long)e->field[2],
			     (long long)e->field[4]);
}

/* --- once a second */

static bool all_idle(const struct torture *t)
{
	for (u32 i = 0; i < t->devices; i++)
		if (!device_idle(t->disk[i].device))
			return false;
	return true;
}

/* Little is dirty, nothing is in the way, and yet a write has not ended at so many looks. */
static void look_at_writers(struct torture *t)
{
	const struct engine_stats *s = &t->seen;
	bool free;

	engine_stats(t->engine, &t->seen);
	free = all_idle(t) && s->dirty + s->writeback <= s->freerun && !faults_at_work(t);
	for (u32 i = 0; i < t->tasks; i++) {
		struct ttask *task = &t->task[i];

		if (!free || !task->writing || task->watched != task->op) {
			task->watched = task->op;
			task->idle_looks = 0;
		} else if (++task->idle_looks == IDLE_LOOKS) {
			torture_fail(t,
				     "task %u has been writing for %d s, with every device idle "
				     "and %llu pages dirty, of %llu that are free",
				     i, IDLE_LOOKS, (unsigned long long)(s->dirty + s->writeback),
				     (unsigned long long)s->freerun);
		}
	}
}

/* Linux's bound, with time for the writing; from when the last fault ended. */
static void look_at_age(struct torture *t)
{
	const struct vm_limits vm = writeback_vm(writeback_of(t));
	u64 most = (vm.dirty_expire_centisecs + 2ull * vm.dirty_writeback_centisecs) *
			   (NSEC_PER_SEC / 100) +
		   SLACK_NS;

	if (!vm.dirty_writeback_centisecs)
		return;
	for (u32 i = 0; i < t->files; i++) {
		const struct inode *inode = t->file[i].inode;
		u64 since;

		if (!(inode->state & INODE_DIRTY))
			continue;
		since = max_u64(world_jiffies_ns(inode->dirtied_when), t->quiet_ns);
		if (world_now() > since + most)
			torture_fail(t,
				     "file %u has been dirty for %llu ms, though %llu ms are "
				     "the most",
				     i, (unsigned long long)((world_now() - since) / NSEC_PER_MSEC),
				     (unsigned long long)(most / NSEC_PER_MSEC));
	}
}

static void look(struct sim_event *e)
{
	struct torture *t = container_of(e, struct torture, watchdog);

	if (t->report->step != t->watched_step)
		t->moved_ns = world_now();
	t->watched_step = t->report->step;
	if (world_now() - t->moved_ns >= STUCK_NS)
		torture_fail(t, "stuck: no operation began in %llu s",
			     (unsigned long long)(STUCK_NS / NSEC_PER_SEC));
	if (faults_at_work(t) || !all_idle(t))
		t->quiet_ns = faults_at_work(t) ? world_now() : t->quiet_ns;
	if (!atomic_load(&writeback_of(t)->failing)) {
		look_at_writers(t);
		look_at_age(t);
	} else {
		t->quiet_ns = world_now();
	}
	sim_event_at(e, world_now() + LOOK_NS);
}

void watch_begin(struct torture *t)
{
	if (trace_start_sink(&writeback_of(t)->trace, watch_throttle, t))
		torture_fail(t, "the throttle cannot be watched");
	sim_event_init(&t->watchdog, look);
	sim_event_at(&t->watchdog, world_now() + LOOK_NS);
}

void watch_end(struct torture *t)
{
	sim_event_cancel(&t->watchdog);
}

/* --- what is unsafe */

struct told {
	struct torture *t;
	u64 pages, files;
	bool named[FILES_MAX];
};

static void tell(void *ctx, struct inode *inode, u64 offset, u64 length, int error)
{
	struct told *told = ctx;
	struct torture *t = told->t;
	u32 i = 0;

	while (i < t->files && t->file[i].inode != inode)
		i++;
	if (i == t->files || !error || !length || (offset | length) % PAGE_SIZE ||
	    offset + length > round_up(t->capacity, PAGE_SIZE))
		torture_fail(t, "unsafe is said to be [%llu, +%llu) of file %u, with %d",
			     (unsigned long long)offset, (unsigned long long)length, i, error);
	told->pages += length >> PAGE_SHIFT;
	told->files += !told->named[i];
	told->named[i] = true;
}

void watch_unsafe(struct torture *t)
{
	struct told told = { .t = t };
	struct engine_stats stats;

	engine_show_unsafe(t->engine, tell, &told);
	engine_stats(t->engine, &stats);
	if (stats.unsafe != told.pages || stats.unsafe_files != told.files)
		torture_fail(t, "%llu pages of %llu files are unsafe, %llu of %llu are named",
			     (unsigned long long)stats.unsafe,
			     (unsigned long long)stats.unsafe_files, (unsigned long long)told.pages,
			     (unsigned long long)told.files);
	for (u32 i = 0; i < t->files; i++)
		if (told.named[i] != (inode_error(t->file[i].inode) != 0))
			torture_fail(t, "file %u has the error %d, and is %snamed as unsafe", i,
				     inode_error(t->file[i].inode), told.named[i] ? "" : "not ");
}
