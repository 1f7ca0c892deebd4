// SPDX-License-Identifier: MIT
/* SIEVE and S3-FIFO: who goes, who stays, and what comes back. */
#include "rig.h"

#include "base/rng.h"

static struct rig *open_rule(enum reclaim rule, u64 pages)
{
	struct cache_config config = { .memory_pages = pages, .reclaim = rule };

	return rig_open_config(&config, 0, ARENA_MAX_ORDER);
}

/* Uses a folio as a read of its first page does, bringing it in if need be; true: it was there. */
static bool use(struct rig *r, u64 page, unsigned order)
{
	struct folio *f = mapping_find(&r->m, page);
	bool hit = f;

	if (!f) {
		f = rig_folio(r, page, order);
		folio_unlock(f);
	}
	folio_note_use(&r->cache, f, page, f->index);
	folio_unpin(&r->cache, f);
	return hit;
}

static bool cached(struct rig *r, u64 page)
{
	return rig_order(r, page) >= 0;
}

/* A few pages go; the hand stands where it stopped, and spares once what was used again. */
static void test_sieve_by_hand(void **state)
{
	struct rig *r = open_rule(RECLAIM_SIEVE, 1024);

	(void)state;
	for (u64 page = 0; page < 8; page++)
		use(r, page, 0);
	use(r, 0, 0);
	use(r, 2, 0);
	use(r, 7, 0);
	/* from the old end: 0 is spared, 1 goes, 2 is spared, 3 and 4 go */
	assert_int_equal(cache_reclaim(&r->cache, 3), 3);
	for (u64 page = 0; page < 8; page++)
		assert_int_equal(cached(r, page), page != 1 && page != 3 && page != 4);
	/* what comes now lies on the young side of the hand; then it starts over at the old end */
	use(r, 8, 0);
	assert_int_equal(cache_reclaim(&r->cache, 4), 4); /* 5, 6, 8, and 0, which lost its mark */
	assert_false(cached(r, 0));
	assert_true(cached(r, 2));
	assert_true(cached(r, 7));
	assert_false(cached(r, 8));
	rig_close(r);
}

/* The hand goes on when the folio it stands on leaves, and is met by what was written. */
static void test_sieve_hand_follows_its_folios(void **state)
{
	struct rig *r = open_rule(RECLAIM_SIEVE, 1024);
	struct folio *f;

	(void)state;
	for (u64 page = 0; page < 6; page++)
		use(r, page, 0);
	assert_int_equal(cache_reclaim(&r->cache, 1), 1); /* the hand stands on 1 */
	f = rig_get(r, 1);
	mapping_remove(&r->m, f);
	rig_put(r, f);
	assert_int_equal(cache_reclaim(&r->cache, 1), 1);
	assert_false(cached(r, 2));
	f = rig_get(r, 5);
	spin_lock(&r->m.tree_lock);
	lru_deactivate(&r->cache, f); /* as when it has been written */
	spin_unlock(&r->m.tree_lock);
	rig_put(r, f);
	assert_int_equal(cache_reclaim(&r->cache, 1), 1);
	assert_false(cached(r, 5));
	assert_true(cached(r, 3));
	rig_close(r);
}

/* What is used in the small queue, or soon after it left, enters the main one; the rest goes. */
static void test_s3fifo_by_hand(void **state)
{
	struct rig *r = open_rule(RECLAIM_S3FIFO, 1024);

	(void)state;
	for (u64 page = 0; page < 100; page++)
		use(r, page, 0);
	use(r, 3, 0);
	assert_int_equal(cache_reclaim(&r->cache, 10), 10); /* 0..2 and 4..10; 3 moves */
	for (u64 page = 0; page < 12; page++)
		assert_int_equal(cached(r, page), page == 3 || page > 10);
	assert_int_equal(r->cache.lru[LRU_ACTIVE].folios, 1);
	use(r, 5, 0); /* it went a moment ago */
	assert_int_equal(r->cache.lru[LRU_ACTIVE].folios, 2);
	use(r, 500, 0); /* it never was here */
	assert_int_equal(r->cache.lru[LRU_ACTIVE].folios, 2);
	assert_int_equal(r->cache.lru[LRU_INACTIVE].folios, 90);
	rig_close(r);
}

/* In the main queue a use buys one more round. */
static void test_s3fifo_main_queue(void **state)
{
	struct rig *r = open_rule(RECLAIM_S3FIFO, 1024);

	(void)state;
	for (u64 page = 0; page < 20; page++) {
		use(r, page, 0);
		use(r, page, 0);
	}
	/* all were used again: all move, and those used no more go, the oldest first */
	assert_int_equal(cache_reclaim(&r->cache, 1), 1);
	assert_int_equal(r->cache.lru[LRU_INACTIVE].folios, 1); /* two would be a tenth */
	assert_int_equal(r->cache.lru[LRU_ACTIVE].folios, 18);
	assert_false(cached(r, 0));
	use(r, 1, 0);
	assert_int_equal(cache_reclaim(&r->cache, 2), 2);
	assert_true(cached(r, 1));
	assert_false(cached(r, 2));
	assert_false(cached(r, 3));
	rig_close(r);
}

/* A folio is known again also when it comes back in another size. */
static void test_ghosts_of_all_sizes(void **state)
{
	struct rig *r = open_rule(RECLAIM_S3FIFO, 4096);

	(void)state;
	for (u64 page = 0; page < 1024; page += 64)
		use(r, page, 6);
	for (u64 page = 1024; page < 2048; page++)
		use(r, page, 0);
	assert_int_equal(cache_reclaim(&r->cache, 512 + 64), 576); /* nine of the large ones */
	use(r, 64, 0);
	assert_int_equal(r->cache.lru[LRU_ACTIVE].pages, 1);
	use(r, 128, 7); /* now of twice the size */
	assert_int_equal(r->cache.lru[LRU_ACTIVE].pages, 1 + 128);
	use(r, 300, 0); /* it lay in the midst of one */
	assert_int_equal(r->cache.lru[LRU_ACTIVE].pages, 1 + 128 + 1);
	rig_close(r);
}

static void test_ghosts_are_forgotten(void **state)
{
	struct ghost g;

	(void)state;
	assert_int_equal(ghost_init(&g, 10000), 0);
	for (u64 page = 0; page < 20000; page++)
		ghost_add(&g, 1, page, 0);
	assert_false(ghost_take(&g, 1, 10000, 9000)); /* too long ago */
	assert_false(ghost_take(&g, 2, 19000, 9000)); /* of another file */
	assert_true(ghost_take(&g, 1, 19000, 9000));
	assert_false(ghost_take(&g, 1, 19000, 9000)); /* taken */
	ghost_finish(&g);
}

/* Nearly all are known for as long as they ought to be, and next to none that never were. */
static void test_ghosts_are_exact_enough(void **state)
{
	u64 known = 0, wrong = 0, pages = 50000, window = pages / 10 * 9;
	struct ghost g;

	(void)state;
	assert_int_equal(ghost_init(&g, pages), 0);
	for (u64 page = 0; page < 10 * pages; page++)
		ghost_add(&g, 7, page, 0);
	for (u64 page = 10 * pages - window + 100; page < 10 * pages; page++)
		known += ghost_take(&g, 7, page, window);
	for (u64 page = 20 * pages; page < 21 * pages; page++)
		wrong += ghost_take(&g, 7, page, window);
	assert_in_range(known, window * 99 / 100, window);
	assert_in_range(wrong, 0, pages / 1000);
	ghost_finish(&g);
}

/* Dirty folios are passed over, each once, and are the first to go when they are written. */
static void test_dirty_folios(void **state)
{
	static struct block_run runs[FOLIO_MAX_RUNS];

	(void)state;
	for (enum reclaim rule = RECLAIM_SIEVE; rule <= RECLAIM_S3FIFO; rule++) {
		struct rig *r = open_rule(rule, 1024);
		struct folio *f;

		for (u64 page = 0; page < 60; page++) {
			use(r, page, 0);
			f = rig_get(r, page);
			if (page % 2)
				folio_set_dirty(f, page, 1);
			rig_put(r, f);
		}
		assert_int_equal(cache_reclaim(&r->cache, 20), 20);
		assert_int_equal(cache_reclaim(&r->cache, 20), 10);
		for (u64 page = 0; page < 60; page++)
			assert_int_equal(cached(r, page), page % 2);
		for (u64 page = 100; page < 110; page++)
			use(r, page, 0);
		f = rig_get(r, 31);
		assert_int_equal(folio_begin_writeback(f, false, runs), 1);
		folio_unlock(f);
		mapping_end_writeback(&r->m, 31, 1, 0);
		folio_unpin(&r->cache, f);
		/* sieve's hand meets it next; the small queue has more than its tenth */
		assert_int_equal(cache_reclaim(&r->cache, 1), 1);
		assert_int_equal(cached(r, 31), rule == RECLAIM_S3FIFO);
		rig_close(r);
	}
}

/* With everything dirty a call comes to an end, frees nothing, and asks for write-out. */
static void need(struct cache *c)
{
	++*(unsigned *)c->owner;
}

static void test_all_dirty(void **state)
{
	(void)state;
	for (enum reclaim rule = RECLAIM_SIEVE; rule <= RECLAIM_S3FIFO; rule++) {
		struct rig *r = open_rule(rule, 1024);
		unsigned asked = 0;

		r->cache.owner = &asked;
		r->cache.need_writeback = need;
		for (u64 page = 0; page < 500; page++) {
			struct folio *f = rig_folio(r, page, 0);

			folio_set_dirty(f, page, 1);
			rig_put(r, f);
		}
		for (unsigned i = 1; i < 4; i++) {
			assert_int_equal(cache_reclaim(&r->cache, 1), 0);
			assert_int_equal(asked, i);
		}
		rig_close(r);
	}
}

/* Where a partly dirty folio is shed, its clean pages are what goes next, before older folios. */
static void test_shed_pieces_go_next(void **state)
{
	(void)state;
	for (enum reclaim rule = RECLAIM_LRU2; rule <= RECLAIM_S3FIFO; rule++) {
		struct cache_config config = { .memory_pages = 1024,
					       .reclaim = rule,
					       .shed = true };
		struct rig *r = rig_open_config(&config, 0, 9);
		struct folio *f = rig_folio(r, 0, 9);

		folio_set_dirty(f, 0, 1);
		rig_put(r, f);
		for (u64 page = 512; page < 700; page++)
			use(r, page, 0);
		assert_int_equal(cache_reclaim(&r->cache, 500), 511);
		for (u64 page = 512; page < 700; page++)
			assert_true(cached(r, page));
		assert_true(cached(r, 0));
		/* the page moved away: the run of 2 MiB is whole again */
		if (rule == RECLAIM_LRU2)
			assert_true(arena_is_valid(&r->cache.arena));
		assert_true(arena_alloc(&r->cache.arena, 9) == 0);
		arena_free(&r->cache.arena, 0, 9);
		rig_close(r);
	}
}

static double hit_ratio(enum reclaim rule, u64 (*next)(struct rng *r, u64 i))
{
	struct rig *r = open_rule(rule, 2048);
	u64 hits = 0, n = 60000;
	struct rng rng;

	rng_init(&rng, 5);
	for (u64 i = 0; i < n; i++) {
		bool hit = use(r, next(&rng, i), 0);

		hits += hit && i >= n / 3;
	}
	rig_close(r);
	return (double)hits / (double)(n - n / 3);
}

static u64 loop(struct rng *r, u64 i)
{
	(void)r;
	return i % 2500;
}

/* Skewed: the product of two draws; every other use is of a page that is never used again. */
static u64 skewed_and_scan(struct rng *r, u64 i)
{
	return i % 2 ? 100000 + i : rng_below(r, rng_below(r, 8000) + 1);
}

static void test_hit_ratios(void **state)
{
	(void)state;
	assert_true(hit_ratio(RECLAIM_LRU2, loop) == 0);
	assert_true(hit_ratio(RECLAIM_SIEVE, loop) == 0);
	assert_true(hit_ratio(RECLAIM_S3FIFO, loop) > 0.5);
	assert_true(hit_ratio(RECLAIM_S3FIFO, skewed_and_scan) >
		    hit_ratio(RECLAIM_LRU2, skewed_and_scan) + 0.005);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sieve_by_hand),
		cmocka_unit_test(test_sieve_hand_follows_its_folios),
		cmocka_unit_test(test_s3fifo_by_hand),
		cmocka_unit_test(test_s3fifo_main_queue),
		cmocka_unit_test(test_ghosts_of_all_sizes),
		cmocka_unit_test(test_ghosts_are_forgotten),
		cmocka_unit_test(test_ghosts_are_exact_enough),
		cmocka_unit_test(test_dirty_folios),
		cmocka_unit_test(test_all_dirty),
		cmocka_unit_test(test_shed_pieces_go_next),
		cmocka_unit_test(test_hit_ratios),
	};

	return cmocka_run_group_tests_name("victim", tests, NULL, NULL);
}
