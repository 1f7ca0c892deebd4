// SPDX-License-Identifier: MIT
/* Which folios go when memory is needed (Linux writeback reference, section 11). */
#include "rig.h"
#include "world/sim.h"

static struct block_run runs[FOLIO_MAX_RUNS];

static void add(struct rig *r, u64 page, unsigned order)
{
	rig_put(r, rig_folio(r, page, order));
}

static void use(struct rig *r, u64 page)
{
	struct folio *f = mapping_find(&r->m, page);

	assert_non_null(f);
	folio_mark_accessed(f);
	folio_unpin(&r->cache, f);
}

static bool cached(struct rig *r, u64 page)
{
	return rig_order(r, page) >= 0;
}

static void test_the_oldest_go_first(void **state)
{
	struct rig *r = rig_open(1024, 0);

	(void)state;
	for (u64 page = 0; page < 100; page++)
		add(r, page, 0);
	assert_int_equal(cache_reclaim(&r->cache, 30), 30);
	for (u64 page = 0; page < 100; page++)
		assert_int_equal(cached(r, page), page >= 30);
	assert_int_equal(r->cache.stats.pages_reclaimed, 30);
	assert_int_equal(r->cache.stats.folios_reclaimed, 30);
	rig_close(r);
}

/* Whole folios go, so it may be more than was asked for. */
static void test_folios_go_whole(void **state)
{
	struct rig *r = rig_open(1024, 0);

	(void)state;
	for (u64 page = 0; page < 256; page += 64)
		add(r, page, 6);
	assert_int_equal(cache_reclaim(&r->cache, 65), 128);
	assert_int_equal(r->cache.stats.folios_reclaimed, 2);
	assert_int_equal(r->m.pages, 128);
	rig_close(r);
}

static void test_one_use_does_not_save_two_do(void **state)
{
	struct rig *r = rig_open(1024, 0);

	(void)state;
	for (u64 page = 0; page < 100; page++)
		add(r, page, 0);
	use(r, 3);
	use(r, 5);
	use(r, 5);
	assert_int_equal(cache_reclaim(&r->cache, 50), 50);
	assert_false(cached(r, 3));
	assert_true(cached(r, 5));
	assert_int_equal(r->cache.lru[LRU_ACTIVE].folios, 1);
	assert_int_equal(r->cache.lru[LRU_ACTIVE].pages, 1);
	rig_close(r);
}

/* A scan of far more than memory leaves the pages in use where they are. */
static void test_a_scan_does_not_push_out_what_is_used(void **state)
{
	struct rig *r = rig_open(1024, 0);

	(void)state;
	for (u64 page = 0; page < 200; page++) {
		add(r, page, 0);
		use(r, page);
		use(r, page);
	}
	for (u64 page = 10000; page < 30000; page++)
		add(r, page, 0); /* allocation reclaims as it goes */
	for (u64 page = 0; page < 200; page++)
		assert_true(cached(r, page));
	assert_in_range(r->m.pages, 900, 1024);
	rig_close(r);
}

/* The active list is no grave: the longer one gives its oldest back, and unused they go. */
static void test_a_former_working_set_goes_at_last(void **state)
{
	struct rig *r = rig_open(1024, 0);

	(void)state;
	for (u64 page = 0; page < 600; page++) {
		add(r, page, 0);
		use(r, page);
		use(r, page);
	}
	for (u64 page = 10000; page < 13000; page++) {
		add(r, page, 0);
		use(r, page);
		use(r, page);
	}
	for (u64 page = 0; page < 600; page++)
		assert_false(cached(r, page));
	rig_close(r);
}

static void need(struct cache *c)
{
	++*(unsigned *)c->owner;
}

static void test_dirty_and_flying_folios_are_passed_over(void **state)
{
	struct rig *r = rig_open(1024, 0);
	unsigned asked = 0;

	(void)state;
	r->cache.owner = &asked;
	r->cache.need_writeback = need;
	for (u64 page = 0; page < 90; page++) {
		struct folio *f = rig_folio(r, page, 0);

		if (page % 3 < 2)
			folio_set_dirty(f, page, 1);
		if (page % 3 == 1)
			folio_begin_writeback(f, false, runs);
		rig_put(r, f);
	}
	assert_int_equal(cache_reclaim(&r->cache, 30), 30);
	for (u64 page = 0; page < 90; page++)
		assert_int_equal(cached(r, page), page % 3 < 2);
	assert_int_equal(asked, 0); /* it got what it wanted */
	assert_int_equal(cache_reclaim(&r->cache, 1), 0);
	assert_int_equal(asked, 1); /* all that is left is dirty: flushers are wanted */
	for (u64 page = 1; page < 90; page += 3)
		mapping_end_writeback(&r->m, page, 1, 0);
	assert_int_equal(cache_reclaim(&r->cache, 1), 1);
	assert_int_equal(asked, 1);
	rig_close(r);
}

/* What reclaim wanted while it was dirty is the first to go when it is written. */
static void test_what_reclaim_waited_for_goes_first(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f;

	(void)state;
	for (u64 page = 0; page < 50; page++) {
		f = rig_folio(r, page, 0);
		if (page == 0 || page == 49)
			folio_set_dirty(f, page, 1);
		rig_put(r, f);
	}
	assert_int_equal(cache_reclaim(&r->cache, 10), 10); /* 1 to 10: 0 was met dirty */
	for (u64 page = 0; page < 50; page += 49) {
		f = rig_get(r, page);
		folio_begin_writeback(f, false, runs);
		rig_put(r, f);
		mapping_end_writeback(&r->m, page, 1, 0);
	}
	assert_int_equal(cache_reclaim(&r->cache, 1), 1);
	assert_false(cached(r, 0));
	assert_true(cached(r, 11));
	assert_int_equal(cache_reclaim(&r->cache, 38), 38);
	assert_true(cached(r, 49)); /* was not met dirty: its turn is the last */
	rig_close(r);
}

static void test_folios_in_use_are_passed_over(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *pinned, *locked;

	(void)state;
	pinned = rig_folio(r, 0, 0);
	folio_unlock(pinned);
	locked = rig_folio(r, 1, 0);
	add(r, 2, 0);
	assert_int_equal(cache_reclaim(&r->cache, 3), 1);
	assert_true(cached(r, 0));
	assert_true(cached(r, 1));
	assert_false(cached(r, 2));
	rig_put(r, locked);
	folio_unpin(&r->cache, pinned);
	assert_int_equal(cache_reclaim(&r->cache, 3), 2);
	rig_close(r);
}

/* With `shed` the clean pages around a dirty one are freed; without they stay with it. */
static void test_shed_frees_the_clean_neighbours(void **state)
{
	(void)state;
	for (int shed = 0; shed < 2; shed++) {
		struct cache_config config = { .memory_pages = 1024, .shed = shed };
		struct rig *r = rig_open_config(&config, 0, 9);
		struct folio *f = rig_folio(r, 0, 6);

		folio_set_dirty(f, 20, 1);
		rig_put(r, f);
		assert_int_equal(cache_reclaim(&r->cache, 63), shed ? 63 : 0);
		assert_int_equal(r->m.pages, shed ? 1 : 64);
		assert_int_equal(ledger_level(&r->cache.ledger, LEVEL_PINNED), shed ? 1 : 64);
		assert_true(cached(r, 20));
		rig_close(r);
	}
}

static void test_drop_clean_takes_both_lists(void **state)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f;

	(void)state;
	for (u64 page = 0; page < 64; page += 4)
		add(r, page, 2);
	for (u64 page = 0; page < 32; page += 4) {
		f = rig_get(r, page);
		lru_move(&r->cache, f, LRU_ACTIVE);
		rig_put(r, f);
	}
	f = rig_get(r, 8);
	folio_set_dirty(f, 9, 1);
	rig_put(r, f);
	assert_int_equal(cache_drop_clean(&r->cache), 60);
	assert_int_equal(r->m.pages, 4);
	assert_true(cached(r, 8));
	rig_expect(r, .debt = 1, .folio_dirty = 4, .pinned = 4, .dirtied = 1, .f_dirtied = 4);
	rig_close(r);
}

/* Dirtyable memory: what is free beyond the reserve, and all that is cached, and one (4.1). */
static void test_dirtyable_pages(void **state)
{
	struct cache_config config = { .memory_pages = 1000, .reserve_pages = 100 };
	struct rig *r = rig_open_config(&config, 0, 9);
	struct folio *hold;

	(void)state;
	assert_int_equal(cache_dirtyable_pages(&r->cache), 901);
	add(r, 0, 9);
	assert_int_equal(cache_dirtyable_pages(&r->cache), 901); /* reading changes nothing */
	hold = folio_alloc(&r->cache, 8);                        /* in no file: used otherwise */
	assert_int_equal(cache_dirtyable_pages(&r->cache), 901 - 256);
	folio_unpin(&r->cache, hold);
	rig_close(r);
}

/* Large allocations give way when memory is in pieces; single pages never do. */
static void test_a_large_folio_is_not_forced(void **state)
{
	struct rig *r = rig_open(64, 0);
	struct folio *f;

	(void)state;
	for (u64 page = 0; page < 64; page++) {
		f = rig_folio(r, page, 0);
		if (page % 2)
			folio_set_dirty(f, page, 1);
		rig_put(r, f);
	}
	assert_null(folio_alloc(&r->cache, 1)); /* every other frame is dirty */
	f = folio_alloc(&r->cache, 0);
	assert_non_null(f);
	folio_unpin(&r->cache, f);
	rig_close(r);
}

/* Who waits for memory goes on when pinned pages have landed, not at the end of his patience. */
static void wait_for_progress(void *arg)
{
	struct cache *c = arg;

	cache_wait_progress(c, cache_expect_progress(c), WORLD_NEVER);
	assert_in_range(world_now(), 10 * NSEC_PER_MSEC, 11 * NSEC_PER_MSEC);
}

static void land_after_10_ms(void *arg)
{
	struct rig *r = rig_open(1024, 0);
	struct folio *f = rig_folio(r, 0, 2);
	struct task *waiter;

	(void)arg;
	folio_set_dirty(f, 0, 1);
	assert_int_equal(folio_begin_writeback(f, false, runs), 1);
	rig_put(r, f);
	waiter = world_spawn("waiter", wait_for_progress, &r->cache);
	world_sleep_until(10 * NSEC_PER_MSEC);
	mapping_end_writeback(&r->m, 0, 1, 0);
	world_join(waiter);
	rig_close(r);
}

static void test_landed_pages_are_progress(void **state)
{
	struct sim_config c;
	struct world *w;
	char why[200] = "";

	(void)state;
	sim_config_init(&c);
	w = sim_create(&c);
	assert_non_null(w);
	if (sim_run(w, land_after_10_ms, NULL, why, sizeof(why)))
		fail_msg("%s", why);
	sim_destroy(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_oldest_go_first),
		cmocka_unit_test(test_folios_go_whole),
		cmocka_unit_test(test_one_use_does_not_save_two_do),
		cmocka_unit_test(test_a_scan_does_not_push_out_what_is_used),
		cmocka_unit_test(test_a_former_working_set_goes_at_last),
		cmocka_unit_test(test_dirty_and_flying_folios_are_passed_over),
		cmocka_unit_test(test_what_reclaim_waited_for_goes_first),
		cmocka_unit_test(test_folios_in_use_are_passed_over),
		cmocka_unit_test(test_shed_frees_the_clean_neighbours),
		cmocka_unit_test(test_drop_clean_takes_both_lists),
		cmocka_unit_test(test_dirtyable_pages),
		cmocka_unit_test(test_a_large_folio_is_not_forced),
		cmocka_unit_test(test_landed_pages_are_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
