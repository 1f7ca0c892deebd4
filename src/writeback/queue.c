/* SPDX-License-Identifier: MIT */
/*
 * Which inode is written next. A wb keeps its dirty inodes on three lists (reference 6.1,
 * 6.4): `dirty`, in order of the time they became dirty; `io`, taken from the old end of
 * it for the round at hand and worked off from the back; `more_io`, those that used up their
 * slice and come again. An inode that stays dirty keeps its time: age counts from the
 * first write.
 */
#include "writeback/tenant.h"

void wb_rearm(struct wb *wb)
{
	atomic_fetch_add(&wb->wakeups, 1);
	world_unpark(&wb->wakeups, 1);
}

void wb_wake(struct wb *wb)
{
	atomic_store(&wb->kicked, 1);
	wb_rearm(wb);
}

u64 wb_periodic_ns(const struct writeback *all)
{
	u64 ticks = (u64)all->vm.dirty_writeback_centisecs * world_hz() / 100;

	return ticks ? world_jiffies_ns(world_timer_jiffies(ticks)) : WORLD_NEVER;
}

bool wb_arm(struct wb *wb)
{
	if (wb->wake_ns != WORLD_NEVER)
		return false;
	wb->wake_ns = wb_periodic_ns(wb->all);
	return wb->wake_ns != WORLD_NEVER;
}

bool wb_queue_work(struct wb *wb, struct wb_work *work)
{
	bool stopping;

	if (trace_on())
		trace_work(wb, work, TRACE_WRITEBACK_QUEUE);
	spin_lock(&wb->list_lock);
	stopping = wb->stopping;
	if (!stopping)
		list_add_tail(&wb->work, &work->link);
	spin_unlock(&wb->list_lock);
	if (!stopping)
		wb_wake(wb);
	return !stopping;
}

static void set_dirty(struct wb *wb, struct inode *inode)
{
	if (!(inode->state & INODE_DIRTY)) {
		inode->state |= INODE_DIRTY;
		wb->dirty_inodes++;
	}
	atomic_store_explicit(&inode->known_dirty, 1, memory_order_relaxed);
}

static void set_clean(struct wb *wb, struct inode *inode)
{
	if (inode->state & INODE_DIRTY) {
		inode->state &= ~(u32)INODE_DIRTY;
		assert(wb->dirty_inodes > 0);
		wb->dirty_inodes--;
	}
	list_del(&inode->link);
}

void inode_mark_dirty(struct inode *inode)
{
	bool arm = false, closed = false;
	struct wb *wb;

	if (atomic_load_explicit(&inode->known_dirty, memory_order_relaxed))
		return;
	wb = inode_lock_home(inode);
	/* one that is being freed may still have writes in flight, and they may fail */
	if (!(inode->state & (INODE_DIRTY | INODE_FREEING))) {
		bool first = wb->dirty_inodes == 0;

		set_dirty(wb, inode);
		/* one that a flusher works on is put in its place when that is done */
		if (!(inode->state & INODE_SYNC) && list_empty(&inode->link)) {
			inode->dirtied_when = world_jiffies();
			list_add(&wb->dirty, &inode->link);
			arm = first && wb->wake_ns == WORLD_NEVER;
			closed = wb->stopping && wb->tenant;
		}
	}
	if (arm)
		wb->wake_ns = wb_periodic_ns(wb->all);
	spin_unlock(&wb->list_lock);
	if (arm)
		wb_rearm(wb);
	/* a write that was under way when its tenant went has failed: nobody would look there */
	if (unlikely(closed))
		inode_move(inode, wb->root);
}

void inode_detach(struct inode *inode)
{
	for (;;) {
		u32 seen = atomic_load(&inode->sync_waiters);
		struct wb *wb = inode_lock_home(inode);
		bool busy;

		inode->state |= INODE_FREEING;
		busy = inode->state & INODE_SYNC;
		if (!busy) {
			set_clean(wb, inode);
			dontcache_dequeue(inode);
		}
		spin_unlock(&wb->list_lock);
		if (!busy)
			return;
		world_park(&inode->sync_waiters, seen, WORLD_NEVER);
	}
}

u64 wb_queue_io(struct wb *wb, u64 cutoff)
{
	struct list_node expired;
	u64 moved = 0;

	list_splice(&wb->io, &wb->more_io);
	/* oldest first: it ends up nearest to the back, behind those of earlier rounds */
	list_init(&expired);
	while (!list_empty(&wb->dirty)) {
		struct inode *inode = list_entry(wb->dirty.prev, struct inode, link);

		if (inode->dirtied_when > cutoff)
			break;
		list_del(&inode->link);
		list_add(&expired, &inode->link);
		moved++;
	}
	list_splice(&wb->io, &expired);
	return moved;
}

/* To the young end of `dirty`; time moves only if it would be out of order. */
static void redirty_tail(struct wb *wb, struct inode *inode)
{
	if (!list_empty(&wb->dirty)) {
		struct inode *youngest = list_entry(wb->dirty.next, struct inode, link);

		if (inode->dirtied_when < youngest->dirtied_when)
			inode->dirtied_when = world_jiffies();
	}
	list_del(&inode->link);
	list_add(&wb->dirty, &inode->link);
}

/* Whether it is still dirty: sets its state by that. False: it is off the lists. */
static bool look_again(struct wb *wb, struct inode *inode)
{
	bool dirty_pages;

	/* whoever dirties a page after the look at the tags, under the same lock, sees this */
	atomic_store_explicit(&inode->known_dirty, 0, memory_order_relaxed);
	spin_lock(&inode->m.tree_lock);
	dirty_pages = index_tagged(&inode->m.index, TAG_DIRTY);
	spin_unlock(&inode->m.tree_lock);
	if (dirty_pages)
		set_dirty(wb, inode);
	else
		set_clean(wb, inode);
	return dirty_pages;
}

void wb_recheck(struct wb *wb, struct inode *inode)
{
	const struct ledger *l = &inode->m.ledger;

	if (!look_again(wb, inode) || inode->state & INODE_FREEING)
		return;
	/* what is dirty all the time, but no page of it for long, is not old */
	if (!list_empty(&inode->link) && ledger_level(l, LEVEL_DROP) < ledger_level(l, LEVEL_DEBT))
		return;
	list_del(&inode->link);
	inode->dirtied_when = world_jiffies();
	list_add(&wb->dirty, &inode->link);
}

void wb_requeue(struct wb *wb, struct inode *inode, const struct pass *pass, u64 cutoff)
{
	if (!look_again(wb, inode))
		return;
	if (inode->state & INODE_FREEING) { /* who frees it waits for us to be done with it */
		list_del(&inode->link);
		return;
	}
	if (pass->sync || pass->tagged)
		inode->dirtied_when = world_jiffies();
	if (pass->budget <= 0 && inode->dirtied_when <= cutoff) {
		list_del(&inode->link);
		list_add(&wb->more_io, &inode->link);
	} else {
		redirty_tail(wb, inode);
	}
}
