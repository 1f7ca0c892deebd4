// SPDX-License-Identifier: MIT
/* Lookups without a lock, while one thread adds folios to the file and takes them out again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "cache/state.h"
#include <cmocka.h>
#include <stdlib.h>

#define READERS 3
#define STEPS   20000
#define FRAMES  2048

static struct cache cache;
static struct mapping mapping;
static struct device *device;
static struct store *store;
static _Atomic u32 over, found;

/* Places of leaves: near and far, so that the tree grows, shrinks and is empty now and then. */
static u64 some_page(struct rng *rng)
{
	u64 far = rng_below(rng, 4);

	return rng_below(rng, 300) + (far ? 1ull << (6 * far + 3) : 0);
}

/* What lookups find must be a folio that says it covers the page, or one that has changed. */
static void reader(void *arg)
{
	struct rng rng;

	rng_init(&rng, (u64)(uintptr_t)arg);
	while (!atomic_load(&over)) {
		u64 page = some_page(&rng);
		struct leaf *leaf;
		u32 id = 0;

		world_read_begin();
		leaf = index_find(&mapping.index, page);
		if (leaf)
			id = index_load(&leaf->folio[page % LEAF_PAGES]);
		world_read_end();
		if (id) {
			struct folio *f = &cache.folios[id];
			u64 first, pages;
			bool mine;
			u32 seq;

			if (!folio_look(f, &seq))
				continue;
			mine = folio_get(f->mapping) == &mapping;
			first = folio_get(f->index);
			pages = 1ull << folio_get(f->order);
			/* it may have moved on to another place, but never be half way */
			if (folio_unchanged(f, seq) && (!mine || first % pages))
				abort();
			atomic_fetch_add_explicit(&found, mine && page - first < pages,
						  memory_order_relaxed);
		}
	}
}

/* Adds a folio if there is room for it, or takes one out. */
static void change(struct rng *rng)
{
	u64 page = some_page(rng);
	struct folio *f = mapping_find(&mapping, page);
	unsigned order = (unsigned)rng_below(rng, 8);

	if (f) {
		folio_lock(f);
		if (rng_below(rng, 2) || !f->order)
			mapping_remove(&mapping, f);
		else
			folio_split(f, page, f->order / 2, false);
	} else {
		f = folio_alloc(&cache, order);
		if (!f)
			return;
		folio_lock(f);
		mapping_add(&mapping, f, round_down(page, 1ull << order));
	}
	folio_unlock(f);
	folio_unpin(&cache, f);
}

static void test_lookups_beside_changes(void **state)
{
	struct cache_config config = { .memory_pages = FRAMES };
	struct task *readers[READERS];
	struct device_config dc;
	struct rng rng;
	u64 gone;

	(void)state;
	assert_int_equal(device_config_init(&dc, "memory"), 0);
	assert_int_equal(device_create(&dc, &device), 0);
	assert_int_equal(store_create(device, false, &store), 0);
	assert_int_equal(cache_init(&cache, &config), 0);
	mapping_init(&mapping, &cache, store, 0, 9, NULL);
	for (u64 i = 0; i < READERS; i++) {
		readers[i] = world_spawn("reader", reader, (void *)(uintptr_t)(i + 1));
		assert_non_null(readers[i]);
	}
	rng_init(&rng, 7);
	for (u32 i = 0; i < STEPS; i++)
		change(&rng);
	while (!atomic_load(&found)) /* they got their turn, too */
		change(&rng);
	atomic_store(&over, 1);
	for (u32 i = 0; i < READERS; i++)
		world_join(readers[i]);
	mapping_evict_range(&mapping, 0, INDEX_MAX_PAGES, &gone);
	assert_int_equal(mapping.pages, 0);
	assert_int_equal(mapping.index.leaves + mapping.index.nodes, 0);
	mapping_finish(&mapping);
	world_read_synchronize();
	cache_finish(&cache);
	store_destroy(store);
	device_destroy(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lookups_beside_changes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
