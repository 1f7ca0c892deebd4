/* SPDX-License-Identifier: MIT */
/*
 * Buffered writes, in steps of at most one folio. Linux writeback reference, section 2:
 * each step first polls the throttle, which so charges for what earlier steps dirtied; then
 * finds or makes the folio, reads what must be read around an unaligned edge, copies, and
 * marks blocks dirty.
 *
 * Under write_lock=inode the file's lock is held for the whole call, the sleep included
 * (2.1). Under write_lock=folio sleeping happens outside all locks, and writers within the
 * file's size share the lock, so they only meet on the same folio.
 *
 * What a small write does to a large clean folio is the policy's choice (section 12).
 */
#include "cache/fill.h"
#include "file/inner.h"
#include <errno.h>
#include <string.h>

#define SMALL_WRITE_FACTOR 4 /* a folio at least so many times the write is large */

/* A write in progress; the step is [position, position + bytes). */
struct write {
	struct inode *inode;
	const char *from; /* NULL without contents */
	u64 position, end;
	u64 bytes;
};

/* The order a write of that many bytes makes a folio of (2.3). */
static unsigned order_of_write(const struct mapping *m, const struct policy *p, u64 bytes)
{
	unsigned order = bytes < 2 * PAGE_SIZE ? 0 : ilog2(bytes) - PAGE_SHIFT;

	return p->write_order == WRITE_ORDER_ZERO ? 0 : (unsigned)min_u64(order, m->max_order);
}

/* Makes the folio of a step, locked; NULL and *error. *error -EEXIST: somebody was faster. */
static struct folio *make_folio(struct write *w, u64 page, int *error)
{
	struct mapping *m = &w->inode->m;
	unsigned order = order_of_write(m, inode_policy(w->inode), w->bytes);
	struct folio *f = NULL;

	if (page & ((1ull << order) - 1))
		order = bits_first(page);
	for (;; order--) {
		f = folio_alloc(m->cache, order);
		*error = -ENOMEM;
		if (f) {
			folio_lock(f);
			*error = mapping_add(m, f, round_down(page, 1ull << order));
			if (!*error)
				break;
			put_locked(m->cache, f);
			f = NULL;
		}
		if (!order)
			return NULL;
	}
	world_spend(COST_ALLOC, 1);
	world_spend(COST_PAGE, folio_pages(f));
	return f;
}

/* Whether the policy treats this as a small write into a large clean folio. */
static bool is_small_write(const struct write *w, struct folio *f)
{
	return ((u64)folio_pages(f) << PAGE_SHIFT) >= SMALL_WRITE_FACTOR * w->bytes && f->order &&
	       !folio_is_dirty(f) && !folio_in_writeback(f) && folio_is_uptodate(f);
}

/*
 * What the policy does with a cached folio before it is written: the locked, pinned folio to go
 * on with, or NULL if it went and the step looks again.
 */
static struct folio *prepare_cached(struct write *w, struct folio *f)
{
	const struct policy *p = inode_policy(w->inode);
	struct mapping *m = &w->inode->m;

	if (p->small_write == SMALL_WRITE_KEEP || !is_small_write(w, f))
		return f;
	if (p->small_write == SMALL_WRITE_SPLIT) {
		if (folio_split(f, w->position >> PAGE_SHIFT, order_of_write(m, p, w->bytes),
				false))
			world_spend(COST_SPLIT, 1);
		return f;
	}
	if (!mapping_evict(f, 1))
		return f;
	world_spend(COST_EVICT, 1);
	spin_lock(&m->cache->lru_lock);
	m->cache->stats.folios_evicted++;
	spin_unlock(&m->cache->lru_lock);
	put_locked(m->cache, f);
	return NULL;
}

/* The folio of the step, locked and pinned. */
static struct folio *get_folio(struct write *w, int *error)
{
	struct mapping *m = &w->inode->m;
	u64 page = w->position >> PAGE_SHIFT;

	for (;;) {
		struct folio *f = mapping_find(m, page);

		*error = 0;
		if (!f) {
			f = make_folio(w, page, error);
			if (f || *error != -EEXIST)
				return f;
			continue;
		}
		folio_lock(f);
		if (f->mapping != m || page < f->index || page >= folio_end(f)) {
			put_locked(m->cache, f);
			continue;
		}
		f = prepare_cached(w, f);
		if (f)
			return f;
	}
}

/*
 * Makes valid what an unaligned edge of the step leaves of its blocks (2.4): each run of
 * invalid blocks with an edge strictly inside is read as a whole, or zeroed past the end of file.
 */
static int read_edges(struct write *w, struct folio *f)
{
	u32 size = w->inode->block_bytes;
	u64 first = w->position / size, end = div_roundup(w->position + w->bytes, size);
	u64 stop = w->position + w->bytes, eof_block = div_roundup(size_now(w->inode), size);

	if (w->position % size == 0 && stop % size == 0)
		return 0;
	while (first < end) {
		struct block_run run = folio_next_invalid(f, first, (u32)(end - first));
		u64 from = run.first * size, to = (run.first + run.count) * size;
		int rc = 0;

		if (!run.count)
			break;
		first = run.first + run.count;
		if (!(w->position > from && w->position < to) && !(stop > from && stop < to))
			continue;
		if (run.first >= eof_block) {
			folio_zero_bytes(f, from, to - from);
			folio_set_uptodate(f, run.first, run.count);
		} else {
			rc = folio_read(f, run.first, run.count);
		}
		if (rc)
			return rc;
	}
	return 0;
}

/* Sheds what the dirty folio pins beyond its debt, when the cache pins more than the limit. */
static void shed_if_pinned(struct write *w, struct folio *f)
{
	struct writeback *all = w->inode->wb->all;

	if (inode_policy(w->inode)->pinned != PINNED_SHED || !f->order ||
	    ledger_level(&all->cache->ledger, LEVEL_PINNED) <= writeback_limits(all).thresh)
		return;
	folio_shed(f, w->position >> PAGE_SHIFT);
	world_spend(COST_SPLIT, 1);
}

static void note_background(struct writeback *all)
{
	if (writeback_dirty(all) <= atomic_load_explicit(&all->bg_thresh, memory_order_relaxed))
		return;
	spin_lock(&all->lock);
	writeback_note(all, &all->stats.background, false);
	spin_unlock(&all->lock);
}

/* Enters what the step dirtied everywhere it counts. */
static void account(struct write *w, struct folio *f, struct dirtied d)
{
	struct writeback *all = w->inode->wb->all;

	throttle_charge(all, all->policy.accounting == ACCOUNT_DEBT ? d.pages : d.folio_pages);
	if (d.folio_pages) {
		world_spend(COST_DIRTY, 1);
		shed_if_pinned(w, f);
	}
	if (!d.pages)
		return;
	inode_mark_dirty(w->inode);
	if (all->stats.background.when_ns == WORLD_NEVER)
		note_background(all);
}

/* Writes one step's bytes into its folio. */
static int write_step(struct write *w)
{
	struct mapping *m = &w->inode->m;
	u32 size = w->inode->block_bytes;
	struct dirtied d;
	struct folio *f;
	void *to;
	int rc;

	f = get_folio(w, &rc);
	if (!f)
		return rc;
	w->bytes = min_u64(w->bytes, (folio_end(f) << PAGE_SHIFT) - w->position);
	rc = read_edges(w, f);
	if (rc) {
		put_locked(m->cache, f);
		return rc;
	}
	to = w->from ? folio_address(f, w->position) : NULL;
	if (to) {
		memcpy(to, w->from, w->bytes);
		w->from += w->bytes;
	}
	world_spend(COST_LOOKUP, 1);
	world_spend(COST_COPY, div_roundup(w->bytes, PAGE_SIZE));
	d = folio_set_dirty(f, w->position / size,
			    (u32)(div_roundup(w->position + w->bytes, size) - w->position / size));
	folio_mark_accessed(f);
	w->position += w->bytes;
	if (w->position > size_now(w->inode))
		atomic_store_explicit(&w->inode->size, w->position, memory_order_release);
	w->position -= w->bytes;
	account(w, f, d);
	w->position += w->bytes;
	put_locked(m->cache, f);
	return 0;
}

/* Bytes of the next step: to the end of the largest possible folio, or of the page (6.1). */
static u64 step_bytes(const struct write *w)
{
	const struct policy *p = inode_policy(w->inode);
	u64 chunk = (u64)PAGE_SIZE
		    << (p->write_order == WRITE_ORDER_ZERO ? 0 : w->inode->m.max_order);

	return min_u64(chunk - w->position % chunk, w->end - w->position);
}

/* The whole call under the inode's lock, sleeps included. */
static int write_locked(struct write *w)
{
	int rc = 0;

	rwsem_lock(&w->inode->lock);
	while (w->position < w->end && !rc) {
		w->bytes = step_bytes(w);
		rc = throttle_poll(w->inode->wb, false);
		if (!rc)
			rc = write_step(w);
		world_breathe();
	}
	rwsem_unlock(&w->inode->lock);
	return rc;
}

/* Step by step: sleeping outside the lock, sharing it unless the file grows. */
static int write_shared(struct write *w)
{
	struct rwsem *lock = &w->inode->lock;
	int rc = 0;

	while (w->position < w->end && !rc) {
		bool grows;

		w->bytes = step_bytes(w);
		rc = throttle_poll(w->inode->wb, false);
		if (rc)
			break;
		rwsem_lock_shared(lock);
		grows = w->position + w->bytes > size_now(w->inode);
		if (grows) {
			rwsem_unlock_shared(lock);
			rwsem_lock(lock);
		}
		rc = write_step(w);
		if (grows)
			rwsem_unlock(lock);
		else
			rwsem_unlock_shared(lock);
		world_breathe();
	}
	return rc;
}

ssize_t file_pwrite(struct file *f, const void *buf, size_t length, u64 offset)
{
	struct inode *inode = f->inode;
	struct write w = {
		.inode = inode, .from = buf, .position = offset, .end = offset + length
	};
	u64 done, size = size_now(inode);
	int rc;

	if (w.end < offset)
		return -EINVAL;
	if (w.end > FILE_MAX_BYTES)
		return -EFBIG;
	world_spend(COST_SYSCALL, 1);
	if (f->flags & FILE_DIRECT)
		return direct_write(f, buf, length, offset);
	if (inode_policy(inode)->write_lock == WRITE_LOCK_INODE)
		rc = write_locked(&w);
	else
		rc = write_shared(&w);
	done = w.position - offset;
	if (done)
		inode_changed(inode, w.position > size);
	if (done && f->flags & FILE_SYNC) {
		int error = inode_sync_range(inode, offset >> PAGE_SHIFT,
					     (w.position - 1) >> PAGE_SHIFT);
		int flushed = inode_make_safe(inode, true);

		if (error || flushed)
			return error ? error : flushed;
	}
	return done ? (ssize_t)done : rc;
}
