// SPDX-License-Identifier: MIT
/*
 * foreign=targeted: who is throttled has his own pages written, from whatever file, and nothing
 * else. The cache knows whose each dirty page is (cache/owner.h). A tenant with dirty pages in an
 * inode has a *stake* in it, on a list of its wb; its flusher takes the stakes in turn, oldest
 * first, and makes passes over the inodes that take only its pages. What others have dirty there
 * stays: rewriting their hot pages would help nobody.
 *
 * Age and syncs go by inode as ever, on the device's own wb, where all inodes are: they write
 * everybody's pages. So does background write-out, but only of pages that are no tenant's.
 *
 * Whether a stake is worth a pass is told by one word: a task that has made a page dirty sets it,
 * after that; the flusher clears it before a pass. Either the pass finds the page, or the stake is
 * listed again. A stake stays with its inode until that ends.
 */
#include "base/alloc.h"
#include "writeback/slice.h"
#include "writeback/tenant.h"

struct stake {
	struct inode *inode; /* immutable, as are wb and next */
	struct wb *wb;
	struct stake *next;
	_Atomic u32 listed; /* on the list of its wb, or will be when the flusher puts it back */
	u64 cursor;         /* page where the last pass stopped; of the flusher */
	/* wb.list_lock: */
	struct list_node link; /* wb.stakes, or empty */
	u64 round;             /* the flusher's in which it was looked at */
	bool busy;             /* the flusher is at it */
};

/* The stake of a wb in an inode, made if there is none; NULL: no memory. */
static struct stake *stake_of(struct inode *inode, struct wb *wb)
{
	struct stake *first = atomic_load_explicit(&inode->stakes, memory_order_acquire), *s, *made;

	for (s = first; s; s = s->next)
		if (s->wb == wb)
			return s;
	made = alloc_zeroed(1, sizeof(*made));
	if (!made)
		return NULL;
	made->inode = inode;
	made->wb = wb;
	list_init(&made->link);
	do {
		for (s = first; s; s = s->next) {
			if (s->wb == wb) { /* somebody was faster */
				free(made);
				return s;
			}
		}
		made->next = first;
	} while (!atomic_compare_exchange_weak_explicit(
		&inode->stakes, &first, made, memory_order_release, memory_order_acquire));
	return made;
}

/* Puts it at the young end, unless it is there or the flusher, who is at it, will. */
static void list_stake(struct stake *s)
{
	struct wb *wb = s->wb;
	bool arm = false;

	spin_lock(&wb->list_lock);
	if (!wb->stopping) { /* else the wb's next tenant has to find it as not listed */
		atomic_store_explicit(&s->listed, 1, memory_order_relaxed);
		if (!s->busy && list_empty(&s->link)) {
			list_add_tail(&wb->stakes, &s->link);
			arm = wb_arm(wb);
		}
	}
	spin_unlock(&wb->list_lock);
	if (arm)
		wb_rearm(wb);
}

void stake_note(struct inode *inode)
{
	struct wb *wb = wb_of_task(inode->wb);
	struct stake *s;

	if (!wb->tenant)
		return;
	s = stake_of(inode, wb);
	if (s && !atomic_load_explicit(&s->listed, memory_order_relaxed))
		list_stake(s);
}

/* The oldest stake that was not looked at in this round, busy from now on; or NULL. */
static struct stake *take_stake(struct wb *wb, u64 round)
{
	struct stake *s = NULL;

	spin_lock(&wb->list_lock);
	if (!list_empty(&wb->stakes) && !wb->stopping && list_empty(&wb->work)) {
		s = list_entry(wb->stakes.next, struct stake, link);
		if (s->round == round) {
			s = NULL;
		} else {
			s->round = round;
			s->busy = true;
			list_del(&s->link);
			atomic_store(&s->listed, 0);
		}
	}
	spin_unlock(&wb->list_lock);
	return s;
}

static void put_stake(struct stake *s, bool again)
{
	struct inode *inode = s->inode;
	struct wb *wb = s->wb;

	spin_lock(&wb->list_lock);
	s->busy = false;
	if (wb->stopping) {
		atomic_store(&s->listed, 0);
	} else if (again || atomic_load(&s->listed)) {
		atomic_store(&s->listed, 1);
		list_add_tail(&wb->stakes, &s->link);
	}
	atomic_fetch_add(&inode->sync_waiters, 1);
	world_unpark(&inode->sync_waiters, ~0u);
	spin_unlock(&wb->list_lock);
}

static s64 slice_of(struct wb *wb)
{
	u64 limit;

	spin_lock(&wb->tenant->lock);
	limit = wb->tenant->hard.dirty_limit;
	spin_unlock(&wb->tenant->lock);
	return (s64)writeback_slice(wb_avg_bandwidth(wb), limit, INT64_MAX);
}

/* A pass over one inode, from where the last one stopped once round. Returns the pages taken. */
static s64 write_stake(struct stake *s)
{
	struct wb *wb = s->wb;
	s64 slice = slice_of(wb);
	struct pass pass = { .background = true,
			     .first = s->cursor,
			     .last = INDEX_MAX_PAGES - 1,
			     .budget = slice,
			     .wb = wb,
			     .only = true,
			     .tenant = wb->tenant->id };
	u64 start = s->cursor;
	bool all;

	if (retry_is_pausing(s->inode)) {
		put_stake(s, true);
		return 0;
	}
	inode_write_pages(s->inode, &pass, wb->runs);
	all = pass.budget > 0;
	if (all && start) {
		pass.first = 0;
		pass.last = start - 1;
		inode_write_pages(s->inode, &pass, wb->runs);
		all = pass.budget > 0;
	}
	s->cursor = all ? 0 : pass.stopped_at;
	put_stake(s, !all || pass.missed);
	return slice - pass.budget;
}

s64 stakes_write(struct wb *wb)
{
	s64 wrote = 0;

	while (wb_over_background(wb)) {
		u64 round = ++wb->stake_round;
		struct stake *s;
		s64 progress = 0;

		while ((s = take_stake(wb, round))) {
			progress += write_stake(s);
			world_breathe();
			if (progress && !wb_over_background(wb))
				break;
		}
		wrote += progress;
		if (!progress)
			break;
	}
	return wrote;
}

void stakes_drop(struct wb *wb, struct tenant_closing *c)
{
	bool more = true;

	while (more) {
		u64 began = world_now(), n = 0;

		spin_lock(&wb->list_lock);
		for (; n < TENANT_CLOSE_STEP && !list_empty(&wb->stakes); n++) {
			struct stake *s = list_entry(wb->stakes.next, struct stake, link);

			assert(!s->busy);
			list_del(&s->link);
			atomic_store(&s->listed, 0);
			s->cursor = 0;
		}
		world_spend(COST_LOOKUP, n);
		more = !list_empty(&wb->stakes);
		spin_unlock(&wb->list_lock);
		tenant_closing_step(c, n, began);
	}
}

void stakes_discard(struct inode *inode)
{
	struct stake *s = atomic_load(&inode->stakes), *next;

	for (; s; s = next) {
		next = s->next;
		free(s);
	}
}

void stakes_free(struct inode *inode)
{
	struct stake *s = atomic_load(&inode->stakes), *next;

	for (; s; s = next) {
		u32 seen = atomic_load(&inode->sync_waiters);
		bool busy;

		next = s;
		spin_lock(&s->wb->list_lock);
		busy = s->busy;
		if (!busy)
			list_del(&s->link);
		spin_unlock(&s->wb->list_lock);
		if (busy) {
			world_park(&inode->sync_waiters, seen, WORLD_NEVER);
			continue;
		}
		next = s->next;
		free(s);
	}
	atomic_store(&inode->stakes, NULL);
}
