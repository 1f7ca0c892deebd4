/* SPDX-License-Identifier: MIT */
/*
 * Buffered reads: folio by folio, each found (hit.c), or else brought in by readahead, made valid
 * where it is not, copied. Linux writeback reference, section 7, for what is read when.
 */
#include "cache/fill.h"
#include "file/hit.h"
#include <errno.h>
#include <string.h>

#define READ_BATCH 15 /* folios between two points where others get their turn */

/* A read in progress: [position, end) bytes are still to be copied. */
struct read {
	struct file *file;
	char *to; /* NULL without contents */
	u64 position, end;
	bool goes_on; /* who reads on behind it will find cached pages */
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

/* The bytes of the read that lie in the folio. */
static u64 bytes_in(const struct read *r, const struct folio *f)
{
	return min_u64(r->end, folio_end(f) << PAGE_SHIFT) - r->position;
}

/*
 * Makes what the read wants of the folio valid and copies it. -ESTALE: the folio is no longer
 * the one at this place, look again.
 */
static int copy_locked(struct read *r, struct folio *f)
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
	if (!rc && r->to && inode->m.cache->arena.memory)
		memcpy(r->to, folio_address(f, r->position), bytes_in(r, f));
	folio_unlock(f);
	return rc;
}

/* Copies from a pinned folio if what the read wants of it is valid and stays as it is. */
static bool copy_unlocked(struct read *r, struct folio *f)
{
	struct mapping *m = &r->file->inode->m;
	struct block_run want;
	u32 seq;

	if (!folio_look(f, &seq))
		return false;
	want = wanted(r, f);
	if (!mapping_blocks_uptodate(m, f, want.first, want.count))
		return false;
	if (r->to && m->cache->arena.memory)
		folio_copy_racy(r->to,
				(char *)arena_bytes(&m->cache->arena, f->frame) + r->position -
					((u64)f->index << PAGE_SHIFT),
				bytes_in(r, f));
	return folio_unchanged(f, seq);
}

/* n bytes of one folio have been copied. */
static void copied(struct read *r, u64 n)
{
	if (r->to)
		r->to += n;
	world_spend(COST_LOOKUP, 1);
	world_spend(COST_COPY, div_roundup(n, PAGE_SIZE));
	r->position += n;
}

/* Copies what is valid and needs nothing else; false: nothing was. */
static bool read_hits(struct read *r)
{
	u32 folios = 0;

	while (folios < READ_BATCH && r->position < r->end) {
		u64 n = hit_read(r->file->inode, r->to, r->position, r->end, !r->file->noreuse,
				 &r->goes_on);

		if (!n)
			break;
		copied(r, n);
		folios++;
	}
	world_breathe();
	return folios > 0;
}

/* Reads one folio's worth. */
static int read_step(struct read *r)
{
	struct cache *c = r->file->inode->m.cache;
	struct folio *f;
	int rc = 0;

	r->goes_on = false;
	f = bring_in(r, r->position >> PAGE_SHIFT, &rc);
	if (!f)
		return rc;
	if (atomic_load_explicit(&f->flags, memory_order_relaxed) & FOLIO_MARK)
		passed_mark(r, f);
	if (!copy_unlocked(r, f))
		rc = copy_locked(r, f);
	if (!rc) {
		copied(r, bytes_in(r, f));
		if (!r->file->noreuse)
			folio_mark_accessed(f);
	}
	folio_unpin(c, f);
	world_breathe();
	return rc == -ESTALE ? 0 : rc;
}

/*
 * Notes where the read ended, for a miss right behind it. Readers who share an open file share
 * that word too, so it is left alone where no such miss is in sight; but not in the simulated world,
 * where each read counts as it does in Linux.
 */
static void note_end(struct read *r)
{
	if (!r->goes_on || world_is_sim())
		atomic_store_explicit(&r->file->ra.previous_end, r->position, memory_order_relaxed);
}

ssize_t file_pread(struct file *f, void *buf, size_t length, u64 offset)
{
	struct inode *inode = f->inode;
	bool locks = inode_policy(inode)->write_lock == WRITE_LOCK_INODE;
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
		if (!read_hits(&r))
			rc = read_step(&r);
	if (r.position > offset)
		note_end(&r);
	if (locks)
		rwsem_unlock_shared(&inode->lock);
	return r.position > offset ? (ssize_t)(r.position - offset) : rc;
}
