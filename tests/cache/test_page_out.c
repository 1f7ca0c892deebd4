// SPDX-License-Identifier: MIT
/* Cold memory is given up in proportion to what of it is cached, and only what is clean. */
#include "rig.h"
#include "world/sim.h"

static void in_a_world(void (*fn)(void *arg))
{
	struct sim_config config;
	struct world *w;
	char why[256];

	sim_config_init(&config);
	w = sim_create(&config);
	assert_non_null(w);
	assert_int_equal(sim_run(w, fn, NULL, why, sizeof(why)), 0);
	sim_destroy(w);
}

/* A quarter of the memory is cached: so of 1024 pages looked at 256 go, as four folios. */
static void a_share_goes(void *arg)
{
	struct rig *r = rig_open(4096, 0);

	(void)arg;
	for (u64 page = 0; page < 1024; page += 64)
		rig_put(r, rig_folio(r, page, 6));
	assert_int_equal(cache_page_out(&r->cache, 1024), 256);
	assert_int_equal(r->m.pages, 768);
	assert_int_equal(cache_page_out(&r->cache, 0), 0);
	rig_close(r);
}

/* Of every size the same share of the pages, within what chance makes of it. */
static void sizes_do_not_matter(void *arg)
{
	struct rig *r = rig_open(8192, 0);
	u64 small = 0;

	(void)arg;
	for (u64 page = 0; page < 2048; page++)
		rig_put(r, rig_folio(r, page, 0));
	for (u64 page = 2048; page < 4096; page += 4)
		rig_put(r, rig_folio(r, page, 2));
	assert_in_range(cache_page_out(&r->cache, 2048), 1024, 1027);
	for (u64 page = 0; page < 2048; page++)
		small += rig_order(r, page) < 0;
	assert_in_range(small, 400, 624);
	rig_close(r);
}

static void what_is_dirty_or_held_stays(void *arg)
{
	struct rig *r = rig_open(128, 0);
	struct folio *f;

	(void)arg;
	rig_put(r, rig_folio(r, 0, 5));
	rig_put(r, rig_folio(r, 32, 5));
	rig_put(r, rig_folio(r, 64, 5));
	f = rig_get(r, 0);
	folio_set_dirty(f, 7, 1);
	rig_put(r, f);
	f = rig_get(r, 32); /* and locked */
	for (unsigned i = 0; i < 20; i++)
		cache_page_out(&r->cache, 128);
	assert_int_equal(r->m.pages, 64);
	assert_int_equal(rig_order(r, 0), 5);
	assert_int_equal(rig_order(r, 32), 5);
	rig_put(r, f);
	rig_close(r);
}

static void nothing_is_cached(void *arg)
{
	struct rig *r = rig_open(128, 0);

	(void)arg;
	assert_int_equal(cache_page_out(&r->cache, 128), 0);
	rig_close(r);
}

#define IN_A_WORLD(name, fn)           \
	static void name(void **state) \
	{                              \
		(void)state;           \
		in_a_world(fn);        \
	}
IN_A_WORLD(test_a_share_goes, a_share_goes)
IN_A_WORLD(test_sizes_do_not_matter, sizes_do_not_matter)
IN_A_WORLD(test_what_is_dirty_or_held_stays, what_is_dirty_or_held_stays)
IN_A_WORLD(test_nothing_is_cached, nothing_is_cached)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_share_goes),
		cmocka_unit_test(test_sizes_do_not_matter),
		cmocka_unit_test(test_what_is_dirty_or_held_stays),
		cmocka_unit_test(test_nothing_is_cached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
