/* SPDX-License-Identifier: MIT */
/*
 * Hits. What is cached and valid is read without a lock, without a pin and without a store to
 * memory that others use: down the index in a read section, then one look at the folio
 * (folio_look), copying, and another look. If nothing has changed in between, the bytes are those
 * of one moment, even if the folio was taken away and its memory used anew meanwhile. Single
 * blocks so are read and written atomically: a write changes a folio under its lock and between
 * two counts of its sequence.
 *
 * The section ends before the bytes are copied, for a copy may wait for the reader's own
 * memory. The arena and the folio table stay where they are while the cache lives.
 *
 * A write to what is cached locks the folio found in the same way, without a pin: a locked folio
 * that lies in a mapping cannot leave it. Neither the inode's lock nor the tree's is needed. Those
 * who hold the inode's lock exclusively (truncation, growing writes) keep such writers out all the
 * same: they set a new size first and pass every cached folio of their range under its lock
 * afterwards. A writer looks at both, the size and the inode's lock, with the folio locked: either it
 * sees what they did, or they come to the folio after it and find its bytes there.
 */
#include "file/hit.h"

#define TRIES 3 /* looks at a folio that is being changed */

/* Whether pages [page, end) are valid; `leaf` covers the first. In a read section. */
static bool pages_valid(struct mapping *m, const struct leaf *leaf, u64 page, u64 end)
{
	for (;;) {
		u32 first = page % LEAF_PAGES;
		u64 n = min_u64(LEAF_PAGES - first, end - page);

		if (~index_load(&leaf->uptodate) & bits_mask(first, (u32)n))
			return false;
		page += n;
		if (page == end)
			return true;
		leaf = index_find(&m->index, page);
		if (!leaf)
			return false;
	}
}

/* Whether every block of [first, end) is in that state. In a read section, or the folio locked. */
static bool blocks_are(struct mapping *m, enum block_state state, u64 first, u64 end)
{
	u32 shift = m->block_shift;

	while (first < end) {
		struct leaf *leaf = index_find(&m->index, first >> shift);
		u64 local = first % ((u64)LEAF_PAGES << shift);
		u64 n = min_u64(64 - local % 64, end - first);

		if (!leaf || ~index_load(&leaf_blocks(leaf, state, shift)[local / 64]) &
				     bits_mask(local % 64, (u32)n))
			return false;
		first += n;
	}
	return true;
}

/* A folio at rest, found at a page. */
struct found {
	const struct leaf *leaf;
	struct folio *folio;
	u32 seq;
	u32 frame;
	u64 first, end; /* its pages */
};

/* In a read section. */
static bool find(struct mapping *m, u64 page, struct found *at)
{
	u32 id;

	at->leaf = index_find(&m->index, page);
	if (!at->leaf)
		return false;
	id = index_load(&at->leaf->folio[page % LEAF_PAGES]);
	if (!id)
		return false;
	at->folio = &m->cache->folios[id];
	if (!folio_look(at->folio, &at->seq) || folio_get(at->folio->mapping) != m)
		return false;
	at->frame = folio_get(at->folio->frame);
	at->first = folio_get(at->folio->index);
	at->end = at->first + (1u << folio_get(at->folio->order));
	return page >= at->first && page < at->end;
}

/* Whether what a read wants of a folio can be had as it is. In a read section. */
static bool is_readable(struct inode *inode, const struct found *at, u64 position, u64 stop)
{
	struct mapping *m = &inode->m;
	u32 flags = atomic_load_explicit(&at->folio->flags, memory_order_relaxed);
	u64 page = position >> PAGE_SHIFT;

	if (flags & FOLIO_MARK)
		return false;
	/* there, time goes by folio: those valid only in part take the long way */
	if (world_is_sim())
		return pages_valid(m, index_find(&m->index, at->first), at->first, at->end);
	if (likely(pages_valid(m, at->leaf, page, pages_of(stop))))
		return true;
	return m->block_shift && blocks_are(m, BLOCK_UPTODATE, position / inode->block_bytes,
					    div_roundup(stop, inode->block_bytes));
}

/* Whether `next` and the page after it are in the leaf of `page`, and cached. */
static bool goes_on_from(const struct found *at, u64 page, u64 next)
{
	return next / LEAF_PAGES == page / LEAF_PAGES && next % LEAF_PAGES < LEAF_PAGES - 1 &&
	       (index_load(&at->leaf->tag[TAG_PRESENT]) >> next % LEAF_PAGES & 3) == 3;
}

u64 hit_read(struct read *r, bool used)
{
	struct inode *inode = r->file->inode;
	struct mapping *m = &inode->m;
	const char *memory = m->cache->arena.memory;
	u64 page = r->position >> PAGE_SHIFT;

	for (unsigned i = 0; i < TRIES; i++) {
		struct buffers to = r->to;
		struct found at;
		u64 stop = 0;
		bool ok;

		world_read_begin();
		ok = find(m, page, &at);
		if (ok) {
			stop = min_u64(r->end, at.end << PAGE_SHIFT);
			ok = is_readable(inode, &at, r->position, stop);
			r->goes_on = goes_on_from(&at, page, stop >> PAGE_SHIFT);
		}
		world_read_end();
		if (!ok)
			return 0;
		buffers_fill(&to,
			     memory ? memory + ((u64)at.frame << PAGE_SHIFT) + r->position -
					      (at.first << PAGE_SHIFT)
				    : NULL,
			     stop - r->position);
		if (likely(folio_unchanged(at.folio, at.seq))) {
			r->to = to;
			if (used)
				folio_note_use(m->cache, at.folio, page, at.first);
			return stop - r->position;
		}
	}
	return 0;
}

/* Whether no part of a block that the write leaves in part is invalid. */
static bool edges_valid(struct inode *inode, u64 position, u64 stop)
{
	u32 size = inode->block_bytes;
	u64 first = position / size, last = (stop - 1) / size;

	if (position % size && !blocks_are(&inode->m, BLOCK_UPTODATE, first, first + 1))
		return false;
	return stop % size == 0 || blocks_are(&inode->m, BLOCK_UPTODATE, last, last + 1);
}

/* With the folio locked. */
static bool may_write(struct inode *inode, const struct folio *f, u64 position, u64 bytes)
{
	u64 page = position >> PAGE_SHIFT;

	if (f->mapping != &inode->m || page < f->index || page >= folio_end(f))
		return false;
	if (atomic_load_explicit(&inode->lock.word, memory_order_relaxed) &
	    (RWSEM_EXCLUSIVE | RWSEM_WAITERS))
		return false;
	return position + bytes <= size_now(inode) &&
	       edges_valid(inode, position, min_u64(position + bytes, folio_end(f) << PAGE_SHIFT));
}

struct folio *hit_lock(struct inode *inode, u64 position, u64 bytes, bool *dirty)
{
	struct mapping *m = &inode->m;
	struct folio *f = NULL;
	struct found at;
	bool ok;

	world_read_begin();
	if (find(m, position >> PAGE_SHIFT, &at) && folio_trylock(at.folio)) {
		f = at.folio;
		ok = may_write(inode, f, position, bytes);
		if (ok) {
			u64 stop = min_u64(position + bytes, folio_end(f) << PAGE_SHIFT);

			*dirty = blocks_are(m, BLOCK_DIRTY, position / inode->block_bytes,
					    div_roundup(stop, inode->block_bytes));
		}
		/* where there may be holes, what is clean may have no room */
		if (!ok ||
		    (!*dirty && atomic_load_explicit(&inode->sparse, memory_order_relaxed))) {
			folio_unlock(f);
			f = NULL;
		}
	}
	world_read_end();
	return f;
}
