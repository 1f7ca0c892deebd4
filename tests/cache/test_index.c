// SPDX-License-Identifier: MIT
/* The index against plain arrays of bools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "cache/index.h"
#include <cmocka.h>
#include <stdlib.h>

#define LAST_PAGE (INDEX_MAX_PAGES - 1)

static void set(struct index *ix, enum index_tag tag, u64 page)
{
	struct leaf *leaf = index_leaf_create(ix, page);

	assert_non_null(leaf);
	index_tag_set(leaf, tag, 1ull << page % 64);
}

/* Clears a bit, and releases the leaf if that was its last. */
static void clear(struct index *ix, enum index_tag tag, u64 page)
{
	struct leaf *leaf = index_leaf(ix, page);
	u64 any = 0;

	assert_non_null(leaf);
	index_tag_clear(leaf, tag, 1ull << page % 64);
	for (unsigned t = 0; t < TAG_MAX; t++)
		any |= leaf->tag[t];
	if (!any)
		index_leaf_release(ix, leaf);
}

static void expect_next(struct index *ix, enum index_tag tag, u64 from, u64 expected)
{
	u64 page = 42;

	assert_true(index_next(ix, tag, from, &page));
	assert_int_equal(page, expected);
}

static void expect_none(struct index *ix, enum index_tag tag, u64 from)
{
	u64 page;

	assert_false(index_next(ix, tag, from, &page));
}

static void expect_empty(struct index *ix)
{
	assert_null(ix->root);
	assert_int_equal(ix->height, 0);
	assert_int_equal(ix->leaves, 0);
	assert_int_equal(ix->nodes, 0);
	assert_int_equal(ix->memory_bytes, 0);
}

static void test_an_empty_index_has_nothing(void **state)
{
	struct index ix;

	(void)state;
	index_init(&ix, 0);
	assert_null(index_leaf(&ix, 0));
	assert_null(index_leaf(&ix, LAST_PAGE));
	for (unsigned t = 0; t < TAG_MAX; t++) {
		assert_false(index_tagged(&ix, t));
		expect_none(&ix, t, 0);
	}
	expect_empty(&ix);
	index_finish(&ix);
}

/* The height is what the largest page asks for: 64, 4096, 2^18, 2^24, 2^30, 2^36 pages. */
static void test_height_follows_the_largest_page(void **state)
{
	static const struct {
		u64 page;
		u32 height;
	} cases[] = {
		{ 0, 0 },          { 63, 0 },
		{ 64, 1 },         { 4095, 1 },
		{ 4096, 2 },       { (1 << 18) - 1, 2 },
		{ 1 << 18, 3 },    { (1 << 24) - 1, 3 },
		{ 1 << 24, 4 },    { (1 << 30) - 1, 4 },
		{ 1ull << 30, 5 }, { LAST_PAGE, 5 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct index ix;

		index_init(&ix, 0);
		set(&ix, TAG_DIRTY, cases[i].page);
		assert_int_equal(ix.height, cases[i].height);
		assert_int_equal(ix.leaves, 1);
		assert_int_equal(ix.nodes, cases[i].height);
		expect_next(&ix, TAG_DIRTY, 0, cases[i].page);
		expect_next(&ix, TAG_DIRTY, cases[i].page, cases[i].page);
		expect_none(&ix, TAG_DIRTY, cases[i].page + 1);
		expect_none(&ix, TAG_PRESENT, 0);
		clear(&ix, TAG_DIRTY, cases[i].page);
		expect_empty(&ix);
		index_finish(&ix);
	}
}

/* Growing at the root keeps every tag, whatever the order in which pages come. */
static void test_growth_keeps_tags(void **state)
{
	static const u64 pages[] = { 5,       63,         64,         4095,     4096,
				     1 << 18, 1ull << 24, 1ull << 30, LAST_PAGE };
	struct index ix;

	(void)state;
	for (int backwards = 0; backwards < 2; backwards++) {
		size_t n = ARRAY_SIZE(pages);

		index_init(&ix, 0);
		for (size_t i = 0; i < n; i++)
			set(&ix, i % 2 ? TAG_DIRTY : TAG_WRITEBACK,
			    pages[backwards ? n - 1 - i : i]);
		assert_int_equal(ix.height, 5);
		for (size_t i = 0; i < n; i++) { /* n is odd: i's tag is the same both ways */
			enum index_tag tag = i % 2 ? TAG_DIRTY : TAG_WRITEBACK;

			expect_next(&ix, tag, i < 2 ? 0 : pages[i - 2] + 1, pages[i]);
			expect_next(&ix, tag, pages[i], pages[i]);
		}
		expect_none(&ix, TAG_DIRTY, pages[7] + 1);
		expect_none(&ix, TAG_PRESENT, 0);
		expect_none(&ix, TAG_TOWRITE, 0);
		for (size_t i = 0; i < n; i++)
			clear(&ix, i % 2 ? TAG_DIRTY : TAG_WRITEBACK,
			      pages[backwards ? n - 1 - i : i]);
		expect_empty(&ix);
		index_finish(&ix);
	}
}

static void test_next_crosses_gaps(void **state)
{
	struct index ix;

	(void)state;
	index_init(&ix, 0);
	set(&ix, TAG_PRESENT, 3);
	set(&ix, TAG_PRESENT, 1000000000);
	set(&ix, TAG_PRESENT, LAST_PAGE);
	set(&ix, TAG_DIRTY, 500000000); /* another tag is no answer */
	expect_next(&ix, TAG_PRESENT, 0, 3);
	expect_next(&ix, TAG_PRESENT, 3, 3);
	expect_next(&ix, TAG_PRESENT, 4, 1000000000);
	expect_next(&ix, TAG_PRESENT, 500000000, 1000000000);
	expect_next(&ix, TAG_PRESENT, 1000000000, 1000000000);
	expect_next(&ix, TAG_PRESENT, 1000000001, LAST_PAGE);
	expect_next(&ix, TAG_PRESENT, LAST_PAGE, LAST_PAGE);
	expect_none(&ix, TAG_PRESENT, LAST_PAGE + 1);
	expect_none(&ix, TAG_DIRTY, 500000001);
	assert_true(index_tagged(&ix, TAG_DIRTY));
	assert_false(index_tagged(&ix, TAG_WRITEBACK));
	clear(&ix, TAG_PRESENT, 3);
	clear(&ix, TAG_PRESENT, LAST_PAGE);
	clear(&ix, TAG_DIRTY, 500000000);
	clear(&ix, TAG_PRESENT, 1000000000);
	expect_empty(&ix);
	index_finish(&ix);
}

/* A failed search of one node must go on at the next one, on every level. */
static void test_next_leaves_exhausted_nodes(void **state)
{
	struct index ix;

	(void)state;
	for (unsigned level = 1; level <= 5; level++) {
		u64 unit = 1ull << (6 * level);

		index_init(&ix, 0);
		set(&ix, TAG_DIRTY, unit - 2);
		set(&ix, TAG_DIRTY, unit);
		set(&ix, TAG_DIRTY, 2 * unit + 1);
		expect_next(&ix, TAG_DIRTY, unit - 1, unit);
		expect_next(&ix, TAG_DIRTY, unit + 1, 2 * unit + 1);
		expect_next(&ix, TAG_DIRTY, 2 * unit - 1, 2 * unit + 1);
		expect_none(&ix, TAG_DIRTY, 2 * unit + 2);
		clear(&ix, TAG_DIRTY, unit);
		expect_next(&ix, TAG_DIRTY, unit - 1, 2 * unit + 1);
		clear(&ix, TAG_DIRTY, unit - 2);
		clear(&ix, TAG_DIRTY, 2 * unit + 1);
		expect_empty(&ix);
		index_finish(&ix);
	}
}

static void test_masks_set_and_clear_many_at_once(void **state)
{
	struct index ix;
	struct leaf *leaf;

	(void)state;
	index_init(&ix, 0);
	leaf = index_leaf_create(&ix, 700);
	assert_int_equal(leaf_first(leaf), 640);
	index_tag_set(leaf, TAG_DIRTY, 0);
	assert_false(index_tagged(&ix, TAG_DIRTY));
	index_tag_set(leaf, TAG_DIRTY, 0xf0f0);
	index_tag_clear(leaf, TAG_DIRTY, 0xffull << 56);
	expect_next(&ix, TAG_DIRTY, 0, 644);
	index_tag_clear(leaf, TAG_DIRTY, 0x00f0);
	expect_next(&ix, TAG_DIRTY, 0, 652);
	index_tag_clear(leaf, TAG_DIRTY, ~0ull);
	assert_false(index_tagged(&ix, TAG_DIRTY));
	expect_none(&ix, TAG_DIRTY, 0);
	index_leaf_release(&ix, leaf);
	expect_empty(&ix);
	index_finish(&ix);
}

/* Three block words a page-word, all apart; without small blocks they are the page words. */
static void test_block_words(void **state)
{
	(void)state;
	for (u32 shift = 0; shift <= 3; shift++) {
		struct index ix;
		struct leaf *leaf;
		u64 *words[BLOCK_STATES];

		index_init(&ix, shift);
		leaf = index_leaf_create(&ix, 0);
		for (unsigned s = 0; s < BLOCK_STATES; s++)
			words[s] = leaf_blocks(leaf, s, shift);
		if (shift) {
			assert_ptr_equal(words[BLOCK_DIRTY], words[BLOCK_UPTODATE] + (1u << shift));
			assert_ptr_equal(words[BLOCK_WRITEBACK],
					 words[BLOCK_DIRTY] + (1u << shift));
			words[BLOCK_WRITEBACK][(1u << shift) - 1] = ~0ull; /* within the leaf */
		} else {
			assert_ptr_equal(words[BLOCK_UPTODATE], &leaf->uptodate);
			assert_ptr_equal(words[BLOCK_DIRTY], &leaf->tag[TAG_DIRTY]);
			assert_ptr_equal(words[BLOCK_WRITEBACK], &leaf->tag[TAG_WRITEBACK]);
		}
		index_leaf_release(&ix, leaf);
		index_finish(&ix);
	}
}

/* The model: MODEL pages in CLUSTERS stretches, the last up to the largest page there is. */
#define CLUSTERS 5
#define WIDTH    200
#define MODEL    (CLUSTERS * WIDTH)

static const u64 cluster_at[CLUSTERS] = { 0, 4000, (1 << 24) - 100, 3000000000,
					  INDEX_MAX_PAGES - WIDTH };

static u64 page_of(unsigned i)
{
	return cluster_at[i / WIDTH] + i % WIDTH;
}

struct model {
	struct index ix;
	bool tag[TAG_MAX][MODEL];
};

static void check_next(struct model *m, unsigned from)
{
	for (unsigned t = 0; t < TAG_MAX; t++) {
		unsigned i = from;

		while (i < MODEL && !m->tag[t][i])
			i++;
		if (i < MODEL)
			expect_next(&m->ix, t, page_of(from), page_of(i));
		else
			expect_none(&m->ix, t, page_of(from));
	}
}

/* Leaves are exactly those with a bit, and all their words are right. */
static void check_leaves(struct model *m)
{
	u64 leaves = 0;

	for (unsigned i = 0; i < MODEL;) {
		u64 first = round_down(page_of(i), LEAF_PAGES);
		struct leaf *leaf = index_leaf(&m->ix, page_of(i));
		u64 word[TAG_MAX] = { 0 }, any = 0;

		for (; i < MODEL && round_down(page_of(i), LEAF_PAGES) == first; i++)
			for (unsigned t = 0; t < TAG_MAX; t++)
				word[t] |= (u64)m->tag[t][i] << page_of(i) % 64;
		for (unsigned t = 0; t < TAG_MAX; t++)
			any |= word[t];
		if (!any) {
			assert_null(leaf);
			continue;
		}
		leaves++;
		assert_non_null(leaf);
		for (unsigned t = 0; t < TAG_MAX; t++)
			assert_int_equal(leaf->tag[t], word[t]);
	}
	assert_int_equal(m->ix.leaves, leaves);
}

static void test_random_tags_against_arrays(void **state)
{
	struct model *m = calloc(1, sizeof(*m));
	struct rng r;

	(void)state;
	rng_init(&r, 7);
	index_init(&m->ix, 0);
	for (unsigned step = 0; step < 40000; step++) {
		unsigned i = (unsigned)rng_below(&r, MODEL);
		unsigned t = (unsigned)rng_below(&r, TAG_MAX);
		/* waves: the tree fills up, and empties */
		bool fill = rng_below(&r, 100) < (step / 4000 % 2 ? 5 : 60);

		if (fill) {
			set(&m->ix, t, page_of(i));
			m->tag[t][i] = true;
		} else {
			for (unsigned k = 0; k < 20 && !m->tag[t][i]; k++)
				i = (unsigned)rng_below(&r, MODEL);
			if (!m->tag[t][i])
				continue;
			clear(&m->ix, t, page_of(i));
			m->tag[t][i] = false;
		}
		check_next(m, (unsigned)rng_below(&r, MODEL));
		if (step % 500 == 0)
			check_leaves(m);
	}
	for (unsigned t = 0; t < TAG_MAX; t++)
		for (unsigned i = 0; i < MODEL; i++)
			if (m->tag[t][i])
				clear(&m->ix, t, page_of(i));
	expect_empty(&m->ix);
	index_finish(&m->ix);
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_index_has_nothing),
		cmocka_unit_test(test_height_follows_the_largest_page),
		cmocka_unit_test(test_growth_keeps_tags),
		cmocka_unit_test(test_next_crosses_gaps),
		cmocka_unit_test(test_next_leaves_exhausted_nodes),
		cmocka_unit_test(test_masks_set_and_clear_many_at_once),
		cmocka_unit_test(test_block_words),
		cmocka_unit_test(test_random_tags_against_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
