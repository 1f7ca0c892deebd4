// SPDX-License-Identifier: MIT
/*
 * Dirty pages that do not end as written: write-out that fails, truncation; and a random life of
 * everything, in which the identity of the ledgers holds at every step. Linux writeback reference,
 * section 3.1 (cancel), and 3.2 and P1 (refunds, re-marking).
 */
#include "base/rng.h"
#include "rig.h"
#include <errno.h>

static struct block_run runs[FOLIO_MAX_RUNS];

/* --- write-out that fails */

static void test_a_failed_write_out_is_owed_again_without_new_data(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 64, 4);

	(void)state;
	folio_set_dirty(f, 70, 3);
	folio_begin_writeback(f, false, runs);
	mapping_end_writeback(&r->m, 70, 3, -EIO);
	rig_expect(r, .debt = 3, .folio_dirty = 16, .pinned = 16, .dirtied = 3, .written = 3,
		   .redirtied = 3, .f_dirtied = 16, .f_written = 16, .f_redirtied = 16);
	assert_int_equal(r->m.error, -EIO);
	/* it can be tried again, and then the identity closes */
	assert_int_equal(folio_begin_writeback(f, false, runs), 1);
	assert_int_equal(runs[0].first, 70);
	assert_int_equal(runs[0].count, 3);
	mapping_end_writeback(&r->m, 70, 3, 0);
	rig_expect(r, .dirtied = 3, .written = 6, .redirtied = 3, .f_dirtied = 16, .f_written = 32,
		   .f_redirtied = 16);
	rig_put(r, f);
	rig_close(r);
}

static void test_one_of_two_runs_fails(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 4);

	(void)state;
	folio_set_dirty(f, 1, 1);
	folio_set_dirty(f, 9, 2);
	folio_begin_writeback(f, false, runs);
	mapping_end_writeback(&r->m, 1, 1, -EIO);
	/* dirty again, while the other run is still in flight */
	rig_expect(r, .debt = 1, .flight = 2, .folio_dirty = 16, .folio_flight = 16, .pinned = 16,
		   .dirtied = 3, .written = 1, .redirtied = 1, .f_dirtied = 16, .f_redirtied = 16);
	mapping_end_writeback(&r->m, 9, 2, 0);
	rig_expect(r, .debt = 1, .folio_dirty = 16, .pinned = 16, .dirtied = 3, .written = 3,
		   .redirtied = 1, .f_dirtied = 16, .f_written = 16, .f_redirtied = 16);
	rig_put(r, f);
	rig_close(r);
}

static void test_failed_data_rewritten_in_flight_is_owed_once(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 2);

	(void)state;
	folio_set_dirty(f, 1, 1);
	folio_begin_writeback(f, false, runs);
	folio_set_dirty(f, 1, 1);
	mapping_end_writeback(&r->m, 1, 1, -EIO);
	rig_expect(r, .debt = 1, .folio_dirty = 4, .pinned = 4, .dirtied = 2, .written = 1,
		   .f_dirtied = 8, .f_written = 4);
	rig_put(r, f);
	rig_close(r);
}

/* The error is kept until what failed is safe, and not longer. */
static void test_the_error_goes_when_the_data_is_safe(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 2);

	(void)state;
	folio_set_dirty(f, 0, 2);
	folio_begin_writeback(f, false, runs);
	mapping_end_writeback(&r->m, 0, 2, -EIO);
	folio_set_dirty(f, 3, 1); /* other data is dirty all the time */
	folio_begin_writeback(f, false, runs);
	folio_set_dirty(f, 3, 1);
	mapping_end_writeback(&r->m, 0, 1, 0);
	assert_int_equal(r->m.error, -EIO); /* page 1 is not safe yet */
	mapping_end_writeback(&r->m, 1, 1, -ENOSPC);
	assert_int_equal(r->m.error, -EIO); /* the first is what counts */
	mapping_end_writeback(&r->m, 3, 1, 0);
	assert_int_equal(r->m.error, -EIO);
	folio_begin_writeback(f, false, runs);
	folio_set_dirty(f, 2, 1);
	assert_int_equal(runs[0].first, 1);
	mapping_end_writeback(&r->m, 1, 1, 0);
	assert_int_equal(r->m.error, 0);
	mapping_end_writeback(&r->m, 3, 1, 0);
	rig_put(r, f);
	rig_close(r);
}

static void test_the_error_goes_when_the_data_is_discarded(void **state)
{
	struct rig *r = rig_open(1024, 3);
	struct folio *f = rig_folio(r, 0, 2);

	(void)state;
	folio_set_dirty(f, 9, 2);
	folio_begin_writeback(f, false, runs);
	mapping_end_writeback(&r->m, 9, 2, -EIO);
	folio_cancel_dirty(f, 9, 1);
	assert_int_equal(r->m.error, -EIO);
	folio_cancel_dirty(f, 10, 1);
	assert_int_equal(r->m.error, 0);
	rig_put(r, f);
	rig_close(r);
}

/* --- truncation */

static void test_truncating_a_dirty_folio_refunds_it(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 64, 6);

	(void)state;
	folio_set_dirty(f, 64, 3);
	mapping_remove(&r->m, f);
	/* the totals of what was dirtied are not taken back: what was cancelled stands beside */
	rig_expect(r, .dirtied = 3, .cancelled = 3, .f_dirtied = 64, .f_cancelled = 64);
	rig_put(r, f);
	rig_close(r);
}

static void test_partial_truncation_refunds_its_pages(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 6);

	(void)state;
	folio_set_dirty(f, 10, 20);
	folio_cancel_dirty(f, 24, 40); /* 24..29 of 10..29 */
	rig_expect(r, .debt = 14, .folio_dirty = 64, .pinned = 64, .dirtied = 20, .cancelled = 6,
		   .f_dirtied = 64);
	folio_cancel_dirty(f, 30, 34); /* nothing dirty there */
	rig_expect(r, .debt = 14, .folio_dirty = 64, .pinned = 64, .dirtied = 20, .cancelled = 6,
		   .f_dirtied = 64);
	folio_cancel_dirty(f, 0, 64); /* the rest: the folio is clean */
	rig_expect(r, .dirtied = 20, .cancelled = 20, .f_dirtied = 64, .f_cancelled = 64);
	rig_put(r, f);
	rig_close(r);
}

static void test_a_page_is_refunded_with_its_last_dirty_block(void **state)
{
	struct rig *r = rig_open(1024, 2); /* 1 KiB blocks */
	struct folio *f = rig_folio(r, 0, 1);

	(void)state;
	folio_set_dirty(f, 1, 6); /* three blocks of each page */
	folio_cancel_dirty(f, 6, 2);
	rig_expect(r, .debt = 2, .folio_dirty = 2, .pinned = 2, .dirtied = 2, .f_dirtied = 2);
	folio_cancel_dirty(f, 3, 5);
	rig_expect(r, .debt = 1, .folio_dirty = 2, .pinned = 2, .dirtied = 2, .cancelled = 1,
		   .f_dirtied = 2);
	folio_cancel_dirty(f, 0, 3);
	rig_expect(r, .dirtied = 2, .cancelled = 2, .f_dirtied = 2, .f_cancelled = 2);
	rig_put(r, f);
	rig_close(r);
}

/* What is both dirty and in flight keeps its pin when the debt is cancelled. */
static void test_cancelling_in_flight_leaves_the_flight(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 2);

	(void)state;
	folio_set_dirty(f, 0, 1);
	folio_begin_writeback(f, false, runs);
	folio_set_dirty(f, 0, 2);
	folio_cancel_dirty(f, 0, 4);
	rig_expect(r, .flight = 1, .folio_flight = 4, .pinned = 4, .dirtied = 3, .cancelled = 2,
		   .f_dirtied = 8, .f_cancelled = 4);
	mapping_end_writeback(&r->m, 0, 1, 0);
	rig_expect(r, .dirtied = 3, .cancelled = 2, .written = 1, .f_dirtied = 8, .f_cancelled = 4,
		   .f_written = 4);
	rig_put(r, f);
	rig_close(r);
}

/* --- all of it at once */

struct flying {
	u64 first;
	u32 count;
};

/* The identity of ledger.h, for pages and for folios, in every moment of a random life. */
static void random_life(u32 shift, u64 seed)
{
	struct rig *r = rig_open(1024, shift); /* more than the 256 pages of the file */
	struct flying fly[400];
	u32 flights = 0;
	struct rng rng;

	rng_init(&rng, seed);
	for (unsigned step = 0; step < 3000; step++) {
		u64 page = rng_below(&rng, 256), first, blocks;
		struct folio *f = mapping_find(&r->m, page);
		unsigned what = (unsigned)rng_below(&rng, 10);
		struct ledger sum;
		char why[200] = "";

		if (!f) {
			unsigned order = (unsigned)rng_below(&rng, 6);

			f = folio_alloc(&r->cache, order);
			folio_lock(f);
			if (mapping_add(&r->m, f, round_down(page, 1u << order))) {
				rig_put(r, f);
				continue;
			}
		} else {
			folio_lock(f);
		}
		blocks = (u64)folio_pages(f) << shift;
		first = rng_below(&rng, blocks);
		blocks = 1 + rng_below(&rng, blocks - first);
		first += (u64)f->index << shift;
		if (what < 4) {
			folio_set_dirty(f, first, (u32)blocks);
		} else if (what < 6 && folio_is_dirty(f) && !folio_in_writeback(f) &&
			   flights < 100) {
			u32 n = folio_begin_writeback(f, rng_below(&rng, 4) == 0, runs);

			for (u32 i = 0; i < n && flights < ARRAY_SIZE(fly); i++)
				fly[flights++] = (struct flying){ runs[i].first, runs[i].count };
			assert_true(flights < ARRAY_SIZE(fly));
		} else if (what == 6) {
			folio_cancel_dirty(f, first, (u32)blocks);
		} else if (what == 7 && f->order) {
			folio_split(f, page, (unsigned)rng_below(&rng, f->order), true);
		} else if (what == 8) {
			folio_shed(f, page);
		} else if (flights) {
			u32 k = (u32)rng_below(&rng, flights);

			mapping_end_writeback(&r->m, fly[k].first, fly[k].count,
					      rng_below(&rng, 5) ? 0 : -EIO);
			fly[k] = fly[--flights];
		}
		rig_put(r, f);
		ledger_init(&sum);
		if (!mapping_audit(&r->m, &sum, why, sizeof(why)) ||
		    !cache_audit(&r->cache, &sum, r->m.pages, why, sizeof(why)))
			fail_msg("step %u: %s", step, why);
	}
	while (flights--)
		mapping_end_writeback(&r->m, fly[flights].first, fly[flights].count, 0);
	rig_close(r);
}

static void test_a_random_life_keeps_the_identity(void **state)
{
	(void)state;
	for (u32 shift = 0; shift <= 3; shift++)
		for (u64 seed = 1; seed <= 3; seed++)
			random_life(shift, 10 * seed + shift);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_failed_write_out_is_owed_again_without_new_data),
		cmocka_unit_test(test_one_of_two_runs_fails),
		cmocka_unit_test(test_failed_data_rewritten_in_flight_is_owed_once),
		cmocka_unit_test(test_the_error_goes_when_the_data_is_safe),
		cmocka_unit_test(test_the_error_goes_when_the_data_is_discarded),
		cmocka_unit_test(test_truncating_a_dirty_folio_refunds_it),
		cmocka_unit_test(test_partial_truncation_refunds_its_pages),
		cmocka_unit_test(test_a_page_is_refunded_with_its_last_dirty_block),
		cmocka_unit_test(test_cancelling_in_flight_leaves_the_flight),
		cmocka_unit_test(test_a_random_life_keeps_the_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
