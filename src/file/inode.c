/* SPDX-License-Identifier: MIT */
/* Inodes: their making, their size, and what truncation leaves of the cache. */
#include "cache/fill.h"
#include "file/inner.h"
#include <errno.h>
#include <stdlib.h>

int inode_create(struct engine *e, unsigned device, u32 block_bytes, struct inode **out)
{
	struct inode *inode;
	struct store *store;
	struct wb *wb;
	int rc;

	if (device >= e->all.count || block_bytes < 512 || block_bytes > PAGE_SIZE ||
	    (block_bytes & (block_bytes - 1)))
		return -EINVAL;
	wb = e->all.wb[device];
	inode = calloc(1, sizeof(*inode));
	if (!inode)
		return -ENOMEM;
	inode->wb = wb;
	inode->block_bytes = block_bytes;
	rwsem_init(&inode->lock, RANK_INODE);
	list_init(&inode->link);
	list_init(&inode->all);
	rc = store_create(wb->device, e->cache.config.contents, &store);
	if (rc) {
		free(inode);
		return rc;
	}
	mapping_init(&inode->m, &e->cache, store, ilog2(PAGE_SIZE / block_bytes),
		     e->all.policy.max_order, &wb->ledger);
	inode->m.ops = &inode_mapping_ops;
	mutex_lock(&e->inodes_lock);
	list_add_tail(&e->inodes, &inode->all);
	mutex_unlock(&e->inodes_lock);
	*out = inode;
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

int inode_truncate(struct inode *inode, u64 size_bytes)
{
	u64 old;
	int rc = 0;

	if (size_bytes > FILE_MAX_BYTES)
		return -EFBIG;
	rwsem_lock(&inode->lock);
	old = size_now(inode);
	atomic_store_explicit(&inode->size, size_bytes, memory_order_release);
	/* again, for what readers that had seen the old size brought back in the first time */
	for (unsigned i = 0; i < 2 && size_bytes < old && !rc; i++) {
		truncate_pages(inode, size_bytes);
		rc = store_truncate(inode->m.store, size_bytes);
	}
	if (size_bytes > old)
		rc = store_truncate(inode->m.store, size_bytes);
	inode_changed(inode, size_bytes != old);
	rwsem_unlock(&inode->lock);
	return rc;
}

int inode_lay_out(struct inode *inode, u64 size_bytes)
{
	int rc;

	if (size_bytes > FILE_MAX_BYTES)
		return -EFBIG;
	rwsem_lock(&inode->lock);
	rc = store_lay_out(inode->m.store, size_bytes);
	if (!rc && size_bytes > size_now(inode))
		atomic_store_explicit(&inode->size, size_bytes, memory_order_release);
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
	list_del(&inode->all);
	mutex_unlock(&e->inodes_lock);
	mapping_finish(&inode->m);
	store_destroy(inode->m.store);
	free(inode);
}

u64 inode_size(struct inode *inode)
{
	return size_now(inode);
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
