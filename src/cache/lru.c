/* SPDX-License-Identifier: MIT */
/*
 * Two lists of folios, most recent first, linked by folio ids. New folios enter the
 * inactive list. Uses only set bits in the folio (folio_mark_accessed); lists are
 * touched when a folio comes, goes, or is looked at by reclaim.
 */
#include "cache/cache.h"

static struct lru *list_of(struct cache *c, const struct folio *f)
{
	return &c->lru[atomic_load_explicit(&f->flags, memory_order_relaxed) & FOLIO_ACTIVE
			       ? LRU_ACTIVE
			       : LRU_INACTIVE];
}

/* Links f before `next` (0: at the end). */
static void link_before(struct cache *c, struct lru *l, u32 next, struct folio *f)
{
	u32 id = folio_id(c, f);
	u32 prev = next ? c->folios[next].lru_prev : l->last;

	f->lru_prev = prev;
	f->lru_next = next;
	*(prev ? &c->folios[prev].lru_next : &l->first) = id;
	*(next ? &c->folios[next].lru_prev : &l->last) = id;
	l->folios++;
}

static void unlink_from(struct cache *c, struct lru *l, struct folio *f)
{
	*(f->lru_prev ? &c->folios[f->lru_prev].lru_next : &l->first) = f->lru_next;
	*(f->lru_next ? &c->folios[f->lru_next].lru_prev : &l->last) = f->lru_prev;
	f->lru_next = f->lru_prev = 0;
	l->folios--;
}

void lru_add(struct cache *c, struct folio *f)
{
	struct lru *l;

	spin_lock(&c->lru_lock);
	l = list_of(c, f);
	link_before(c, l, l->first, f);
	l->pages += folio_pages(f);
	c->folios_of_order[f->order]++;
	spin_unlock(&c->lru_lock);
}

/* Whoever moves or removes `at` meanwhile sees the order and the piece change together. */
void lru_halve(struct cache *c, struct folio *at, struct folio *f)
{
	u32 list;

	spin_lock(&c->lru_lock);
	list = atomic_load_explicit(&at->flags, memory_order_relaxed) & FOLIO_ACTIVE;
	atomic_fetch_or_explicit(&f->flags, list, memory_order_relaxed);
	folio_put(at->order, (u8)(at->order - 1));
	assert(f->order == at->order);
	link_before(c, list_of(c, at), at->lru_next, f);
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
	assert(l->pages >= folio_pages(f));
	l->pages -= folio_pages(f);
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
	link_before(c, l, 0, f);
	spin_unlock(&c->lru_lock);
}

void lru_move(struct cache *c, struct folio *f, enum lru_list to)
{
	struct lru *from, *l = &c->lru[to];

	spin_lock(&c->lru_lock);
	from = list_of(c, f);
	if (from != l && (from->first == folio_id(c, f) || f->lru_prev)) {
		unlink_from(c, from, f);
		from->pages -= folio_pages(f);
		atomic_fetch_xor_explicit(&f->flags, FOLIO_ACTIVE, memory_order_relaxed);
		link_before(c, l, l->first, f);
		l->pages += folio_pages(f);
	}
	spin_unlock(&c->lru_lock);
}
