// SPDX-License-Identifier: MIT
/*
 * What each event does to the ledgers: the rows of the Linux writeback reference, section 3.1
 * (the folio view) and the rules of 3.2 and P1 (the page view), one after another.
 */
#include "rig.h"

static struct block_run runs[FOLIO_MAX_RUNS];

/* --- a write makes a clean folio dirty */

static void test_one_dirty_block_charges_a_page_and_a_folio(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 64, 6);
	struct dirtied d;

	(void)state;
	rig_expect(r);
	d = folio_set_dirty(f, 64 + 17, 1);
	assert_int_equal(d.pages, 1);
	assert_int_equal(d.folio_pages, 64);
	rig_expect(r, .debt = 1, .folio_dirty = 64, .pinned = 64, .dirtied = 1, .f_dirtied = 64);
	assert_true(folio_is_dirty(f));
	assert_int_equal(folio_dirty_pages(f), 1);
	rig_put(r, f);
	rig_close(r);
}

/* 512x for one 4 KiB block of a 2 MiB folio (P1). */
static void test_one_block_of_2_mib_charges_512_in_the_folio_view(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 512, 9);

	(void)state;
	folio_set_dirty(f, 1023, 1);
	rig_expect(r, .debt = 1, .folio_dirty = 512, .pinned = 512, .dirtied = 1, .f_dirtied = 512);
	rig_put(r, f);
	rig_close(r);
}

static void test_a_further_write_to_a_dirty_folio_charges_only_its_pages(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 4);
	struct dirtied d;

	(void)state;
	folio_set_dirty(f, 3, 1);
	d = folio_set_dirty(f, 2, 4); /* 3 is dirty already */
	assert_int_equal(d.pages, 3);
	assert_int_equal(d.folio_pages, 0);
	rig_expect(r, .debt = 4, .folio_dirty = 16, .pinned = 16, .dirtied = 4, .f_dirtied = 16);
	rig_put(r, f);
	rig_close(r);
}

static void test_writing_the_same_block_again_costs_nothing(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 4);

	(void)state;
	folio_set_dirty(f, 3, 1);
	for (unsigned i = 0; i < 3; i++) {
		struct dirtied d = folio_set_dirty(f, 3, 1);

		assert_int_equal(d.pages, 0);
		assert_int_equal(d.folio_pages, 0);
	}
	rig_expect(r, .debt = 1, .folio_dirty = 16, .pinned = 16, .dirtied = 1, .f_dirtied = 16);
	rig_put(r, f);
	rig_close(r);
}

static void test_a_whole_folio_overwrite_charges_the_same_in_both_views(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 64, 5);
	struct dirtied d = folio_set_dirty(f, 64, 32);

	(void)state;
	assert_int_equal(d.pages, 32);
	assert_int_equal(d.folio_pages, 32);
	rig_expect(r, .debt = 32, .folio_dirty = 32, .pinned = 32, .dirtied = 32, .f_dirtied = 32);
	rig_put(r, f);
	rig_close(r);
}

/* Writing makes blocks valid, and only those. */
static void test_dirty_blocks_are_valid(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = folio_alloc(&r->cache, 3);

	(void)state;
	folio_lock(f);
	assert_int_equal(mapping_add(&r->m, f, 8), 0);
	folio_set_dirty(f, 10, 2);
	assert_true(folio_blocks_uptodate(f, 10, 2));
	assert_false(folio_blocks_uptodate(f, 9, 2));
	assert_false(folio_is_uptodate(f));
	assert_int_equal(folio_next_invalid(f, 8, 8).first, 8);
	assert_int_equal(folio_next_invalid(f, 8, 8).count, 2);
	assert_int_equal(folio_next_invalid(f, 10, 6).first, 12);
	assert_int_equal(folio_next_invalid(f, 10, 6).count, 4);
	assert_int_equal(folio_next_invalid(f, 10, 2).count, 0);
	rig_put(r, f);
	rig_close(r);
}

/* --- several blocks in a page */

static void test_several_dirty_blocks_in_a_page_count_once(void **state)
{
	(void)state;
	for (u32 shift = 1; shift <= 3; shift++) {
		u32 n = 1u << shift; /* blocks in a page */
		struct rig *r = rig_open(1024, shift);
		struct folio *f = rig_folio(r, 64, 2);

		for (u32 b = 0; b < n; b++) {
			struct dirtied d = folio_set_dirty(f, (65 << shift) + b, 1);

			assert_int_equal(d.pages, b == 0);
			assert_int_equal(d.folio_pages, b == 0 ? 4 : 0);
			rig_expect(r, .debt = 1, .folio_dirty = 4, .pinned = 4, .dirtied = 1,
				   .f_dirtied = 4);
		}
		/* a block each of the two pages at the border of 66 and 67: two more */
		folio_set_dirty(f, (67 << shift) - 1, 2);
		rig_expect(r, .debt = 3, .folio_dirty = 4, .pinned = 4, .dirtied = 3,
			   .f_dirtied = 4);
		assert_int_equal(folio_dirty_pages(f), 3);
		rig_put(r, f);
		rig_close(r);
	}
}

/* The block words of 512-byte blocks hold 8 pages each: a range across three of them. */
static void test_small_blocks_across_words(void **state)
{
	struct rig *r = rig_open(1024, 3);
	struct folio *f = rig_folio(r, 0, 6);
	u32 n;

	(void)state;
	folio_set_dirty(f, 7 * 8 + 5, 12 * 8); /* from page 7.6 to page 19.6 */
	rig_expect(r, .debt = 13, .folio_dirty = 64, .pinned = 64, .dirtied = 13, .f_dirtied = 64);
	n = folio_begin_writeback(f, false, runs);
	assert_int_equal(n, 1);
	assert_int_equal(runs[0].first, 61);
	assert_int_equal(runs[0].count, 96);
	rig_expect(r, .flight = 13, .folio_flight = 64, .pinned = 64, .dirtied = 13,
		   .f_dirtied = 64);
	rig_put(r, f);
	mapping_end_writeback(&r->m, 61, 96, 0);
	rig_expect(r, .dirtied = 13, .written = 13, .f_dirtied = 64, .f_written = 64);
	rig_close(r);
}

static void test_small_blocks_are_valid_one_by_one(void **state)
{
	struct rig *r = rig_open(1024, 3);
	struct folio *f = folio_alloc(&r->cache, 1);
	struct block_run run;

	(void)state;
	folio_lock(f);
	assert_int_equal(mapping_add(&r->m, f, 0), 0);
	folio_set_uptodate(f, 3, 2);
	run = folio_next_invalid(f, 0, 16);
	assert_int_equal(run.first, 0);
	assert_int_equal(run.count, 3);
	run = folio_next_invalid(f, 4, 12);
	assert_int_equal(run.first, 5);
	assert_int_equal(run.count, 11); /* across the page border */
	folio_set_uptodate(f, 0, 8);
	assert_true(folio_blocks_uptodate(f, 0, 8));
	assert_false(folio_is_uptodate(f));
	folio_set_uptodate(f, 8, 8);
	assert_true(folio_is_uptodate(f));
	rig_expect(r);
	rig_put(r, f);
	rig_close(r);
}

/* --- write-out */

static void test_write_out_moves_debt_into_flight_and_ends(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 64, 6);
	u32 n;

	(void)state;
	folio_set_dirty(f, 70, 2);
	folio_set_dirty(f, 90, 1);
	n = folio_begin_writeback(f, false, runs);
	assert_int_equal(n, 2);
	assert_int_equal(runs[0].first, 70);
	assert_int_equal(runs[0].count, 2);
	assert_int_equal(runs[1].first, 90);
	assert_int_equal(runs[1].count, 1);
	assert_false(folio_is_dirty(f));
	assert_true(folio_in_writeback(f));
	/* one dirty page has become 64 in flight in the folio view (3.2 a) */
	rig_expect(r, .flight = 3, .folio_flight = 64, .pinned = 64, .dirtied = 3, .f_dirtied = 64);
	/* the folio stays charged whole until its last run completed (6.6) */
	mapping_end_writeback(&r->m, 90, 1, 0);
	rig_expect(r, .flight = 2, .folio_flight = 64, .pinned = 64, .dirtied = 3, .written = 1,
		   .f_dirtied = 64);
	mapping_end_writeback(&r->m, 70, 2, 0);
	rig_expect(r, .dirtied = 3, .written = 3, .f_dirtied = 64, .f_written = 64);
	assert_false(folio_in_writeback(f));
	rig_put(r, f);
	rig_close(r);
}

/* One I/O over the ends of three folios. */
static void test_one_completion_ends_several_folios(void **state)
{
	struct rig *r = rig_open(1024, 0);

	(void)state;
	for (u64 page = 0; page < 12; page += 4) {
		struct folio *f = rig_folio(r, page, 2);

		folio_set_dirty(f, page, 4);
		assert_int_equal(folio_begin_writeback(f, false, runs), 1);
		rig_put(r, f);
	}
	rig_expect(r, .flight = 12, .folio_flight = 12, .pinned = 12, .dirtied = 12,
		   .f_dirtied = 12);
	mapping_end_writeback(&r->m, 2, 8, 0); /* the middle folio as a whole, halves around it */
	rig_expect(r, .flight = 4, .folio_flight = 8, .pinned = 8, .dirtied = 12, .written = 8,
		   .f_dirtied = 12, .f_written = 4);
	mapping_end_writeback(&r->m, 0, 2, 0);
	mapping_end_writeback(&r->m, 10, 2, 0);
	rig_expect(r, .dirtied = 12, .written = 12, .f_dirtied = 12, .f_written = 12);
	rig_close(r);
}

/* linux-6.1: every valid block of a dirty folio goes along. */
static void test_whole_write_out_takes_clean_valid_blocks_along(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = folio_alloc(&r->cache, 4);

	(void)state;
	folio_lock(f);
	assert_int_equal(mapping_add(&r->m, f, 16), 0);
	folio_set_uptodate(f, 16, 4);
	folio_set_dirty(f, 18, 1);
	folio_set_dirty(f, 24, 1);
	assert_int_equal(folio_begin_writeback(f, true, runs), 2);
	assert_int_equal(runs[0].first, 16);
	assert_int_equal(runs[0].count, 4);
	assert_int_equal(runs[1].first, 24);
	assert_int_equal(runs[1].count, 1);
	rig_expect(r, .flight = 5, .folio_flight = 16, .pinned = 16, .dirtied = 2, .redirtied = 3,
		   .f_dirtied = 16);
	mapping_end_writeback(&r->m, 16, 4, 0);
	mapping_end_writeback(&r->m, 24, 1, 0);
	rig_expect(r, .dirtied = 2, .redirtied = 3, .written = 5, .f_dirtied = 16, .f_written = 16);
	rig_put(r, f);
	rig_close(r);
}

static void test_a_page_dirtied_in_flight_is_owed_and_in_flight_but_pinned_once(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 6);
	struct dirtied d;

	(void)state;
	folio_set_dirty(f, 5, 1);
	folio_begin_writeback(f, false, runs);
	d = folio_set_dirty(f, 5, 1);
	assert_int_equal(d.pages, 1);
	assert_int_equal(d.folio_pages, 64); /* the folio's clean->dirty edge again */
	rig_expect(r, .debt = 1, .flight = 1, .folio_dirty = 64, .folio_flight = 64, .pinned = 64,
		   .dirtied = 2, .f_dirtied = 128);
	mapping_end_writeback(&r->m, 5, 1, 0); /* the flight ends, the debt stays */
	rig_expect(r, .debt = 1, .folio_dirty = 64, .pinned = 64, .dirtied = 2, .written = 1,
		   .f_dirtied = 128, .f_written = 64);
	assert_true(folio_is_dirty(f));
	assert_false(folio_in_writeback(f));
	rig_put(r, f);
	rig_close(r);
}

static void test_another_page_dirtied_in_flight_keeps_the_folio_pinned(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 6);

	(void)state;
	folio_set_dirty(f, 5, 1);
	folio_begin_writeback(f, false, runs);
	folio_set_dirty(f, 40, 2);
	mapping_end_writeback(&r->m, 5, 1, 0);
	rig_expect(r, .debt = 2, .folio_dirty = 64, .pinned = 64, .dirtied = 3, .written = 1,
		   .f_dirtied = 128, .f_written = 64);
	assert_int_equal(folio_begin_writeback(f, false, runs), 1);
	assert_int_equal(runs[0].first, 40);
	mapping_end_writeback(&r->m, 40, 2, 0);
	rig_expect(r, .dirtied = 3, .written = 3, .f_dirtied = 128, .f_written = 128);
	rig_put(r, f);
	rig_close(r);
}

/* With small blocks the I/Os of one page may end apart: it is in flight until the last. */
static void test_a_page_lands_with_its_last_block(void **state)
{
	struct rig *r = rig_open(1024, 3);
	struct folio *f = rig_folio(r, 0, 0);

	(void)state;
	folio_set_dirty(f, 1, 2);
	folio_set_dirty(f, 6, 1);
	assert_int_equal(folio_begin_writeback(f, false, runs), 2);
	rig_expect(r, .flight = 1, .folio_flight = 1, .pinned = 1, .dirtied = 1, .f_dirtied = 1);
	mapping_end_writeback(&r->m, 1, 2, 0);
	rig_expect(r, .flight = 1, .folio_flight = 1, .pinned = 1, .dirtied = 1, .f_dirtied = 1);
	mapping_end_writeback(&r->m, 6, 1, 0);
	rig_expect(r, .dirtied = 1, .written = 1, .f_dirtied = 1, .f_written = 1);
	rig_put(r, f);
	rig_close(r);
}

/* --- folios of 2 MiB: eight leaves */

static void test_a_2_mib_folio_across_leaves(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 512, 9);
	u32 n;

	(void)state;
	folio_set_dirty(f, 512 + 60, 10); /* the end of its first leaf and the second's beginning */
	folio_set_dirty(f, 512 + 511, 1); /* its last page */
	folio_set_dirty(f, 512 + 128, 64); /* one leaf in full */
	rig_expect(r, .debt = 75, .folio_dirty = 512, .pinned = 512, .dirtied = 75,
		   .f_dirtied = 512);
	n = folio_begin_writeback(f, false, runs);
	assert_int_equal(n, 3);
	assert_int_equal(runs[0].first, 572); /* one run across the leaves' border */
	assert_int_equal(runs[0].count, 10);
	assert_int_equal(runs[1].first, 640);
	assert_int_equal(runs[1].count, 64);
	assert_int_equal(runs[2].first, 1023);
	assert_int_equal(runs[2].count, 1);
	for (u32 i = 0; i < n; i++)
		mapping_end_writeback(&r->m, runs[i].first, runs[i].count, 0);
	rig_expect(r, .dirtied = 75, .written = 75, .f_dirtied = 512, .f_written = 512);
	folio_set_dirty(f, 512, 512);
	assert_int_equal(folio_begin_writeback(f, false, runs), 1);
	assert_int_equal(runs[0].count, 512);
	mapping_end_writeback(&r->m, 512, 512, 0);
	rig_put(r, f);
	rig_close(r);
}

/* FOLIO_MAX_RUNS: every other 512-byte block of 2 MiB. */
static void test_the_most_runs_a_folio_can_have(void **state)
{
	struct rig *r = rig_open(1024, 3);
	struct folio *f = rig_folio(r, 0, 9);
	u32 n;

	(void)state;
	for (u32 b = 1; b < 4096; b += 2)
		folio_set_dirty(f, b, 1);
	rig_expect(r, .debt = 512, .folio_dirty = 512, .pinned = 512, .dirtied = 512,
		   .f_dirtied = 512);
	n = folio_begin_writeback(f, false, runs);
	assert_int_equal(n, FOLIO_MAX_RUNS);
	for (u32 i = 0; i < n; i++) {
		assert_int_equal(runs[i].first, 2 * i + 1);
		assert_int_equal(runs[i].count, 1);
		mapping_end_writeback(&r->m, runs[i].first, 1, 0);
	}
	rig_expect(r, .dirtied = 512, .written = 512, .f_dirtied = 512, .f_written = 512);
	rig_put(r, f);
	rig_close(r);
}

/* --- splitting a dirty folio */

/* State stays where it is; only what the clean halves pinned is given free. */
static void test_splitting_a_dirty_folio_changes_only_folio_levels(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 64, 6);

	(void)state;
	folio_set_dirty(f, 70, 1);
	assert_ptr_equal(folio_split(f, 70, 0, true), f);
	rig_expect(r, .debt = 1, .folio_dirty = 1, .pinned = 1, .dirtied = 1, .f_dirtied = 64,
		   .f_cancelled = 63);
	assert_int_equal(f->index, 70);
	assert_true(folio_is_dirty(f));
	folio_begin_writeback(f, false, runs);
	mapping_end_writeback(&r->m, 70, 1, 0);
	rig_expect(r, .dirtied = 1, .written = 1, .f_dirtied = 64, .f_cancelled = 63,
		   .f_written = 1);
	rig_put(r, f);
	rig_close(r);
}

static void test_splitting_with_dirt_on_both_sides_gives_nothing_free(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 3);

	(void)state;
	folio_set_dirty(f, 1, 1);
	folio_set_dirty(f, 6, 1);
	assert_ptr_equal(folio_split(f, 0, 2, true), f);
	rig_expect(r, .debt = 2, .folio_dirty = 8, .pinned = 8, .dirtied = 2, .f_dirtied = 8);
	assert_ptr_equal(folio_split(f, 0, 1, true), f);
	rig_expect(r, .debt = 2, .folio_dirty = 6, .pinned = 6, .dirtied = 2, .f_dirtied = 8,
		   .f_cancelled = 2);
	rig_put(r, f);
	rig_close(r);
}

/* --- tags of a sync */

static void test_towrite_is_what_was_dirty_in_the_range(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 7);
	u64 page;

	(void)state;
	folio_set_dirty(f, 3, 1);
	folio_set_dirty(f, 60, 10);
	folio_set_dirty(f, 100, 1);
	mapping_tag_towrite(&r->m, 62, 65);
	folio_set_dirty(f, 64, 2);
	folio_set_dirty(f, 80, 1); /* dirtied after the sync began */
	assert_true(index_next(&r->m.index, TAG_TOWRITE, 0, &page));
	assert_int_equal(page, 62);
	assert_int_equal(index_leaf(&r->m.index, 0)->tag[TAG_TOWRITE], 3ull << 62);
	assert_int_equal(index_leaf(&r->m.index, 64)->tag[TAG_TOWRITE], 3);
	/* what is cleaned loses the tag */
	folio_cancel_dirty(f, 0, 128);
	assert_false(index_tagged(&r->m.index, TAG_TOWRITE));
	rig_put(r, f);
	rig_close(r);
}

/* --- forgetting what the device knows better */

static void test_forgetting_leaves_what_is_dirty(void **state)
{
	(void)state;
	for (u32 shift = 0; shift <= 3; shift++) {
		struct rig *r = rig_open(1024, shift);
		struct folio *f = rig_folio(r, 0, 2);

		folio_set_dirty(f, 1, 1);
		folio_forget(f, 0, 3);
		assert_false(folio_blocks_uptodate(f, 0, 1));
		assert_true(folio_blocks_uptodate(f, 1, 1));
		assert_false(folio_blocks_uptodate(f, 2, 1));
		assert_true(folio_blocks_uptodate(f, 3, 1));
		assert_false(folio_is_uptodate(f));
		rig_expect(r, .debt = 1, .folio_dirty = 4, .pinned = 4, .dirtied = 1,
			   .f_dirtied = 4);
		rig_put(r, f);
		rig_close(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_dirty_block_charges_a_page_and_a_folio),
		cmocka_unit_test(test_one_block_of_2_mib_charges_512_in_the_folio_view),
		cmocka_unit_test(test_a_further_write_to_a_dirty_folio_charges_only_its_pages),
		cmocka_unit_test(test_writing_the_same_block_again_costs_nothing),
		cmocka_unit_test(test_a_whole_folio_overwrite_charges_the_same_in_both_views),
		cmocka_unit_test(test_dirty_blocks_are_valid),
		cmocka_unit_test(test_several_dirty_blocks_in_a_page_count_once),
		cmocka_unit_test(test_small_blocks_across_words),
		cmocka_unit_test(test_small_blocks_are_valid_one_by_one),
		cmocka_unit_test(test_write_out_moves_debt_into_flight_and_ends),
		cmocka_unit_test(test_one_completion_ends_several_folios),
		cmocka_unit_test(test_whole_write_out_takes_clean_valid_blocks_along),
		cmocka_unit_test(
			test_a_page_dirtied_in_flight_is_owed_and_in_flight_but_pinned_once),
		cmocka_unit_test(test_another_page_dirtied_in_flight_keeps_the_folio_pinned),
		cmocka_unit_test(test_a_page_lands_with_its_last_block),
		cmocka_unit_test(test_a_2_mib_folio_across_leaves),
		cmocka_unit_test(test_the_most_runs_a_folio_can_have),
		cmocka_unit_test(test_splitting_a_dirty_folio_changes_only_folio_levels),
		cmocka_unit_test(test_splitting_with_dirt_on_both_sides_gives_nothing_free),
		cmocka_unit_test(test_towrite_is_what_was_dirty_in_the_range),
		cmocka_unit_test(test_forgetting_leaves_what_is_dirty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
