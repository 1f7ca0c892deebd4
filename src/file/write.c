/* SPDX-License-Identifier: MIT */
/*
 * Buffered writes, in steps of at most one folio. Linux writeback reference, section 2:
 * each step first polls the throttle, which so charges for what earlier steps dirtied; then
 * finds or makes the folio, reads what must be read around an unaligned edge, copies, and
 * marks blocks dirty.
 *
 * Under write_lock=inode the file's lock is held for the whole call, the sleep included
 * (2.1). Under write_lock=folio sleeping happens outside all locks, and writers within the
 * file's size share the lock, or need none where the folio is there (hit.c), so they only meet on
 * the same folio.
 *
 * What a small write does to a large clean folio is the policy's choice (section 12).
 */
#include "cache/fill.h"
#include "cache/owner.h"
#include "file/hit.h"
#include <errno.h>

#define SMALL_WRITE_FACTOR 4 /* a folio at least so many times the write is large */

/* Whether writes make single pages: by the policy, or because they go through to a FUSE server. */
static bool makes_pages(const struct mapping *m, const struct policy *p)
{
	return p->write_order == WRITE_ORDER_ZERO || !device_caches_writes(store_device(m->store));
}

/* The order a write of that many bytes makes a folio of (2.3). */
static unsigned order_of_write(const struct mapping *m, const struct policy *p, u64 bytes)
{
	unsigned order = bytes < 2ull * PAGE_SIZE ? 0 : ilog2(bytes) - PAGE_SHIFT;

	return makes_pages(m, p) ? 0 : (unsigned)min_u64(order, m->max_order);
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
		f = w->flags & FILE_IO_NOWAIT ? folio_alloc_nowait(m->cache, order)
					      : folio_alloc(m->cache, order);
		*error = -ENOMEM;
		if (f) {
			folio_lock(f);
			if (w->flags & FILE_IO_DONTCACHE) /* before anybody can want it */
				atomic_fetch_or_explicit(&f->flags, FOLIO_DROP,
							 memory_order_relaxed);
			*error = mapping_add(m, f, round_down(page, 1ull << order));
			if (!*error)
				break;
			put_locked(m->cache, f);
			f = NULL;
		}
		if (!order) {
			if (*error == -ENOMEM && w->flags & FILE_IO_NOWAIT)
				*error = -EAGAIN;
			return NULL;
		}
	}
	folio_spend(m->cache, f);
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
		if (!(w->flags & FILE_IO_NOWAIT)) {
			folio_lock(f);
		} else if (!folio_trylock(f)) {
			folio_unpin(m->cache, f);
			*error = -EAGAIN;
			return NULL;
		}
		if (f->mapping != m || page < f->index || page >= folio_end(f)) {
			put_locked(m->cache, f);
			continue;
		}
		f = prepare_cached(w, f);
		if (!f)
			continue;
		if (folio_is_to_drop(f) && !(w->flags & FILE_IO_DONTCACHE))
			folio_keep(f);
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
		} else if (w->flags & FILE_IO_NOWAIT) {
			rc = -EAGAIN;
		} else {
			rc = folio_read(f, run.first, run.count);
		}
		if (rc)
			return rc;
	}
	return 0;
}

/* Sheds what the dirty folio pins beyond its debt, when more of the cache is pinned than may be. */
static void shed_if_pinned(struct write *w, struct folio *f)
{
	const struct policy *p = inode_policy(w->inode);
	struct cache *c = w->inode->m.cache;

	if (p->pinned != PINNED_SHED || !f->order ||
	    ledger_level(&c->ledger, LEVEL_PINNED) * 10 <= cache_size(c) * p->pinned_share ||
	    folio_dirty_pages(f) == folio_pages(f))
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
	if (unlikely(writeback_tenants(all)) && d.pages)
		tenant_note_dirtied(w->inode, f->tenant, d.folio_pages);
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

/*
 * Makes room on the device for the step before anything is accepted; cuts the step to what there
 * is room for, down to the end of its first page.
 */
static int reserve_step(struct write *w)
{
	if (unlikely(w->inode->littered) && w->position + w->bytes > size_now(w->inode)) {
		int rc = inode_clear_litter(w->inode);

		if (rc)
			return rc;
	}
	for (;;) {
		u64 end = w->position + w->bytes, less;
		int rc = inode_reserve(w->inode, w->position, end, w->flags & FILE_IO_NOWAIT);

		if (rc != -ENOSPC && rc != -EFBIG)
			return rc;
		less = max_u64(round_down(w->position + w->bytes / 2, PAGE_SIZE),
			       round_down(w->position, PAGE_SIZE) + PAGE_SIZE);
		if (less >= end)
			return rc;
		w->bytes = less - w->position;
	}
}

/* Puts the step's bytes into its locked folio. */
static void copy_in(struct write *w, struct folio *f)
{
	if (w->zeros) {
		folio_zero_bytes(f, w->position, w->bytes);
	} else {
		folio_change_begin(f);
		buffers_drain(&w->from, folio_address(f, w->position), w->bytes);
		folio_change_end(f);
	}
	world_spend(COST_LOOKUP, 1);
	world_spend(COST_BEGIN, 1);
	world_spend(COST_COPY, div_roundup(w->bytes, PAGE_SIZE));
}

/* Makes the step's blocks in its locked, pinned folio dirty. */
static struct dirtied set_dirty(const struct write *w, struct folio *f)
{
	u32 size = w->inode->block_bytes;
	u64 first = w->position / size, end = div_roundup(w->position + w->bytes, size);

	if (unlikely(tenants_in(f->mapping->cache)))
		inode_settle(w->inode);
	return folio_set_dirty(f, first, (u32)(end - first));
}

void write_make_dirty(struct write *w, struct folio *f)
{
	account(w, f, set_dirty(w, f));
}

/*
 * A step whose folio is cached and free, under that folio's lock alone; false: it is not, and
 * nothing was done.
 */
static bool write_hit(struct write *w)
{
	struct cache *c = w->inode->m.cache;
	bool dirty = false;
	struct folio *f;

	if (inode_policy(w->inode)->small_write != SMALL_WRITE_KEEP)
		return false;
	f = hit_lock(w->inode, w->position, w->bytes, &dirty);
	if (!f)
		return false;
	w->bytes = min_u64(w->bytes, (folio_end(f) << PAGE_SHIFT) - w->position);
	if (folio_is_to_drop(f) && !(w->flags & FILE_IO_DONTCACHE))
		folio_keep(f);
	copy_in(w, f);
	if (!(w->flags & FILE_IO_DONTCACHE))
		folio_note_use(f->mapping->cache, f, w->position >> PAGE_SHIFT, f->index);
	if (!dirty) {
		folio_pin(f);
		account(w, f, set_dirty(w, f));
		folio_unlock(f);
		folio_unpin(c, f);
	} else {
		folio_unlock(f);
	}
	w->position += w->bytes;
	return true;
}

/*
 * The way of most writes, and so as short as can be: what lies in one page of a plain file, all in
 * the cache; false: it does not, and nothing was done.
 */
static bool write_page(struct file *f, const void *from, size_t length, u64 offset)
{
	struct inode *inode = f->inode;
	bool dirty = false;
	struct folio *folio;

	if (unlikely(!f->plain_write || atomic_load_explicit(&f->tenant, memory_order_relaxed) ||
		     !from || !length || offset % PAGE_SIZE + length > PAGE_SIZE ||
		     offset + length > inode->limit))
		return false;
	hit_expect(inode, offset);
	if (unlikely(tenants_in(inode->m.cache))) /* it may be for another than the thread's */
		return false;
	if (!throttle_owes_nothing(inode->wb) && throttle_poll(inode, false))
		return false;
	folio = hit_lock(inode, offset, length, &dirty);
	if (unlikely(!folio))
		return false;
	folio_change_begin(folio);
	folio_copy_racy(hit_bytes(&inode->m, folio, offset), from, length);
	folio_change_end(folio);
	folio_note_use(inode->m.cache, folio, offset >> PAGE_SHIFT, folio->index);
	if (!dirty) {
		struct write w = { .inode = inode, .position = offset, .bytes = length };

		folio_pin(folio);
		account(&w, folio, set_dirty(&w, folio));
		folio_unlock(folio);
		folio_unpin(inode->m.cache, folio);
	} else {
		folio_unlock(folio);
	}
	return true;
}

int write_step(struct write *w)
{
	struct mapping *m = &w->inode->m;
	struct dirtied d;
	struct folio *f;
	int rc = reserve_step(w);

	if (rc)
		return rc;
	f = get_folio(w, &rc);
	if (!f)
		return rc;
	w->bytes = min_u64(w->bytes, (folio_end(f) << PAGE_SHIFT) - w->position);
	rc = read_edges(w, f);
	if (rc) {
		put_locked(m->cache, f);
		return rc;
	}
	copy_in(w, f);
	d = set_dirty(w, f);
	if (!(w->flags & FILE_IO_DONTCACHE))
		folio_note_use(f->mapping->cache, f, w->position >> PAGE_SHIFT, f->index);
	if (w->position + w->bytes > size_now(w->inode))
		inode_set_size(w->inode, w->position + w->bytes);
	account(w, f, d);
	w->position += w->bytes;
	put_locked(m->cache, f);
	return 0;
}

u64 write_step_bytes(const struct write *w)
{
	const struct mapping *m = &w->inode->m;
	u64 chunk = (u64)PAGE_SIZE << (makes_pages(m, inode_policy(w->inode)) ? 0 : m->max_order);
	u64 bytes = min_u64(chunk - w->position % chunk, w->end - w->position);

	if (unlikely(tenants_in(m->cache)))
		bytes = min_u64(bytes, tenant_step_bytes(w->inode->wb->all));
	return bytes;
}

/* The steps under the inode's lock, held alone; sleeps included. */
static int write_steps(struct write *w, bool polled)
{
	bool nowait = w->flags & FILE_IO_NOWAIT;
	int rc = 0;

	while (w->position < w->end && !rc) {
		w->bytes = write_step_bytes(w);
		rc = polled ? 0 : throttle_poll(w->inode, nowait);
		polled = false;
		if (!rc)
			rc = write_step(w);
		if (w->position < w->end)
			world_breathe();
	}
	return rc;
}

/* The whole call under the lock. */
static int write_locked(struct write *w)
{
	int rc = lock_inode(w->inode, w->flags);
	u64 before = world_ahead();

	if (rc)
		return rc;
	rc = write_steps(w, false);
	if (world_ahead() > before + WORLD_QUANTUM) /* who comes meanwhile must find it held */
		world_breathe();
	rwsem_unlock(&w->inode->lock);
	world_breathe(); /* what was spent before has no part in how long it is held */
	return rc;
}

/*
 * How much of a write lies below the limit on the size of files. Where the file has room already
 * nobody asks what the limit is, so a lowered one is known from the first write-out that fails.
 */
static size_t below_limit(struct inode *inode, u64 offset, size_t length)
{
	u64 limit = inode->limit;

	if (likely(offset + length <= limit))
		return length;
	limit = store_limit(inode->m.store); /* it may have been raised since */
	atomic_store(&inode->limit, limit);
	return offset < limit ? min_u64(length, limit - offset) : 0;
}

/*
 * An append chooses its place under the lock and keeps that to its end, so that it is in one
 * piece. It sleeps before, for what this task did last time; in between only if it is so long
 * that it owes again.
 */
static int write_append(struct write *w, size_t length)
{
	int rc = throttle_poll(w->inode, w->flags & FILE_IO_NOWAIT);

	rc = rc ? rc : lock_inode(w->inode, w->flags);
	if (rc)
		return rc;
	w->position = size_now(w->inode);
	w->end = w->position + length;
	if (w->end > FILE_MAX_BYTES || below_limit(w->inode, w->position, length) < length)
		rc = -EFBIG;
	else
		rc = write_steps(w, true);
	rwsem_unlock(&w->inode->lock);
	return rc;
}

/* Locks the inode for one step, alone if the file grows. 1: alone, 0: shared, or -EAGAIN. */
static int lock_for_step(struct write *w)
{
	struct rwsem *lock = &w->inode->lock;
	int rc;

	if (!(w->flags & FILE_IO_NOWAIT))
		rwsem_lock_shared(lock);
	else if (!rwsem_trylock_shared(lock))
		return -EAGAIN;
	if (w->position + w->bytes <= size_now(w->inode))
		return 0;
	rwsem_unlock_shared(lock);
	rc = lock_inode(w->inode, w->flags);
	return rc ? rc : 1;
}

/* Step by step: sleeping outside the lock, sharing it unless the file grows. */
static int write_shared(struct write *w)
{
	int rc = 0;

	while (w->position < w->end && !rc) {
		int alone;

		hit_expect(w->inode, w->position);
		w->bytes = write_step_bytes(w);
		rc = throttle_poll(w->inode, w->flags & FILE_IO_NOWAIT);
		if (rc)
			break;
		if (write_hit(w)) {
			world_breathe();
			continue;
		}
		alone = lock_for_step(w);
		if (alone < 0)
			return alone;
		rc = write_step(w);
		if (alone)
			rwsem_unlock(&w->inode->lock);
		else
			rwsem_unlock_shared(&w->inode->lock);
		world_breathe();
	}
	return rc;
}

/* What is asked of a write beyond being in the cache. 0 or an error. */
static int after_write(struct file *f, unsigned flags, u64 offset, u64 end)
{
	u64 first = offset >> PAGE_SHIFT, last = (end - 1) >> PAGE_SHIFT;
	int error = 0, flushed;

	if (f->flags & FILE_SYNC || flags & FILE_IO_DSYNC) {
		error = inode_sync_range(f->inode, first, last);
		flushed = inode_make_safe(f->inode, true);
		error = error ? error : flushed;
		error = error ? error : file_untold_error(f);
	} else if (!device_caches_writes(f->inode->wb->device)) {
		error = inode_sync_range(f->inode, first, last);
	} else if (!(flags & FILE_IO_DONTCACHE)) {
		return 0;
	} else if (inode_policy(f->inode)->dontcache != DONTCACHE_INLINE) {
		dontcache_wrote(f->inode);
	} else if (!(flags & FILE_IO_NOWAIT)) {
		inode_start_write(f->inode, first, last); /* without memory it goes in its time */
	}
	return error;
}

/* DONTCACHE: waits for room for the pages that it touches. */
static u64 promise(struct inode *inode, u64 offset, size_t length)
{
	u64 first = offset >> PAGE_SHIFT;

	return dontcache_enter(inode, first, pages_of(offset + length) - first);
}

/* A write of any kind; *offset says where, or is told. */
ssize_t write_for_thread(struct file *f, const struct iovec *iov, unsigned count, size_t length,
			 u64 *offset, unsigned flags, bool append)
{
	struct inode *inode = f->inode;
	struct write w = { .inode = inode, .from.iov = iov, .flags = flags };
	u64 done, promised = 0, size = size_now(inode);
	int rc;

	if (f->flags & FILE_NO_WRITE)
		return -EBADF;
	if (flags & FILE_IO_NOWAIT &&
	    (f->flags & (FILE_DIRECT | FILE_SYNC) || flags & FILE_IO_DSYNC))
		return -EOPNOTSUPP;
	append = append || f->flags & FILE_APPEND;
	if (!append && *offset + length < *offset)
		return -EINVAL;
	if (!append && *offset + length > FILE_MAX_BYTES)
		return -EFBIG;
	world_spend(COST_SYSCALL, 1);
	rc = device_ask(inode->m.store);
	if (rc)
		return rc;
	if (f->flags & FILE_DIRECT)
		return direct_write(f, iov, count, length, offset, append, flags);
	if (!append && unlikely(*offset + length > inode->limit)) {
		length = below_limit(inode, *offset, length);
		if (!length)
			return -EFBIG;
	}
	if ((flags & (FILE_IO_DONTCACHE | FILE_IO_NOWAIT)) == FILE_IO_DONTCACHE)
		promised = promise(inode, append ? size : *offset, length);
	w.position = *offset;
	w.end = *offset + length;
	if (!append)
		hit_expect_later(inode, *offset);
	if (append)
		rc = write_append(&w, length);
	else if (inode_policy(inode)->write_lock == WRITE_LOCK_INODE)
		rc = write_locked(&w);
	else
		rc = write_shared(&w);
	if (append)
		*offset = w.end - length;
	dontcache_leave(inode->wb, promised);
	done = w.position - *offset;
	if (done) {
		int error;

		inode_wrote(inode, w.position);
		error = after_write(f, flags, *offset, w.position);

		if (error)
			return error;
	}
	return done ? (ssize_t)done : rc;
}

static __attribute__((noinline)) ssize_t write_one(struct file *f, const void *buf, size_t length,
						   u64 offset)
{
	struct iovec iov = { (void *)buf, length };

	return write_from(f, &iov, 1, length, &offset, 0, false);
}

ssize_t file_pwrite(struct file *f, const void *buf, size_t length, u64 offset)
{
	if (likely(write_page(f, buf, length, offset)))
		return (ssize_t)length;
	return write_one(f, buf, length, offset);
}
