// SPDX-License-Identifier: MIT
/*
 * Devices that fail for good. What cannot be written stays dirty, and so it stays in the count that
 * is compared with the limits: without more, a dead device would take the limit away from all
 * others, and everybody over it would wait for ever.
 *
 * A file fails from the first write-out of it that does until all of what failed is safe or given
 * up. It is beyond hope once its pauses between attempts have grown to the longest (retry.c); its
 * device is down if nothing was written to it since, and then each of its files counts as beyond
 * hope. With that
 *
 *	others		are not held to what failing files owe: it is taken out of what they see
 *			as dirty. It does hold memory, so it is taken out of the memory that
 *			limits are a share of, too, and no limit is above half of what is left;
 *	its writers	see all of it. Over the limit they sleep, but in no line before others;
 *			beyond hope they get the error of the file in place of a sleep. Below
 *			the limit they go on, for a device may come back.
 *
 * Each failing file is entered in a list of its device, looked through once a tick at most.
 */
#include "writeback/outage.h"
#include "writeback/tenant.h"
#include <errno.h>

void outage_note_failure(struct inode *inode)
{
	struct wb *wb = inode->wb;

	spin_lock(&wb->list_lock);
	if (list_empty(&inode->failing)) {
		inode->failing_since_ns = world_now();
		list_add_tail(&wb->failing, &inode->failing);
		atomic_fetch_add(&wb->all->failing, 1);
	}
	spin_unlock(&wb->list_lock);
}

/* With the list_lock held. */
static void leave(struct inode *inode)
{
	if (list_empty(&inode->failing))
		return;
	list_del(&inode->failing);
	atomic_fetch_sub(&inode->wb->all->failing, 1);
}

/* With the list_lock held. What failed may have been given up since, without a write. */
static int error_of(struct inode *inode)
{
	int error;

	spin_lock(&inode->m.tree_lock);
	error = inode->m.error;
	spin_unlock(&inode->m.tree_lock);
	return error;
}

void outage_note_success(struct inode *inode)
{
	struct wb *wb = inode->wb;

	if (likely(!atomic_load_explicit(&wb->all->failing, memory_order_relaxed)))
		return;
	spin_lock(&wb->list_lock);
	wb->last_success_ns = world_now();
	if (!error_of(inode))
		leave(inode);
	spin_unlock(&wb->list_lock);
}

void outage_end(struct inode *inode)
{
	spin_lock(&inode->wb->list_lock);
	leave(inode);
	spin_unlock(&inode->wb->list_lock);
}

/* With the list_lock held. */
static bool is_hopeless(const struct inode *inode)
{
	const struct vm_knobs *vm = &inode->wb->all->vm;
	u32 least = vm->retry_min_ms, most = vm->retry_max_ms;

	return !list_empty(&inode->failing) &&
	       (!least || inode->retry_pause_ns >= max_u64(least, most) * NSEC_PER_MSEC);
}

/* The error of a file beyond hope, on a device that took nothing since; 0. list_lock held. */
static int down_error(struct wb *wb)
{
	struct list_node *n;

	list_for_each (n, &wb->failing) {
		struct inode *inode = list_entry(n, struct inode, failing);

		if (is_hopeless(inode) && wb->last_success_ns < inode->failing_since_ns)
			return error_of(inode);
	}
	return 0;
}

static u64 owes(const struct policy *p, const struct ledger *l)
{
	return account_dirty(p, l) + account_writeback(p, l);
}

static u64 owed_to(struct wb *wb)
{
	const struct policy *p = &wb->all->policy;
	struct list_node *n, *next;
	u64 pages = 0;
	int down;

	spin_lock(&wb->list_lock);
	down = down_error(wb);
	list_for_each_safe (n, next, &wb->failing) {
		struct inode *inode = list_entry(n, struct inode, failing);

		if (error_of(inode))
			pages += owes(p, &inode->m.ledger);
		else
			leave(inode);
	}
	spin_unlock(&wb->list_lock);
	if (!down)
		return pages;
	pages = 0;
	for_each_wb(part, wb->all) /* the tenants' parts of the device, too */
		if (part->root == wb) pages += owes(p, &part->ledger);
	return pages;
}

u64 outage_pages(struct writeback *all)
{
	u64 now = world_jiffies(), pages = 0;

	if (likely(!atomic_load_explicit(&all->failing, memory_order_relaxed)))
		return 0;
	if (atomic_load(&all->owed_when) == now)
		return atomic_load(&all->owed);
	for (u32 i = 0; i < all->count; i++)
		pages += owed_to(all->wb[i]);
	atomic_store(&all->owed, pages);
	atomic_store(&all->owed_when, now);
	return pages;
}

u64 outage_pages_of(struct writeback *all, const struct tenant *t)
{
	const struct policy *p = &all->policy;
	u64 pages = 0;

	for (u32 i = 0; i < all->count; i++) {
		struct wb *wb = all->wb[i], *part = wb_of_tenant(wb, t->id);
		struct list_node *n;

		if (!part)
			continue;
		spin_lock(&wb->list_lock);
		if (down_error(wb)) {
			pages += owes(p, &part->ledger);
		} else {
			list_for_each (n, &wb->failing) {
				struct inode *inode = list_entry(n, struct inode, failing);

				if (atomic_load(&inode->home) == part)
					pages += owes(p, &inode->m.ledger);
			}
		}
		spin_unlock(&wb->list_lock);
	}
	return pages;
}

bool outage_concerns(struct inode *inode, int *hopeless)
{
	struct wb *wb = inode->wb;
	bool concerns;

	*hopeless = 0;
	if (likely(!atomic_load_explicit(&wb->all->failing, memory_order_relaxed)))
		return false;
	spin_lock(&wb->list_lock);
	*hopeless = down_error(wb);
	concerns = *hopeless || (!list_empty(&inode->failing) && error_of(inode));
	if (!*hopeless && is_hopeless(inode))
		*hopeless = error_of(inode);
	spin_unlock(&wb->list_lock);
	return concerns;
}

bool outage_fills_memory(struct cache *c)
{
	struct writeback *all = c->owner;
	bool hopeless = false;

	if (2 * outage_pages(all) <= cache_size(c))
		return false;
	for (u32 i = 0; i < all->count && !hopeless; i++) {
		struct wb *wb = all->wb[i];
		struct list_node *n;

		spin_lock(&wb->list_lock);
		list_for_each (n, &wb->failing)
			hopeless = hopeless || is_hopeless(list_entry(n, struct inode, failing));
		spin_unlock(&wb->list_lock);
	}
	return hopeless;
}
