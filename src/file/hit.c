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
 * afterwards. A writer looks at both, the size and the inode's lock, with the folio locked:
 * either it sees what they did, or they come to the folio after it and find its bytes there.
 *
 * In a large cache index, descriptors and bytes are all far from the processor, and each says
 * where the next one is. So that they can be fetched at the same time, file and leaf
 * keep a guess at where the next ones are, which is right while the file lies in one piece. A
 * descriptor can be found by such a guess alone: if it is at rest in the mapping and covers the
 * page, it is the page's, and the leaf's slot need not be looked at.
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
	u32 frame; /* of the page */
	u64 first; /* page of the folio */
	u32 pages;
};

/* The descriptor that is the page's if the file's lie side by side in the table; or none's. */
static inline struct folio *guess_folio(const struct mapping *m, u64 page)
{
	u32 id = folio_get(m->ids) + (u32)(page >> folio_get(m->order));

	return &m->cache->folios[id <= m->cache->arena.max_frames && folio_get(m->trust) > 1 ? id
											     : 0];
}

/* Whether a folio is at rest in the mapping and holds the page: then no other one does. */
static inline bool holds(struct folio *f, const struct mapping *m, u64 page, struct found *at)
{
	u32 order;

	if (!folio_look(f, &at->seq) || folio_get(f->mapping) != m)
		return false;
	at->folio = f;
	at->first = folio_get(f->index);
	order = folio_get(f->order);
	at->pages = 1u << order;
	at->frame = folio_get(f->frame) + (u32)(page - at->first);
	return !((page ^ at->first) >> order);
}

/* The folio of a page, whose leaf that is: by the guess, or by its slot. In a read section. */
static inline __attribute__((always_inline)) bool
find_in(const struct mapping *m, const struct leaf *leaf, u64 page, struct found *at)
{
	u32 id;

	if (likely(holds(guess_folio(m, page), m, page, at)))
		return true;
	id = index_load(&leaf->folio[page % LEAF_PAGES]);
	return id && holds(&m->cache->folios[id], m, page, at);
}

/* The same for those who want to read its bytes. */
static inline __attribute__((always_inline)) bool find(const struct mapping *m, u64 page,
						       struct found *at)
{
	const struct leaf *leaf = index_find(&m->index, page);

	if (!leaf)
		return false;
	at->leaf = leaf;
	return find_in(m, leaf, page, at);
}

/* Whether what a read wants of a folio can be had as it is. In a read section. */
static bool is_readable(struct inode *inode, const struct found *at, u64 position, u64 stop)
{
	struct mapping *m = &inode->m;
	u32 flags = atomic_load_explicit(&at->folio->flags, memory_order_relaxed);
	u64 page = position >> PAGE_SHIFT;

	if (flags & (FOLIO_MARK | FOLIO_DROP))
		return false;
	/* time goes by folio then: those valid only in part take the long way */
	if (world_models_calls())
		return pages_valid(m, index_find(&m->index, at->first), at->first,
				   at->first + at->pages);
	if (likely(pages_valid(m, at->leaf, page, pages_of(stop))))
		return true;
	return m->block_shift && blocks_are(m, BLOCK_UPTODATE, position / inode->block_bytes,
					    div_roundup(stop, inode->block_bytes));
}

/*
 * Where the bytes are, as an offset into the arena. If a guess was right, that is an address which
 * does not depend on what leaf or descriptor say: the bytes are fetched while those still are. In a
 * read section.
 */
static inline u64 place_of(const struct mapping *m, const struct found *at, u64 page)
{
	/* if the whole file lies in one piece; then as its leaf thinks */
	u32 guess = folio_get(m->frames) + (u32)page;
	u64 frame = guess;

	BRANCH(frame);
	if (at->frame != guess) {
		guess = folio_get(at->leaf->frames) + page % LEAF_PAGES;
		frame = guess;
		BRANCH(frame);
		if (at->frame != guess) {
			frame = at->frame;
			BRANCH(frame);
		}
	}
	return frame << PAGE_SHIFT;
}

/* Whether the two pages behind `last` are cached, and in the leaf, as `last` is. */
static inline bool goes_on_behind(const struct found *at, u64 last)
{
	return (index_load(&at->leaf->tag[TAG_PRESENT]) >> last % LEAF_PAGES & 7) == 7;
}

/*
 * The way of most reads, and so as short as can be: what follows the copy is decided before it, and
 * of the next read the processor begins the more, the fewer instructions there are.
 */
ssize_t file_pread(struct file *f, void *buf, size_t length, u64 offset)
{
	struct inode *inode = f->inode;
	const struct mapping *m = &inode->m;
	u64 page = offset >> PAGE_SHIFT, place = 0;
	bool ok, counts, goes_on = false;
	struct found at;

	/* in one page, and not nothing */
	if (unlikely(length - 1 >= PAGE_SIZE - offset % PAGE_SIZE) || unlikely(!f->plain) ||
	    unlikely(!buf) || unlikely(offset + length > size_now(inode)))
		return read_slowly(f, buf, length, offset);
	world_read_begin();
	ok = find(m, page, &at) && index_load(&at.leaf->uptodate) >> page % LEAF_PAGES & 1 &&
	     !(atomic_load_explicit(&at.folio->flags, memory_order_relaxed) &
	       (FOLIO_MARK | FOLIO_DROP));
	if (likely(ok)) {
		place = place_of(m, &at, page);
		goes_on = goes_on_behind(&at, page);
	}
	world_read_end();
	if (unlikely(!ok))
		return read_slowly(f, buf, length, offset);
	counts = folio_use_counts(m->cache, page, at.first) &
		 (u32)!atomic_load_explicit(&f->noreuse, memory_order_relaxed);
	folio_copy_racy(buf, m->cache->arena.memory + place + offset % PAGE_SIZE, length);
	if (unlikely(!folio_unchanged(at.folio, at.seq)))
		return read_slowly(f, buf, length, offset);
	folio_note_if(at.folio, counts);
	if (unlikely(!goes_on))
		atomic_store_explicit(&f->ra.previous_end, offset + length, memory_order_relaxed);
	return (ssize_t)length;
}

/*
 * Copies n bytes to where a read's buffers stand, without moving them: *to is where they are
 * then. Nearly always one buffer takes all of it, and then the cursor is not copied to and fro.
 */
static void copy_ahead(const struct read *r, const char *from, u64 n, struct buffers *to)
{
	const struct iovec *iov = r->to.iov;
	size_t used = r->to.used;

	to->iov = iov;
	to->used = used;
	if (unlikely(n > iov->iov_len - used)) {
		buffers_fill(to, from, n);
		return;
	}
	if (from && iov->iov_base)
		folio_copy_racy((char *)iov->iov_base + used, from, n);
	to->used = used + n;
}

u64 hit_read(struct read *r, bool used)
{
	struct inode *inode = r->file->inode;
	struct mapping *m = &inode->m;
	u64 position = r->position, page = position >> PAGE_SHIFT;

	for (unsigned i = 0; i < TRIES; i++) {
		const char *memory = m->cache->arena.memory;
		u64 stop = r->end, place = 0, last;
		struct buffers to;
		struct found at;
		bool ok;

		world_read_begin();
		ok = find(m, page, &at);
		if (likely(ok)) {
			if (unlikely((at.first + at.pages) << PAGE_SHIFT < stop)) {
				stop = (at.first + at.pages) << PAGE_SHIFT;
				BRANCH(stop);
			}
			ok = is_readable(inode, &at, position, stop);
			last = (stop - 1) >> PAGE_SHIFT;
			r->goes_on =
				last / LEAF_PAGES == page / LEAF_PAGES && goes_on_behind(&at, last);
			place = place_of(m, &at, page) + position % PAGE_SIZE;
		}
		world_read_end();
		if (unlikely(!ok))
			return 0;
		copy_ahead(r, memory ? memory + place : NULL, stop - position, &to);
		if (likely(folio_unchanged(at.folio, at.seq))) {
			r->to.iov = to.iov;
			r->to.used = to.used;
			if (used)
				folio_note_use(m->cache, at.folio, page, at.first);
			return stop - position;
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
	if (position + bytes > size_now(inode))
		return false;
	return !((position | bytes) % PAGE_SIZE) ||
	       edges_valid(inode, position, min_u64(position + bytes, folio_end(f) << PAGE_SHIFT));
}

/* Whether all blocks of [position, stop) are dirty; `leaf` covers the first. */
static bool is_dirty(struct inode *inode, const struct leaf *leaf, u64 position, u64 stop)
{
	u64 page = position >> PAGE_SHIFT, end = pages_of(stop);

	if (!inode->m.block_shift && page / LEAF_PAGES == (end - 1) / LEAF_PAGES)
		return !(~index_load(&leaf->tag[TAG_DIRTY]) &
			 bits_mask(page % LEAF_PAGES, (u32)(end - page)));
	return blocks_are(&inode->m, BLOCK_DIRTY, position / inode->block_bytes,
			  div_roundup(stop, inode->block_bytes));
}

/* Has a line fetched for writing at once, and not for reading first. */
static inline void fetch_to_write(const void *at)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

void hit_expect(const struct inode *inode, u64 position)
{
	fetch_to_write(guess_folio(&inode->m, position >> PAGE_SHIFT));
}

/* Fetches the leaf of a page, and the slot that it has there, or what that leads to. */
static inline void fetch_leaf(const struct inode *inode, u64 position, bool folio)
{
	const struct mapping *m = &inode->m;
	u64 page = position >> PAGE_SHIFT;
	const struct leaf *leaf;

	world_read_begin();
	leaf = index_find(&m->index, page);
	if (leaf) {
		const u32 *slot = &leaf->folio[page % LEAF_PAGES];

		fetch_to_write(leaf);
		if (folio)
			fetch_to_write(&m->cache->folios[index_load(slot)]);
		else
			fetch_to_write(slot);
	}
	world_read_end();
}

void file_expect(const struct file *f, u64 offset)
{
	fetch_leaf(f->inode, offset, false);
}

void hit_expect_later(const struct inode *inode, u64 position)
{
	fetch_leaf(inode, position, true);
}

struct folio *hit_lock(struct inode *inode, u64 position, u64 bytes, bool *dirty)
{
	struct mapping *m = &inode->m;
	u64 page = position >> PAGE_SHIFT;
	const struct leaf *leaf;
	struct folio *f = NULL;
	struct found at;
	bool ok;

	world_read_begin();
	leaf = index_find(&m->index, page);
	/* taking a lock lets nothing pass before it is taken: what is needed then is fetched now */
	__builtin_prefetch(leaf, 0);
	if (leaf && find_in(m, leaf, page, &at) && folio_trylock(at.folio)) {
		f = at.folio;
		ok = may_write(inode, f, position, bytes);
		if (ok)
			*dirty = is_dirty(inode, leaf, position,
					  min_u64(position + bytes, folio_end(f) << PAGE_SHIFT));
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
