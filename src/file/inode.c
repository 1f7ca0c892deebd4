/* SPDX-License-Identifier: MIT */
/* Inodes: their making, their size, and what truncation leaves of the cache. */
#include "base/alloc.h"
#include "cache/fill.h"
#include "file/inner.h"
#include "writeback/outage.h"
#include <errno.h>

#define RESERVE_AHEAD_BYTES (8ull << 20)

static bool may_create(const struct engine *e, unsigned device, u32 block_bytes)
{
	return device < e->all.count && block_bytes >= 512 && block_bytes <= PAGE_SIZE &&
	       !(block_bytes & (block_bytes - 1));
}

int inode_create_on(struct engine *e, unsigned device, u32 block_bytes, struct store *store,
		    struct inode **out)
{
	u64 size = store_size(store);
	struct inode *inode;
	struct wb *wb;

	if (!may_create(e, device, block_bytes) || store_device(store) != e->all.wb[device]->device)
		return -EINVAL;
	if (size > FILE_MAX_BYTES)
		return -EFBIG;
	wb = e->all.wb[device];
	inode = alloc_zeroed(1, sizeof(*inode));
	if (!inode)
		return -ENOMEM;
	inode->wb = wb;
	inode->home = wb;
	inode->block_bytes = block_bytes;
	inode->size = inode->reserved = size;
	inode->limit = STORE_SIZE_MAX;
	store_set_end(store, size);
	if (e->all.policy.file_queue == FILE_QUEUE_BARGING)
		rwsem_init_barging(&inode->lock, RANK_INODE);
	else
		rwsem_init(&inode->lock, RANK_INODE);
	list_init(&inode->link);
	list_init(&inode->drop_link);
	list_init(&inode->failing);
	list_init(&inode->all);
	mapping_init(&inode->m, &e->cache, store, ilog2(PAGE_SIZE / block_bytes),
		     (u32)min_u64(e->all.policy.max_order, device_folio_order(wb->device)),
		     &wb->ledger);
	inode->m.ops = &inode_mapping_ops;
	inode->m.device = wb->index;
	if (size)
		inode_note_holes(inode);
	mutex_lock(&e->inodes_lock);
	inode->ino = ++e->last_ino;
	list_add_tail(&e->inodes, &inode->all);
	mutex_unlock(&e->inodes_lock);
	*out = inode;
	return 0;
}

int inode_create(struct engine *e, unsigned device, u32 block_bytes, struct inode **out)
{
	struct store *store;
	int rc;

	if (!may_create(e, device, block_bytes))
		return -EINVAL;
	rc = store_create(e->all.wb[device]->device, e->cache.config.contents, &store);
	if (rc)
		return rc;
	rc = inode_create_on(e, device, block_bytes, store, out);
	if (rc)
		store_destroy(store);
	return rc;
}

void inode_set_size(struct inode *inode, u64 size_bytes)
{
	store_set_end(inode->m.store, size_bytes);
	inode->reserved = max_u64(inode->reserved, size_bytes);
	atomic_store_explicit(&inode->size, size_bytes, memory_order_release);
	inode_note_size(inode, size_bytes);
}

void inode_note_holes(struct inode *inode)
{
	if (store_may_be_full(inode->m.store))
		inode->sparse = true;
}

static bool may_lack_room(const struct inode *inode, u64 from, u64 end)
{
	from = round_down(from, inode->block_bytes);
	return !store_has_room(inode->m.store, from, round_up(end, inode->block_bytes) - from);
}

/* Room for what lies below `reserved`, where there may be holes. */
static int fill_hole(struct inode *inode, u64 from, u64 end)
{
	from = round_down(from, inode->block_bytes);
	return store_reserve(inode->m.store, from, round_up(end, inode->block_bytes) - from);
}

int inode_reserve(struct inode *inode, u64 from, u64 end, bool nowait)
{
	/* who skips pages makes a sparse file: what is ahead of him may be the next hole */
	u64 size = size_now(inode);
	u64 ahead = inode->sparse || from > round_up(size, PAGE_SIZE)
			    ? 0
			    : min_u64(size, RESERVE_AHEAD_BYTES);
	u64 start;
	/* not only below the size: a write may have failed after it skipped something, and a hole
	 * that was punched up to the size takes the rest of its page along */
	u64 below = min_u64(end, inode->reserved);
	bool in_hole = inode->sparse && from < below && may_lack_room(inode, from, below);
	int rc = 0;

	if (!in_hole && end <= inode->reserved)
		return 0;
	if (nowait && store_may_be_full(inode->m.store))
		return -EAGAIN;
	if (in_hole)
		rc = fill_hole(inode, from, below);
	if (rc || end <= inode->reserved)
		return rc;
	start = max_u64(inode->reserved, round_down(from, inode->block_bytes));
	end = round_up(end, inode->block_bytes);
	rc = store_reserve(inode->m.store, start, end + ahead - start);
	if ((rc == -ENOSPC || rc == -EFBIG) && ahead) {
		ahead = 0;
		rc = store_reserve(inode->m.store, start, end - start);
	}
	if (rc)
		return rc;
	if (from > size) /* what is skipped */
		inode_note_holes(inode);
	inode->reserved = end + ahead;
	return 0;
}

int inode_start_write(struct inode *inode, u64 first, u64 last)
{
	struct pass pass = { .first = first, .last = last, .budget = INT64_MAX };
	struct block_run *runs = alloc_bytes(FOLIO_MAX_RUNS * sizeof(*runs));

	if (!runs)
		return -ENOMEM;
	inode_write_pages(inode, &pass, runs);
	free(runs);
	return 0;
}

/* Cuts a locked folio that reaches past the new end of the file back to it. */
static void trim_folio(struct inode *inode, struct folio *f, u64 size)
{
	u64 end = folio_end(f) << PAGE_SHIFT, gone = pages_of(size);
	u64 first_block = div_roundup(size, inode->block_bytes);
	u64 end_block = end / inode->block_bytes;

	folio_zero_bytes(f, size, end - size);
	if (first_block < end_block)
		folio_cancel_dirty(f, first_block, (u32)(end_block - first_block));
	if (gone < folio_end(f)) /* so that the pages past the end can go */
		folio_split(f, gone - 1, 0, inode_policy(inode)->pinned == PINNED_SHED);
}

/* Drops what is cached past `size`. The inode is locked exclusively. */
static void truncate_pages(struct inode *inode, u64 size)
{
	struct mapping *m = &inode->m;
	u64 page = size >> PAGE_SHIFT, folios;
	struct folio *f;

	/* first, in one go, what nobody uses; then, one by one, what must be waited for or cut */
	mapping_evict_range(m, pages_of(size), INDEX_MAX_PAGES, &folios);
	while ((f = lock_folio_from(m, page, INDEX_MAX_PAGES))) {
		folio_wait_writeback(f);
		page = max_u64(page, folio_end(f));
		if ((u64)f->index << PAGE_SHIFT >= size) {
			mapping_remove(m, f);
		} else if (folio_end(f) << PAGE_SHIFT > size) {
			trim_folio(inode, f, size);
			page = max_u64(folio_end(f), pages_of(size));
		}
		put_locked(m->cache, f);
	}
}

int inode_clear_litter(struct inode *inode)
{
	int rc = 0;

	if (likely(!inode->littered))
		return 0;
	/* where that cannot be cut off nothing can be done about it */
	if (store_can_shorten(inode->m.store)) {
		rc = store_truncate(inode->m.store, size_now(inode));
		if (!rc) /* nor is there room past the end any more */
			inode->reserved = size_now(inode);
	}
	inode->littered = rc;
	return rc;
}

/* Makes the file longer; the inode is locked alone. On an error it is as it was. */
static int lengthen(struct inode *inode, u64 size_bytes)
{
	int rc = inode_clear_litter(inode);

	rc = rc ? rc : store_truncate(inode->m.store, size_bytes);
	if (rc)
		return rc;
	inode_note_holes(inode);
	inode_set_size(inode, size_bytes);
	return 0;
}

/*
 * Makes it shorter; on an error of the store it keeps its size. Pages go first, so that nothing is
 * in flight to what the store gives up. But a store that may refuse goes first, so that what is
 * dirty past the end is still there if it does. Both twice: for what readers that saw the old size
 * bring back, and for writes that were under way. The store itself sets where it ends: until it
 * has, writes go on past that.
 */
static int shorten(struct inode *inode, u64 size_bytes)
{
	struct store *store = inode->m.store;
	u64 old = size_now(inode);
	bool littered = false;
	int rc = 0;

	if (size_bytes < store_size(store) && !store_can_shorten(store))
		return -EOPNOTSUPP;
	inode_promise_size(inode, size_bytes);
	atomic_store_explicit(&inode->size, size_bytes, memory_order_release);
	if (store_may_refuse(store)) /* what is in flight needs its room */
		inode_wait_pages(inode, size_bytes >> PAGE_SHIFT, INDEX_MAX_PAGES - 1);
	for (unsigned i = 0; i < 2 && !rc; i++) {
		if (i || !store_may_refuse(store))
			truncate_pages(inode, size_bytes);
		rc = store_truncate(store, size_bytes);
		littered = i && rc;
		if (littered)
			rc = 0; /* it is short; what landed in between is cut off before it grows */
		if (!rc && store_may_refuse(store))
			truncate_pages(inode, size_bytes);
	}
	if (!rc)
		inode_note_size(inode, size_bytes);
	inode_promise_kept(inode);
	if (rc) {
		atomic_store_explicit(&inode->size, old, memory_order_release);
		return rc;
	}
	inode->littered = littered;
	inode->written = min_u64(inode->written, size_bytes);
	inode->reserved = size_bytes;
	if (!size_bytes)
		inode->sparse = false;
	return 0;
}

int inode_resize(struct inode *inode, u64 size_bytes)
{
	u64 old = size_now(inode);
	int rc;

	assert(rwsem_is_exclusive(&inode->lock));
	if (size_bytes == old && !store_keeps_room(inode->m.store))
		return 0;
	rc = size_bytes <= old ? shorten(inode, size_bytes) : lengthen(inode, size_bytes);
	/* not before: a flush meanwhile, which may have come too early, would take it away */
	atomic_store(&inode->unflushed, true);
	return rc;
}

int inode_truncate(struct inode *inode, u64 size_bytes)
{
	u64 old;
	int rc;

	if (size_bytes > FILE_MAX_BYTES)
		return -EFBIG;
	rwsem_lock(&inode->lock);
	old = size_now(inode);
	atomic_store(&inode->cutting, size_bytes < old);
	rc = inode_resize(inode, size_bytes);
	inode_changed(inode, size_bytes != old);
	atomic_store(&inode->cutting, false);
	rwsem_unlock(&inode->lock);
	return rc;
}

void inode_wait_cut(struct inode *inode)
{
	if (likely(!atomic_load(&inode->cutting)))
		return;
	rwsem_lock_shared(&inode->lock);
	rwsem_unlock_shared(&inode->lock);
}

int inode_lay_out(struct inode *inode, u64 size_bytes)
{
	int rc;

	if (size_bytes > FILE_MAX_BYTES)
		return -EFBIG;
	rwsem_lock(&inode->lock);
	rc = store_lay_out(inode->m.store, size_bytes);
	if (!rc && size_bytes > size_now(inode))
		inode_set_size(inode, size_bytes);
	if (!rc && size_bytes > inode->written)
		inode->written = size_bytes;
	rwsem_unlock(&inode->lock);
	return rc;
}

void inode_destroy(struct inode *inode)
{
	struct engine *e = container_of(inode->wb->all, struct engine, all);

	assert(!atomic_load(&inode->opens));
	inode_detach(inode);
	truncate_pages(inode, 0);
	/* only now: audits find what is cached by this list */
	mutex_lock(&e->inodes_lock);
	while (inode->walkers)
		cond_wait(&e->inodes_left, &e->inodes_lock);
	list_del(&inode->all);
	mutex_unlock(&e->inodes_lock);
	inode_wait_landings(inode);
	outage_end(inode);
	inode_leave_tenants(inode);
	inode_forget_survival(inode);
	mapping_finish(&inode->m);
	store_destroy(inode->m.store);
	free(inode);
}

u64 inode_size(struct inode *inode)
{
	return size_now(inode);
}

u64 inode_unwritten_bytes(struct inode *inode)
{
	const struct ledger *l = &inode->m.ledger;

	return (ledger_level(l, LEVEL_DEBT) + ledger_level(l, LEVEL_IN_FLIGHT)) << PAGE_SHIFT;
}

void inode_set_owner(struct inode *inode, void *owner)
{
	inode->owner = owner;
}

void *inode_owner(const struct inode *inode)
{
	return inode->owner;
}

struct store *inode_store(struct inode *inode)
{
	return inode->m.store;
}

struct folio *lock_folio_from(struct mapping *m, u64 page, u64 end)
{
	for (;;) {
		struct folio *f = mapping_find_from(m, page);

		if (!f)
			return NULL;
		if (f->index >= end) {
			folio_unpin(m->cache, f);
			return NULL;
		}
		folio_lock(f);
		if (f->mapping == m && folio_end(f) > page)
			return f;
		put_locked(m->cache, f); /* it went, or was split, while we waited */
	}
}

u64 inode_invalidate(struct inode *inode, u64 first, u64 end)
{
	u64 folios, pages = mapping_evict_range(&inode->m, first, end, &folios);

	world_spend(COST_EVICT, folios);
	return pages;
}
