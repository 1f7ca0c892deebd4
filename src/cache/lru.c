/* SPDX-License-Identifier: MIT */
/*
 * Two lists of folios, most recent first, linked by folio ids. New folios enter the
 * inactive list, those that reclaim remembers the active one. Uses only set bits in the folio
 * (folio_mark_accessed); lists are touched when a folio comes, goes, or is looked at by
 * reclaim. The hand, where there is one, stands on the folio that is looked at next.
 */
#include "cache/cache.h"

static struct lru *list_of(struct cache *c, const struct folio *f)
{
	return &c->lru[atomic_load_explicit(&f->flags, memory_order_relaxed) & FOLIO_ACTIVE
			       ? LRU_ACTIVE
			       : LRU_INACTIVE];
}

/* Counts are written under the lock, and read without. */
static void count(_Atomic u64 *what, s64 n)
{
	u64 now = atomic_load_explicit(what, memory_order_relaxed);

	assert(n >= 0 || now >= (u64)-n);
	atomic_store_explicit(what, now + (u64)n, memory_order_relaxed);
}

/* Links f before `next` (0: at the end). */
static void link_before(struct cache *c, struct lru *l, u32 next, struct folio *f)
{
	u32 id = folio_id(c, f);
	u32 prev = next ? c->links[next].prev : l->last;

	c->links[id] = (struct folio_links){ next, prev };
	*(prev ? &c->links[prev].next : &l->first) = id;
	*(next ? &c->links[next].prev : &l->last) = id;
	count(&l->folios, 1);
}

static void unlink_from(struct cache *c, struct lru *l, struct folio *f)
{
	u32 id = folio_id(c, f);
	struct folio_links at = c->links[id];

	if (c->hand == id)
		c->hand = at.prev;
	*(at.prev ? &c->links[at.prev].next : &l->first) = at.next;
	*(at.next ? &c->links[at.next].prev : &l->last) = at.prev;
	c->links[id] = (struct folio_links){ 0 };
	count(&l->folios, -1);
}

/*
 * S3-FIFO: it went a while ago, and is wanted again. The while is what nine tenths of the cache
 * take to go, the length of the main queue.
 */
static bool is_remembered(struct cache *c, const struct folio *f)
{
	return c->ghost.slot &&
	       ghost_take(&c->ghost, f->mapping->id, f->index, cache_pages(c) / 10 * 9);
}

void lru_add(struct cache *c, struct folio *f)
{
	struct lru *l;

	spin_lock(&c->lru_lock);
	if (is_remembered(c, f))
		atomic_fetch_or_explicit(&f->flags, FOLIO_ACTIVE, memory_order_relaxed);
	l = list_of(c, f);
	link_before(c, l, l->first, f);
	count(&l->pages, folio_pages(f));
	c->folios_of_order[f->order]++;
	spin_unlock(&c->lru_lock);
}

/* Links f where it is looked at next: at the end, or before the hand comes to where it stands. */
static void link_at_old_end(struct cache *c, struct lru *l, struct folio *f)
{
	link_before(c, l, c->hand ? c->links[c->hand].next : 0, f);
	if (c->hand)
		c->hand = folio_id(c, f);
}

/* Whoever moves or removes `at` meanwhile sees the order and the piece change together. */
void lru_halve(struct cache *c, struct folio *at, struct folio *f)
{
	u32 flags;

	spin_lock(&c->lru_lock);
	flags = atomic_load_explicit(&at->flags, memory_order_relaxed);
	atomic_fetch_or_explicit(&f->flags, flags & FOLIO_ACTIVE, memory_order_relaxed);
	folio_put(at->order, (u8)(at->order - 1));
	assert(f->order == at->order);
	if (flags & FOLIO_RECLAIM)
		link_at_old_end(c, list_of(c, at), f);
	else
		link_before(c, list_of(c, at), folio_links(c, at)->next, f);
	assert(at->order == f->order && c->folios_of_order[f->order + 1] > 0);
	c->folios_of_order[f->order + 1]--;
	c->folios_of_order[f->order] += 2;
	spin_unlock(&c->lru_lock);
}

void lru_del(struct cache *c, struct folio *f)
{
	struct lru *l;

	spin_lock(&c->lru_lock);
	l = list_of(c, f);
	count(&l->pages, -(s64)folio_pages(f));
	assert(c->folios_of_order[f->order] > 0);
	c->folios_of_order[f->order]--;
	unlink_from(c, l, f);
	spin_unlock(&c->lru_lock);
}

struct folio *lru_rotate(struct cache *c, enum lru_list list)
{
	struct lru *l = &c->lru[list];
	struct folio *f = NULL;

	spin_lock(&c->lru_lock);
	if (l->last) {
		f = &c->folios[l->last];
		unlink_from(c, l, f);
		link_before(c, l, l->first, f);
		folio_pin(f); /* safe: a folio leaves its list before it loses the cache's pin */
	}
	spin_unlock(&c->lru_lock);
	return f;
}

void lru_deactivate(struct cache *c, struct folio *f)
{
	struct lru *l;

	spin_lock(&c->lru_lock);
	l = list_of(c, f);
	unlink_from(c, l, f);
	link_at_old_end(c, l, f);
	spin_unlock(&c->lru_lock);
}

struct folio *lru_advance(struct cache *c)
{
	struct folio *f = NULL;
	u32 id;

	spin_lock(&c->lru_lock);
	id = c->hand ? c->hand : c->lru[LRU_INACTIVE].last;
	if (id) {
		f = &c->folios[id];
		c->hand = c->links[id].prev;
		folio_pin(f);
	}
	spin_unlock(&c->lru_lock);
	return f;
}

void lru_move(struct cache *c, struct folio *f, enum lru_list to)
{
	struct lru *from, *l = &c->lru[to];

	spin_lock(&c->lru_lock);
	from = list_of(c, f);
	if (from != l && (from->first == folio_id(c, f) || folio_links(c, f)->prev)) {
		unlink_from(c, from, f);
		count(&from->pages, -(s64)folio_pages(f));
		atomic_fetch_xor_explicit(&f->flags, FOLIO_ACTIVE, memory_order_relaxed);
		link_before(c, l, l->first, f);
		count(&l->pages, folio_pages(f));
	}
	spin_unlock(&c->lru_lock);
}
