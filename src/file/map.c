/* SPDX-License-Identifier: MIT */
/*
 * Mapped files. What a process loads from or stores to a page that its tables have costs a copy,
 * and nobody hears of it. Else it faults:
 *
 * A load maps what is cached of the 64 KiB around; or else its page, which readahead of a kind of
 * its own has brought in: as for a stream, around the page, or, after many misses, not at all.
 *
 * A store brings its page in likewise, though it may be about to be overwritten; makes the whole
 * folio dirty, which is charged if it was clean; maps the page, so that the next store finds it;
 * and then the throttle is polled, with no lock of the file's held.
 *
 * Write-out takes the pages it writes away from stores again, and writes all of a folio that may
 * have been stored to (page_map.c, writeout.c). Linux writeback reference, 3.1; what faults read
 * ahead is told in docs/linux-behaviour.md. Where pages are what counts (accounting=debt), a
 * store makes its page dirty and no other.
 */
#include "file/map.h"
#include "base/alloc.h"
#include "cache/fill.h"
#include "cache/page_map.h"
#include "file/inner.h"
#include <stdlib.h>
#include <string.h>

#define AROUND_PAGES   16   /* fault_around_bytes, 64 KiB */
#define MISSES_MANY    100  /* more than these in excess of hits: reading ahead does not pay */
#define MISSES_COUNTED 1000 /* no more are remembered */

struct file_map {
	struct file *file;
	struct page_map pages;
	enum file_advice advice;
	u32 misses;
};

int file_map(struct file *f, u64 offset, u64 length, struct file_map **out)
{
	struct file_map *m;
	int rc;

	if (!world_is_sim())
		return -EOPNOTSUPP;
	if (!length || offset + length < offset || offset + length > size_now(f->inode))
		return -EINVAL;
	m = alloc_zeroed(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->file = f;
	m->advice = FILE_ADV_NORMAL;
	rc = page_map_join(&m->pages, &f->inode->m, offset >> PAGE_SHIFT,
			   pages_of(offset + length));
	if (rc) {
		free(m);
		return rc;
	}
	*out = m;
	return 0;
}

void file_unmap(struct file_map *m)
{
	page_map_leave(&m->pages, &m->file->inode->m);
	free(m);
}

int file_map_advise(struct file_map *m, enum file_advice advice)
{
	if (advice != FILE_ADV_NORMAL && advice != FILE_ADV_SEQUENTIAL && advice != FILE_ADV_RANDOM)
		return -EINVAL;
	m->advice = advice;
	return 0;
}

/* The page is cached: once more right, and perhaps the place to read on from. */
static void note_hit(struct file_map *m, struct folio *folio)
{
	struct file *f = m->file;
	struct readahead_limits l = limits_for(f->inode);

	if (m->advice == FILE_ADV_RANDOM || !f->ra.ra_pages)
		return;
	if (m->misses)
		m->misses--;
	if (!(atomic_load_explicit(&folio->flags, memory_order_relaxed) & FOLIO_MARK))
		return;
	mutex_lock(&f->ra_lock);
	readahead_mark(&f->inode->m, &f->ra, &l, folio, f->ra.ra_pages);
	mutex_unlock(&f->ra_lock);
}

static void read_ahead(struct file_map *m, u64 page)
{
	struct file *f = m->file;
	struct readahead_limits l = limits_for(f->inode);

	if (m->advice == FILE_ADV_RANDOM || !f->ra.ra_pages)
		return;
	if (m->advice != FILE_ADV_SEQUENTIAL) {
		if (m->misses < MISSES_COUNTED)
			m->misses++;
		if (m->misses > MISSES_MANY)
			return;
	}
	mutex_lock(&f->ra_lock);
	if (m->advice == FILE_ADV_SEQUENTIAL)
		readahead_miss(&f->inode->m, &f->ra, &l, page, f->ra.ra_pages);
	else
		readahead_around(&f->inode->m, &f->ra, &l, page);
	mutex_unlock(&f->ra_lock);
}

/* The folio at a page, pinned, brought in if need be; NULL and *error. */
static struct folio *bring_in(struct file_map *m, u64 page, int *error)
{
	struct mapping *of = &m->file->inode->m;
	struct folio *f = mapping_find(of, page);

	world_spend(COST_LOOKUP, 1);
	*error = 0;
	if (f) {
		note_hit(m, f);
		return f;
	}
	atomic_fetch_add_explicit(&of->cache->read_misses, 1, memory_order_relaxed);
	read_ahead(m, page);
	while (!(f = mapping_find(of, page)) && !*error)
		*error = read_single(of, page, 0);
	return f;
}

/* The blocks of a folio, as far as the file goes; count 0: it lies past its end. */
static struct block_run blocks_of(struct inode *inode, const struct folio *f)
{
	u64 first = (u64)f->index << inode->m.block_shift;
	u64 end = min_u64(folio_end(f) << inode->m.block_shift,
			  div_roundup(size_now(inode), inode->block_bytes));

	return (struct block_run){ first, end > first ? (u32)(end - first) : 0 };
}

/* The same, locked and valid as a whole. *error -ESTALE: look again. */
static struct folio *bring_valid(struct file_map *m, u64 page, int *error)
{
	struct inode *inode = m->file->inode;
	struct folio *f = bring_in(m, page, error);
	struct block_run all;

	if (!f)
		return NULL;
	folio_lock(f);
	if (f->mapping != &inode->m || page < f->index || page >= folio_end(f)) {
		*error = -ESTALE;
	} else {
		all = blocks_of(inode, f);
		if (page >= pages_of(size_now(inode)))
			*error = -EFAULT;
		else if (!folio_blocks_uptodate(f, all.first, all.count))
			*error = folio_read(f, all.first, all.count);
	}
	if (!*error)
		return f;
	put_locked(inode->m.cache, f);
	return NULL;
}

/* Maps, for loads, what of the pages around is at hand; true if `page` is among them. */
static bool map_around(struct file_map *m, u64 page)
{
	struct mapping *of = &m->file->inode->m;
	u64 at = max_u64(round_down(page, AROUND_PAGES), m->pages.first);
	u64 end = min_u64(round_down(page, AROUND_PAGES) + AROUND_PAGES, m->pages.end);
	u32 mapped = 0;

	world_spend(COST_LOOKUP, 1);
	for (end = min_u64(end, pages_of(size_now(m->file->inode))); at < end; at++) {
		struct folio *f;

		if (page_map_has(&m->pages, at, false))
			continue;
		f = mapping_find(of, at);
		if (!f)
			continue;
		if (!folio_is_locked(f) && !(atomic_load(&f->flags) & FOLIO_MARK) &&
		    mapping_blocks_uptodate(of, f, at << of->block_shift, 1u << of->block_shift)) {
			page_map_enter(&m->pages, of, at, false);
			mapped++;
		}
		folio_unpin(of->cache, f);
	}
	m->misses -= (u32)min_u64(m->misses, mapped);
	return page_map_has(&m->pages, page, false);
}

static int fault_load(struct file_map *m, u64 page)
{
	struct mapping *of = &m->file->inode->m;
	struct folio *f;
	int rc;

	world_spend(COST_SYSCALL, 1);
	if (map_around(m, page))
		return 0;
	f = bring_valid(m, page, &rc);
	if (!f)
		return rc == -ESTALE ? 0 : rc;
	page_map_enter(&m->pages, of, page, false);
	folio_note_use(of->cache, f, page, f->index);
	put_locked(of->cache, f);
	return 0;
}

/* Makes dirty what a store to the page does. With its folio locked. */
static void make_dirty(struct file_map *m, struct folio *f, u64 page)
{
	struct inode *inode = m->file->inode;
	struct block_run all = blocks_of(inode, f);
	struct write w = { .inode = inode,
			   .position = all.first * inode->block_bytes,
			   .bytes = (u64)all.count * inode->block_bytes };

	if (inode_policy(inode)->accounting == ACCOUNT_DEBT) {
		w.position = page << PAGE_SHIFT;
		w.bytes = min_u64(PAGE_SIZE, size_now(inode) - w.position);
	}
	write_make_dirty(&w, f);
}

/* Makes room for a page that may lie in a hole. */
static int reserve(struct inode *inode, u64 page)
{
	u64 from = page << PAGE_SHIFT, end = min_u64(from + PAGE_SIZE, size_now(inode));
	int rc;

	if (!inode->sparse && end <= inode->reserved)
		return 0;
	rwsem_lock_shared(&inode->lock);
	rc = from < end ? inode_reserve(inode, from, end, false) : 0;
	rwsem_unlock_shared(&inode->lock);
	return rc;
}

static int fault_store(struct file_map *m, u64 page)
{
	struct inode *inode = m->file->inode;
	struct folio *f;
	int rc = reserve(inode, page);

	if (rc)
		return rc;
	world_spend(COST_SYSCALL, 1);
	f = bring_valid(m, page, &rc);
	if (!f)
		return rc == -ESTALE ? 0 : rc;
	make_dirty(m, f, page);
	page_map_enter(&m->pages, &inode->m, page, true);
	folio_note_use(inode->m.cache, f, page, f->index);
	put_locked(inode->m.cache, f);
	inode_wrote(inode, (page + 1) << PAGE_SHIFT);
	return throttle_poll(inode, false);
}

/* Faults until the page is mapped: what is mapped may be taken away while the throttle sleeps. */
static int touch(struct file_map *m, u64 page, bool store)
{
	int rc = 0;

	while (!rc && !page_map_has(&m->pages, page, store)) {
		rc = store ? fault_store(m, page) : fault_load(m, page);
		world_breathe();
	}
	return rc;
}

/* Copies what lies in one page that is mapped. */
static void copy(struct file_map *m, u64 at, void *to, const void *from, size_t bytes)
{
	struct mapping *of = &m->file->inode->m;
	struct folio *f;

	world_spend(COST_COPY, 1);
	if (!to && !from)
		return;
	f = mapping_find(of, at >> PAGE_SHIFT);
	assert(f);
	if (to)
		memcpy(to, folio_address(f, at), bytes);
	else
		memcpy(folio_address(f, at), from, bytes);
	folio_unpin(of->cache, f);
}

/* Loads, or stores, page by page. */
static ssize_t access_pages(struct file_map *m, char *to, const char *from, size_t length,
			    u64 offset, bool store)
{
	u64 end = offset + length;

	if (offset < m->pages.first << PAGE_SHIFT || end > m->pages.end << PAGE_SHIFT ||
	    end < offset || pages_of(end) > pages_of(size_now(m->file->inode)))
		return -EFAULT;
	for (u64 at = offset, bytes; at < end; at += bytes) {
		int rc = touch(m, at >> PAGE_SHIFT, store);

		if (rc)
			return rc;
		bytes = min_u64(PAGE_SIZE - at % PAGE_SIZE, end - at);
		copy(m, at, to ? to + (at - offset) : NULL, from ? from + (at - offset) : NULL,
		     bytes);
	}
	world_breathe();
	return (ssize_t)length;
}

ssize_t file_map_load(struct file_map *m, void *buf, size_t length, u64 offset)
{
	return access_pages(m, buf, NULL, length, offset, false);
}

ssize_t file_map_store(struct file_map *m, const void *buf, size_t length, u64 offset)
{
	return access_pages(m, NULL, buf, length, offset, true);
}

int file_map_sync(struct file_map *m, u64 offset, u64 length)
{
	struct inode *inode = m->file->inode;
	u64 first = length ? offset >> PAGE_SHIFT : m->pages.first;
	u64 end = length ? pages_of(offset + length) : m->pages.end;
	int error, flushed, untold;

	world_spend(COST_SYSCALL, 1);
	error = inode_sync_range(inode, first, end - 1);
	flushed = inode_make_safe(inode, true);
	untold = file_untold_error(m->file);
	error = error ? error : flushed;
	return error ? error : untold;
}
