// SPDX-License-Identifier: MIT
/* A cache that changes its size: what moves, goes and stays, and what that does to memory. */
#include "rig.h"
#include <errno.h>

static struct block_run runs[FOLIO_MAX_RUNS];

static struct rig *open_contents(u64 pages, u64 max)
{
	struct cache_config config = { .memory_pages = pages,
				       .max_memory_pages = max,
				       .contents = true };

	return rig_open_config(&config, 0, ARENA_MAX_ORDER);
}

/* A folio whose every byte tells the page. */
static struct folio *stamped(struct rig *r, u64 page, unsigned order)
{
	struct folio *f = rig_folio(r, page, order);

	for (u64 p = page; p < folio_end(f); p++)
		memset(folio_address(f, p << PAGE_SHIFT), (int)(p % 251), PAGE_SIZE);
	return f;
}

static void expect_stamped(struct rig *r, u64 page)
{
	struct folio *f = rig_get(r, page);
	const u8 *bytes = folio_address(f, page << PAGE_SHIFT);

	assert_int_equal(bytes[0], page % 251);
	assert_int_equal(bytes[PAGE_SIZE - 1], page % 251);
	rig_put(r, f);
}

static u64 resident_pages(struct rig *r)
{
	return memory_use(&r->cache.arena.ram).resident_bytes >> PAGE_SHIFT;
}

static void expect_sound(struct rig *r)
{
	struct ledger sum;
	char why[256] = "";

	ledger_init(&sum);
	if (!mapping_audit(&r->m, &sum, why, sizeof(why)) ||
	    !cache_audit(&r->cache, &sum, r->m.pages, why, sizeof(why)))
		fail_msg("%s", why);
	assert_true(arena_is_valid(&r->cache.arena));
}

static void test_growing_is_more_memory(void **state)
{
	struct rig *r = open_contents(64, 1024);
	u64 left;

	(void)state;
	for (u64 page = 0; page < 64; page++)
		rig_put(r, stamped(r, page, 0));
	assert_int_equal(cache_resize(&r->cache, 1024, 0, &left), 0);
	assert_int_equal(left, 0);
	for (u64 page = 64; page < 1000; page++)
		rig_put(r, stamped(r, page, 0));
	for (u64 page = 0; page < 1000; page++)
		expect_stamped(r, page);
	assert_int_equal(cache_size(&r->cache), 1024);
	expect_sound(r);
	rig_close(r);
}

static void test_sizes_that_cannot_be(void **state)
{
	struct cache_config config = { .memory_pages = 100,
				       .max_memory_pages = 200,
				       .reserve_pages = 10 };
	struct rig *r = rig_open_config(&config, 0, 0);
	u64 left;

	(void)state;
	assert_int_equal(cache_resize(&r->cache, 10, 0, &left), -EINVAL);
	assert_int_equal(cache_resize(&r->cache, 0, 0, &left), -EINVAL);
	assert_int_equal(cache_resize(&r->cache, 201, 0, &left), -EINVAL);
	assert_int_equal(cache_size(&r->cache), 100);
	assert_int_equal(cache_resize(&r->cache, 200, 0, &left), 0);
	assert_int_equal(cache_resize(&r->cache, 11, 0, &left), 0);
	assert_int_equal(cache_size(&r->cache), 11);
	rig_close(r);
}

/* The coldest go, and what is used moves below the end with its bytes. */
static void test_shrinking_keeps_what_is_used(void **state)
{
	struct rig *r = open_contents(2048, 0);
	u64 left, kept = 0;

	(void)state;
	for (u64 page = 0; page < 1792; page++)
		rig_put(r, stamped(r, page, 0));
	for (u64 page = 1500; page < 1600; page++) { /* lie in the upper part */
		struct folio *f = rig_get(r, page);

		folio_mark_accessed(f);
		folio_mark_accessed(f);
		rig_put(r, f);
	}
	assert_int_equal(cache_resize(&r->cache, 1024, 0, &left), 0);
	assert_int_equal(left, 0);
	assert_true(r->m.pages <= 1024);
	assert_true(r->m.pages >= 900);
	for (u64 page = 0; page < 1792; page++) {
		if (rig_order(r, page) < 0)
			continue;
		expect_stamped(r, page);
		kept += page >= 1500 && page < 1600;
	}
	assert_int_equal(kept, 100);
	assert_true(resident_pages(r) <= 1024);
	expect_sound(r);
	rig_close(r);
}

/* Dirty data moves without being written. */
static void test_dirty_folios_move(void **state)
{
	struct rig *r = open_contents(1024, 0);
	u64 left;

	(void)state;
	for (u64 page = 0; page < 960; page += 8) {
		struct folio *f = stamped(r, page, 3);

		if (page >= 640 && page < 720)
			folio_set_dirty(f, page, 8);
		rig_put(r, f);
	}
	assert_int_equal(cache_resize(&r->cache, 256, 0, &left), 0);
	assert_int_equal(left, 0);
	assert_int_equal(ledger_level(&r->m.ledger, LEVEL_DEBT), 80);
	for (u64 page = 640; page < 720; page++)
		expect_stamped(r, page);
	assert_true(resident_pages(r) <= 256);
	expect_sound(r);
	rig_close(r);
}

/* Half of it is dirty and finds no room: it is said how much, and later it goes. */
static void test_what_cannot_go_is_told_and_goes_later(void **state)
{
	struct rig *r = open_contents(1024, 0);
	u64 left;

	(void)state;
	for (u64 page = 0; page < 1000; page++) {
		struct folio *f = stamped(r, page, 0);

		if (page % 2)
			folio_set_dirty(f, page, 1);
		rig_put(r, f);
	}
	assert_int_equal(cache_resize(&r->cache, 300, 0, &left), -EAGAIN);
	assert_int_equal(left, 200); /* 500 are dirty, 300 fit */
	assert_int_equal(cache_size(&r->cache), 300);
	assert_int_equal(resident_pages(r), 500);
	for (u64 page = 1; page < 1000; page += 2)
		expect_stamped(r, page);
	expect_sound(r);
	for (u64 page = 1; page < 1000; page += 2) { /* as the flusher would */
		struct folio *f = rig_get(r, page);

		assert_int_equal(folio_begin_writeback(f, false, runs), 1);
		folio_unlock(f);
		mapping_end_writeback(&r->m, page, 1, 0);
		folio_unpin(&r->cache, f);
	}
	assert_int_equal(cache_resize(&r->cache, 300, 0, &left), 0);
	assert_true(resident_pages(r) <= 300);
	expect_sound(r);
	rig_close(r);
}

/* A folio that somebody holds stays where it is, and its memory goes when he lets go of it. */
static void test_held_folios_stay(void **state)
{
	struct rig *r = open_contents(512, 0);
	struct folio *held;
	u8 *bytes;
	u64 left;

	(void)state;
	for (u64 page = 0; page < 500; page++)
		rig_put(r, stamped(r, page, 0));
	held = mapping_find(&r->m, 450);
	bytes = folio_address(held, 450ull << PAGE_SHIFT);
	assert_int_equal(cache_resize(&r->cache, 100, 0, &left), -EAGAIN);
	assert_int_equal(left, 1);
	assert_int_equal(bytes[7], 450 % 251);
	assert_true(folio_trylock(held));
	mapping_remove(&r->m, held);
	folio_unlock(held);
	assert_int_equal(arena_stuck(&r->cache.arena), 1);
	folio_unpin(&r->cache, held);
	assert_int_equal(arena_stuck(&r->cache.arena), 0);
	assert_int_equal(bytes[7], 0); /* the address is still good */
	assert_true(resident_pages(r) <= 100);
	rig_close(r);
}

/* The table of descriptors shrinks with the cache. */
static void test_descriptors_go_with_the_folios(void **state)
{
	struct rig *r = open_contents(8192, 0);
	u64 left, full;

	(void)state;
	for (u64 page = 0; page < 8000; page++)
		rig_put(r, rig_folio(r, page, 0));
	full = memory_use(&r->cache.table).resident_bytes;
	assert_true(full >= 8000 * sizeof(struct folio));
	cache_reclaim(&r->cache, 8000);
	assert_int_equal(r->m.pages, 0);
	assert_int_equal(cache_resize(&r->cache, 64, 0, &left), 0);
	assert_true(memory_use(&r->cache.table).resident_bytes <= 2 * PAGE_SIZE);
	for (u64 page = 0; page < 64; page++)
		rig_put(r, rig_folio(r, page, 0));
	expect_sound(r);
	rig_close(r);
}

/*
 * Descriptors, index and ghosts: under 2.5 % of what is cached in folios of 4 KiB, and under 1 % in
 * those of 64 KiB.
 * What is resident of arena and all that: within 5 % of the size.
 */
static void test_memory_is_bounded(void **state)
{
	const struct {
		unsigned order, bound;
	} cases[] = { { 0, 25 }, { 4, 10 }, { 9, 10 } }; /* per mille */
	u64 pages = 16384;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cache_config config = { .memory_pages = pages,
					       .contents = true,
					       .reclaim = RECLAIM_S3FIFO };
		struct rig *r = rig_open_config(&config, 0, ARENA_MAX_ORDER);
		u64 used, cached, arena;

		for (u64 page = 0; page < 2 * pages; page += 1u << cases[i].order)
			rig_put(r, stamped(r, page, cases[i].order));
		used = memory_use(&r->cache.table).resident_bytes + r->m.index.memory_bytes +
		       pages / 8 * 3 + /* the arena's sets of bits: at most three a page */
		       pages * 8;      /* ghosts */
		cached = r->m.pages << PAGE_SHIFT;
		assert_true(cached >= (pages << PAGE_SHIFT) / 100 * 96);
		assert_in_range(used * 1000 / cached, 0, cases[i].bound - 1);
		arena = memory_use(&r->cache.arena.ram).resident_bytes;
		assert_true(arena <= pages << PAGE_SHIFT);
		assert_true(arena + used <= (pages << PAGE_SHIFT) / 100 * 105);
		rig_close(r);
	}
}

/* Who copies from a folio without its lock sees that it moved. */
static void test_a_move_is_seen(void **state)
{
	struct rig *r = open_contents(1024, 0);
	struct folio *f = stamped(r, 0, 3);
	u32 frame = f->frame, seq, again;

	(void)state;
	assert_true(folio_look(f, &seq));
	assert_true(folio_unchanged(f, seq));
	assert_true(folio_move(f));
	assert_int_not_equal(f->frame, frame);
	assert_false(folio_unchanged(f, seq));
	assert_true(folio_look(f, &again));
	rig_put(r, f);
	expect_stamped(r, 0);
	rig_close(r);
}

/* Nor does a descriptor that went back to the system ever look as it did before. */
static void test_a_descriptor_never_looks_the_same(void **state)
{
	struct rig *r = open_contents(8192, 0);
	static u32 seen[8192];
	u32 count = 0;
	u64 left;

	(void)state;
	for (u64 page = 0; page < 8000; page++) {
		struct folio *f = rig_folio(r, page, 0);

		assert_int_equal(folio_id(&r->cache, f), page + 1);
		assert_true(folio_look(f, &seen[page + 1]));
		rig_put(r, f);
	}
	cache_reclaim(&r->cache, 8000);
	assert_int_equal(cache_resize(&r->cache, 64, 0, &left), 0);
	assert_int_equal(cache_resize(&r->cache, 8192, 0, &left), 0);
	for (u64 page = 0; page < 8000; page++) {
		struct folio *f = rig_folio(r, page, 0);
		u32 seq;

		assert_true(folio_look(f, &seq));
		count += seq == seen[folio_id(&r->cache, f)];
		rig_put(r, f);
	}
	assert_int_equal(count, 0);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growing_is_more_memory),
		cmocka_unit_test(test_sizes_that_cannot_be),
		cmocka_unit_test(test_shrinking_keeps_what_is_used),
		cmocka_unit_test(test_dirty_folios_move),
		cmocka_unit_test(test_what_cannot_go_is_told_and_goes_later),
		cmocka_unit_test(test_held_folios_stay),
		cmocka_unit_test(test_descriptors_go_with_the_folios),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_a_move_is_seen),
		cmocka_unit_test(test_a_descriptor_never_looks_the_same),
	};

	return cmocka_run_group_tests_name("resize", tests, NULL, NULL);
}
