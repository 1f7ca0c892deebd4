// SPDX-License-Identifier: MIT
/* Small writes into large clean folios: Linux writeback reference, section 12, rule by rule. */
#include "cache/fill.h"
#include "rig.h"

/* The loaded file has a folio of order `order` that begins at this page (of 256 KiB: 64). */
#define FOLIO 512

/* A file of which [FOLIO, FOLIO + 2^order) is cached as one valid folio, and nothing else. */
static struct file *load(struct rig *r, u32 block_bytes, unsigned order)
{
	struct file *f = rig_laid_out(r, block_bytes, 8 * MIB);
	struct mapping *m = &f->inode->m;
	struct folio *folio = folio_alloc(m->cache, order);
	u32 shift = m->block_shift;

	folio_lock(folio);
	assert_int_equal(mapping_add(m, folio, FOLIO), 0);
	assert_int_equal(folio_read(folio, FOLIO << shift, 1u << order << shift), 0);
	put_locked(m->cache, folio);
	r->logged = 0;
	return f;
}

static struct rig *open_with(const char *small_write)
{
	struct rig *r = rig_new("linux-7.4", 64 * MIB);
	struct err e;

	assert_int_equal(policy_set(&r->config.policy, "small_write", small_write, &e), 0);
	rig_start(r);
	return r;
}

static u64 at(u64 page)
{
	return (FOLIO + page) * PAGE_SIZE;
}

RIG_TEST(test_keep_dirties_the_folio_whole)
{
	struct rig *r = open_with("keep");
	struct file *f = load(r, 4096, 6);

	rig_write(f, at(5), 4 * KIB, 2);
	rig_expect_orders(f, FOLIO, 6);
	assert_int_equal(rig_stats(r).dirty, 64);
	assert_int_equal(rig_stats(r).debt, 1);
	assert_int_equal(rig_stats(r).charged, 64);
	rig_end(r, f);
}

/* Non-uniform, down to the write's order, around the written page; the rest stays large. */
RIG_TEST(test_split_leaves_buddy_pieces)
{
	struct rig *r = open_with("split");
	struct file *f = load(r, 4096, 6);

	rig_write(f, at(5), 4 * KIB, 2);
	rig_expect_orders(f, FOLIO, 2, 0, 0, 1, 3, 4, 5);
	assert_int_equal(rig_stats(r).dirty, 1);
	assert_int_equal(rig_stats(r).debt, 1);
	assert_int_equal(rig_stats(r).pinned, 1);
	assert_int_equal(rig_stats(r).charged, 1);
	assert_int_equal(rig_stats(r).folios_split, 1);
	/* all of it is still cached */
	rig_expect_bytes(f, at(0), 20 * KIB, 1);
	rig_expect_bytes(f, at(5), 4 * KIB, 2);
	rig_expect_bytes(f, at(6), 232 * KIB, 1);
	assert_int_equal(r->logged, 0);
	rig_end(r, f);
}

/* A write in the sibling finds a folio of order 1: 2 pages are charged (12, at the end). */
RIG_TEST(test_split_and_a_second_write)
{
	struct rig *r = open_with("split");
	struct file *f = load(r, 4096, 6);

	rig_write(f, at(5), 4 * KIB, 2);
	rig_write(f, at(7), 4 * KIB, 2); /* into 6-7, twice the write: not split */
	rig_expect_orders(f, FOLIO, 2, 0, 0, 1, 3, 4, 5);
	assert_int_equal(rig_stats(r).dirty, 3);
	rig_write(f, at(1), 4 * KIB, 2); /* into 0-3, four times: split */
	rig_expect_orders(f, FOLIO, 0, 0, 1, 0, 0, 1, 3, 4, 5);
	assert_int_equal(rig_stats(r).dirty, 4);
	assert_int_equal(rig_stats(r).folios_split, 2);
	rig_end(r, f);
}

/* The trigger is four times the write, and its order that of the write. */
RIG_TEST(test_split_triggers_at_four_times)
{
	static const struct {
		unsigned order; /* of the folio */
		u64 page, bytes;
		int pieces[8];
	} cases[] = {
		{ 6, 16, 64 * KIB, { 4, 4, 5, -1 } },    /* 64 KiB into 256 KiB */
		{ 5, 16, 64 * KIB, { 5, -1 } },          /* into 128 KiB: not */
		{ 6, 16, 64 * KIB + 1, { 6, -1 } },      /* a byte too long */
		{ 6, 32, 60 * KIB, { 5, 3, 3, 4, -1 } }, /* order 3, the floor of 15 pages */
		{ 2, 2, 4 * KIB, { 1, 0, 0, -1 } },
		{ 1, 1, 4 * KIB, { 1, -1 } },
		{ 1, 1, 2 * KIB, { 0, 0, -1 } }, /* by bytes, not pages: 8 KiB is 4 * 2 KiB */
		{ 9, 511, 1, { 8, 7, 6, 5, 4, 3, 2, 1 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig *r = open_with("split");
		struct file *f = load(r, 4096, cases[i].order);
		u64 page = FOLIO;

		rig_write(f, at(cases[i].page), cases[i].bytes, 2);
		for (unsigned k = 0; k < 8 && cases[i].pieces[k] >= 0; k++) {
			assert_int_equal(rig_order(f, page), cases[i].pieces[k]);
			page += 1ull << cases[i].pieces[k];
		}
		rig_end(r, f);
	}
}

/* The length is that of the step: what one call writes past the folio counts too (2.2). */
RIG_TEST(test_the_length_is_the_steps)
{
	struct rig *r = open_with("split");
	struct file *f = load(r, 4096, 6);

	rig_write(f, at(60), 32 * KIB, 2); /* 16 KiB in the folio, 32 KiB in the step: 8 pages */
	rig_expect_orders(f, FOLIO, 5, 4, 3, 3);
	assert_int_equal(rig_stats(r).dirty, 8 + 4);
	rig_end(r, f);
}

/* After `spoil` neither remedy touches the folio. */
static void expect_whole(void (*spoil)(struct rig *, struct file *))
{
	static const enum policy_small_write choices[] = { SMALL_WRITE_SPLIT, SMALL_WRITE_EVICT };

	for (unsigned i = 0; i < 2; i++) {
		struct rig *r = open_with("keep");
		struct file *f = load(r, 4096, 6);

		spoil(r, f);
		r->e->all.policy.small_write = choices[i];
		rig_write(f, at(5), 4 * KIB, 2);
		rig_expect_orders(f, FOLIO, 6);
		assert_int_equal(f->inode->m.pages, 64);
		assert_int_equal(rig_stats(r).folios_split + rig_stats(r).folios_evicted, 0);
		rig_end(r, f);
	}
}

static void spoil_dirty(struct rig *r, struct file *f)
{
	rig_write(f, at(40), 4 * KIB, 3);
	assert_int_equal(rig_stats(r).debt, 1);
}

static void spoil_flight(struct rig *r, struct file *f)
{
	spoil_dirty(r, f);
	assert_int_equal(file_advise(f, at(0), 256 * KIB, FILE_ADV_DONTNEED), 0);
	assert_int_equal(rig_stats(r).in_flight, 1);
	assert_int_equal(rig_stats(r).debt, 0);
}

RIG_TEST(test_dirty_folios_are_left_whole)
{
	expect_whole(spoil_dirty);
}

RIG_TEST(test_folios_in_flight_are_left_whole)
{
	expect_whole(spoil_flight);
}

/* A folio that is not valid everywhere is no case for either. */
RIG_TEST(test_partly_valid_folios_are_left_whole)
{
	static const char *const choices[] = { "split", "evict" };

	for (unsigned i = 0; i < 2; i++) {
		struct rig *r = open_with(choices[i]);
		struct file *f = rig_laid_out(r, 4096, 8 * MIB);
		struct mapping *m = &f->inode->m;
		struct folio *folio = folio_alloc(m->cache, 6);

		folio_lock(folio);
		assert_int_equal(mapping_add(m, folio, FOLIO), 0);
		assert_int_equal(folio_read(folio, FOLIO, 63), 0); /* all but the last page */
		put_locked(m->cache, folio);
		rig_write(f, at(5), 4 * KIB, 2);
		rig_expect_orders(f, FOLIO, 6);
		assert_int_equal(rig_stats(r).dirty, 64);
		rig_end(r, f);
	}
}

/* Somebody else holds the folio: the write goes on as without the policy. */
RIG_TEST(test_a_failed_split_or_evict_dirties_the_folio)
{
	static const char *const choices[] = { "split", "evict" };

	for (unsigned i = 0; i < 2; i++) {
		struct rig *r = open_with(choices[i]);
		struct file *f = load(r, 4096, 6);
		struct folio *held = mapping_find(&f->inode->m, FOLIO);

		rig_write(f, at(5), 4 * KIB, 2);
		rig_expect_orders(f, FOLIO, 6);
		assert_int_equal(rig_stats(r).dirty, 64);
		folio_unpin(f->inode->m.cache, held);
		rig_end(r, f);
	}
}

RIG_TEST(test_evict_makes_a_folio_of_the_writes_size)
{
	struct rig *r = open_with("evict");
	struct file *f = load(r, 4096, 6);

	rig_write(f, at(5), 4 * KIB, 2);
	assert_int_equal(f->inode->m.pages, 1); /* the other data is lost to the cache */
	assert_int_equal(rig_order(f, FOLIO + 5), 0);
	assert_int_equal(r->logged, 0); /* aligned: nothing is read back */
	assert_int_equal(rig_stats(r).dirty, 1);
	assert_int_equal(rig_stats(r).folios_evicted, 1);
	assert_int_equal(rig_stats(r).charged, 1);
	rig_end(r, f);
}

RIG_TEST(test_evict_and_an_unaligned_write_read_the_block_back)
{
	struct rig *r = open_with("evict");
	struct file *f = load(r, 4096, 6);

	rig_write(f, at(5) + 10, 100, 2);
	assert_int_equal(r->logged, 1);
	rig_expect_io(r, 0, IO_READ, at(5), 4096);
	rig_expect_bytes(f, at(5), 10, 1);
	rig_expect_bytes(f, at(5) + 10, 100, 2);
	rig_expect_bytes(f, at(5) + 110, 3986, 1);
	rig_end(r, f);
}

RIG_TEST(test_evict_triggers_at_four_times)
{
	struct rig *r = open_with("evict");
	struct file *f = load(r, 4096, 5);

	rig_write(f, at(0), 64 * KIB, 2);
	rig_expect_orders(f, FOLIO, 5);
	assert_int_equal(rig_stats(r).folios_evicted, 0);
	rig_drop(f);
	f = load(r, 4096, 6);
	rig_write(f, at(16), 64 * KIB, 2);
	assert_int_equal(f->inode->m.pages, 16);
	assert_int_equal(rig_order(f, FOLIO + 16), 4);
	assert_int_equal(rig_stats(r).folios_evicted, 1);
	rig_end(r, f);
}

/* `sluice` keeps folios large and only counts what is owed. */
RIG_TEST(test_sluice_charges_the_page_in_the_large_folio)
{
	struct rig *r = rig_open("sluice");
	struct file *f = load(r, 4096, 6);

	rig_write(f, at(5), 4 * KIB, 2);
	rig_expect_orders(f, FOLIO, 6);
	assert_int_equal(rig_stats(r).dirty, 1);
	assert_int_equal(rig_stats(r).charged, 1);
	assert_int_equal(rig_stats(r).pinned, 64);
	rig_end(r, f);
}

/*
 * ... until more than the limit is pinned: then the folio just dirtied gives its clean pages
 * free. 64 MiB: thresh is 819 / 4096 of 16385 pages, 3276.
 */
RIG_TEST(test_sluice_sheds_when_more_than_its_share_is_pinned)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_laid_out(r, 4096, 32 * MIB);
	struct mapping *m = &f->inode->m;
	u64 shed = 0;

	r->e->all.policy.pinned_share = 2; /* tenths of 16,384 pages */
	for (u64 page = 0; page < 8192; page += 64) {
		struct folio *folio = folio_alloc(m->cache, 6);

		folio_lock(folio);
		assert_int_equal(mapping_add(m, folio, page), 0);
		folio_set_uptodate(folio, page, 64);
		put_locked(m->cache, folio);
		rig_write(f, page * PAGE_SIZE, 4 * KIB, 2);
		shed += rig_order(f, page) == 0;
	}
	/* 51 folios are 3264 pages; the 52nd passes their share and is the first to be shed */
	assert_int_equal(shed, 128 - 51);
	assert_int_equal(rig_order(f, 50 * 64), 6);
	assert_int_equal(rig_order(f, 51 * 64), 0);
	assert_int_equal(rig_stats(r).debt, 128);
	assert_int_equal(rig_stats(r).pinned, 51 * 64 + (128 - 51)); /* 128 * 64 without it */
	rig_end(r, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keep_dirties_the_folio_whole),
		cmocka_unit_test(test_split_leaves_buddy_pieces),
		cmocka_unit_test(test_split_and_a_second_write),
		cmocka_unit_test(test_split_triggers_at_four_times),
		cmocka_unit_test(test_the_length_is_the_steps),
		cmocka_unit_test(test_dirty_folios_are_left_whole),
		cmocka_unit_test(test_folios_in_flight_are_left_whole),
		cmocka_unit_test(test_partly_valid_folios_are_left_whole),
		cmocka_unit_test(test_a_failed_split_or_evict_dirties_the_folio),
		cmocka_unit_test(test_evict_makes_a_folio_of_the_writes_size),
		cmocka_unit_test(test_evict_and_an_unaligned_write_read_the_block_back),
		cmocka_unit_test(test_evict_triggers_at_four_times),
		cmocka_unit_test(test_sluice_charges_the_page_in_the_large_folio),
		cmocka_unit_test(test_sluice_sheds_when_more_than_its_share_is_pinned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
