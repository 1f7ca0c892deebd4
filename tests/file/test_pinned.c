/* SPDX-License-Identifier: MIT */
/*
 * Memory that is held by dirty pages: all of it in large folios with one dirty page each, or all of
 * it dirty. Reads and writes go on, nobody sleeps for it, and nothing is written before its time.
 */
#include "fault_rig.h"

#include "cache/fill.h"

#define FOLIO  (512 * PAGE_SIZE)
#define FOLIOS 8 /* of 2 MiB: all of memory */

static struct engine_stats stats(struct rig *r)
{
	struct engine_stats s;

	engine_stats(r->engine, &s);
	return s;
}

static u64 device_writes(struct rig *r)
{
	struct device_stats s;

	device_stats(r->device, &s);
	return s.writes;
}

/* Puts the laid out file into the cache, as a reader of large blocks leaves it. */
static void cache_in_large_folios(struct rig *r)
{
	struct mapping *m = &r->inode->m;

	for (u64 page = 0; page < FOLIOS * 512; page += 512) {
		struct folio *f = folio_alloc(m->cache, 9);

		if (!f)
			continue;
		folio_lock(f);
		assert_int_equal(mapping_add(m, f, page), 0);
		memset(folio_address(f, page << PAGE_SHIFT), 0, FOLIO);
		folio_set_uptodate(f, page, 512);
		put_locked(m->cache, f);
	}
}

/* One dirty page in the midst of each folio. */
static void touch_each(struct rig *r)
{
	for (u64 i = 0; i < FOLIOS; i++)
		rig_write(r, (u8)(i + 1), i * FOLIO + 37 * PAGE_SIZE, PAGE_SIZE);
}

static void new_data_into_a_pinned_cache(struct rig *r)
{
	struct engine_stats before, after;
	struct inode *other;
	struct file *f, *mine = r->file;
	u64 start;

	assert_int_equal(inode_lay_out(r->inode, FOLIOS * FOLIO), 0);
	cache_in_large_folios(r);
	touch_each(r);
	before = stats(r);
	assert_true(before.pinned >= before.memory - 512 - before.memory / 128);
	assert_true(before.debt <= FOLIOS);
	assert_int_equal(inode_create(r->engine, 0, PAGE_SIZE, &other), 0);
	assert_int_equal(inode_lay_out(other, FOLIOS * FOLIO), 0);
	assert_int_equal(file_open(other, 0, &f), 0);
	start = world_now();
	r->file = f;
	for (u64 at = 0; at < FOLIOS * FOLIO; at += 64 * PAGE_SIZE)
		rig_expect(r, 0, at, 64 * PAGE_SIZE);
	for (u64 at = 0; at < FOLIO; at += 16 * PAGE_SIZE)
		rig_write(r, 7, at, 16 * PAGE_SIZE);
	r->file = mine;
	after = stats(r);
	/* each read waits for the device at most once, and writers for nothing */
	assert_true(world_now() - start < 300 * RIG_IO_NS);
	assert_int_equal(after.throttle_sleeps, 0);
	assert_int_equal(after.reclaim_waits, 0);
	assert_int_equal(device_writes(r), 0);
	assert_int_equal(after.debt, before.debt + 512);
	assert_true(after.pinned < before.pinned / 2);
	rig_expect_sound(r);
	for (u64 i = 0; i < FOLIOS; i++)
		rig_expect(r, (u8)(i + 1), i * FOLIO + 37 * PAGE_SIZE, PAGE_SIZE);
	file_close(f);
}

static void test_new_data_into_a_pinned_cache(void **state)
{
	struct rig r = rig_init("sluice", new_data_into_a_pinned_cache);

	(void)state;
	r.memory_pages = FOLIOS * 512;
	r.policy.pinned_share = 10;
	r.read_ahead_kb = 2048;
	rig_run(&r);
}

/* It goes at the age of 30 s, and each page once. */
static void written_in_its_time(struct rig *r)
{
	assert_int_equal(inode_lay_out(r->inode, FOLIOS * FOLIO), 0);
	cache_in_large_folios(r);
	touch_each(r);
	rig_sleep(29 * NSEC_PER_SEC);
	assert_int_equal(device_writes(r), 0);
	rig_sleep(7 * NSEC_PER_SEC);
	assert_int_equal(device_writes(r), stats(r).pages_written);
	assert_int_equal(stats(r).debt, 0);
	assert_int_equal(stats(r).pinned, 0);
}

static void test_written_in_its_time(void **state)
{
	struct rig r = rig_init("sluice", written_in_its_time);

	(void)state;
	r.memory_pages = FOLIOS * 512;
	rig_run(&r);
}

/*
 * All frames hold dirty pages: the flusher still writes, for it allocates none. Then a read finds
 * memory again.
 */
static void all_dirty(struct rig *r)
{
	struct mapping *m = &r->inode->m;
	struct folio *f;
	u64 pages = 0;

	assert_int_equal(inode_lay_out(r->inode, 4 * r->memory_pages * PAGE_SIZE), 0);
	while ((f = folio_alloc_nowait(m->cache, 0))) {
		folio_lock(f);
		assert_int_equal(mapping_add(m, f, pages), 0);
		memset(folio_address(f, pages << PAGE_SHIFT), 9, PAGE_SIZE);
		folio_set_dirty(f, pages++, 1);
		put_locked(m->cache, f);
	}
	inode_mark_dirty(r->inode);
	assert_int_equal(pages, r->memory_pages);
	assert_int_equal(stats(r).debt, pages);
	assert_int_equal(stats(r).free, 0);
	rig_expect(r, 0, pages * PAGE_SIZE, PAGE_SIZE); /* waits until a page is free */
	assert_true(stats(r).debt + stats(r).in_flight < pages);
	assert_int_equal(engine_sync(r->engine), 0);
	assert_int_equal(stats(r).debt, 0);
	for (u64 page = 0; page < pages; page++)
		rig_expect_stored(r, 9, page * PAGE_SIZE, PAGE_SIZE);
	rig_expect_sound(r);
}

static void test_all_dirty(void **state)
{
	const char *const policies[] = { "sluice", "linux-7.4" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct rig r = rig_init(policies[i], all_dirty);

		r.memory_pages = 256;
		rig_run(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_data_into_a_pinned_cache),
		cmocka_unit_test(test_written_in_its_time),
		cmocka_unit_test(test_all_dirty),
	};

	return cmocka_run_group_tests_name("pinned", tests, NULL, NULL);
}
