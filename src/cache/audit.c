/* SPDX-License-Identifier: MIT */
/*
 * The slow walker: derives every ledger level from the state words, page by page and
 * folio by folio, sharing no code with the transitions that keep the ledgers, and
 * checks on the way what must hold of the words themselves:
 *
 *	dirty, in-flight and valid pages are present; dirty blocks are valid
 *	a page bit is the or (dirty, in flight) or the and (valid) of its block bits
 *	a page's slot names the folio that says it covers the page
 *	summaries lead to every page (each tag is walked through them)
 */
#include "cache/cache.h"
#include "cache/owed.h"
#include <stdio.h>

struct audit {
	struct mapping *m;
	struct ledger_entry sum;
	u64 pages;
	char *why;
	size_t why_size;
	bool ok;
};

static void fault(struct audit *a, u64 page, const char *text)
{
	if (a->ok)
		snprintf(a->why, a->why_size, "page %llu: %s", (unsigned long long)page, text);
	a->ok = false;
}

static bool bit(u64 word, unsigned i)
{
	return word >> i & 1;
}

/* Compares one page's bits with those of its blocks. */
static void check_blocks(struct audit *a, struct leaf *leaf, unsigned i)
{
	u32 shift = a->m->block_shift, valid = 0, dirty = 0, flying = 0, n = 1u << shift;

	for (u32 b = i << shift; b < (i + 1) << shift; b++) {
		bool v = bit(leaf_blocks(leaf, BLOCK_UPTODATE, shift)[b / 64], b % 64);
		bool d = bit(leaf_blocks(leaf, BLOCK_DIRTY, shift)[b / 64], b % 64);

		valid += v;
		dirty += d;
		flying += bit(leaf_blocks(leaf, BLOCK_WRITEBACK, shift)[b / 64], b % 64);
		if (d && !v)
			fault(a, leaf_first(leaf) + i, "a dirty block is not valid");
	}
	if (bit(leaf->uptodate, i) != (valid == n))
		fault(a, leaf_first(leaf) + i, "valid bit differs from its blocks");
	if (bit(leaf->tag[TAG_DIRTY], i) != (dirty > 0))
		fault(a, leaf_first(leaf) + i, "dirty bit differs from its blocks");
	if (bit(leaf->tag[TAG_WRITEBACK], i) != (flying > 0))
		fault(a, leaf_first(leaf) + i, "writeback bit differs from its blocks");
	if (bit(leaf->tag[TAG_FAILED], i) && !dirty && !flying)
		fault(a, leaf_first(leaf) + i, "failed, but neither dirty nor in flight");
	if (bit(leaf->tag[TAG_DROP], i) && !dirty)
		fault(a, leaf_first(leaf) + i, "to be dropped once it is written, but not dirty");
}

/* Adds one folio to the sums. */
static void count_folio(struct audit *a, struct folio *f)
{
	struct mapping *m = a->m;
	s32 n = (s32)folio_pages(f), dirty = 0, flying = 0;

	if (f->mapping != m || f->index % folio_pages(f))
		fault(a, f->index, "its folio lies about its place");
	for (u64 page = f->index; page < folio_end(f); page++) {
		struct leaf *leaf = index_leaf(&m->index, page);
		unsigned i = page % LEAF_PAGES;

		if (!leaf || !bit(leaf->tag[TAG_PRESENT], i) ||
		    leaf->folio[i] != folio_id(m->cache, f)) {
			fault(a, page, "not where its folio says");
			return;
		}
		check_blocks(a, leaf, i);
		if (!owed_is_right(f, page))
			fault(a, page, "its owner record says something else");
		dirty += bit(leaf->tag[TAG_DIRTY], i);
		flying += bit(leaf->tag[TAG_WRITEBACK], i);
	}
	a->pages += (u64)n;
	a->sum.level[LEVEL_DEBT] += dirty;
	a->sum.level[LEVEL_IN_FLIGHT] += flying;
	a->sum.level[LEVEL_FOLIO_DIRTY] += dirty ? n : 0;
	a->sum.level[LEVEL_FOLIO_WRITEBACK] += flying ? n : 0;
	a->sum.level[LEVEL_PINNED] += dirty || flying ? n : 0;
	if (atomic_load(&f->flags) & FOLIO_DROP) {
		a->sum.level[LEVEL_DROP] += dirty;
		a->sum.level[LEVEL_FOLIO_DROP] += dirty ? n : 0;
	}
}

/* Every tagged page must be found through the summaries, and be present. */
static void check_tag(struct audit *a, enum index_tag tag, u64 expected)
{
	struct mapping *m = a->m;
	u64 found = 0, page;

	for (u64 from = 0; index_next(&m->index, tag, from, &page); from = page + 1) {
		struct leaf *leaf = index_leaf(&m->index, page);

		found++;
		if (!leaf || !bit(leaf->tag[TAG_PRESENT], page % LEAF_PAGES))
			fault(a, page, "tagged but not present");
	}
	if (tag != TAG_TOWRITE && tag != TAG_FAILED && found != expected)
		fault(a, found, "summaries miss tagged pages (count of those found)");
}

static void compare(struct audit *a, const struct ledger *l, const char *whose)
{
	for (unsigned i = 0; i < LEVEL_MAX && a->ok; i++) {
		s64 kept = atomic_load(&l->level[i]);

		if (kept == a->sum.level[i])
			continue;
		snprintf(a->why, a->why_size, "%s: %s is %lld, the state words say %d", whose,
			 ledger_level_name(i), (long long)kept, a->sum.level[i]);
		a->ok = false;
	}
}

/* The identity of ledger.h, for pages and for folios. */
static void check_totals(struct audit *a, const struct ledger *l)
{
	u64 in = ledger_total(l, TOTAL_PAGES_DIRTIED) + ledger_total(l, TOTAL_PAGES_REDIRTIED);
	u64 out = ledger_total(l, TOTAL_PAGES_WRITTEN) + ledger_total(l, TOTAL_PAGES_CANCELLED);

	if (in - out != ledger_level(l, LEVEL_DEBT) + ledger_level(l, LEVEL_IN_FLIGHT))
		fault(a, 0, "page totals do not add up to the levels");
	in = ledger_total(l, TOTAL_FOLIO_DIRTIED) + ledger_total(l, TOTAL_FOLIO_REDIRTIED);
	out = ledger_total(l, TOTAL_FOLIO_WRITTEN) + ledger_total(l, TOTAL_FOLIO_CANCELLED);
	if (in - out != ledger_level(l, LEVEL_FOLIO_DIRTY) + ledger_level(l, LEVEL_FOLIO_WRITEBACK))
		fault(a, 0, "folio totals do not add up to the levels");
}

bool mapping_audit(struct mapping *m, struct ledger *sum, char *why, size_t why_size)
{
	struct audit a = { .m = m, .why = why, .why_size = why_size, .ok = true };
	u64 page;

	spin_lock(&m->tree_lock);
	for (u64 from = 0; index_next(&m->index, TAG_PRESENT, from, &page);) {
		struct folio *f =
			&m->cache->folios[index_leaf(&m->index, page)->folio[page % LEAF_PAGES]];

		count_folio(&a, f);
		from = folio_end(f);
	}
	if (a.pages != m->pages)
		fault(&a, a.pages, "pages cached are miscounted (count of those found)");
	if (m->in_flight != (u64)a.sum.level[LEVEL_IN_FLIGHT])
		fault(&a, m->in_flight, "pages in flight are miscounted (count kept)");
	check_tag(&a, TAG_DIRTY, (u64)a.sum.level[LEVEL_DEBT]);
	check_tag(&a, TAG_WRITEBACK, (u64)a.sum.level[LEVEL_IN_FLIGHT]);
	check_tag(&a, TAG_DROP, (u64)a.sum.level[LEVEL_DROP]);
	check_tag(&a, TAG_TOWRITE, 0);
	check_tag(&a, TAG_FAILED, 0);
	if (index_tagged(&m->index, TAG_FAILED) != (m->error != 0))
		fault(&a, 0, "the error kept does not agree with the failed pages");
	compare(&a, &m->ledger, "file");
	check_totals(&a, &m->ledger);
	spin_unlock(&m->tree_lock);
	if (sum)
		ledger_post(sum, &a.sum);
	return a.ok;
}

/* The counts of folios by order, against the lists. */
static void check_orders(struct audit *a, struct cache *c)
{
	u64 found[ARENA_ORDERS] = { 0 };

	spin_lock(&c->lru_lock);
	for (enum lru_list list = 0; list < LRU_LISTS; list++)
		for (u32 id = c->lru[list].first; id; id = c->links[id].next)
			found[c->folios[id].order]++;
	for (unsigned order = 0; order < ARENA_ORDERS; order++)
		if (found[order] != c->folios_of_order[order])
			fault(a, order, "folios of an order are miscounted (the order)");
	spin_unlock(&c->lru_lock);
}

bool cache_audit(struct cache *c, const struct ledger *sum, u64 cached_pages, char *why,
		 size_t why_size)
{
	struct audit a = { .why = why, .why_size = why_size, .ok = true };

	for (unsigned i = 0; i < LEVEL_MAX; i++)
		a.sum.level[i] = (s32)ledger_level(sum, i);
	compare(&a, &c->ledger, "cache");
	check_totals(&a, &c->ledger);
	if (cache_pages(c) != cached_pages)
		fault(&a, cached_pages, "the lists hold another number of pages (number cached)");
	check_orders(&a, c);
	if (!arena_is_valid(&c->arena))
		fault(&a, 0, "the arena is inconsistent");
	return a.ok;
}
