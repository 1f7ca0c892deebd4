/* SPDX-License-Identifier: MIT */
/*
 * Direct I/O: what is dirty in the range is written first and what is clean is dropped, then
 * the device is asked. Offsets and lengths are multiples of the block size.
 */
#include "file/inner.h"
#include <errno.h>

#define DIRECT_MAX_BYTES (1u << 30) /* of one I/O: its length is a u32 */

/* One device I/O, and the wait for it. */
static int transfer(struct inode *inode, enum io_op op, void *buf, size_t length, u64 offset)
{
	struct iovec vec = { buf, length };
	struct io io = { .store = inode->m.store,
			 .offset_bytes = offset,
			 .length_bytes = (u32)length,
			 .op = op,
			 .vec = buf ? &vec : NULL,
			 .vec_count = buf != NULL };

	return device_submit_wait(inode->wb->device, &io);
}

static int aligned(const struct inode *inode, size_t length, u64 offset)
{
	return offset % inode->block_bytes || length % inode->block_bytes ? -EINVAL : 0;
}

static int clear_range(struct inode *inode, u64 offset, size_t length)
{
	u64 first = offset >> PAGE_SHIFT, last = (offset + length - 1) >> PAGE_SHIFT;
	int rc = inode->m.pages ? inode_sync_range(inode, first, last) : 0;

	return rc;
}

/*
 * Takes the range out of the cache, folio by folio, waiting for those in use. A folio that
 * must stay, because it is dirty elsewhere or somebody holds it, keeps its other blocks.
 */
static void drop_range(struct inode *inode, u64 offset, size_t length)
{
	struct mapping *m = &inode->m;
	u64 page = offset >> PAGE_SHIFT, end = pages_of(offset + length);
	u64 first_block = offset / inode->block_bytes;
	u64 end_block = (offset + length) / inode->block_bytes;
	struct folio *f;

	while (m->pages && (f = lock_folio_from(m, page, end))) {
		u64 first = max_u64(first_block, (u64)f->index << m->block_shift);
		u64 stop = min_u64(end_block, folio_end(f) << m->block_shift);

		folio_wait_writeback(f);
		page = folio_end(f);
		if (!mapping_evict(f, 1))
			folio_forget(f, first, (u32)(stop - first));
		put_locked(m->cache, f);
		if (page >= end)
			break;
	}
}

ssize_t direct_read(struct file *f, void *buf, size_t length, u64 offset)
{
	struct inode *inode = f->inode;
	u64 size = size_now(inode);
	int rc = aligned(inode, length, offset);

	if (rc || offset >= size || !length)
		return rc;
	length = min_u64(min_u64(length, size - offset), DIRECT_MAX_BYTES);
	rwsem_lock_shared(&inode->lock);
	rc = clear_range(inode, offset, length);
	if (!rc)
		rc = transfer(inode, IO_READ, buf, length, offset);
	rwsem_unlock_shared(&inode->lock);
	return rc ? rc : (ssize_t)length;
}

ssize_t direct_write(struct file *f, const void *buf, size_t length, u64 offset)
{
	struct inode *inode = f->inode;
	bool grows;
	int rc = aligned(inode, length, offset);

	if (rc || !length)
		return rc;
	length = min_u64(length, DIRECT_MAX_BYTES);
	rwsem_lock_shared(&inode->lock);
	grows = offset + length > size_now(inode);
	if (grows) {
		rwsem_unlock_shared(&inode->lock);
		rwsem_lock(&inode->lock);
	}
	atomic_fetch_add(&inode->direct_writes, 1);
	rc = clear_range(inode, offset, length);
	if (!rc) {
		drop_range(inode, offset, length);
		rc = transfer(inode, IO_WRITE, (void *)buf, length, offset);
		drop_range(inode, offset, length); /* what was read back in meanwhile */
	}
	atomic_fetch_sub(&inode->direct_writes, 1);
	if (!rc)
		inode_changed(inode, grows);
	if (!rc && f->flags & FILE_SYNC)
		rc = inode_make_safe(inode, true);
	if (!rc && offset + length > size_now(inode))
		atomic_store_explicit(&inode->size, offset + length, memory_order_release);
	if (grows)
		rwsem_unlock(&inode->lock);
	else
		rwsem_unlock_shared(&inode->lock);
	return rc ? rc : (ssize_t)length;
}
