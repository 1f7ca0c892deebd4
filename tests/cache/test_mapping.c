// SPDX-License-Identifier: MIT
/* Mappings against an array that says which folio covers each page. */
#include "base/rng.h"
#include "rig.h"
#include <errno.h>

static void test_a_folio_is_found_at_each_of_its_pages(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 512, 9);

	(void)state;
	for (u64 page = 512; page < 1024; page++) {
		assert_ptr_equal(mapping_find(&r->m, page), f);
		folio_unpin(&r->cache, f);
	}
	assert_null(mapping_find(&r->m, 511));
	assert_null(mapping_find(&r->m, 1024));
	assert_ptr_equal(mapping_find_from(&r->m, 0), f);
	folio_unpin(&r->cache, f);
	assert_ptr_equal(mapping_find_from(&r->m, 1023), f);
	folio_unpin(&r->cache, f);
	assert_null(mapping_find_from(&r->m, 1024));
	assert_int_equal(r->m.pages, 512);
	rig_put(r, f);
	rig_close(r);
}

/* One page of it cached is enough to refuse the whole, and then nothing has changed. */
static void test_add_refuses_what_is_cached(void **state)
{
	struct rig *r = rig_open(2048, 0);
	struct folio *one = rig_folio(r, 700, 0), *large = folio_alloc(&r->cache, 9);
	u64 leaves = r->m.index.leaves;

	(void)state;
	assert_int_equal(mapping_add(&r->m, large, 512), -EEXIST);
	assert_null(large->mapping);
	assert_int_equal(atomic_load(&large->pins), 1);
	assert_int_equal(r->m.pages, 1);
	assert_int_equal(r->m.index.leaves, leaves); /* those made for it went again */
	assert_null(mapping_find(&r->m, 699));
	assert_int_equal(mapping_add(&r->m, large, 1024), 0);
	assert_int_equal(atomic_load(&large->pins), 2);
	folio_unpin(&r->cache, large);
	rig_put(r, one);
	rig_close(r);
}

static void test_the_last_page_there_is(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, INDEX_MAX_PAGES - 64, 6);

	(void)state;
	assert_int_equal(folio_end(f), INDEX_MAX_PAGES);
	folio_set_dirty(f, INDEX_MAX_PAGES - 1, 1);
	rig_expect(r, .debt = 1, .folio_dirty = 64, .pinned = 64, .dirtied = 1, .f_dirtied = 64);
	folio_cancel_dirty(f, INDEX_MAX_PAGES - 64, 64);
	rig_put(r, f);
	f = folio_alloc(&r->cache, 0);
	assert_int_equal(mapping_add(&r->m, f, INDEX_MAX_PAGES), -EFBIG);
	folio_unpin(&r->cache, f);
	rig_close(r);
}

static void test_evict_takes_only_what_is_clean_and_idle(void **state)
{
	static struct block_run runs[FOLIO_MAX_RUNS];
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 64, 3);

	(void)state;
	folio_set_dirty(f, 71, 1);
	assert_false(mapping_evict(f, 1));
	folio_begin_writeback(f, false, runs);
	assert_false(mapping_evict(f, 1));
	mapping_end_writeback(&r->m, 71, 1, 0);
	folio_pin(f);
	assert_false(mapping_evict(f, 1));
	folio_unpin(&r->cache, f);
	assert_int_equal(r->m.pages, 8);
	assert_true(mapping_evict(f, 1));
	assert_null(f->mapping);
	assert_null(mapping_find(&r->m, 64));
	assert_int_equal(r->m.pages, 0);
	assert_int_equal(arena_free_frames(&r->cache.arena), 1024 - 8); /* we hold it still */
	rig_put(r, f);
	assert_int_equal(arena_free_frames(&r->cache.arena), 1024);
	rig_close(r);
}

/* What is put where a folio was begins without any of its state. */
static void test_state_goes_with_the_folio(void **state)
{
	(void)state;
	for (u32 shift = 0; shift <= 3; shift++) {
		struct rig *r = rig_open(1024, shift);
		struct folio *f = rig_folio(r, 64, 2);

		folio_set_dirty(f, 65 << shift, 1);
		mapping_remove(&r->m, f);
		rig_put(r, f);
		f = folio_alloc(&r->cache, 2);
		folio_lock(f);
		assert_int_equal(mapping_add(&r->m, f, 64), 0);
		assert_int_equal(folio_next_invalid(f, 64 << shift, 4 << shift).count, 4 << shift);
		assert_false(folio_is_dirty(f));
		rig_put(r, f);
		rig_close(r);
	}
}

static void test_holes_and_runs_before(void **state)
{
	struct rig *r = rig_open(1024, 0);

	(void)state;
	/* cached: 0-3, 60-67, 128-191 */
	rig_put(r, rig_folio(r, 0, 2));
	rig_put(r, rig_folio(r, 60, 2));
	rig_put(r, rig_folio(r, 64, 2));
	rig_put(r, rig_folio(r, 128, 6));
	assert_int_equal(mapping_next_hole(&r->m, 0, 1000), 4);
	assert_int_equal(mapping_next_hole(&r->m, 4, 1000), 4);
	assert_int_equal(mapping_next_hole(&r->m, 61, 1000), 68);
	assert_int_equal(mapping_next_hole(&r->m, 61, 66), 66);
	assert_int_equal(mapping_next_hole(&r->m, 130, 1000), 192);
	assert_int_equal(mapping_next_hole(&r->m, 1 << 20, 1 << 21), 1 << 20);
	assert_int_equal(mapping_cached_before(&r->m, 0, 100), 0);
	assert_int_equal(mapping_cached_before(&r->m, 4, 100), 4);
	assert_int_equal(mapping_cached_before(&r->m, 5, 100), 0);
	assert_int_equal(mapping_cached_before(&r->m, 68, 100), 8);
	assert_int_equal(mapping_cached_before(&r->m, 66, 100), 6);
	assert_int_equal(mapping_cached_before(&r->m, 66, 5), 5);
	assert_int_equal(mapping_cached_before(&r->m, 192, 100), 64);
	assert_int_equal(mapping_cached_before(&r->m, 192, 10), 10);
	assert_int_equal(mapping_cached_before(&r->m, 1 << 20, 10), 0);
	rig_close(r);
}

#define PAGES 512

struct model {
	u32 id[PAGES]; /* of the folio, or 0 */
};

static void check_page(struct rig *r, const struct model *m, u64 page, u64 limit)
{
	struct folio *f = mapping_find(&r->m, page);
	u64 at = page, before = 0;

	assert_int_equal(f ? folio_id(&r->cache, f) : 0, m->id[page]);
	if (f)
		folio_unpin(&r->cache, f);
	while (at < PAGES && m->id[at])
		at++;
	assert_int_equal(mapping_next_hole(&r->m, page, page + limit), min_u64(at, page + limit));
	while (before < page && m->id[page - 1 - before])
		before++;
	assert_int_equal(mapping_cached_before(&r->m, page, limit), min_u64(before, limit));
	for (at = page; at < PAGES && !m->id[at];)
		at++;
	f = mapping_find_from(&r->m, page);
	assert_int_equal(f ? folio_id(&r->cache, f) : 0, at < PAGES ? m->id[at] : 0);
	if (f)
		folio_unpin(&r->cache, f);
}

static void test_random_use_against_an_array(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct model m = { 0 };
	u64 cached = 0;
	struct rng rng;

	(void)state;
	rng_init(&rng, 11);
	for (unsigned step = 0; step < 20000; step++) {
		u64 page = rng_below(&rng, PAGES);
		struct folio *f;

		if (rng_below(&rng, 100) < (step / 2000 % 2 ? 30 : 70)) {
			unsigned order = (unsigned)rng_below(&rng, 1 + rng_below(&rng, 9));
			u64 first = round_down(page, 1u << order), free_pages = 0;
			int rc;

			for (u64 i = first; i < first + (1u << order); i++)
				free_pages += !m.id[i];
			f = folio_alloc(&r->cache, order);
			rc = mapping_add(&r->m, f, first);
			assert_int_equal(rc, free_pages == 1u << order ? 0 : -EEXIST);
			for (u64 i = 0; !rc && i < 1u << order; i++)
				m.id[first + i] = folio_id(&r->cache, f);
			cached += rc ? 0 : 1u << order;
			folio_unpin(&r->cache, f);
		} else if (m.id[page]) {
			u64 pages;

			f = rig_get(r, page);
			pages = folio_pages(f);
			for (u64 i = 0; i < pages; i++)
				m.id[f->index + i] = 0;
			if (step % 2)
				mapping_remove(&r->m, f);
			else
				assert_true(mapping_evict(f, 1));
			cached -= pages;
			rig_put(r, f);
		}
		assert_int_equal(r->m.pages, cached);
		assert_int_equal(cache_pages(&r->cache), cached);
		check_page(r, &m, rng_below(&rng, PAGES), rng_below(&rng, 200));
	}
	rig_expect(r);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_folio_is_found_at_each_of_its_pages),
		cmocka_unit_test(test_add_refuses_what_is_cached),
		cmocka_unit_test(test_the_last_page_there_is),
		cmocka_unit_test(test_evict_takes_only_what_is_clean_and_idle),
		cmocka_unit_test(test_state_goes_with_the_folio),
		cmocka_unit_test(test_holes_and_runs_before),
		cmocka_unit_test(test_random_use_against_an_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
