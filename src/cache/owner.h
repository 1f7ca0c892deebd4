/* SPDX-License-Identifier: MIT */
/*
 * Whose a page is, in a cache with tenants; and the bill, by which what a transition of page state
 * enters in the shared books is divided among them. Everything here is under the mapping's
 * tree_lock, and is asked for only if the cache has tenants.
 *
 * A folio is memory of the tenant who brought it into the cache (Linux: of the cgroup that touched
 * it first). Ownership by folio: his are all its pages, whoever makes them dirty. Ownership by page
 * (foreign=targeted): a dirty page is his who made it dirty, and the folio, as far as it counts as
 * a whole, his who was the first to.
 */
#ifndef SLUICE_CACHE_OWNER_H
#define SLUICE_CACHE_OWNER_H

#include "cache/cache.h"

/* A page that is dirty again while it is in flight may be two tenants'. */
enum owner_of { OWNER_DIRTY, OWNER_FLYING };

#define BILL_PARTS 4

/* What is entered for each tenant; number 0 has no books of its own. */
struct bill {
	struct mapping *m;
	struct tenants *tenants; /* NULL: there are none, and nobody asks for the rest */
	u32 count;
	struct {
		u16 id;
		struct ledger_entry e;
	} part[BILL_PARTS];
	struct ledger_entry paid; /* by page: what is not number 0's */
	struct ledger_entry rest; /* what of a posted entry is */
};

static inline struct tenants *tenants_in(const struct cache *c)
{
	return atomic_load_explicit(&c->tenants, memory_order_acquire);
}

static inline void bill_begin(struct bill *b, struct mapping *m)
{
	b->m = m;
	b->tenants = tenants_in(m->cache);
	b->count = 0;
	if (unlikely(b->tenants))
		b->paid = (struct ledger_entry){ 0 };
}

/* A folio comes into the cache, or leaves it. */
void owner_adopt(struct cache *c, struct folio *f);
void owner_leave(struct cache *c, struct folio *f);

/* Whose the clean pages of a folio become that the calling task makes dirty; the folio too. */
u16 owner_of_dirt(struct bill *b, struct folio *f, bool at_rest);
/* These pages of a leaf, which were clean, are dirty now. */
void bill_dirtied(struct bill *b, struct leaf *leaf, u64 pages, u16 id);
/* They were dirty, and are not to be written. */
void bill_cancelled(struct bill *b, struct folio *f, struct leaf *leaf, u64 pages);
/* `flying` take off, of which `cleaned` were dirty. */
void bill_launched(struct bill *b, struct folio *f, struct leaf *leaf, u64 cleaned, u64 flying);
/* `pages` land, of which `redirtied` are dirty anew, for they could not be written. */
void bill_landed(struct bill *b, struct folio *f, struct leaf *leaf, u64 pages, u64 redirtied);
/* What changed of the folio as a whole, between two states of an entry. */
void bill_folio(struct bill *b, struct folio *f, const struct ledger_entry *before,
		const struct ledger_entry *after);
/* Posts e to the books of the file and the cache, and its parts to those of each tenant. */
void bill_post(struct bill *b, const struct ledger_entry *e);

/* Of these dirty pages, those of tenant `id`; for 0 also those of tenants that went away. */
u64 owner_pages(struct tenants *ts, const struct leaf *leaf, u64 pages, u32 id);
/* Adds a file's levels to those of whose they are, page by page: [TENANT_MAX + 1] entries. */
void owner_audit(struct mapping *m, struct ledger_entry *of);
/* Whose a dirty page is, under ownership by page. */
u16 owner_of_page(const struct leaf *leaf, u32 page);

#endif
