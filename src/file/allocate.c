// SPDX-License-Identifier: MIT
/*
 * Space: allocating it, giving it back, zeroing. All under the inode's lock, held alone.
 *
 * A hole is punched in whole pages. First the store gives them back; if it refuses, what is cached
 * is as it was, dirty data too. Then the range leaves the cache, folio by folio: what is in flight
 * is waited for, what is dirty is cancelled, and a folio that reaches out of the range, or that
 * cannot go, is zeroed in place and is then as valid and clean as the hole under it. If any page of
 * the file took flight meanwhile it may have landed in the hole: then all is done once more, with
 * nothing left to write. Readers take no lock; what they bring in after the cache was cleared comes
 * from the hole. The parts of pages at the edges are written as zeros like any data.
 *
 * Zeroing a range is a hole with its space reserved again. A store that knows no holes writes
 * zeros.
 */
#include "cache/fill.h"
#include "file/inner.h"

/* Makes what the folio has of [first, end) blocks clean zeros, as the store will be. */
static void zero_in_place(struct inode *inode, struct folio *f, u64 first, u64 end)
{
	struct mapping *m = &inode->m;

	first = max_u64(first, (u64)f->index << m->block_shift);
	end = min_u64(end, folio_end(f) << m->block_shift);
	folio_zero_bytes(f, first * inode->block_bytes, (end - first) * inode->block_bytes);
	folio_cancel_dirty(f, first, (u32)(end - first));
	folio_set_uptodate(f, first, (u32)(end - first));
}

/* Makes the cache agree with a hole in [first, end) pages. */
static void clear_pages(struct inode *inode, u64 first, u64 end)
{
	struct mapping *m = &inode->m;
	u64 page = first;
	struct folio *f;

	while (page < end && (f = lock_folio_from(m, page, end))) {
		folio_wait_writeback(f);
		page = folio_end(f);
		if (f->index >= first && folio_end(f) <= end)
			mapping_remove(m, f);
		else
			zero_in_place(inode, f, first << m->block_shift, end << m->block_shift);
		put_locked(m->cache, f);
	}
}

/* Writes zeros as data, within one page and the size, if there is something to zero. */
static int zero_edge(struct inode *inode, u64 offset, u64 end)
{
	struct write w = { .inode = inode, .zeros = true, .position = offset, .end = end };
	int rc = 0;

	assert(offset >= end || offset >> PAGE_SHIFT == (end - 1) >> PAGE_SHIFT);
	if (offset < end && !inode_has_data(inode, offset >> PAGE_SHIFT))
		return 0;
	while (w.position < w.end && !rc) {
		w.bytes = w.end - w.position;
		rc = write_step(&w);
	}
	return rc;
}

/* Pages of the file that ever took flight. */
static u64 launched(const struct inode *inode)
{
	const struct ledger *l = &inode->m.ledger;

	return ledger_total(l, TOTAL_PAGES_WRITTEN) + ledger_level(l, LEVEL_IN_FLIGHT);
}

static int punch_pages(struct inode *inode, u64 first, u64 end)
{
	bool again = first < end;
	int rc = 0;

	for (unsigned i = 0; i < 2 && again && !rc; i++) {
		u64 before = launched(inode);

		inode_wait_pages(inode, first, end - 1);
		rc = store_punch(inode->m.store, first, end - first);
		if (!rc)
			clear_pages(inode, first, end);
		again = launched(inode) != before;
	}
	if (first < end) {
		inode_note_holes(inode);
		atomic_store(&inode->unflushed, true);
	}
	return rc;
}

/*
 * Data that was to make the store as long as the file may go from the cache, whatever fails after
 * that: so the store is told before.
 */
static int keep_length(struct inode *inode)
{
	u64 size = size_now(inode);

	return store_size(inode->m.store) < size ? store_truncate(inode->m.store, size) : 0;
}

/* What lies in the range below the size reads as zeros afterwards. */
static int punch(struct inode *inode, u64 offset, u64 end)
{
	u64 size = size_now(inode), first = pages_of(offset), stop = end >> PAGE_SHIFT;
	int rc;

	if (offset >= size)
		return 0;
	/* the page of the end of the file has nothing past it */
	stop = end >= size ? pages_of(size) : stop;
	end = min_u64(end, size);
	if (first > stop) /* within one page */
		return zero_edge(inode, offset, end);
	rc = keep_length(inode);
	if (rc)
		return rc;
	inode_promise_zeros(inode, first << PAGE_SHIFT, stop << PAGE_SHIFT);
	rc = punch_pages(inode, first, stop);
	if (!rc)
		rc = zero_edge(inode, offset, min_u64(first << PAGE_SHIFT, end));
	if (!rc && stop << PAGE_SHIFT < end)
		rc = zero_edge(inode, stop << PAGE_SHIFT, end);
	inode_promise_kept(inode);
	return rc;
}

/* Room for the range, in whole blocks; below the size only what is a hole needs any. */
static int make_room(struct inode *inode, u64 offset, u64 end)
{
	offset = round_down(offset, inode->block_bytes);
	end = round_up(end, inode->block_bytes);
	return store_reserve(inode->m.store, offset, end - offset);
}

static int allocate_locked(struct inode *inode, unsigned mode, u64 offset, u64 end)
{
	int rc = 0;

	if (mode & FILE_PUNCH_HOLE)
		return punch(inode, offset, end);
	if (mode & FILE_ZERO_RANGE)
		rc = punch(inode, offset, end);
	if (!rc)
		rc = make_room(inode, offset, end);
	if (!rc && end > size_now(inode)) {
		if (mode & FILE_KEEP_SIZE)
			store_keep_room(inode->m.store);
		else
			rc = inode_resize(inode, end);
	}
	return rc;
}

int file_fallocate(struct file *f, unsigned mode, u64 offset, u64 length)
{
	struct inode *inode = f->inode;
	u64 old;
	int rc;

	if (f->flags & FILE_NO_WRITE)
		return -EBADF;
	if (!length || offset + length < offset)
		return -EINVAL;
	if (mode & ~(unsigned)(FILE_KEEP_SIZE | FILE_PUNCH_HOLE | FILE_ZERO_RANGE) ||
	    (mode & FILE_PUNCH_HOLE && mode != (FILE_PUNCH_HOLE | FILE_KEEP_SIZE)))
		return -EOPNOTSUPP;
	if (offset + length > FILE_MAX_BYTES)
		return -EFBIG;
	world_spend(COST_SYSCALL, 1);
	rwsem_lock(&inode->lock);
	old = size_now(inode);
	rc = allocate_locked(inode, mode, offset, offset + length);
	inode_changed(inode, size_now(inode) > old);
	rwsem_unlock(&inode->lock);
	return rc;
}
