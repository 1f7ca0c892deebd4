/* SPDX-License-Identifier: MIT */
/*
 * DONTCACHE writes: their pages are marked (TAG_DROP while they are dirty), go when they have
 * landed, and so should be written soon. Who does that, and when, is the policy's choice:
 *
 *	inline	the writer, before he returns (file/write.c). Linux writeback reference, 8.3.
 *	kick	the flusher, as many pages as are dirty for DONTCACHE, from the files that
 *		have been dirty longest, whoever dirtied them. Reference 8.4: one bit asks for
 *		it, so that many writes ask once; it is taken back before the pages are
 *		counted, so that none is missed.
 *	own	the flusher, just these pages. See below.
 *
 * own: files with marked pages stand in a queue of their device's. When a MiB has come together,
 * or the first page of it is 20 ms old, the flusher goes round the queue, some MiB of a file at a
 * time, in file order from where it stopped last, so that random writes become one sweep. What is
 * dirty again while it is in flight is left to the next round, 20 ms later, and does not wait for
 * old age. The backlog, marked pages that are dirty, in flight, or about to be written by somebody
 * who has been let in, is bounded by what the device writes in 100 ms: a writer who would exceed
 * it waits in line before he begins, until enough has landed. So memory holds no more than that,
 * and the device has always something to do. Who overwrites what is marked and dirty adds nothing,
 * and passes: where many write the same file, they so stay together, and each page is written out
 * once for all of them. Only when nothing lands at all, for 200 ms, or it fails, those in line are
 * let go: then the limits on everything dirty hold them. While nobody reads the bound is a quarter
 * of that, and half of the bound is in flight: enough to keep a device busy, and little enough
 * that it lands evenly. Readers share the device with what is in flight, and a writer beside many
 * of them needs more.
 */
#include "writeback/slice.h"
#include "writeback/wb.h"

#define ENOUGH_PAGES (MIB_PAGES)
#define MIB_PAGES    256ull
#define SLICE_PAGES  (4 * MIB_PAGES)
#define AGE_NS       (20 * NSEC_PER_MSEC)
#define RATE_NS      (100 * NSEC_PER_MSEC)
#define STUCK_NS     (200 * NSEC_PER_MSEC)
#define BOUND_PER_S  10 /* the bound is a second's worth divided by this */
#define BOUND_MIN    (24 * MIB_PAGES)
#define FALL         8 /* it falls by what lands divided by this */
#define QUIET        4 /* so much less while nobody reads */

void dontcache_init(struct dontcache *d)
{
	list_init(&d->files);
	d->due_ns = WORLD_NEVER;
	mutex_init(&d->line, RANK_THROTTLE);
}

/* --- kick */

static void kick(struct wb *wb)
{
	if (!wb->dirty_inodes || atomic_exchange(&wb->dontcache.asked, 1))
		return;
	wb_wake(wb);
}

/* WB_DONTCACHE_DIRTY: marked dirty pages, in the unit in which the policy counts dirty ones. */
u64 dontcache_dirty(const struct policy *p, const struct ledger *l)
{
	return ledger_level(l, p->accounting == ACCOUNT_FOLIO ? LEVEL_FOLIO_DROP : LEVEL_DROP);
}

s64 dontcache_take_kick(struct wb *wb)
{
	if (!atomic_load_explicit(&wb->dontcache.asked, memory_order_relaxed))
		return 0;
	atomic_store(&wb->dontcache.asked, 0);
	return (s64)dontcache_dirty(&wb->all->policy, &wb->ledger);
}

/* --- own */

static u64 bound_by_rate(struct wb *wb)
{
	u64 bw = wb_avg_bandwidth(wb), pages, rate;

	/* the estimate takes seconds to learn of a fast device: until then, let it show more; the
	 * nearer it is the less, for a bound that falls at once stops everybody */
	rate = atomic_load_explicit(&wb->dontcache.rate, memory_order_relaxed);
	if (rate > bw)
		bw = min_u64(bw + 2 * (rate - bw), rate + rate / 2);
	pages = bw / BOUND_PER_S;
	if (!depth_reading(wb))
		pages /= QUIET;
	pages = max_u64(pages, BOUND_MIN);

	return min_u64(pages, cache_size(wb->all->cache) / 8);
}

u64 dontcache_bound(struct wb *wb)
{
	u64 bound = atomic_load_explicit(&wb->dontcache.bound, memory_order_relaxed);

	return bound ? min_u64(bound, cache_size(wb->all->cache) / 8) : bound_by_rate(wb);
}

/*
 * The bound goes up at once, and down by a part of what lands: if it fell at once, nobody would
 * be let in until so much had landed.
 */
static void note_bound(struct wb *wb, u32 landed)
{
	struct dontcache *d = &wb->dontcache;
	u64 to = bound_by_rate(wb), from = atomic_load_explicit(&d->bound, memory_order_relaxed);
	u64 step = landed / FALL;

	atomic_store_explicit(&d->bound, max_u64(to, from - min_u64(from, step)),
			      memory_order_relaxed);
}

u64 dontcache_in_flight_max(struct wb *wb)
{
	return max_u64(dontcache_bound(wb) * PAGE_SIZE / 2, 8 * (u64)DEPTH_IO_BYTES);
}

static u64 backlog(struct wb *wb)
{
	return ledger_level(&wb->ledger, LEVEL_DROP) +
	       atomic_load_explicit(&wb->dontcache.in_flight, memory_order_relaxed) +
	       atomic_load_explicit(&wb->dontcache.promised, memory_order_relaxed);
}

/*
 * False: it stands there already, or is going away. list_lock held. Between a look at known_drop
 * and the lock it may have been queued, taken and written: who has the lock looks again.
 */
static bool stand_in_queue(struct inode *inode)
{
	struct dontcache *d = &inode->wb->dontcache;

	if (inode->state & INODE_FREEING || !list_empty(&inode->drop_link))
		return false;
	list_add_tail(&d->files, &inode->drop_link);
	d->queued++;
	return true;
}

/* The inode has marked pages: it gets into the queue, and the flusher to know. */
static void enqueue(struct inode *inode)
{
	struct wb *wb = inode->wb;
	struct dontcache *d = &wb->dontcache;
	bool arm = false;

	if (atomic_load_explicit(&inode->known_drop, memory_order_relaxed))
		return;
	spin_lock(&wb->list_lock);
	if (stand_in_queue(inode) && d->due_ns == WORLD_NEVER) {
		arm = true;
		d->due_ns = world_now() + AGE_NS;
	}
	atomic_store_explicit(&inode->known_drop, 1, memory_order_relaxed);
	spin_unlock(&wb->list_lock);
	if (arm)
		wb_rearm(wb);
}

void dontcache_dequeue(struct inode *inode)
{
	if (list_empty(&inode->drop_link))
		return;
	list_del(&inode->drop_link);
	assert(inode->wb->dontcache.queued);
	inode->wb->dontcache.queued--;
}

void dontcache_missed(struct inode *inode)
{
	if (inode->wb->all->policy.dontcache == DONTCACHE_OWN)
		enqueue(inode);
}

/* Whether so many pages more may come. */
static bool has_room(struct wb *wb, u64 pages)
{
	u64 now = backlog(wb);

	return !now || now + pages <= dontcache_bound(wb);
}

/* Whether all these pages are in the backlog already. */
static bool all_owed(struct inode *inode, u64 first, u64 pages)
{
	struct index *ix = &inode->m.index;
	bool all = true;

	spin_lock(&inode->m.tree_lock);
	for (u64 at = first, end = first + pages; all && at < end;) {
		u64 n = min_u64(end - at, LEAF_PAGES - at % LEAF_PAGES);
		const struct leaf *leaf = index_leaf(ix, at);

		all = leaf &&
		      !(bits_mask((unsigned)(at % LEAF_PAGES), (unsigned)n) & ~leaf->tag[TAG_DROP]);
		at += n;
	}
	spin_unlock(&inode->m.tree_lock);
	return all;
}

/* In line: waits for room, until nothing lands any more, or what lands was refused and stays. */
static void wait_for_room(struct inode *inode, u64 first, u64 pages)
{
	struct wb *wb = inode->wb;
	struct dontcache *d = &wb->dontcache;

	while (!atomic_load(&d->stuck) && !atomic_load(&wb->all->failing)) {
		u32 seen = atomic_load(&d->landed);

		if (has_room(wb, pages) || all_owed(inode, first, pages))
			break;
		world_park(&d->landed, seen, world_now() + STUCK_NS);
		if (atomic_load(&d->landed) == seen && atomic_load(&d->in_flight))
			atomic_store(&d->stuck, 1);
	}
}

u64 dontcache_enter(struct inode *inode, u64 first, u64 pages)
{
	struct wb *wb = inode->wb;
	struct dontcache *d = &wb->dontcache;

	if (wb->all->policy.dontcache != DONTCACHE_OWN)
		return 0;
	/* nobody passes those who wait, but who needs no room */
	if ((atomic_load_explicit(&d->waits, memory_order_relaxed) || !has_room(wb, pages)) &&
	    !all_owed(inode, first, pages)) {
		atomic_fetch_add(&d->waits, 1);
		mutex_lock(&d->line);
		wait_for_room(inode, first, pages);
		atomic_fetch_add(&d->promised, pages);
		mutex_unlock(&d->line);
		atomic_fetch_sub(&d->waits, 1);
	} else {
		atomic_fetch_add(&d->promised, pages);
	}
	return pages;
}

/* Counts what lands in each 100 ms: the rate, or a little less than the last if that is more. */
static void note_rate(struct dontcache *d, u32 pages)
{
	u64 now = world_now(), since = atomic_load_explicit(&d->since_ns, memory_order_relaxed);
	u64 rate, last = atomic_load_explicit(&d->rate, memory_order_relaxed);

	atomic_fetch_add_explicit(&d->counted, pages, memory_order_relaxed);
	if (now < since + RATE_NS || !atomic_compare_exchange_strong(&d->since_ns, &since, now))
		return;
	rate = atomic_exchange(&d->counted, 0) * NSEC_PER_SEC / (now - since);
	atomic_store_explicit(&d->rate, max_u64(rate, last - last / 8), memory_order_relaxed);
}

/* There may be room for who is first in line. */
static void note_room(struct wb *wb)
{
	struct dontcache *d = &wb->dontcache;

	if (!atomic_load(&d->waits))
		return;
	atomic_fetch_add(&d->landed, 1);
	world_unpark(&d->landed, 1);
}

void dontcache_launched(struct wb *wb, u32 pages)
{
	atomic_fetch_add_explicit(&wb->dontcache.in_flight, pages, memory_order_relaxed);
}

void dontcache_landed(struct wb *wb, u32 pages)
{
	struct dontcache *d = &wb->dontcache;

	atomic_fetch_sub(&d->in_flight, pages);
	note_rate(d, pages);
	note_bound(wb, pages);
	if (atomic_load_explicit(&d->stuck, memory_order_relaxed))
		atomic_store(&d->stuck, 0);
	note_room(wb);
}

void dontcache_wrote(struct inode *inode)
{
	struct wb *wb = inode->wb;

	if (wb->all->policy.dontcache == DONTCACHE_KICK) {
		kick(atomic_load_explicit(&inode->home, memory_order_acquire));
		return;
	}
	enqueue(inode);
	if (ledger_level(&wb->ledger, LEVEL_DROP) >= ENOUGH_PAGES &&
	    !atomic_exchange(&wb->dontcache.asked, 1))
		wb_wake(wb);
}

void dontcache_leave(struct wb *wb, u64 promised)
{
	if (!promised)
		return;
	atomic_fetch_sub(&wb->dontcache.promised, promised);
	note_room(wb);
}

/* One file's turn. list_lock held on entry and exit. Returns what was taken. */
static s64 write_file(struct wb *wb, struct inode *inode)
{
	struct pass pass = { .paced = true,
			     .drop = true,
			     .first = inode->drop_cursor,
			     .last = INDEX_MAX_PAGES - 1,
			     .budget = SLICE_PAGES };
	bool left;

	inode->state |= INODE_SYNC;
	dontcache_dequeue(inode);
	spin_unlock(&wb->list_lock);
	mapping_drop_missed(&inode->m);
	inode_write_pages(inode, &pass, wb->runs);
	if (pass.budget > 0 && inode->drop_cursor) {
		pass.last = inode->drop_cursor - 1;
		pass.first = 0;
		inode_write_pages(inode, &pass, wb->runs);
	}
	wb_count(wb);
	spin_lock(&wb->list_lock);
	inode->drop_cursor = pass.first;
	inode->state &= ~(u32)INODE_SYNC;
	wb_recheck(wb, inode);
	/* as there: who marks a page after the look sees this */
	atomic_store_explicit(&inode->known_drop, 0, memory_order_relaxed);
	spin_lock(&inode->m.tree_lock);
	left = index_tagged(&inode->m.index, TAG_DROP);
	spin_unlock(&inode->m.tree_lock);
	if (left) {
		atomic_store_explicit(&inode->known_drop, 1, memory_order_relaxed);
		stand_in_queue(inode);
	}
	atomic_fetch_add(&inode->sync_waiters, 1);
	world_unpark(&inode->sync_waiters, ~0u);
	return (s64)SLICE_PAGES - pass.budget;
}

static bool gives_way(const struct wb *wb)
{
	return list_empty(&wb->dontcache.files) || !list_empty(&wb->work) || wb->stopping;
}

/* Each file of the queue once. list_lock held on entry and exit. */
static s64 write_round(struct wb *wb)
{
	struct dontcache *d = &wb->dontcache;
	s64 wrote = 0;

	for (u32 left = d->queued; left && !gives_way(wb); left--) {
		struct inode *inode = list_entry(d->files.next, struct inode, drop_link);

		if (retry_is_pausing(inode)) {
			list_del(&inode->drop_link);
			list_add_tail(&d->files, &inode->drop_link);
		} else {
			wrote += write_file(wb, inode);
		}
	}
	return wrote;
}

s64 dontcache_write_own(struct wb *wb)
{
	struct dontcache *d = &wb->dontcache;
	s64 wrote = 0, budget, round;

	spin_lock(&wb->list_lock);
	atomic_store(&d->asked, 0);
	/* what fails at once, or is dirty again at once, comes another time */
	budget = (s64)ledger_level(&wb->ledger, LEVEL_DROP);
	do {
		round = write_round(wb);
		wrote += round;
	} while (round && wrote < budget && !gives_way(wb));
	d->due_ns = list_empty(&d->files) ? WORLD_NEVER : world_now() + AGE_NS;
	spin_unlock(&wb->list_lock);
	return wrote;
}
