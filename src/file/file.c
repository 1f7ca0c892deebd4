/* SPDX-License-Identifier: MIT */
/* Open files: opening, closing, syncing, hints. */
#include "file/file.h"
#include "base/alloc.h"
#include "file/inner.h"
#include "writeback/journal.h"
#include <errno.h>

int file_open(struct inode *inode, unsigned flags, struct file **out)
{
	struct file *f;
	bool plain;

	if (flags & FILE_NO_READ && flags & FILE_NO_WRITE)
		return -EINVAL;
	f = alloc_zeroed(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->inode = inode;
	f->flags = flags;
	plain = !(flags & FILE_DIRECT) && inode->m.cache->config.contents &&
		!world_models_calls() && inode_policy(inode)->write_lock == WRITE_LOCK_FOLIO;
	f->plain = plain && !(flags & FILE_NO_READ);
	f->plain_write = plain && !(flags & (FILE_NO_WRITE | FILE_APPEND | FILE_SYNC)) &&
			 inode_policy(inode)->small_write == SMALL_WRITE_KEEP &&
			 !inode->wb->journal;
	atomic_init(&f->noreuse, false);
	mutex_init(&f->ra_lock, RANK_INVALIDATE);
	readahead_init(&f->ra, inode->wb->ra_pages);
	f->error_since = error_seq_sample(&inode->m.error_seq);
	atomic_fetch_add(&inode->opens, 1);
	*out = f;
	return 0;
}

void file_close(struct file *f)
{
	u32 before = atomic_fetch_sub(&f->inode->opens, 1);

	assert(before > 0);
	(void)before;
	free(f);
}

struct inode *file_inode(struct file *f)
{
	return f->inode;
}

int file_truncate(struct file *f, u64 size_bytes)
{
	return f->flags & FILE_NO_WRITE ? -EBADF : inode_truncate(f->inode, size_bytes);
}

/* The flush of an inode's device, or of the journal whose commit `owed` brings one along. */
static int flush(struct inode *inode, struct journal *j, u64 owed)
{
	struct io io = { .store = inode->m.store, .op = IO_FLUSH };
	int rc;

	atomic_store(&inode->unflushed, false); /* what lands from here on counts anew */
	rc = owed ? journal_commit(j, owed) : device_submit_wait(inode->wb->device, &io);
	if (rc)
		atomic_store(&inode->unflushed, true);
	return rc;
}

int inode_flush_device(struct inode *inode)
{
	return inode->wb->journal ? journal_sync(inode->wb->journal) : flush(inode, NULL, 0);
}

void inode_changed(struct inode *inode, bool grew)
{
	u64 tick;

	if (!inode->wb->journal)
		return;
	/* the clock for times goes by ticks: a second change within one changes nothing */
	tick = world_jiffies() + 1;
	if (!grew && inode->changed_tick == tick)
		return;
	inode->changed_tick = tick;
	journal_note(inode->wb->journal, inode, grew);
}

void inode_wrote(struct inode *inode, u64 end)
{
	bool further = false;

	/* space that was only allocated, or not even that, becomes data: metadata says so */
	if (inode->wb->journal && end > inode->written) {
		inode->written = end;
		further = true;
	}
	inode_changed(inode, further);
}

int inode_make_safe(struct inode *inode, bool data_only)
{
	struct journal *j = inode->wb->journal;

	inode_wait_cut(inode);
	return flush(inode, j, j ? journal_owed(j, inode, data_only) : 0);
}

int file_untold_error(struct file *f)
{
	int error;

	if (inode_policy(f->inode)->errors != ERRORS_LINUX)
		return 0;
	mutex_lock(&f->ra_lock);
	error = error_seq_tell(&f->inode->m.error_seq, &f->error_since);
	mutex_unlock(&f->ra_lock);
	return error;
}

/* What a failed write has left past the end would be the file's after a crash. */
static int clear_litter(struct inode *inode)
{
	int rc;

	if (likely(!atomic_load_explicit(&inode->littered, memory_order_relaxed)))
		return 0;
	rwsem_lock(&inode->lock);
	rc = inode_clear_litter(inode);
	rwsem_unlock(&inode->lock);
	return rc;
}

int file_fsync(struct file *f, bool data_only)
{
	int error, cleared, flushed, untold;

	world_spend(COST_SYSCALL, 1);
	cleared = clear_litter(f->inode);
	error = inode_sync_range(f->inode, 0, INDEX_MAX_PAGES - 1);
	flushed = inode_make_safe(f->inode, data_only);
	untold = file_untold_error(f);
	error = error ? error : flushed;
	error = error ? error : cleared;
	return error ? error : untold;
}

int file_sync_range(struct file *f, u64 offset, u64 length, unsigned flags)
{
	struct inode *inode = f->inode;
	u64 first = offset >> PAGE_SHIFT, last = INDEX_MAX_PAGES - 1;
	int rc;

	if (offset + length < offset ||
	    (flags & ~(unsigned)(FILE_WAIT_BEFORE | FILE_WRITE | FILE_WAIT_AFTER)))
		return -EINVAL;
	world_spend(COST_SYSCALL, 1);
	if (length)
		last = min_u64(last, pages_of(offset + length) - 1);
	if (flags & FILE_WAIT_BEFORE)
		inode_wait_pages(inode, first, last);
	if ((flags & FILE_WRITE) && (flags & FILE_WAIT_AFTER)) {
		rc = inode_sync_range(inode, first, last);
		return rc ? rc : file_untold_error(f);
	}
	rc = flags & FILE_WRITE ? inode_start_write(inode, first, last) : 0;
	if (rc)
		return rc;
	if (flags & FILE_WAIT_AFTER)
		inode_wait_pages(inode, first, last);
	return flags & (FILE_WAIT_BEFORE | FILE_WAIT_AFTER) ? file_untold_error(f) : 0;
}

/* Starts write-out of the range without waiting, then drops what is clean in it (7.6). */
static int dont_need(struct inode *inode, u64 offset, u64 length)
{
	u64 end = length ? offset + length : size_now(inode);
	u64 first = pages_of(offset), stop = length ? end >> PAGE_SHIFT : pages_of(end);
	int rc;

	if (!folio_get(inode->m.pages))
		return 0;
	rc = inode_start_write(inode, offset >> PAGE_SHIFT,
			       length ? pages_of(end) - 1 : INDEX_MAX_PAGES - 1);
	if (rc)
		return rc;
	/* a folio that reaches past the end of the file goes with it */
	inode_invalidate(inode, first, length && end < size_now(inode) ? stop : INDEX_MAX_PAGES);
	return 0;
}

static int will_need(struct file *f, u64 offset, u64 length)
{
	struct readahead_limits l = limits_for(f->inode);
	struct readahead ra;
	u64 first = offset >> PAGE_SHIFT;
	u64 end = length ? pages_of(offset + length) : l.eof_page;

	mutex_lock(&f->ra_lock);
	ra = f->ra;
	mutex_unlock(&f->ra_lock);
	l.nowait = true;
	if (end > first)
		readahead_force(&f->inode->m, &ra, &l, first, end - first);
	return 0;
}

int file_advise(struct file *f, u64 offset, u64 length, enum file_advice advice)
{
	u32 ra_pages = f->inode->wb->ra_pages;

	if (offset + length < offset)
		return -EINVAL;
	switch (advice) {
	case FILE_ADV_DONTNEED:
		return dont_need(f->inode, offset, length);
	case FILE_ADV_WILLNEED:
		return will_need(f, offset, length);
	case FILE_ADV_NOREUSE:
		atomic_store_explicit(&f->noreuse, true, memory_order_relaxed);
		return 0;
	case FILE_ADV_NORMAL:
	case FILE_ADV_SEQUENTIAL:
	case FILE_ADV_RANDOM:
		mutex_lock(&f->ra_lock);
		f->ra.ra_pages = advice == FILE_ADV_SEQUENTIAL ? 2 * ra_pages : ra_pages;
		f->ra.random = advice == FILE_ADV_RANDOM;
		mutex_unlock(&f->ra_lock);
		if (advice == FILE_ADV_NORMAL)
			atomic_store_explicit(&f->noreuse, false, memory_order_relaxed);
		return 0;
	}
	return -EINVAL;
}
