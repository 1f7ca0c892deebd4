/* SPDX-License-Identifier: MIT */
/*
 * Moving folios in memory. A folio is known by its descriptor, and where its bytes are stands in
 * there and nowhere else: so moving is copying, and then one store. Its pages may be dirty. Who
 * reads without a lock meanwhile sees that its seq has changed, and looks again.
 *
 * Moving empties the end of an arena that shrinks (resize.c), and it keeps memory in large
 * pieces: when the clean part of a large folio goes and a dirty page stays, that page
 * would keep a free run of 2 MiB from being one for as long as it is not written. So it moves
 * to where memory is in small pieces already; such pages come to lie side by side.
 */
#include "cache/owed.h"
#include "cache/state.h"
#include <string.h>

#define STRAY_ORDER 3 /* the largest pieces that move out of the way */
#define STRAY_SHARE 8 /* not more than one part in so many of a folio moves */

static bool in_flight(struct mapping *m, const struct folio *f)
{
	u64 page;

	return index_next(&m->index, TAG_WRITEBACK, f->index, &page) && page < folio_end(f);
}

/* Makes `frame` the first frame of a locked folio, if only the cache and the caller hold it. */
static bool set_frame(struct folio *f, u32 frame)
{
	struct mapping *m = f->mapping;
	bool ok;

	spin_lock(&m->tree_lock);
	ok = atomic_load(&f->pins) == 2 && !in_flight(m, f);
	if (ok) {
		owed_move(f, frame);
		folio_change_begin(f);
		folio_put(f->frame, frame);
		folio_change_end(f);
	}
	spin_unlock(&m->tree_lock);
	return ok;
}

bool folio_move(struct folio *f)
{
	struct cache *c = f->mapping->cache;
	unsigned order = f->order;
	u32 to = arena_alloc(&c->arena, order), from = f->frame;
	bool moved;

	assert(folio_is_locked(f));
	if (to == ARENA_NONE)
		return false;
	if (c->arena.memory) /* nobody changes the bytes of a locked folio */
		memcpy(arena_bytes(&c->arena, to), arena_bytes(&c->arena, from),
		       (size_t)PAGE_SIZE << order);
	moved = set_frame(f, to);
	arena_free(&c->arena, moved ? from : to, order);
	if (moved)
		world_spend(COST_COPY, 1u << order);
	return moved;
}

/* The first dirty page of [page, end), or end. */
static u64 next_dirty(struct mapping *m, u64 page, u64 end)
{
	u64 found;

	spin_lock(&m->tree_lock);
	if (!index_next(&m->index, TAG_DIRTY, page, &found) || found > end)
		found = end;
	spin_unlock(&m->tree_lock);
	return found;
}

/* Moves a locked folio if it is dirty and small; returns the pages that moved. */
static u32 move_stray(struct folio *f, u64 budget)
{
	u32 pages = folio_pages(f);

	if (f->order > STRAY_ORDER || pages > budget || !folio_is_dirty(f) || !folio_move(f))
		return 0;
	return pages;
}

void folio_move_strays(struct folio *f, u64 end)
{
	struct mapping *m = f->mapping;
	u64 budget = (end - f->index) / STRAY_SHARE, page = folio_end(f);

	budget -= move_stray(f, budget);
	while ((page = next_dirty(m, page, end)) < end) {
		struct folio *other = mapping_find(m, page);

		if (!other)
			break;
		page++;
		if (folio_trylock(other)) {
			if (other->mapping == m) {
				page = folio_end(other);
				budget -= move_stray(other, budget);
			}
			folio_unlock(other);
		}
		folio_unpin(m->cache, other);
	}
}
