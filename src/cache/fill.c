/* SPDX-License-Identifier: MIT */
/*
 * Reads into the cache come in two kinds. A fill makes new folios for a stretch of the file,
 * locked, sends one I/O for all of them, and lets its completion make them valid and unlock
 * them: whoever needs a page of them waits for the folio's lock. folio_read() completes
 * a folio that is partly valid, in the caller's time.
 *
 * A fill that fails leaves its folios invalid; the first to need one reads it again and
 * learns of the error. Pages the store never held are zeros, without I/O.
 */
#include "cache/fill.h"
#include "base/alloc.h"
#include "cache/state.h"
#include <errno.h>
#include <string.h>

struct fill_io {
	struct io io;
	struct mapping *m;
	u64 first_page;
	u32 pages;
	struct iovec vec[];
};

void *folio_bytes(struct cache *c, const struct folio *f, u64 offset)
{
	struct arena *a = &c->arena;

	assert(offset >> PAGE_SHIFT >= f->index && offset >> PAGE_SHIFT < folio_end(f));
	if (!a->memory)
		return NULL;
	return (char *)arena_bytes(a, f->frame) + (offset - ((u64)f->index << PAGE_SHIFT));
}

void *folio_address(struct folio *f, u64 offset)
{
	return folio_bytes(f->mapping->cache, f, offset);
}

void folio_zero_bytes(struct folio *f, u64 offset, u64 length)
{
	if (!length || !f->mapping->cache->arena.memory)
		return;
	folio_change_begin(f);
	folio_zero_racy(folio_address(f, offset), length);
	folio_change_end(f);
}

void fill_init(struct fill *fill, struct mapping *m)
{
	*fill = (struct fill){ .m = m };
}

int fill_folio(struct fill *fill, u64 page, unsigned order, u32 flags)
{
	struct mapping *m = fill->m;
	struct folio *f;
	int rc;

	/* the stretch's folios are locked and cannot be reclaimed: no waiting while it has any */
	f = fill->pages || fill->nowait ? folio_alloc_nowait(m->cache, order)
					: folio_alloc(m->cache, order);
	if (!f)
		return -ENOMEM;
	folio_lock(f);
	atomic_fetch_or_explicit(&f->flags, flags, memory_order_relaxed);
	rc = mapping_add(m, f, page);
	if (rc) {
		folio_unlock(f);
		folio_unpin(m->cache, f);
		return rc;
	}
	folio_spend(m->cache, f);
	if (fill->pages && fill->first_page + fill->pages != page)
		fill_flush(fill);
	if (!fill->pages)
		fill->first_page = page;
	fill->pages += folio_pages(f);
	return 0;
}

/* The folio at a page of a stretch whose folios are locked and pinned by us. */
static struct folio *own_folio(struct mapping *m, u64 page)
{
	struct folio *f = mapping_find(m, page);

	assert(f && f->index == page && folio_is_locked(f));
	folio_unpin(m->cache, f); /* the stretch holds one already */
	return f;
}

#define CACHE_IOS_AWAITED (1u << 31) /* in cache.ios: somebody parks on it */

void cache_io_begin(struct cache *c)
{
	atomic_fetch_add_explicit(&c->ios, 1, memory_order_relaxed);
}

void cache_io_end(struct cache *c)
{
	u32 was = atomic_fetch_sub_explicit(&c->ios, 1, memory_order_release);

	assert(was & ~CACHE_IOS_AWAITED);
	if (was == (CACHE_IOS_AWAITED | 1)) /* *c may be gone: as in completion_done() */
		world_unpark(&c->ios, ~0u);
}

void cache_io_wait(struct cache *c)
{
	u32 ios = atomic_fetch_or(&c->ios, CACHE_IOS_AWAITED) | CACHE_IOS_AWAITED;

	while (ios & ~CACHE_IOS_AWAITED) {
		world_park_for(&c->ios, ios, WORLD_NEVER, "I/Os under way");
		ios = atomic_load_explicit(&c->ios, memory_order_acquire);
	}
}

static void fill_end(struct io *io, int error)
{
	struct fill_io *r = container_of(io, struct fill_io, io);
	struct cache *c = r->m->cache; /* the mapping may go as soon as its folios are unlocked */

	mapping_filled(r->m, r->first_page, r->pages, !error);
	free(r);
	cache_io_end(c);
}

static void zero_stretch(struct fill *fill)
{
	u64 page = fill->first_page, end = fill->first_page + fill->pages;

	while (fill->m->cache->config.contents && page < end) {
		struct folio *f = own_folio(fill->m, page);

		folio_zero_bytes(f, page << PAGE_SHIFT, (u64)folio_pages(f) << PAGE_SHIFT);
		page = folio_end(f);
	}
	mapping_filled(fill->m, fill->first_page, fill->pages, true);
}

static u32 stretch_vec(struct fill *fill, struct iovec *vec)
{
	u32 n = 0;

	for (u64 page = fill->first_page; page < fill->first_page + fill->pages; n++) {
		struct folio *f = own_folio(fill->m, page);

		vec[n] = (struct iovec){ folio_address(f, page << PAGE_SHIFT),
					 (size_t)folio_pages(f) << PAGE_SHIFT };
		page = folio_end(f);
	}
	return n;
}

void fill_flush(struct fill *fill)
{
	struct mapping *m = fill->m;
	bool contents = m->cache->arena.memory != NULL;
	struct fill_io *r;

	if (!fill->pages)
		return;
	if (!store_any_written(m->store, fill->first_page, fill->pages)) {
		zero_stretch(fill);
		fill->pages = 0;
		return;
	}
	r = alloc_bytes(sizeof(*r) + (contents ? fill->pages * sizeof(struct iovec) : 0));
	if (!r) { /* as if the read had failed: whoever needs a page reads it himself */
		mapping_filled(m, fill->first_page, fill->pages, false);
		fill->pages = 0;
		return;
	}
	*r = (struct fill_io){ .io = { .store = m->store,
				       .offset_bytes = fill->first_page << PAGE_SHIFT,
				       .length_bytes = fill->pages << PAGE_SHIFT,
				       .op = IO_READ,
				       .end = fill_end },
			       .m = m,
			       .first_page = fill->first_page,
			       .pages = fill->pages };
	if (contents) {
		r->io.vec = r->vec;
		r->io.vec_count = stretch_vec(fill, r->vec);
	}
	fill->pages = 0;
	cache_io_begin(m->cache);
	device_submit(store_device(m->store), &r->io);
}

static int read_run(struct folio *f, struct block_run run)
{
	struct mapping *m = f->mapping;
	u32 block_bytes = PAGE_SIZE >> m->block_shift;
	u64 offset = run.first * block_bytes, length = (u64)run.count * block_bytes;
	u64 first = offset >> PAGE_SHIFT, last = (offset + length - 1) >> PAGE_SHIFT;
	struct iovec vec = { folio_address(f, offset), length };
	struct io io = { .store = m->store,
			 .offset_bytes = offset,
			 .length_bytes = (u32)length,
			 .op = IO_READ,
			 .vec = vec.iov_base ? &vec : NULL,
			 .vec_count = 1 };

	if (store_any_written(m->store, first, last - first + 1))
		return device_submit_wait(store_device(m->store), &io);
	folio_zero_bytes(f, offset, length);
	return 0;
}

int folio_read(struct folio *f, u64 first_block, u32 count)
{
	assert(folio_is_locked(f));
	for (;;) {
		struct block_run run = folio_next_invalid(f, first_block, count);
		int rc;

		if (!run.count)
			return 0;
		rc = read_run(f, run);
		if (rc)
			return rc;
		folio_set_uptodate(f, run.first, run.count);
	}
}
