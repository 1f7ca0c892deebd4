// SPDX-License-Identifier: MIT
/*
 * Data that could not be written stays dirty and is tried again. After a failure nothing of that
 * file is written of the flusher's own accord for a pause, that doubles with each attempt that
 * fails up to a largest one; then the flusher wakes for it. A failure while the pause lasts is
 * of the same attempt (an attempt is many I/Os), or of somebody who could not wait: syncs try at
 * once, always. When all that had failed is safe the file is as good as new.
 *
 * Without pauses a device that fails at once would keep its flusher busy for nothing.
 */
#include "writeback/wb.h"

void retry_note_failure(struct inode *inode)
{
	const struct vm_knobs *vm = &inode->wb->all->vm;
	u64 least = (u64)vm->retry_min_ms * NSEC_PER_MSEC, now = world_now();
	u64 most = max_u64((u64)vm->retry_max_ms * NSEC_PER_MSEC, least);
	struct wb *wb;
	bool began = false;

	if (!least)
		return;
	wb = inode_lock_home(inode);
	if (now >= inode->retry_ns && !(inode->state & INODE_FREEING)) {
		u64 pause = inode->retry_pause_ns;

		began = true;
		inode->retry_pause_ns = pause ? min_u64(2 * pause, most) : least;
		atomic_store_explicit(&inode->retry_ns, now + inode->retry_pause_ns,
				      memory_order_relaxed);
		wb->retry_ns = min_u64(wb->retry_ns, now + inode->retry_pause_ns);
	}
	spin_unlock(&wb->list_lock);
	if (began)
		wb_rearm(wb);
}

void retry_note_success(struct inode *inode)
{
	struct wb *wb;
	bool safe;

	if (!atomic_load_explicit(&inode->retry_ns, memory_order_relaxed))
		return;
	spin_lock(&inode->m.tree_lock);
	safe = !inode->m.error;
	spin_unlock(&inode->m.tree_lock);
	if (!safe)
		return;
	wb = inode_lock_home(inode);
	atomic_store_explicit(&inode->retry_ns, 0, memory_order_relaxed);
	inode->retry_pause_ns = 0;
	spin_unlock(&wb->list_lock);
}

bool retry_is_pausing(const struct inode *inode)
{
	return atomic_load_explicit(&inode->retry_ns, memory_order_relaxed) > world_now();
}

/*
 * What fails, and is sent again the moment that it lands, would be in flight for ever to those who
 * wait for it: so not while any do. They write what there is themselves.
 */
bool retry_may_be_tried(const struct inode *inode)
{
	if (retry_is_pausing(inode))
		return false;
	return !atomic_load(&inode->wb->all->failing) || !atomic_load(&inode->awaited);
}

bool retry_is_due(struct wb *wb)
{
	bool due;

	spin_lock(&wb->list_lock);
	due = wb->retry_ns <= world_now();
	if (due)
		wb->retry_ns = WORLD_NEVER;
	spin_unlock(&wb->list_lock);
	return due;
}

void retry_arm(struct wb *wb)
{
	struct list_node *n;

	spin_lock(&wb->list_lock);
	list_for_each (n, &wb->dirty) {
		struct inode *inode = list_entry(n, struct inode, link);

		if (retry_is_pausing(inode))
			wb->retry_ns = min_u64(wb->retry_ns, inode->retry_ns);
	}
	spin_unlock(&wb->list_lock);
}
