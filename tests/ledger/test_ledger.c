// SPDX-License-Identifier: MIT
/* Posting to books, their peaks, and their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include "world/lock.h"
#include <cmocka.h>

static void test_a_new_book_is_empty(void **state)
{
	struct ledger l;

	(void)state;
	ledger_init(&l);
	for (unsigned i = 0; i < LEVEL_MAX; i++) {
		assert_int_equal(ledger_level(&l, i), 0);
		assert_int_equal(ledger_peak(&l, i), 0);
	}
	for (unsigned i = 0; i < TOTAL_MAX; i++)
		assert_int_equal(ledger_total(&l, i), 0);
}

static void test_an_entry_changes_what_it_names_and_nothing_else(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LEVEL_MAX; i++) {
		struct ledger_entry up = { 0 }, down = { 0 };
		struct ledger l;

		ledger_init(&l);
		up.level[i] = 7;
		down.level[i] = -3;
		ledger_post(&l, &up);
		ledger_post(&l, &down);
		for (unsigned k = 0; k < LEVEL_MAX; k++) {
			assert_int_equal(ledger_level(&l, k), k == i ? 4 : 0);
			assert_int_equal(ledger_peak(&l, k), k == i ? 7 : 0);
		}
	}
	for (unsigned i = 0; i < TOTAL_MAX; i++) {
		struct ledger_entry e = { 0 };
		struct ledger l;

		ledger_init(&l);
		e.total[i] = 4000000000u; /* totals are larger than one entry can say */
		ledger_post(&l, &e);
		ledger_post(&l, &e);
		for (unsigned k = 0; k < TOTAL_MAX; k++)
			assert_int_equal(ledger_total(&l, k), k == i ? 8000000000ull : 0);
	}
}

static void test_the_peak_is_the_largest_level_since_its_reset(void **state)
{
	static const struct {
		s32 change;
		u64 level, peak;
	} steps[] = {
		{ 5, 5, 5 }, { -2, 3, 5 }, { 1, 4, 5 }, { 3, 7, 7 }, { -7, 0, 7 }, { 6, 6, 7 },
	};
	struct ledger_entry e = { 0 };
	struct ledger l;

	(void)state;
	ledger_init(&l);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		e.level[LEVEL_PINNED] = steps[i].change;
		ledger_post(&l, &e);
		assert_int_equal(ledger_level(&l, LEVEL_PINNED), steps[i].level);
		assert_int_equal(ledger_peak(&l, LEVEL_PINNED), steps[i].peak);
	}
	ledger_reset_peaks(&l);
	assert_int_equal(ledger_peak(&l, LEVEL_PINNED), 6); /* what is there now */
	e.level[LEVEL_PINNED] = -1;
	ledger_post(&l, &e);
	assert_int_equal(ledger_peak(&l, LEVEL_PINNED), 6);
	e.level[LEVEL_PINNED] = 2;
	ledger_post(&l, &e);
	assert_int_equal(ledger_peak(&l, LEVEL_PINNED), 7);
}

/* The books of a file, its device and the cache, as transitions of state post to them. */
static void test_several_books_at_once(void **state)
{
	static const s32 changes[] = { 5, -2, 1, 3, -7, 6 };
	static const u64 levels[] = { 5, 3, 4, 7, 0, 6 }, peaks[] = { 5, 5, 5, 7, 7, 7 };
	struct ledger_entry e = { 0 };
	struct ledger file, device, cache;
	struct ledger *books[] = { &file, &device, NULL, &cache };
	struct spinlock lock;

	(void)state;
	spin_init(&lock, RANK_NONE);
	ledger_init(&file);
	ledger_init(&device);
	ledger_init(&cache);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		e.level[LEVEL_PINNED] = changes[i];
		e.total[TOTAL_MAX - 1] = 3;
		ledger_post_all(books, ARRAY_SIZE(books), &e, &lock);
		for (size_t b = 0; b < ARRAY_SIZE(books); b++) {
			if (!books[b])
				continue;
			assert_int_equal(ledger_level(books[b], LEVEL_PINNED), levels[i]);
			assert_int_equal(ledger_peak(books[b], LEVEL_PINNED), peaks[i]);
			assert_int_equal(ledger_total(books[b], TOTAL_MAX - 1), 3 * (i + 1));
			assert_int_equal(ledger_level(books[b], LEVEL_DEBT), 0);
		}
	}
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(ledger_level_name(LEVEL_DEBT), "debt");
	assert_string_equal(ledger_level_name(LEVEL_IN_FLIGHT), "in_flight");
	assert_string_equal(ledger_level_name(LEVEL_FOLIO_DIRTY), "folio_dirty");
	assert_string_equal(ledger_level_name(LEVEL_FOLIO_WRITEBACK), "folio_writeback");
	assert_string_equal(ledger_level_name(LEVEL_PINNED), "pinned");
	assert_string_equal(ledger_total_name(TOTAL_PAGES_DIRTIED), "pages_dirtied");
	assert_string_equal(ledger_total_name(TOTAL_PAGES_CANCELLED), "pages_cancelled");
	assert_string_equal(ledger_total_name(TOTAL_FOLIO_WRITTEN), "folio_written");
	assert_string_equal(ledger_total_name(TOTAL_FOLIO_CANCELLED), "folio_cancelled");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_book_is_empty),
		cmocka_unit_test(test_an_entry_changes_what_it_names_and_nothing_else),
		cmocka_unit_test(test_the_peak_is_the_largest_level_since_its_reset),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_several_books_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
