/* SPDX-License-Identifier: MIT */
/*
 * The flusher: one task a device. Linux writeback reference, section 6.
 *
 * It sleeps until it is woken (by the throttle, by reclaim, by a sync) or until the periodic
 * interval has passed since the first inode became dirty or its last run ended. A run does, in
 * this order: queued work; "write about everything" if memory is short; what DONTCACHE writes
 * left; old data (periodic); whatever exceeds the background limit. Each piece of work goes in
 * rounds over the inodes, each inode getting a slice, and gives way as 6.2 says.
 */
#include "writeback/slice.h"
#include "writeback/tenant.h"

#define BUDGET_ALL INT64_MAX

static u64 expire_ticks(const struct writeback *all)
{
	return (u64)writeback_vm(all).dirty_expire_centisecs * world_hz() / 100;
}

static u64 slice_of(struct wb *wb, const struct wb_work *work)
{
	struct writeback *all = wb->all;
	u64 limit;

	if (work->sync || work->tagged)
		return SLICE_UNLIMITED;
	spin_lock(&all->lock);
	limit = all->hard.dirty_limit;
	spin_unlock(&all->lock);
	return writeback_slice(wb_avg_bandwidth(wb), limit, (u64)work->pages);
}

/* Writes one inode's slice. list_lock held on entry and exit. Returns the progress made. */
static s64 write_inode(struct wb *wb, struct wb_work *work, struct inode *inode, u64 cutoff)
{
	struct pass pass = { .sync = work->sync,
			     .paced = !work->sync,
			     .background = work->for_background || work->for_kupdate,
			     .tagged = work->tagged,
			     .cyclic = true };
	struct tenants *ts = writeback_tenants(wb->all);
	s64 slice, wrote;

	if (!work->sync && !retry_may_be_tried(inode)) {
		pass.budget = 1;
		wb_requeue(wb, inode, &pass, cutoff);
		return 0;
	}
	inode->state |= INODE_SYNC;
	spin_unlock(&wb->list_lock);
	pass.wb = wb;
	pass.only = unlikely(ts != NULL) && ts->by_page && work->for_background;
	slice = (s64)slice_of(wb, work);
	pass.budget = slice;
	if (work->sync) { /* everything, wherever the last cyclic pass stopped */
		pass.cyclic = false;
		pass.last = INDEX_MAX_PAGES - 1;
	}
	if (trace_on())
		trace_single_inode(wb, inode, slice, 0, TRACE_WRITEBACK_SINGLE_INODE_START);
	inode_write_pages(inode, &pass, wb->runs);
	wb_count(wb);
	wrote = slice - pass.budget;
	if (trace_on())
		trace_single_inode(wb, inode, pass.budget, wrote, TRACE_WRITEBACK_SINGLE_INODE);
	if (work->pages != BUDGET_ALL)
		work->pages -= wrote;
	if (inode_inherit(inode, true)) {
		spin_lock(&wb->list_lock);
		work->wrote += wrote;
		return wrote;
	}
	spin_lock(&wb->list_lock);
	inode->state &= ~(u32)INODE_SYNC;
	work->wrote += wrote;
	wb_requeue(wb, inode, &pass, cutoff);
	wrote += !(inode->state & INODE_DIRTY);
	atomic_fetch_add(&inode->sync_waiters, 1);
	world_unpark(&inode->sync_waiters, ~0u);
	return wrote;
}

/* One round over `io`; ends early after 100 ms with progress. list_lock held. */
static s64 write_round(struct wb *wb, struct wb_work *work, u64 cutoff)
{
	u64 start = world_jiffies();
	s64 progress = 0;

	while (!list_empty(&wb->io)) {
		struct inode *inode = list_entry(wb->io.prev, struct inode, link);

		progress += write_inode(wb, work, inode, cutoff);
		if (progress && (world_jiffies() > start + world_hz() / 10 || work->pages <= 0))
			break;
	}
	return progress;
}

/* Whether the work is to be done with, before another round. list_lock held. */
static bool gives_way(struct wb *wb, const struct wb_work *work)
{
	bool yields = work->for_background || work->for_kupdate, over;

	if (wb->stopping || work->pages <= 0 || (yields && !list_empty(&wb->work)))
		return true;
	if (!work->for_background)
		return false;
	spin_unlock(&wb->list_lock);
	over = wb_over_background(wb);
	spin_lock(&wb->list_lock);
	return !over;
}

/* Returns the pages that were taken. */
static s64 do_work(struct wb *wb, struct wb_work *work)
{
	u64 start = world_jiffies(), cutoff = start;
	/*
	 * A sync first takes all there is: who asked for it may be a little ahead of us in time
	 * (world.h), and what he dirtied then looks younger than the work.
	 */
	bool take_all = work->sync;
	u64 moved;
	s64 progress;

	spin_lock(&wb->list_lock);
	while (!gives_way(wb, work)) {
		bool queued = list_empty(&wb->io);

		if (queued) {
			if (work->for_kupdate)
				cutoff = world_jiffies() - expire_ticks(wb->all);
			else if (work->for_background)
				cutoff = world_jiffies();
			else
				cutoff = take_all ? UINT64_MAX : start;
			take_all = false;
			moved = wb_queue_io(wb, cutoff);
			if (trace_on())
				trace_queue_io(wb, work, cutoff, moved);
		}
		if (trace_on())
			trace_work(wb, work, TRACE_WRITEBACK_START);
		progress = write_round(wb, work, cutoff);
		if (trace_on())
			trace_work(wb, work, TRACE_WRITEBACK_WRITTEN);
		if (!progress && queued)
			break;
	}
	spin_unlock(&wb->list_lock);
	return work->wrote;
}

static struct wb_work *next_work(struct wb *wb)
{
	struct wb_work *work = NULL;

	spin_lock(&wb->list_lock);
	if (!list_empty(&wb->work)) {
		work = list_entry(wb->work.next, struct wb_work, link);
		list_del(&work->link);
	}
	spin_unlock(&wb->list_lock);
	return work;
}

/* NR_FILE_DIRTY and the dirty inodes: the budget of periodic and of emergency work. */
static s64 everything(struct wb *wb)
{
	u64 inodes = 0;

	for_each_wb(w, wb->all) inodes += w->dirty_inodes;
	return (s64)(writeback_dirty(wb->all) + inodes);
}

static s64 check_start_all(struct wb *wb)
{
	struct wb_work work = { .reason = WB_REASON_VMSCAN };
	bool wanted;

	spin_lock(&wb->list_lock);
	wanted = wb->start_all;
	wb->start_all = false;
	spin_unlock(&wb->list_lock);
	work.pages = wanted ? everything(wb) : 0;
	return work.pages ? do_work(wb, &work) : 0;
}

static s64 check_dontcache(struct wb *wb)
{
	struct wb_work work = { .reason = WB_REASON_DONTCACHE };

	if (wb->all->policy.dontcache == DONTCACHE_OWN)
		return dontcache_write_own(wb);
	work.pages = dontcache_take_kick(wb);
	return work.pages ? do_work(wb, &work) : 0;
}

static s64 check_old_data(struct wb *wb)
{
	u64 interval = (u64)writeback_vm(wb->all).dirty_writeback_centisecs * world_hz() / 100;
	struct wb_work work = { .for_kupdate = true, .reason = WB_REASON_PERIODIC };

	if (!interval || world_jiffies() < wb->last_old_flush + interval)
		return 0;
	wb->last_old_flush = world_jiffies();
	work.pages = everything(wb);
	return work.pages ? do_work(wb, &work) : 0;
}

static s64 check_retries(struct wb *wb)
{
	struct wb_work work = { .reason = WB_REASON_PERIODIC };
	s64 wrote = 0;

	if (!retry_is_due(wb))
		return 0;
	work.pages = everything(wb);
	if (work.pages)
		wrote = do_work(wb, &work);
	retry_arm(wb);
	return wrote;
}

static s64 check_background(struct wb *wb)
{
	struct wb_work work = { .for_background = true,
				.pages = BUDGET_ALL,
				.reason = WB_REASON_BACKGROUND };

	return wb_over_background(wb) ? do_work(wb, &work) : 0;
}

static void run_once(struct wb *wb)
{
	struct wb_work *work;
	s64 wrote = 0;

	atomic_store(&wb->running, 1);
	while ((work = next_work(wb))) {
		struct completion *done = work->done;

		if (trace_on())
			trace_work(wb, work, TRACE_WRITEBACK_EXEC);
		wrote += do_work(wb, work);
		if (done)
			completion_done(done);
		else if (work->end)
			work->end(work);
	}
	wrote += check_start_all(wb);
	wrote += check_dontcache(wb);
	wrote += check_retries(wb);
	wrote += check_old_data(wb);
	wrote += check_background(wb);
	if (unlikely(wb->tenant != NULL))
		wrote += stakes_write(wb);
	if (trace_on())
		trace_pages_written(wb, wrote);
	spin_lock(&wb->list_lock);
	wb->wake_ns = wb->dirty_inodes || !list_empty(&wb->stakes) ? wb_periodic_ns(wb->all)
								   : WORLD_NEVER;
	spin_unlock(&wb->list_lock);
	atomic_store(&wb->running, 0);
}

void flusher_run(void *arg)
{
	struct wb *wb = arg;

	for (;;) {
		u32 seen = atomic_load(&wb->wakeups);
		u64 update = wb_delayed_update(wb), wake;
		bool stop;

		spin_lock(&wb->list_lock);
		wake = min_u64(wb->wake_ns, min_u64(wb->retry_ns, wb->dontcache.due_ns));
		stop = wb->stopping && list_empty(&wb->work);
		spin_unlock(&wb->list_lock);
		if (stop)
			return;
		if (atomic_exchange(&wb->kicked, 0) || world_now() >= wake)
			run_once(wb);
		else
			world_park(&wb->wakeups, seen, min_u64(update, wake));
	}
}

/* Whether it has ended, or is about to, and what is dirty there has not been handed over yet. */
static bool leaves_some(struct wb *wb)
{
	bool stopping;

	spin_lock(&wb->list_lock);
	stopping = wb->stopping && wb->tenant;
	spin_unlock(&wb->list_lock);
	return stopping && wb->dirty_inodes;
}

bool writeback_sync(struct writeback *all)
{
	u64 moves = atomic_load(&all->moves);
	bool all_seen = true;

	for_each_wb(wb, all)
	{
		struct completion done;
		struct wb_work work = {
			.sync = true, .pages = BUDGET_ALL, .reason = WB_REASON_SYNC, .done = &done
		};

		completion_init(&done);
		list_init(&work.link);
		if (wb_queue_work(wb, &work))
			completion_wait(&done);
		if (leaves_some(wb))
			all_seen = false;
	}
	return all_seen && !atomic_load(&all->moving) && atomic_load(&all->moves) == moves;
}
