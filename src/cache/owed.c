// SPDX-License-Identifier: MIT
/*
 * What is owed, told to whoever comes after us. The bytes of the arena survive the process if they
 * lie in a file on tmpfs (persist.c); these records say what they are. A process that is killed
 * takes nothing back: the stores it has made stay, each thread's in the order of its program. So
 * at every instant the records have to tell the truth, and an order of stores is all that is
 * needed for it:
 *
 *	a block becomes owed when its bytes are in the frame, and before its write returns;
 *	it ceases to be when the device has answered for it, or when it was cancelled;
 *	a record's page is set while nothing of it is owed.
 *
 * A record is a copy of two state bits, dirty or in flight, made under the lock of the states and
 * after each change of them: there is one function for all transitions. Writing once more to a
 * block that is owed already changes no record, and costs nothing. A frame is freed only when its
 * page is clean, so that it never has to be taken from an owner.
 *
 * A move (move.c) makes a second record for the same page before it takes the first one away; while
 * there are two, both frames hold the same bytes, since the folio is locked.
 */
#include "cache/owed.h"

/* The blocks of a page that are dirty or in flight. */
static u64 owed_blocks(const struct mapping *m, struct leaf *leaf, u64 page)
{
	u32 shift = m->block_shift, bit = (u32)(page % LEAF_PAGES) << shift;
	u64 word = leaf_blocks(leaf, BLOCK_DIRTY, shift)[bit / 64] |
		   leaf_blocks(leaf, BLOCK_WRITEBACK, shift)[bit / 64];

	return word >> bit % 64 & bits_mask(0, 1u << shift);
}

static struct owed *record_of(const struct folio *f, u64 page)
{
	return &f->mapping->cache->config.persist->owed[f->frame + (u32)(page - f->index)];
}

void owed_note_changed(struct folio *f, u64 first_block, u64 count)
{
	struct mapping *m = f->mapping;
	u64 page = first_block >> m->block_shift;
	u64 last = (first_block + count - 1) >> m->block_shift;
	struct owed *o = record_of(f, page);
	struct leaf *leaf = index_leaf(&m->index, page);

	if (unlikely(atomic_load_explicit(&m->cache->config.persist->frozen, memory_order_relaxed)))
		return;
	for (;; o++) {
		u64 was = atomic_load_explicit(&o->blocks, memory_order_relaxed);
		u64 owed = owed_blocks(m, leaf, page);

		if ((was & OWED_BLOCKS) != owed) {
			if (!(was & OWED_BLOCKS)) {
				assert(m->persist_file);
				atomic_store_explicit(&o->page, (u64)m->persist_file << 32 | page,
						      memory_order_relaxed);
				was = ++m->accepted << OWED_ORDER;
			}
			atomic_store_explicit(&o->blocks, (was & ~OWED_BLOCKS) | owed,
					      memory_order_release);
			persist_stepped(m->cache->config.persist);
		}
		if (page++ == last)
			return;
		if (page % LEAF_PAGES == 0)
			leaf = index_leaf(&m->index, page);
	}
}

void owed_move(struct folio *f, u32 frame)
{
	struct persist *p = f->mapping->cache->config.persist;

	if (!p)
		return;
	for (u32 i = 0; i < folio_pages(f); i++) {
		struct owed *to = &p->owed[frame + i], *from = &p->owed[f->frame + i];
		u64 owed = atomic_load_explicit(&from->blocks, memory_order_relaxed);

		assert(!(atomic_load_explicit(&to->blocks, memory_order_relaxed) & OWED_BLOCKS));
		if (!(owed & OWED_BLOCKS))
			continue;
		atomic_store_explicit(&to->page,
				      atomic_load_explicit(&from->page, memory_order_relaxed),
				      memory_order_relaxed);
		atomic_store_explicit(&to->blocks, owed, memory_order_release);
		persist_stepped(p);
		atomic_store_explicit(&from->blocks, 0, memory_order_release);
		persist_stepped(p);
	}
}

bool owed_is_right(struct folio *f, u64 page)
{
	struct mapping *m = f->mapping;
	const struct owed *o;
	u64 owed;

	if (!m->cache->config.persist)
		return true;
	o = record_of(f, page);
	owed = owed_blocks(m, index_leaf(&m->index, page), page);
	return (atomic_load(&o->blocks) & OWED_BLOCKS) == owed &&
	       (!owed || atomic_load(&o->page) == ((u64)m->persist_file << 32 | page));
}
