/* SPDX-License-Identifier: MIT */
/*
 * One pass over one file: dirty folios in file order, their dirty runs joined into as
 * large I/Os as the file allows. Linux writeback reference, 6.5 and 6.6.
 *
 * A folio is taken under its lock: all its dirty blocks leave the dirty state and take
 * flight at once, then each run is appended to the I/O being built if it continues it, or
 * starts the next one. The folio is unlocked before its I/O is complete: it can be read,
 * and written (and so be dirty again) meanwhile.
 *
 * Memory for an I/O that is not to be had does not stop write-out: the run then goes by an
 * I/O on the stack, waited for.
 */
#include "base/alloc.h"
#include "cache/fill.h"
#include "cache/owner.h"
#include "cache/page_map.h"
#include "cache/state.h"
#include "writeback/outage.h"
#include "writeback/slice.h"
#include "writeback/tenant.h"
#include <errno.h>

#define IO_MAX_SEGMENTS 256  /* as a bio has: one a folio piece */
#define IO_MAX_FOLIOS   4096 /* IOEND_BATCH_SIZE */

struct write_io {
	struct io io;
	struct inode *inode;
	u64 first_block;
	u32 blocks, segments, folios;
	u32 drop_pages;     /* of dontcache=own */
	u32 paced_bytes;    /* of flush_depth=adaptive */
	struct iovec vec[]; /* [IO_MAX_SEGMENTS] in a cache with contents */
};

/* The pass at work: what is being built. */
struct builder {
	struct inode *inode;
	struct write_io *pending;
	bool background, sync, contents, drop;
	bool paced;     /* how much is in flight is for depth.c to say */
	u64 last_folio; /* index of the folio of the last run, to count folios */
};

#define LANDINGS_AWAITED (1u << 31) /* in inode.landings: somebody parks on it */

/*
 * Once its pages have landed nothing keeps the inode from being destroyed but the count of those
 * who still bring some down.
 */
static void write_landed(struct inode *inode, u64 first_block, u32 blocks, int error)
{
	u32 was;

	atomic_fetch_add_explicit(&inode->landings, 1, memory_order_relaxed);
	if (unlikely(error) && trace_on())
		trace_write_failed(inode->wb, inode, first_block * inode->block_bytes,
				   (u64)blocks * inode->block_bytes, error);
	if (mapping_end_writeback(&inode->m, first_block, blocks, error))
		dontcache_missed(inode);
	if (!error) {
		retry_note_success(inode);
		outage_note_success(inode);
	} else if (inode->wb->all->policy.errors == ERRORS_KEEP) {
		if (error == -EFBIG) /* the limit was lowered after the data was accepted */
			atomic_store(&inode->limit, store_limit(inode->m.store));
		inode_mark_dirty(inode); /* it may have left the lists as clean */
		retry_note_failure(inode);
		outage_note_failure(inode);
	}
	was = atomic_fetch_sub_explicit(&inode->landings, 1, memory_order_release);
	if (was == (LANDINGS_AWAITED | 1)) /* *inode may be gone: as in completion_done() */
		world_unpark(&inode->landings, ~0u);
}

void inode_wait_landings(struct inode *inode)
{
	u32 n = atomic_fetch_or(&inode->landings, LANDINGS_AWAITED) | LANDINGS_AWAITED;

	while (n & ~LANDINGS_AWAITED) {
		world_park_for(&inode->landings, n, WORLD_NEVER, "landing pages");
		n = atomic_load_explicit(&inode->landings, memory_order_acquire);
	}
}

static void write_end(struct io *io, int error)
{
	struct write_io *w = container_of(io, struct write_io, io);
	struct cache *c = w->inode->m.cache;
	struct wb *wb = w->inode->wb; /* the inode may go with its last page */

	write_landed(w->inode, w->first_block, w->blocks, error);
	if (w->drop_pages)
		dontcache_landed(wb, w->drop_pages);
	if (w->paced_bytes)
		depth_leave(wb, w->paced_bytes);
	free(w);
	cache_io_end(c);
}

static void submit_pending(struct builder *b)
{
	struct write_io *w = b->pending;
	struct store *store = b->inode->m.store;

	if (!w)
		return;
	b->pending = NULL;
	w->io.length_bytes = w->blocks * b->inode->block_bytes;
	w->io.vec = b->contents ? w->vec : NULL;
	w->io.vec_count = b->contents ? w->segments : 0;
	if (b->drop) {
		w->drop_pages = (u32)div_roundup(w->io.length_bytes, PAGE_SIZE);
		dontcache_launched(b->inode->wb, w->drop_pages);
	}
	if (b->paced) {
		w->paced_bytes = w->io.length_bytes;
		depth_enter(b->inode->wb, w->paced_bytes,
			    b->drop ? dontcache_in_flight_max(b->inode->wb) : ~0ull);
	}
	cache_io_begin(b->inode->m.cache);
	device_submit(store_device(store), &w->io);
}

/* Without memory for an I/O: the run by itself, now. */
static void write_run_waiting(struct builder *b, struct folio *f, struct block_run run)
{
	struct inode *inode = b->inode;
	u64 offset = run.first * inode->block_bytes;
	struct iovec vec = { folio_address(f, offset), (size_t)run.count * inode->block_bytes };
	struct io io = { .store = inode->m.store,
			 .offset_bytes = offset,
			 .length_bytes = run.count * inode->block_bytes,
			 .op = IO_WRITE,
			 .writeback = true,
			 .sync = b->sync,
			 .background = b->background,
			 .vec = b->contents ? &vec : NULL,
			 .vec_count = b->contents };

	write_landed(inode, run.first, run.count,
		     device_submit_wait(store_device(inode->m.store), &io));
}

static bool continues(const struct builder *b, const struct folio *f, struct block_run run)
{
	const struct write_io *w = b->pending;

	return w && w->first_block + w->blocks == run.first && w->segments < IO_MAX_SEGMENTS &&
	       (w->folios < IO_MAX_FOLIOS || b->last_folio == f->index) &&
	       !(b->paced && w->blocks * b->inode->block_bytes >= DEPTH_IO_BYTES);
}

static struct write_io *start_io(struct builder *b, struct block_run run)
{
	size_t room = b->contents ? IO_MAX_SEGMENTS * sizeof(struct iovec) : 0;
	struct write_io *w = alloc_bytes(sizeof(*w) + room);

	if (!w)
		return NULL;
	*w = (struct write_io){ .io = { .store = b->inode->m.store,
					.offset_bytes = run.first * b->inode->block_bytes,
					.op = IO_WRITE,
					.writeback = !b->paced, /* then wbt has no say */
					.background = b->background,
					.sync = b->sync,
					.end = write_end },
				.inode = b->inode,
				.first_block = run.first };
	return w;
}

static void add_run(struct builder *b, struct folio *f, struct block_run run)
{
	struct write_io *w;

	if (!continues(b, f, run)) {
		submit_pending(b);
		b->pending = start_io(b, run);
		if (!b->pending) {
			write_run_waiting(b, f, run);
			return;
		}
	}
	w = b->pending;
	if (!w->blocks || b->last_folio != f->index)
		w->folios++;
	b->last_folio = f->index;
	if (b->contents)
		w->vec[w->segments] =
			(struct iovec){ folio_address(f, run.first * b->inode->block_bytes),
					(size_t)run.count * b->inode->block_bytes };
	w->segments++;
	w->blocks += run.count;
}

static u64 pages_of_runs(const struct builder *b, const struct block_run *runs, u32 n)
{
	u64 blocks = 0;

	for (u32 i = 0; i < n; i++)
		blocks += runs[i].count;
	return div_roundup(blocks, 1ull << b->inode->m.block_shift);
}

/*
 * From here on stores through mappings fault. What may have been stored to through one is written
 * as a whole (3.1), but where pages are what counts.
 */
static void write_protect(struct builder *b, struct folio *f)
{
	struct mapping *m = &b->inode->m;
	u64 first = (u64)f->index << m->block_shift;
	u64 end = min_u64(folio_end(f) << m->block_shift,
			  div_roundup(atomic_load(&b->inode->size), b->inode->block_bytes));

	if (mapping_write_protect(m, f->index, folio_end(f)) && end > first &&
	    b->inode->wb->all->policy.accounting != ACCOUNT_DEBT)
		folio_set_dirty(f, first, (u32)(end - first));
}

/* Sends what is dirty in one locked folio; returns what it takes of the budget. */
static u64 write_folio(struct builder *b, const struct pass *pass, struct folio *f,
		       struct block_run *runs)
{
	const struct policy *p = &b->inode->wb->all->policy;
	u64 taken;
	/* clean blocks go along, but not over what somebody is writing past the cache, nor into
	 * holes that nobody has asked room for, be they below or past the end of the file */
	bool whole = p->writeout == WRITEOUT_FOLIO && !atomic_load(&b->inode->direct_writes) &&
		     !atomic_load(&b->inode->sparse) &&
		     folio_end(f) <= div_roundup(atomic_load(&b->inode->size), PAGE_SIZE);
	u32 n;

	if (unlikely(b->inode->m.maps != NULL))
		write_protect(b, f);
	taken = p->accounting == ACCOUNT_DEBT ? folio_dirty_pages(f) : folio_pages(f);
	n = unlikely(pass->only) ? folio_begin_writeback_of(f, pass->tenant, runs)
				 : folio_begin_writeback(f, whole, runs);

	if (unlikely(pass->vote != NULL))
		vote_add(pass->vote, f->tenant, pages_of_runs(b, runs, n));
	if (unlikely(pass->only)) /* others' pages of the folio stay */
		taken = !n ? 0 : p->accounting == ACCOUNT_DEBT ? pages_of_runs(b, runs, n) : taken;
	/* in flight it cannot go away, be split or be truncated: no lock is needed from here on */
	folio_unlock(f);
	for (u32 i = 0; i < n; i++)
		add_run(b, f, runs[i]);
	return taken;
}

/* Takes the folio at a tagged page if it is still to be written; true if it was. */
static bool take_folio(struct builder *b, struct pass *pass, u64 page, struct block_run *runs,
		       u64 *next)
{
	struct mapping *m = &b->inode->m;
	struct folio *f = mapping_find(m, page);
	bool taken = false;

	*next = page + 1;
	if (!f)
		return false;
	if (!folio_trylock(f)) {
		submit_pending(b); /* nobody waits for I/O that was not sent */
		folio_lock(f);
	}
	if (f->mapping != m) {
		folio_unlock(f);
		folio_unpin(m->cache, f);
		return false;
	}
	*next = folio_end(f);
	/* the tag stays until its pages take flight: another sync may rely on it meanwhile */
	if (pass->sync && folio_in_writeback(f)) {
		submit_pending(b);
		folio_wait_writeback(f);
	}
	if (folio_is_dirty(f) && !folio_in_writeback(f)) {
		pass->budget -= (s64)write_folio(b, pass, f, runs);
		taken = true;
	} else {
		pass->missed = true;
		folio_unlock(f);
	}
	world_spend(COST_LOOKUP, 1);
	if (taken)
		mapping_drop(f); /* if it has landed by now, it found it held by us */
	folio_unpin(m->cache, f);
	return taken;
}

static void estimate_start(struct wb *wb, bool only)
{
	const struct policy *p = &wb->all->policy;
	/* a tenant's own flusher has pages in flight, not inodes */
	u64 in_flight = only && wb->tenant ? account_writeback(p, &wb->ledger) : 0;

	spin_lock(&wb->bw_lock);
	bandwidth_restart_if_idle(&wb->bw, world_jiffies(), account_dirtied(p, &wb->ledger),
				  account_written(p, &wb->ledger), in_flight + wb->inodes_in_flight,
				  world_hz());
	spin_unlock(&wb->bw_lock);
}

/* The next page the pass wants, at or after `from`. */
static bool next_page(struct mapping *m, const struct pass *pass, u64 from, u64 *page)
{
	enum index_tag tag = pass->sync || pass->tagged ? TAG_TOWRITE
			     : pass->drop               ? TAG_DROP
							: TAG_DIRTY;
	bool found;

	spin_lock(&m->tree_lock);
	found = index_next(&m->index, tag, from, page);
	spin_unlock(&m->tree_lock);
	return found;
}

/* The same for a pass that takes one tenant's pages only. */
static bool next_page_of(struct mapping *m, u32 tenant, u64 from, u64 last, u64 *page)
{
	struct tenants *ts = tenants_in(m->cache);
	bool found = false;

	spin_lock(&m->tree_lock);
	while (!found && index_next(&m->index, TAG_DIRTY, from, page) && *page <= last) {
		const struct leaf *leaf = index_leaf(&m->index, *page);
		u64 pages = owner_pages(ts, leaf,
					leaf->tag[TAG_DIRTY] & ~0ull << *page % LEAF_PAGES, tenant);

		found = pages != 0;
		if (found)
			*page = leaf_first(leaf) + bits_first(pages);
		from = leaf_first(leaf) + LEAF_PAGES;
	}
	spin_unlock(&m->tree_lock);
	return found;
}

/* What the pass wants from page *at to `last`; true if it stopped early, then *at is where. */
static bool write_range(struct builder *b, struct pass *pass, u64 *at, u64 last,
			struct block_run *runs)
{
	bool stopped = false;
	u64 page;

	while (!stopped &&
	       (unlikely(pass->only) ? next_page_of(&b->inode->m, pass->tenant, *at, last, &page)
				     : next_page(&b->inode->m, pass, *at, &page)) &&
	       page <= last) {
		if (take_folio(b, pass, page, runs, at))
			stopped = !pass->sync && !pass->tagged && pass->budget <= 0;
		wb_delayed_update(pass->wb); /* the flusher may be busy for longer */
		world_breathe();
	}
	return stopped;
}

void inode_write_pages(struct inode *inode, struct pass *pass, struct block_run *runs)
{
	struct mapping *m = &inode->m;
	struct builder b = { .inode = inode,
			     .background = pass->background,
			     .sync = pass->sync,
			     .drop = pass->drop,
			     .paced = pass->paced &&
				      inode->wb->all->policy.flush_depth == FLUSH_DEPTH_ADAPTIVE,
			     .contents = m->cache->config.contents };
	u64 start = pass->cyclic ? m->write_cursor : pass->first, at = start;
	u64 last = pass->cyclic ? INDEX_MAX_PAGES - 1 : pass->last;
	struct tenants *ts = tenants_in(m->cache);
	struct vote vote;
	bool stopped;

	if (!pass->sync && device_is_congested(inode->wb->device)) {
		pass->missed = true; /* what is left to write stays dirty, and the slice unused */
		pass->stopped_at = at;
		return;
	}
	if (!pass->wb)
		pass->wb = inode->home;
	if (unlikely(ts != NULL) && !ts->by_page) {
		vote_begin(&vote, inode);
		pass->vote = &vote;
	}
	estimate_start(pass->wb, pass->only);
	if (pass->sync || pass->tagged)
		mapping_tag_towrite(m, at, last);
	stopped = write_range(&b, pass, &at, last, runs);
	if (!stopped && pass->cyclic && start && inode->wb->fs->pass_wraps) {
		at = 0;
		stopped = write_range(&b, pass, &at, start - 1, runs);
	}
	submit_pending(&b);
	if (pass->cyclic)
		m->write_cursor = stopped ? at : 0;
	pass->stopped_at = at;
	if (pass->drop)
		pass->first = stopped ? at : 0;
	wb_update_bandwidth(pass->wb);
	if (unlikely(pass->vote != NULL))
		vote_end(pass->vote, inode);
	pass->vote = NULL;
}

static void wait_pages(struct inode *inode, u64 first, u64 last)
{
	struct mapping *m = &inode->m;

	while (first <= last) {
		struct folio *f = NULL;
		u64 page;
		bool found;

		spin_lock(&m->tree_lock);
		found = index_next(&m->index, TAG_WRITEBACK, first, &page) && page <= last;
		spin_unlock(&m->tree_lock);
		if (!found)
			return;
		f = mapping_find(m, page);
		first = page + 1;
		if (!f)
			continue;
		folio_wait_writeback(f);
		first = max_u64(first, folio_end(f));
		mapping_drop(f); /* when it landed we held it */
		folio_unpin(m->cache, f);
	}
}

void inode_wait_pages(struct inode *inode, u64 first, u64 last)
{
	atomic_fetch_add(&inode->awaited, 1);
	wait_pages(inode, first, last);
	atomic_fetch_sub(&inode->awaited, 1);
}

/*
 * The error of what failed in [first, last] and is not safe since, in a sync that began after
 * `failures`. Without a failure in its time it has made good whatever failed before, even if a
 * page with several blocks, dirty again, still has the tag.
 */
static int error_in_range(struct mapping *m, u64 first, u64 last, u64 failures)
{
	u64 page;
	int error = 0;

	spin_lock(&m->tree_lock);
	if (m->error && m->failures != failures &&
	    index_next(&m->index, TAG_FAILED, first, &page) && page <= last)
		error = m->error;
	spin_unlock(&m->tree_lock);
	return error;
}

int inode_sync_range(struct inode *inode, u64 first, u64 last)
{
	struct block_run *runs = alloc_bytes(FOLIO_MAX_RUNS * sizeof(*runs));
	struct pass pass = {
		.sync = true, .first = first, .last = last, .budget = SLICE_UNLIMITED
	};

	u64 failures;

	if (!runs)
		return -ENOMEM;
	spin_lock(&inode->m.tree_lock);
	failures = inode->m.failures;
	spin_unlock(&inode->m.tree_lock);
	inode_write_pages(inode, &pass, runs);
	inode_inherit(inode, false);
	free(runs);
	inode_wait_pages(inode, first, last);
	return error_in_range(&inode->m, first, last, failures);
}
