/* SPDX-License-Identifier: MIT */
/*
 * A cache with one mapping over a store on a memory device, and ledgers spelled out: each
 * expectation is checked on the books of the file, its device and the cache alike, and against
 * the audit.
 */
#ifndef SLUICE_TESTS_CACHE_RIG_H
#define SLUICE_TESTS_CACHE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/fill.h"
#include "cache/readahead.h"
#include "cache/state.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

struct rig {
	struct cache cache;
	struct device *device;
	struct store *store;
	struct ledger device_book;
	struct mapping m;
};

static inline struct rig *rig_open_config(const struct cache_config *config, u32 block_shift,
					  unsigned max_order)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct device_config d;

	assert_non_null(r);
	assert_int_equal(device_config_init(&d, "memory"), 0);
	d.max_io_bytes = 16 << 20; /* as good as none: an I/O is counted once */
	assert_int_equal(device_create(&d, &r->device), 0);
	assert_int_equal(store_create(r->device, config->contents, &r->store), 0);
	assert_int_equal(cache_init(&r->cache, config), 0);
	ledger_init(&r->device_book);
	mapping_init(&r->m, &r->cache, r->store, block_shift, max_order, &r->device_book);
	return r;
}

static inline struct rig *rig_open(u64 memory_pages, u32 block_shift)
{
	struct cache_config config = { .memory_pages = memory_pages };

	return rig_open_config(&config, block_shift, ARENA_MAX_ORDER);
}

/* Truncates whatever is left, and frees all. */
static inline void rig_close(struct rig *r)
{
	struct folio *f;

	while ((f = mapping_find_from(&r->m, 0))) {
		assert_true(folio_trylock(f)); /* or a test left a lock behind */
		mapping_remove(&r->m, f);
		folio_unlock(f);
		folio_unpin(&r->cache, f);
	}
	mapping_finish(&r->m);
	cache_finish(&r->cache);
	store_destroy(r->store);
	device_destroy(r->device);
	free(r);
}

/* A new folio in the mapping, valid, locked and pinned. */
static inline struct folio *rig_folio(struct rig *r, u64 page, unsigned order)
{
	struct folio *f = folio_alloc(&r->cache, order);
	u32 shift = r->m.block_shift;

	assert_non_null(f);
	folio_lock(f);
	assert_int_equal(mapping_add(&r->m, f, page), 0);
	folio_set_uptodate(f, page << shift, 1u << order << shift);
	return f;
}

static inline void rig_put(struct rig *r, struct folio *f)
{
	folio_unlock(f);
	folio_unpin(&r->cache, f);
}

/* Locks and pins the folio at a page. */
static inline struct folio *rig_get(struct rig *r, u64 page)
{
	struct folio *f = mapping_find(&r->m, page);

	assert_non_null(f);
	folio_lock(f);
	return f;
}

/* The order of the cached folio at a page, or -1. */
static inline int rig_order(struct rig *r, u64 page)
{
	struct folio *f = mapping_find(&r->m, page);
	int order = f ? f->order : -1;

	if (f)
		folio_unpin(&r->cache, f);
	return order;
}

/* All of a ledger, in pages. */
struct book {
	u64 debt, flight, folio_dirty, folio_flight, pinned; /* levels */
	u64 dirtied, written, cancelled, redirtied;          /* totals by page */
	u64 f_dirtied, f_written, f_cancelled, f_redirtied;  /* ... and by folio */
};

static inline void rig_expect_ledger(const struct ledger *l, const struct book *b, const char *file,
				     int line)
{
	const u64 levels[LEVEL_MAX] = {
		[LEVEL_DEBT] = b->debt,
		[LEVEL_IN_FLIGHT] = b->flight,
		[LEVEL_FOLIO_DIRTY] = b->folio_dirty,
		[LEVEL_FOLIO_WRITEBACK] = b->folio_flight,
		[LEVEL_PINNED] = b->pinned,
	};
	const u64 totals[TOTAL_MAX] = {
		[TOTAL_PAGES_DIRTIED] = b->dirtied,       [TOTAL_PAGES_WRITTEN] = b->written,
		[TOTAL_PAGES_CANCELLED] = b->cancelled,   [TOTAL_PAGES_REDIRTIED] = b->redirtied,
		[TOTAL_FOLIO_DIRTIED] = b->f_dirtied,     [TOTAL_FOLIO_WRITTEN] = b->f_written,
		[TOTAL_FOLIO_CANCELLED] = b->f_cancelled, [TOTAL_FOLIO_REDIRTIED] = b->f_redirtied,
	};

	for (unsigned i = 0; i < LEVEL_MAX; i++)
		if (ledger_level(l, i) != levels[i]) {
			print_error("%s is %llu, not %llu\n", ledger_level_name(i),
				    (unsigned long long)ledger_level(l, i),
				    (unsigned long long)levels[i]);
			_fail(file, line);
		}
	for (unsigned i = 0; i < TOTAL_MAX; i++)
		if (ledger_total(l, i) != totals[i]) {
			print_error("%s is %llu, not %llu\n", ledger_total_name(i),
				    (unsigned long long)ledger_total(l, i),
				    (unsigned long long)totals[i]);
			_fail(file, line);
		}
}

static inline void rig_expect_at(struct rig *r, const struct book *b, const char *file, int line)
{
	struct ledger sum;
	char why[200] = "";

	rig_expect_ledger(&r->m.ledger, b, file, line);
	rig_expect_ledger(&r->device_book, b, file, line);
	rig_expect_ledger(&r->cache.ledger, b, file, line);
	ledger_init(&sum);
	if (!mapping_audit(&r->m, &sum, why, sizeof(why)) ||
	    !cache_audit(&r->cache, &sum, r->m.pages, why, sizeof(why))) {
		print_error("audit: %s\n", why);
		_fail(file, line);
	}
}

/* rig_expect(r, .debt = 1, ...): what is not named is 0. */
#define rig_expect(r, ...) rig_expect_at(r, &(struct book){ __VA_ARGS__ }, __FILE__, __LINE__)

#endif
