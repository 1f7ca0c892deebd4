/* SPDX-License-Identifier: MIT */
/*
 * Buffered reads: folio by folio, each found (hit.c), or else brought in by readahead, made valid
 * where it is not, copied. Linux writeback reference, section 7, for what is read when.
 */
#include "cache/fill.h"
#include "file/hit.h"
#include <errno.h>

#define READ_BATCH 15 /* folios between two points where others get their turn */

static struct readahead_limits limits_of_read(const struct read *r)
{
	struct readahead_limits l = limits_for(r->file->inode);

	l.folio_flags = r->flags & FILE_IO_DONTCACHE ? FOLIO_DROP : 0;
	return l;
}

static void miss(struct read *r, u64 page)
{
	struct file *f = r->file;
	struct readahead_limits l = limits_of_read(r);

	mutex_lock(&f->ra_lock);
	readahead_miss(&f->inode->m, &f->ra, &l, page, pages_of(r->end) - page);
	mutex_unlock(&f->ra_lock);
}

static void passed_mark(struct read *r, struct folio *folio)
{
	struct file *f = r->file;
	struct readahead_limits l = limits_of_read(r);

	mutex_lock(&f->ra_lock);
	readahead_mark(&f->inode->m, &f->ra, &l, folio, pages_of(r->end) - folio->index);
	mutex_unlock(&f->ra_lock);
}

int read_single(struct mapping *m, u64 page, u32 folio_flags)
{
	struct fill fill;
	int rc;

	fill_init(&fill, m);
	rc = fill_folio(&fill, page, 0, folio_flags);
	fill_flush(&fill);
	return rc == -EEXIST ? 0 : rc;
}

/* The folio at a page, pinned; NULL and *error if it cannot be had. */
static struct folio *bring_in(struct read *r, u64 page, int *error)
{
	struct mapping *m = &r->file->inode->m;
	struct folio *f = mapping_find(m, page);

	*error = 0;
	if (r->flags & FILE_IO_NOWAIT) {
		*error = f ? 0 : -EAGAIN;
		return f;
	}
	if (!f) {
		r->missed = true;
		miss(r, page);
		f = mapping_find(m, page);
	}
	for (; !f && !*error; f = mapping_find(m, page))
		*error = read_single(m, page, limits_of_read(r).folio_flags);
	return f;
}

/* The blocks of the read that lie in the folio. */
static struct block_run wanted(const struct read *r, const struct folio *f)
{
	u32 bytes = r->file->inode->block_bytes;
	u64 first = r->position / bytes;
	u64 end = div_roundup(min_u64(r->end, folio_end(f) << PAGE_SHIFT), bytes);

	return (struct block_run){ first, (u32)(end - first) };
}

/* Whether the folio is the one at the read's position. With the folio locked. */
static bool is_at(const struct read *r, const struct folio *f)
{
	u64 page = r->position >> PAGE_SHIFT;

	return f->mapping == &r->file->inode->m && page >= f->index && page < folio_end(f);
}

/*
 * Makes what the read wants of the folio valid. -ESTALE: the folio is no longer the one at
 * this place, look again.
 */
static int make_valid(struct read *r, struct folio *f)
{
	struct inode *inode = r->file->inode;
	struct block_run want;
	u64 first, end;
	int rc = 0;

	if (r->flags & FILE_IO_NOWAIT)
		return -EAGAIN;
	folio_lock(f);
	if (!is_at(r, f)) {
		folio_unlock(f);
		return -ESTALE;
	}
	want = wanted(r, f);
	if (!folio_blocks_uptodate(f, want.first, want.count)) {
		/* the whole folio, as far as the file goes, while at it */
		first = ((u64)f->index << PAGE_SHIFT) / inode->block_bytes;
		end = div_roundup(min_u64(folio_end(f) << PAGE_SHIFT, size_now(inode)),
				  inode->block_bytes);
		end = max_u64(end, want.first + want.count);
		rc = folio_read(f, first, (u32)(end - first));
	}
	folio_unlock(f);
	return rc;
}

static bool uses(const struct read *r)
{
	return !atomic_load_explicit(&r->file->noreuse, memory_order_relaxed) &&
	       !(r->flags & FILE_IO_DONTCACHE);
}

/* n bytes of one folio have been copied. */
static void copied(struct read *r, u64 n)
{
	world_spend(COST_LOOKUP, 1);
	world_spend(COST_COPY, div_roundup(n, PAGE_SIZE));
	r->position += n;
}

/* Copies from a pinned folio if what is wanted of it is valid and does not change meanwhile. */
static bool copy_valid(struct read *r, struct folio *f, u64 n)
{
	struct buffers to = r->to;
	struct block_run want;
	u32 seq;

	if (!folio_look(f, &seq))
		return false;
	want = wanted(r, f);
	if (!mapping_blocks_uptodate(&r->file->inode->m, f, want.first, want.count))
		return false;
	buffers_fill(&to, folio_bytes(r->file->inode->m.cache, f, r->position), n);
	if (!folio_unchanged(f, seq))
		return false;
	r->to = to;
	return true;
}

/* Copies from a pinned folio that was just valid: 0, -ESTALE: look again, -EAGAIN. */
static int copy_out(struct read *r, struct folio *f)
{
	u64 n = min_u64(r->end, folio_end(f) << PAGE_SHIFT) - r->position;

	if (!copy_valid(r, f, n)) {
		struct block_run want;
		bool valid = false;

		if (!(r->flags & FILE_IO_NOWAIT))
			folio_lock(f);
		else if (!folio_trylock(f))
			return -EAGAIN;
		if (is_at(r, f)) {
			want = wanted(r, f);
			valid = folio_blocks_uptodate(f, want.first, want.count);
		}
		if (valid)
			buffers_fill(&r->to, folio_address(f, r->position), n);
		folio_unlock(f);
		if (!valid)
			return -ESTALE;
	}
	if (uses(r))
		folio_note_use(r->file->inode->m.cache, f, r->position >> PAGE_SHIFT, f->index);
	copied(r, n);
	return 0;
}

/* Ends the use of a folio; one that was only brought in for this and is read to its end goes. */
static void done_with(struct read *r, struct folio *f)
{
	struct cache *c = r->file->inode->m.cache;
	u64 size = size_now(r->file->inode);

	if (r->flags & FILE_IO_DONTCACHE &&
	    r->position >= min_u64(folio_end(f) << PAGE_SHIFT, size))
		mapping_drop(f);
	folio_unpin(c, f);
}

/* Copies what is valid and needs nothing else; false: nothing was. */
static bool read_hits(struct read *r)
{
	u32 folios = 0;

	if (r->flags & FILE_IO_DONTCACHE) /* it may have to drop what it has read */
		return false;
	while (folios < READ_BATCH && r->position < r->end) {
		u64 n = hit_read(r, uses(r));

		if (!n)
			break;
		copied(r, n);
		folios++;
	}
	world_breathe();
	return folios > 0;
}

struct folio *read_folio(struct read *r, int *error)
{
	struct mapping *m = &r->file->inode->m;
	struct block_run want;
	struct folio *f;

	r->missed = false;
	f = bring_in(r, r->position >> PAGE_SHIFT, error);
	if (!f)
		return NULL;
	/* who must not wait for memory leaves the mark to the next one that may */
	if (atomic_load_explicit(&f->flags, memory_order_relaxed) & FOLIO_MARK &&
	    !(r->flags & FILE_IO_NOWAIT))
		passed_mark(r, f);
	if (folio_is_to_drop(f) && !(r->flags & FILE_IO_DONTCACHE))
		folio_keep(f);
	want = wanted(r, f);
	if (!mapping_blocks_uptodate(m, f, want.first, want.count)) {
		r->missed = true;
		*error = make_valid(r, f);
	}
	if (r->missed)
		atomic_fetch_add_explicit(&m->cache->read_misses,
					  div_roundup(want.count, 1u << m->block_shift),
					  memory_order_relaxed);
	if (!*error)
		return f;
	folio_unpin(m->cache, f);
	return NULL;
}

/* Reads one folio's worth. */
static int read_step(struct read *r)
{
	int rc;
	struct folio *f = read_folio(r, &rc);

	r->goes_on = false;
	if (f) {
		rc = copy_out(r, f);
		done_with(r, f);
	}
	world_breathe();
	return rc == -ESTALE ? 0 : rc;
}

/*
 * Notes where the read ended, for a miss right behind it. Readers who share an open file share
 * that word too, so it is left alone where no such miss is in sight; but not where each read is to
 * count as it does in Linux.
 */
void read_note_end(struct read *r)
{
	if (!r->goes_on || world_models_calls())
		atomic_store_explicit(&r->file->ra.previous_end, r->position, memory_order_relaxed);
}

static ssize_t read_cached(struct read *r, size_t length)
{
	struct inode *inode = r->file->inode;
	bool locks =
		inode_policy(inode)->write_lock == WRITE_LOCK_INODE && inode->wb->fs->readers_wait;
	u64 offset = r->position;
	int rc = 0;

	if (locks && r->flags & FILE_IO_NOWAIT) {
		if (!rwsem_trylock_shared(&inode->lock))
			return -EAGAIN;
	} else if (locks) {
		rwsem_lock_shared(&inode->lock);
	}
	r->end = min_u64(offset + length, size_now(inode));
	while (r->position < r->end && !rc)
		if (!read_hits(r))
			rc = read_step(r);
	if (r->position > offset)
		read_note_end(r);
	if (locks)
		rwsem_unlock_shared(&inode->lock);
	return r->position > offset ? (ssize_t)(r->position - offset) : rc;
}

static ssize_t read_into(struct file *f, const struct iovec *iov, unsigned count, size_t length,
			 u64 offset, unsigned flags)
{
	struct read r = {
		.file = f, .to.iov = iov, .position = offset, .flags = flags & ~FILE_IO_DSYNC
	};

	if (offset + length < offset)
		return -EINVAL;
	if (f->flags & FILE_NO_READ)
		return -EBADF;
	world_spend(COST_SYSCALL, 1);
	if (f->flags & FILE_DIRECT)
		return flags & FILE_IO_NOWAIT ? -EOPNOTSUPP
					      : direct_read(f, iov, count, length, offset);
	return read_cached(&r, length);
}

ssize_t read_slowly(struct file *f, void *buf, size_t length, u64 offset)
{
	struct iovec iov = { buf, length };

	return read_into(f, &iov, 1, length, offset, 0);
}

ssize_t file_preadv(struct file *f, const struct iovec *iov, unsigned count, u64 offset,
		    unsigned flags)
{
	ssize_t length = buffers_length(iov, count);

	if (length < 0 || flags & ~FILE_IO_ALL)
		return -EINVAL;
	return read_into(f, iov, count, (size_t)length, offset, flags);
}
