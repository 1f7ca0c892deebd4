/* SPDX-License-Identifier: MIT */
/*
 * Buffered reads: folio by folio, each found or brought in by readahead, made valid where
 * it is not, copied. Linux writeback reference, section 7, for what is read when.
 */
#include "cache/fill.h"
#include "file/inner.h"
#include <errno.h>
#include <string.h>

#define READ_BATCH 15 /* folios of one lookup */

/* A read in progress: [position, end) bytes are still to be copied. */
struct read {
	struct file *file;
	char *to; /* NULL without contents */
	u64 position, end;
};

static void miss(struct read *r, u64 page)
{
	struct file *f = r->file;
	struct readahead_limits l = limits_for(f->inode);

	mutex_lock(&f->ra_lock);
	readahead_miss(&f->inode->m, &f->ra, &l, page, pages_of(r->end) - page);
	mutex_unlock(&f->ra_lock);
}

static void passed_mark(struct read *r, struct folio *folio)
{
	struct file *f = r->file;
	struct readahead_limits l = limits_for(f->inode);

	mutex_lock(&f->ra_lock);
	readahead_mark(&f->inode->m, &f->ra, &l, folio, pages_of(r->end) - folio->index);
	mutex_unlock(&f->ra_lock);
}

/* Readahead could not bring the page in: a single page, whatever it takes. */
static int add_single(struct mapping *m, u64 page)
{
	struct fill fill;
	int rc;

	fill_init(&fill, m);
	rc = fill_folio(&fill, page, 0, 0);
	fill_flush(&fill);
	return rc == -EEXIST ? 0 : rc;
}

/* The folio at a page, pinned; NULL and *error if it cannot be had. */
static struct folio *bring_in(struct read *r, u64 page, int *error)
{
	struct mapping *m = &r->file->inode->m;
	struct folio *f = mapping_find(m, page);

	if (!f) {
		miss(r, page);
		f = mapping_find(m, page);
	}
	for (*error = 0; !f && !*error; f = mapping_find(m, page))
		*error = add_single(m, page);
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

	folio_lock(f);
	if (f->mapping != &inode->m || r->position >> PAGE_SHIFT < f->index ||
	    r->position >> PAGE_SHIFT >= folio_end(f)) {
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

static void copy_out(struct read *r, struct folio *f)
{
	u64 n = min_u64(r->end, folio_end(f) << PAGE_SHIFT) - r->position;
	const void *from = r->to ? folio_address(f, r->position) : NULL;

	if (from) {
		memcpy(r->to, from, n);
		r->to += n;
	}
	world_spend(COST_LOOKUP, 1);
	world_spend(COST_COPY, div_roundup(n, PAGE_SIZE));
	r->position += n;
	if (!r->file->noreuse)
		folio_mark_accessed(f);
}

/* Copies what is valid and needs nothing else, many folios for one lookup; false: nothing was. */
static bool read_valid(struct read *r)
{
	struct mapping *m = &r->file->inode->m;
	struct folio *batch[READ_BATCH];
	u32 n = mapping_find_valid(m, r->position >> PAGE_SHIFT, pages_of(r->end), batch,
				   READ_BATCH);

	for (u32 i = 0; i < n; i++) {
		copy_out(r, batch[i]);
		folio_unpin(m->cache, batch[i]);
	}
	world_breathe();
	return n > 0;
}

/* Reads one folio's worth. */
static int read_step(struct read *r)
{
	struct cache *c = r->file->inode->m.cache;
	struct block_run want;
	struct folio *f;
	int rc;

	f = bring_in(r, r->position >> PAGE_SHIFT, &rc);
	if (!f)
		return rc;
	if (atomic_load_explicit(&f->flags, memory_order_relaxed) & FOLIO_MARK)
		passed_mark(r, f);
	want = wanted(r, f);
	if (!mapping_blocks_uptodate(&r->file->inode->m, f, want.first, want.count))
		rc = make_valid(r, f);
	if (!rc)
		copy_out(r, f);
	folio_unpin(c, f);
	world_breathe();
	return rc == -ESTALE ? 0 : rc;
}

ssize_t file_pread(struct file *f, void *buf, size_t length, u64 offset)
{
	struct inode *inode = f->inode;
	bool locks = inode_policy(inode)->write_lock == WRITE_LOCK_INODE &&
		     inode->wb->all->fs->readers_wait;
	struct read r = { .file = f, .to = buf, .position = offset };
	int rc = 0;

	if (offset + length < offset)
		return -EINVAL;
	world_spend(COST_SYSCALL, 1);
	if (f->flags & FILE_DIRECT)
		return direct_read(f, buf, length, offset);
	if (locks)
		rwsem_lock_shared(&inode->lock);
	r.end = min_u64(offset + length, size_now(inode));
	while (r.position < r.end && !rc)
		if (!read_valid(&r))
			rc = read_step(&r);
	if (r.position > offset) {
		mutex_lock(&f->ra_lock);
		f->ra.previous_end = r.position;
		mutex_unlock(&f->ra_lock);
	}
	if (locks)
		rwsem_unlock_shared(&inode->lock);
	return r.position > offset ? (ssize_t)(r.position - offset) : rc;
}
