// SPDX-License-Identifier: MIT
/* Splitting: which pieces there are, when it is refused, and that nothing moves. */
#include "base/rng.h"
#include "rig.h"

static struct block_run runs[FOLIO_MAX_RUNS];

/*
 * Cuts [0, 2^order) around a page down to r as a buddy allocator does: expects order[i] to be
 * that of the piece which begins at page i, or -1.
 */
static void expected_pieces(unsigned order, u64 page, unsigned r, int *piece)
{
	u64 first = 0;

	for (u64 i = 0; i < 1u << order; i++)
		piece[i] = -1;
	while (order > r) {
		u64 half = 1ull << --order;

		if (page >= first + half) {
			piece[first] = (int)order;
			first += half;
		} else {
			piece[first + half] = (int)order;
		}
	}
	piece[first] = (int)order;
}

/* All folios of the file, in order: their places, sizes and frames. */
static void expect_pieces(struct rig *r, u64 base, u32 frame, unsigned order, const int *piece)
{
	u64 at = 0;

	while (at < 1u << order) {
		struct folio *f = mapping_find(&r->m, base + at);

		assert_non_null(f);
		assert_int_equal(f->index, base + at);
		assert_int_equal(f->order, piece[at]);
		assert_int_equal(f->frame, frame + at); /* contents do not move */
		assert_ptr_equal(f->mapping, &r->m);
		at += folio_pages(f);
		folio_unpin(&r->cache, f);
	}
	assert_int_equal(at, 1u << order);
}

/* For every order, every smaller one, and several pages: o-1, o-2, ..., r+1, r, r. */
static void test_pieces_are_a_buddy_allocators(void **state)
{
	(void)state;
	for (unsigned order = 1; order <= 9; order++) {
		for (unsigned r = 0; r < order; r++) {
			u64 size = 1ull << order;
			u64 pages[] = { 0, size - 1, size / 2, size / 3, size * 5 / 7 };

			for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
				struct rig *rig = rig_open(1024, 0);
				struct folio *f = rig_folio(rig, 512, order);
				u32 frame = f->frame;
				int piece[512];

				expected_pieces(order, pages[i], r, piece);
				assert_ptr_equal(folio_split(f, 512 + pages[i], r, false), f);
				assert_int_equal(f->order, r);
				assert_true(512 + pages[i] >= f->index);
				assert_true(512 + pages[i] < folio_end(f));
				assert_true(folio_is_locked(f));
				expect_pieces(rig, 512, frame, order, piece);
				/* one piece more than halvings, all listed */
				assert_int_equal(rig->cache.lru[LRU_INACTIVE].folios,
						 order - r + 1);
				assert_int_equal(cache_pages(&rig->cache), size);
				assert_int_equal(rig->m.pages, size);
				rig_put(rig, f);
				rig_expect(rig);
				rig_close(rig);
			}
		}
	}
}

/* An example written out: 256 KiB for a 4 KiB write at its page 5. */
static void test_a_256_kib_folio_split_at_page_5(void **state)
{
	/* 0-3, 4, 5, 6-7, 8-15, 16-31, 32-63 */
	static const struct {
		u64 page;
		int order;
	} pieces[] = { { 0, 2 }, { 4, 0 }, { 5, 0 }, { 6, 1 }, { 8, 3 }, { 16, 4 }, { 32, 5 } };
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 64, 6);

	(void)state;
	assert_non_null(folio_split(f, 69, 0, false));
	rig_put(r, f);
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
		assert_int_equal(rig_order(r, 64 + pieces[i].page), pieces[i].order);
	assert_int_equal(r->cache.stats.folios_split, 1);
	rig_close(r);
}

static void test_splitting_to_its_own_order_changes_nothing(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 64, 4);

	(void)state;
	assert_ptr_equal(folio_split(f, 70, 4, false), f);
	assert_int_equal(f->order, 4);
	assert_int_equal(r->cache.lru[LRU_INACTIVE].folios, 1);
	rig_put(r, f);
	rig_close(r);
}

static void test_valid_and_dirty_blocks_stay_in_place(void **state)
{
	struct rig *r = rig_open(1024, 2);
	struct folio *f = folio_alloc(&r->cache, 5);
	struct folio *g;

	(void)state;
	folio_lock(f);
	assert_int_equal(mapping_add(&r->m, f, 32), 0);
	folio_set_uptodate(f, 32 * 4 + 7, 50);
	folio_set_dirty(f, 40 * 4 + 1, 2);
	assert_non_null(folio_split(f, 40, 1, true));
	assert_int_equal(f->index, 40);
	assert_int_equal(folio_dirty_pages(f), 1);
	rig_put(r, f);
	g = rig_get(r, 32);
	assert_int_equal(g->order, 3);
	assert_false(folio_is_dirty(g));
	assert_true(folio_blocks_uptodate(g, 32 * 4 + 7, 25));
	assert_false(folio_blocks_uptodate(g, 32 * 4 + 6, 1));
	rig_put(r, g);
	g = rig_get(r, 44);
	assert_int_equal(g->index, 44);
	assert_int_equal(g->order, 2);
	assert_true(folio_blocks_uptodate(g, 44 * 4, 9)); /* up to block 32 * 4 + 56 */
	assert_false(folio_blocks_uptodate(g, 44 * 4 + 9, 1));
	rig_put(r, g);
	rig_close(r);
}

static void test_contents_are_preserved(void **state)
{
	struct cache_config config = { .memory_pages = 256, .contents = true };
	struct rig *r = rig_open_config(&config, 0, 9);
	struct folio *f = rig_folio(r, 64, 6);
	u8 page[PAGE_SIZE];

	(void)state;
	for (u64 p = 64; p < 128; p++)
		memset(folio_address(f, p << PAGE_SHIFT), (int)p, PAGE_SIZE);
	assert_non_null(folio_split(f, 99, 0, false));
	rig_put(r, f);
	for (u64 p = 64; p < 128; p++) {
		f = mapping_find(&r->m, p);
		memset(page, (int)p, PAGE_SIZE);
		assert_memory_equal(folio_address(f, p << PAGE_SHIFT), page, PAGE_SIZE);
		folio_unpin(&r->cache, f);
	}
	rig_close(r);
}

/* Each piece gives back its own frames, and they join again. */
static void test_pieces_are_freed_one_by_one(void **state)
{
	struct rig *r = rig_open(64, 0);
	struct folio *f = rig_folio(r, 0, 6);

	(void)state;
	assert_non_null(folio_split(f, 37, 0, false));
	rig_put(r, f);
	for (u64 p = 0; p < 64;) {
		u32 before = arena_free_frames(&r->cache.arena);
		u64 end;

		f = rig_get(r, p);
		end = folio_end(f);
		assert_true(mapping_evict(f, 1));
		rig_put(r, f);
		assert_int_equal(arena_free_frames(&r->cache.arena), before + end - p);
		p = end;
	}
	assert_int_equal(r->cache.arena.free_runs[6], 1);
	rig_close(r);
}

/* Pieces stay beside each other where the folio stood in the list, on the same list. */
static void test_pieces_keep_their_place_in_the_list(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *old, *f, *young, *at;

	(void)state;
	old = rig_folio(r, 0, 0);
	f = rig_folio(r, 64, 2);
	young = rig_folio(r, 128, 0);
	lru_move(&r->cache, young, LRU_ACTIVE);
	lru_move(&r->cache, f, LRU_ACTIVE);
	lru_move(&r->cache, old, LRU_ACTIVE); /* first to last: old, f, young */
	assert_non_null(folio_split(f, 64, 0, false));
	assert_int_equal(r->cache.lru[LRU_ACTIVE].folios, 5);
	assert_int_equal(r->cache.lru[LRU_ACTIVE].pages, 6);
	assert_int_equal(r->cache.lru[LRU_INACTIVE].folios, 0);
	at = &r->cache.folios[r->cache.lru[LRU_ACTIVE].first];
	assert_ptr_equal(at, old);
	at = &r->cache.folios[folio_links(&r->cache, at)->next];
	assert_ptr_equal(at, f);
	for (unsigned i = 0; i < 2; i++) {
		at = &r->cache.folios[folio_links(&r->cache, at)->next];
		assert_in_range(at->index, 65, 66);
	}
	at = &r->cache.folios[folio_links(&r->cache, at)->next];
	assert_ptr_equal(at, young);
	rig_put(r, old);
	rig_put(r, f);
	rig_put(r, young);
	rig_close(r);
}

/* --- refusals: the folio is as it was */

static void test_a_pin_refuses(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 4);

	(void)state;
	folio_pin(f);
	assert_null(folio_split(f, 0, 0, true));
	folio_set_dirty(f, 3, 1);
	assert_ptr_equal(folio_shed(f, 3), f);
	assert_int_equal(f->order, 4);
	folio_unpin(&r->cache, f);
	assert_non_null(folio_split(f, 0, 0, true));
	rig_put(r, f);
	rig_close(r);
}

static void test_dirt_refuses_unless_asked(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 9);

	(void)state;
	folio_set_dirty(f, 511, 1);
	assert_null(folio_split(f, 0, 0, false));
	assert_int_equal(f->order, 9);
	assert_int_equal(r->cache.stats.folios_split, 0);
	assert_non_null(folio_split(f, 0, 0, true));
	rig_put(r, f);
	rig_close(r);
}

static void test_flight_refuses(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 64, 6);

	(void)state;
	folio_set_dirty(f, 100, 1);
	folio_begin_writeback(f, false, runs);
	assert_null(folio_split(f, 64, 0, true));
	folio_set_dirty(f, 70, 1);
	assert_null(folio_split(f, 64, 0, true));
	assert_ptr_equal(folio_shed(f, 70), f);
	assert_int_equal(f->order, 6);
	mapping_end_writeback(&r->m, 100, 1, 0);
	/* another folio's flight is no obstacle */
	{
		struct folio *g = rig_folio(r, 128, 2);

		folio_set_dirty(g, 128, 1);
		folio_begin_writeback(g, false, runs);
		assert_non_null(folio_split(f, 64, 0, true));
		mapping_end_writeback(&r->m, 128, 1, 0);
		rig_put(r, g);
	}
	rig_put(r, f);
	rig_close(r);
}

/* Descriptors are as many as frames: with all but two taken, a split of order 6 stops short. */
static void test_without_descriptors_a_split_stops_at_what_it_got(void **state)
{
	struct rig *r = rig_open(128, 0);
	struct folio *f = rig_folio(r, 64, 6), *hoard[128];
	unsigned n = 0;

	(void)state;
	while ((hoard[n] = folio_descriptor(&r->cache, 0, 0)))
		n++;
	assert_int_equal(n, 127); /* f has the other */
	assert_null(folio_split(f, 64, 0, false));
	assert_int_equal(f->order, 6);
	r->cache.table_used -= 2; /* the two taken last are to be had again */
	atomic_store(&hoard[n - 1]->pins, 0);
	atomic_store(&hoard[n - 2]->pins, 0);
	assert_null(folio_split(f, 64, 0, false));
	assert_int_equal(f->order, 4);
	assert_int_equal(f->index, 64);
	rig_put(r, f);
	assert_int_equal(rig_order(r, 80), 4);
	assert_int_equal(rig_order(r, 96), 5);
	rig_expect(r);
	rig_close(r);
}

/* --- shedding */

static void test_shed_leaves_a_clean_or_wholly_dirty_folio_alone(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 5);

	(void)state;
	assert_ptr_equal(folio_shed(f, 7), f);
	assert_int_equal(f->order, 5);
	folio_set_dirty(f, 0, 32);
	assert_ptr_equal(folio_shed(f, 7), f);
	assert_int_equal(f->order, 5);
	assert_int_equal(r->cache.stats.folios_split, 0);
	rig_put(r, f);
	rig_close(r);
}

/* Page 5 of 64: clean 0-3, 4, dirty 5, clean 6-7, 8-15, 16-31, 32-63. */
static void test_shed_of_one_dirty_page(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 6);

	(void)state;
	folio_set_dirty(f, 5, 1);
	assert_ptr_equal(folio_shed(f, 40), f); /* the caller may stand anywhere */
	assert_int_equal(f->index, 32);
	assert_int_equal(f->order, 5);
	rig_put(r, f);
	assert_int_equal(rig_order(r, 0), 2);
	assert_int_equal(rig_order(r, 4), 0);
	assert_int_equal(rig_order(r, 5), 0);
	assert_int_equal(rig_order(r, 6), 1);
	assert_int_equal(rig_order(r, 8), 3);
	assert_int_equal(rig_order(r, 16), 4);
	rig_expect(r, .debt = 1, .folio_dirty = 1, .pinned = 1, .dirtied = 1, .f_dirtied = 64,
		   .f_cancelled = 63);
	/* and reclaim can have the 63 */
	assert_int_equal(cache_drop_clean(&r->cache), 63);
	rig_close(r);
}

static void test_after_shedding_folios_are_all_dirty_or_all_clean(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 3);
	for (unsigned round = 0; round < 200; round++) {
		u32 shift = (u32)rng_below(&rng, 4);
		struct rig *r = rig_open(1024, shift);
		unsigned order = 1 + (unsigned)rng_below(&rng, 9);
		struct folio *f = rig_folio(r, 512, order);
		u64 dirty = 0, size = 1ull << order, page;
		bool is_dirty[512] = { 0 };

		for (unsigned i = 0; i <= round % 5; i++) {
			u64 first = rng_below(&rng, size << shift), stop;
			u32 n = 1 + (u32)rng_below(&rng, min_u64((size << shift) - first, 64));

			folio_set_dirty(f, (512 << shift) + first, n);
			stop = (first + n - 1) >> shift;
			for (u64 p = first >> shift; p <= stop; p++)
				is_dirty[p] = true;
		}
		page = rng_below(&rng, size);
		assert_ptr_equal(folio_shed(f, 512 + page), f);
		assert_true(512 + page >= f->index && 512 + page < folio_end(f));
		rig_put(r, f);
		for (u64 p = 0; p < size;) {
			u64 pages, here = 0;

			f = mapping_find(&r->m, 512 + p);
			pages = folio_pages(f);
			for (u64 i = 0; i < pages; i++)
				here += is_dirty[p + i];
			assert_true(here == 0 || here == pages);
			assert_int_equal(folio_dirty_pages(f), here);
			/* and no more pieces than that takes: the buddy would not do */
			if (pages < size) {
				u64 buddy = p ^ pages, there = 0;

				for (u64 i = 0; i < pages; i++)
					there += is_dirty[buddy + i];
				assert_true(here + there > 0 && here + there < 2 * pages);
			}
			dirty += here;
			p += pages;
			folio_unpin(&r->cache, f);
		}
		assert_int_equal(ledger_level(&r->cache.ledger, LEVEL_PINNED), dirty);
		assert_int_equal(ledger_level(&r->cache.ledger, LEVEL_DEBT), dirty);
		rig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces_are_a_buddy_allocators),
		cmocka_unit_test(test_a_256_kib_folio_split_at_page_5),
		cmocka_unit_test(test_splitting_to_its_own_order_changes_nothing),
		cmocka_unit_test(test_valid_and_dirty_blocks_stay_in_place),
		cmocka_unit_test(test_contents_are_preserved),
		cmocka_unit_test(test_pieces_are_freed_one_by_one),
		cmocka_unit_test(test_pieces_keep_their_place_in_the_list),
		cmocka_unit_test(test_a_pin_refuses),
		cmocka_unit_test(test_dirt_refuses_unless_asked),
		cmocka_unit_test(test_flight_refuses),
		cmocka_unit_test(test_without_descriptors_a_split_stops_at_what_it_got),
		cmocka_unit_test(test_shed_leaves_a_clean_or_wholly_dirty_folio_alone),
		cmocka_unit_test(test_shed_of_one_dirty_page),
		cmocka_unit_test(test_after_shedding_folios_are_all_dirty_or_all_clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
