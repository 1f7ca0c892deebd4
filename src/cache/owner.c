// SPDX-License-Identifier: MIT
/*
 * The memory of who made a page dirty, and the dividing of ledger entries.
 *
 * Nearly always all dirty pages of a leaf are one tenant's: then the leaf keeps one number, in
 * bytes that alignment left unused. Only where two meet within 256 KiB the leaf gets a table with
 * a number for each page, 256 bytes, which goes when nothing of the leaf is dirty or in flight any
 * more. So it costs a thousandth of the cached bytes at most. Without memory for the table a page
 * is taken to be that tenant's whose the leaf is: the books stay exact, since what is taken off
 * them later goes by the same number.
 *
 * An entry is divided by population counts over the pages of one owner at a time. The parts are
 * few: they are gathered in a short list, and should there be more of them, the oldest is posted
 * before its time.
 */
#include "cache/owner.h"
#include "base/alloc.h"
#include <string.h>

void owner_adopt(struct cache *c, struct folio *f)
{
	struct tenant *t = tenant_self(tenants_in(c));

	f->tenant = (u16)t->id;
	atomic_fetch_add_explicit(&t->pages, folio_pages(f), memory_order_relaxed);
}

void owner_leave(struct cache *c, struct folio *f)
{
	struct tenant *t = tenant_of(tenants_in(c), f->tenant);

	atomic_fetch_sub_explicit(&t->pages, folio_pages(f), memory_order_relaxed);
	f->tenant = 0;
}

/* --- whose pages are */

static enum index_tag tag_of(enum owner_of of)
{
	return of == OWNER_DIRTY ? TAG_DIRTY : TAG_WRITEBACK;
}

static u16 owner_at(const struct leaf *leaf, enum owner_of of, unsigned page)
{
	return leaf->owners ? leaf->owners->id[of][page] : leaf->owner[of];
}

u16 owner_of_page(const struct leaf *leaf, u32 page)
{
	return owner_at(leaf, OWNER_DIRTY, page % LEAF_PAGES);
}

/* Takes off *pages those that have the owner of the first; returns them. */
static u64 take_group(const struct leaf *leaf, enum owner_of of, u64 *pages, u16 *id)
{
	u64 group = 0;

	*id = owner_at(leaf, of, bits_first(*pages));
	if (!leaf->owners) {
		group = *pages;
	} else {
		for (u64 bits = *pages; bits; bits &= bits - 1)
			if (leaf->owners->id[of][bits_first(bits)] == *id)
				group |= bits & -bits;
	}
	*pages &= ~group;
	return group;
}

u64 owner_pages(struct tenants *ts, const struct leaf *leaf, u64 pages, u32 id)
{
	u64 found = 0;

	while (pages) {
		u16 owner;
		u64 group = take_group(leaf, OWNER_DIRTY, &pages, &owner);

		if (owner == id || (!id && !atomic_load(&tenant_of(ts, owner)->open)))
			found |= group;
	}
	return found;
}

/* From here on page by page; false without memory. */
static bool make_table(struct leaf *leaf)
{
	struct leaf_owners *o = alloc_bytes(sizeof(*o));

	if (!o)
		return false;
	for (unsigned of = 0; of < 2; of++)
		for (unsigned i = 0; i < LEAF_PAGES; i++)
			o->id[of][i] = leaf->owner[of];
	leaf->owners = o;
	return true;
}

/* Makes `pages`, which have the tag by now, one tenant's; returns whose they are then. */
static u16 set_owner(struct leaf *leaf, enum owner_of of, u64 pages, u16 id)
{
	u64 others = leaf->tag[tag_of(of)] & ~pages;

	if (!leaf->owners && (!others || leaf->owner[of] == id)) {
		leaf->owner[of] = id;
		return id;
	}
	if (!leaf->owners && !make_table(leaf))
		return leaf->owner[of];
	for (u64 bits = pages; bits; bits &= bits - 1)
		leaf->owners->id[of][bits_first(bits)] = id;
	return id;
}

static void drop_table(struct leaf *leaf)
{
	if (!leaf->owners || leaf->tag[TAG_DIRTY] || leaf->tag[TAG_WRITEBACK])
		return;
	free(leaf->owners);
	leaf->owners = NULL;
}

/* --- bills */

static void entry_add(struct ledger_entry *to, const struct ledger_entry *e)
{
	for (unsigned i = 0; i < LEVEL_MAX; i++)
		to->level[i] += e->level[i];
	for (unsigned i = 0; i < TOTAL_MAX; i++)
		to->total[i] += e->total[i];
}

static void pay(struct bill *b, u16 id, const struct ledger_entry *e)
{
	struct tenant *t = tenant_of(b->tenants, id);

	ledger_post(&t->ledger, e);
	if (!b->tenants->by_page)
		return;
	ledger_post(t->device_book[b->m->device], e);
	entry_add(&b->paid, e);
	if (e->level[LEVEL_IN_FLIGHT] < 0 && b->m->ops && b->m->ops->tenant_landed)
		b->m->ops->tenant_landed(b->m, t, e);
}

/* The part of a tenant, or NULL for number 0. */
static struct ledger_entry *part_of(struct bill *b, u16 id)
{
	if (!id)
		return NULL;
	for (u32 i = 0; i < b->count; i++)
		if (b->part[i].id == id)
			return &b->part[i].e;
	if (b->count == BILL_PARTS) {
		pay(b, b->part[0].id, &b->part[0].e);
		b->count--;
		memmove(&b->part[0], &b->part[1], b->count * sizeof(b->part[0]));
	}
	b->part[b->count].id = id;
	b->part[b->count].e = (struct ledger_entry){ 0 };
	return &b->part[b->count++].e;
}

u16 owner_of_dirt(struct bill *b, struct folio *f, bool at_rest)
{
	struct tenant *t;
	u16 id;

	if (!b->tenants->by_page)
		return f->tenant;
	t = tenant_self(b->tenants);
	id = atomic_load_explicit(&t->device_book[b->m->device], memory_order_acquire) ? (u16)t->id
										       : 0;
	if (at_rest && f->tenant != id) {
		owner_leave(b->m->cache, f);
		f->tenant = id;
		atomic_fetch_add_explicit(&tenant_of(b->tenants, id)->pages, folio_pages(f),
					  memory_order_relaxed);
	}
	return id;
}

void bill_dirtied(struct bill *b, struct leaf *leaf, u64 pages, u16 id)
{
	struct ledger_entry *e;

	if (!pages)
		return;
	if (b->tenants->by_page)
		id = set_owner(leaf, OWNER_DIRTY, pages, id);
	e = part_of(b, id);
	if (!e)
		return;
	e->level[LEVEL_DEBT] += (s32)bits_count(pages);
	e->total[TOTAL_PAGES_DIRTIED] += bits_count(pages);
}

/* The next pages of one owner, off *pages; of a folio's one owner all. */
static u64 next_group(struct bill *b, struct folio *f, const struct leaf *leaf, enum owner_of of,
		      u64 *pages, u16 *id)
{
	u64 group = *pages;

	if (b->tenants->by_page)
		return take_group(leaf, of, pages, id);
	*id = f->tenant;
	*pages = 0;
	return group;
}

void bill_cancelled(struct bill *b, struct folio *f, struct leaf *leaf, u64 pages)
{
	while (pages) {
		u16 id;
		u64 group = next_group(b, f, leaf, OWNER_DIRTY, &pages, &id);
		struct ledger_entry *e = part_of(b, id);

		if (!e)
			continue;
		e->level[LEVEL_DEBT] -= (s32)bits_count(group);
		e->total[TOTAL_PAGES_CANCELLED] += bits_count(group);
	}
	drop_table(leaf);
}

/* Enters pages of one owner that take off; `clean` ones go along, owed again for that. */
static void launch(struct bill *b, struct leaf *leaf, u64 pages, u16 id, bool clean)
{
	s32 n = (s32)bits_count(pages);
	u16 flyer = b->tenants->by_page ? set_owner(leaf, OWNER_FLYING, pages, id) : id;
	struct ledger_entry *e = clean ? NULL : part_of(b, id);

	if (e)
		e->level[LEVEL_DEBT] -= n;
	if (e && flyer != id) /* for want of memory somebody else's: given up here, owed there */
		e->total[TOTAL_PAGES_CANCELLED] += (u32)n;
	e = part_of(b, flyer);
	if (!e)
		return;
	e->level[LEVEL_IN_FLIGHT] += n;
	if (clean || flyer != id)
		e->total[TOTAL_PAGES_REDIRTIED] += (u32)n;
}

void bill_launched(struct bill *b, struct folio *f, struct leaf *leaf, u64 cleaned, u64 flying)
{
	u64 along = flying & ~cleaned;

	while (cleaned) {
		u16 id;
		u64 group = next_group(b, f, leaf, OWNER_DIRTY, &cleaned, &id);

		launch(b, leaf, group, id, false);
	}
	if (along)
		launch(b, leaf, along, f->tenant, true);
}

void bill_landed(struct bill *b, struct folio *f, struct leaf *leaf, u64 pages, u64 redirtied)
{
	while (pages) {
		u16 id, debtor;
		u64 group = next_group(b, f, leaf, OWNER_FLYING, &pages, &id);
		u64 again = group & redirtied;
		struct ledger_entry *e = part_of(b, id);

		if (e) {
			e->level[LEVEL_IN_FLIGHT] -= (s32)bits_count(group);
			e->total[TOTAL_PAGES_WRITTEN] += bits_count(group);
		}
		redirtied &= ~group;
		if (!again)
			continue;
		debtor = b->tenants->by_page ? set_owner(leaf, OWNER_DIRTY, again, id) : id;
		e = part_of(b, debtor);
		if (!e)
			continue;
		e->level[LEVEL_DEBT] += (s32)bits_count(again);
		e->total[TOTAL_PAGES_REDIRTIED] += bits_count(again);
	}
	/* blocks of a page that is still in flight with others */
	while (redirtied) {
		u16 id;
		u64 group = next_group(b, f, leaf, OWNER_FLYING, &redirtied, &id);
		struct ledger_entry *e;

		id = b->tenants->by_page ? set_owner(leaf, OWNER_DIRTY, group, id) : id;
		e = part_of(b, id);
		if (!e)
			continue;
		e->level[LEVEL_DEBT] += (s32)bits_count(group);
		e->total[TOTAL_PAGES_REDIRTIED] += bits_count(group);
	}
	drop_table(leaf);
}

void bill_folio(struct bill *b, struct folio *f, const struct ledger_entry *before,
		const struct ledger_entry *after)
{
	static const struct ledger_entry nothing;
	static const enum ledger_level levels[] = { LEVEL_FOLIO_DIRTY, LEVEL_FOLIO_WRITEBACK,
						    LEVEL_PINNED };
	static const enum ledger_total totals[] = { TOTAL_FOLIO_REDIRTIED, TOTAL_FOLIO_DIRTIED,
						    TOTAL_FOLIO_WRITTEN, TOTAL_FOLIO_CANCELLED };
	struct ledger_entry *e = part_of(b, f->tenant);

	if (!e)
		return;
	before = before ? before : &nothing;
	for (unsigned i = 0; i < ARRAY_SIZE(levels); i++)
		e->level[levels[i]] += after->level[levels[i]] - before->level[levels[i]];
	for (unsigned i = 0; i < ARRAY_SIZE(totals); i++)
		e->total[totals[i]] += after->total[totals[i]] - before->total[totals[i]];
}

void bill_post(struct bill *b, const struct ledger_entry *e)
{
	struct mapping *m = b->m;
	struct ledger *shared[] = { m->books[0], NULL, m->books[2] };

	for (u32 i = 0; i < b->count; i++)
		pay(b, b->part[i].id, &b->part[i].e);
	b->count = 0;
	b->rest = *e;
	if (!b->tenants->by_page || !m->books[1]) {
		ledger_post_all(m->books, MAPPING_BOOKS, e, &m->cache->books_lock);
		return;
	}
	for (unsigned i = 0; i < LEVEL_MAX; i++)
		b->rest.level[i] -= b->paid.level[i];
	for (unsigned i = 0; i < TOTAL_MAX; i++)
		b->rest.total[i] -= b->paid.total[i];
	ledger_post_all(shared, MAPPING_BOOKS, e, &m->cache->books_lock);
	ledger_post_one(m->books[1], &b->rest, &m->cache->books_lock);
}

/* --- audit: slow, and by nothing that the bills go by but the numbers themselves */

static void audit_folio(struct mapping *m, struct folio *f, bool by_page, struct ledger_entry *of)
{
	s32 n = (s32)folio_pages(f), dirty = 0, flying = 0;

	for (u64 page = f->index; page < folio_end(f); page++) {
		const struct leaf *leaf = index_leaf(&m->index, page);
		unsigned i = page % LEAF_PAGES;

		if (leaf->tag[TAG_DIRTY] >> i & 1) {
			of[by_page ? owner_at(leaf, OWNER_DIRTY, i) : f->tenant]
				.level[LEVEL_DEBT]++;
			dirty++;
		}
		if (leaf->tag[TAG_WRITEBACK] >> i & 1) {
			of[by_page ? owner_at(leaf, OWNER_FLYING, i) : f->tenant]
				.level[LEVEL_IN_FLIGHT]++;
			flying++;
		}
	}
	of[f->tenant].level[LEVEL_FOLIO_DIRTY] += dirty ? n : 0;
	of[f->tenant].level[LEVEL_FOLIO_WRITEBACK] += flying ? n : 0;
	of[f->tenant].level[LEVEL_PINNED] += dirty || flying ? n : 0;
}

void owner_audit(struct mapping *m, struct ledger_entry *of)
{
	bool by_page = tenants_in(m->cache)->by_page;
	u64 page;

	spin_lock(&m->tree_lock);
	for (u64 from = 0; index_next(&m->index, TAG_PRESENT, from, &page);) {
		struct folio *f =
			&m->cache->folios[index_leaf(&m->index, page)->folio[page % LEAF_PAGES]];

		audit_folio(m, f, by_page, of);
		from = folio_end(f);
	}
	spin_unlock(&m->tree_lock);
}
