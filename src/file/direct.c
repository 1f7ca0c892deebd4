/* SPDX-License-Identifier: MIT */
/*
 * Direct I/O: what is dirty in the range is written first and what is clean is dropped, then
 * the device is asked. Offsets and lengths are multiples of the block size.
 */
#include "base/alloc.h"
#include "file/inner.h"
#include <errno.h>
#include <string.h>

#define DIRECT_MAX_BYTES (1u << 30) /* of one I/O: its length is a u32 */

/* One device I/O from or to the first `length` bytes of the buffers, and the wait for it. */
static int transfer(struct inode *inode, enum io_op op, const struct iovec *iov, unsigned count,
		    size_t length, u64 offset)
{
	struct io io = { .store = inode->m.store,
			 .offset_bytes = offset,
			 .length_bytes = (u32)length,
			 .op = op };
	struct iovec *cut = NULL;
	size_t sum = 0;
	int rc;

	while (!iov->iov_len) {
		iov++;
		count--;
	}
	if (iov->iov_base) {
		io.vec = iov;
		while (sum < length)
			sum += iov[io.vec_count++].iov_len;
		assert(io.vec_count <= count);
	}
	if (sum > length) { /* the last buffer is larger than what is left */
		cut = alloc_bytes(io.vec_count * sizeof(*cut));
		if (!cut)
			return -ENOMEM;
		memcpy(cut, iov, io.vec_count * sizeof(*cut));
		cut[io.vec_count - 1].iov_len -= sum - length;
		io.vec = cut;
	}
	rc = device_submit_wait(inode->wb->device, &io);
	free(cut);
	return rc;
}

static bool aligned(const struct inode *inode, const struct iovec *iov, unsigned count, u64 offset)
{
	u64 mask = inode->block_bytes - 1, bits = offset;

	for (unsigned i = 0; i < count; i++)
		bits |= iov[i].iov_len;
	return !(bits & mask);
}

static int clear_range(struct inode *inode, u64 offset, size_t length)
{
	u64 first = offset >> PAGE_SHIFT, last = (offset + length - 1) >> PAGE_SHIFT;
	int rc = folio_get(inode->m.pages) ? inode_sync_range(inode, first, last) : 0;

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

	while (folio_get(m->pages) && (f = lock_folio_from(m, page, end))) {
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

ssize_t direct_read(struct file *f, const struct iovec *iov, unsigned count, size_t length,
		    u64 offset)
{
	struct inode *inode = f->inode;
	u64 size = size_now(inode);
	int rc;

	if (!aligned(inode, iov, count, offset))
		return -EINVAL;
	if (offset >= size || !length)
		return 0;
	length = min_u64(min_u64(length, size - offset), DIRECT_MAX_BYTES);
	rwsem_lock_shared(&inode->lock);
	rc = clear_range(inode, offset, length);
	if (!rc) /* whole blocks: past the end there are zeros */
		rc = transfer(inode, IO_READ, iov, count, round_up(length, inode->block_bytes),
			      offset);
	rwsem_unlock_shared(&inode->lock);
	return rc ? rc : (ssize_t)length;
}

/* The transfer, with the range in agreement with the device before and after. */
static int write_past_cache(struct inode *inode, const struct iovec *iov, unsigned count,
			    size_t length, u64 offset)
{
	int rc;

	atomic_fetch_add(&inode->direct_writes, 1);
	rc = clear_range(inode, offset, length);
	if (!rc) {
		drop_range(inode, offset, length);
		rc = transfer(inode, IO_WRITE, iov, count, length, offset);
		drop_range(inode, offset, length); /* what was read back in meanwhile */
	}
	atomic_store(&inode->unflushed, true);
	atomic_fetch_sub(&inode->direct_writes, 1);
	return rc;
}

/* The same of a write that makes the file larger; the inode is locked alone. */
static int write_and_grow(struct inode *inode, const struct iovec *iov, unsigned count,
			  size_t length, u64 offset)
{
	u64 old = size_now(inode);
	int rc;

	rc = inode_clear_litter(inode);
	if (rc)
		return rc;
	store_set_end(inode->m.store, offset + length);
	rc = write_past_cache(inode, iov, count, length, offset);
	if (rc) {
		store_set_end(inode->m.store, old);
		inode->littered = true; /* some of it may be there */
		inode_clear_litter(inode);
		return rc;
	}
	if (offset > old)
		inode_note_holes(inode);
	inode_set_size(inode, offset + length);
	return 0;
}

ssize_t direct_write(struct file *f, const struct iovec *iov, unsigned count, size_t length,
		     u64 *offset, bool append, unsigned flags)
{
	struct inode *inode = f->inode;
	bool alone = append, grows;
	int rc;

	if (!aligned(inode, iov, count, append ? 0 : *offset))
		return -EINVAL;
	if (!length)
		return 0;
	length = min_u64(length, DIRECT_MAX_BYTES);
	if (!alone) {
		rwsem_lock_shared(&inode->lock);
		alone = *offset + length > size_now(inode);
		if (alone)
			rwsem_unlock_shared(&inode->lock);
	}
	if (alone)
		rwsem_lock(&inode->lock);
	if (append)
		*offset = size_now(inode);
	grows = *offset + length > size_now(inode);
	if (*offset % inode->block_bytes)
		rc = -EINVAL;
	else if (*offset + length > FILE_MAX_BYTES)
		rc = -EFBIG;
	else if (grows)
		rc = write_and_grow(inode, iov, count, length, *offset);
	else
		rc = write_past_cache(inode, iov, count, length, *offset);
	if (!rc)
		inode_wrote(inode, *offset + length);
	if (!rc && (f->flags & FILE_SYNC || flags & FILE_IO_DSYNC))
		rc = inode_make_safe(inode, true);
	if (alone)
		rwsem_unlock(&inode->lock);
	else
		rwsem_unlock_shared(&inode->lock);
	return rc ? rc : (ssize_t)length;
}
