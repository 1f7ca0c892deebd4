/* SPDX-License-Identifier: MIT */
/* What a sync may say, and when: 0 only if all is safe, an error only for what is not. */
#include "fault_rig.h"

static void fsync_task(void *arg)
{
	struct rig *r = arg;

	assert_int_equal(file_fsync(r->file, false), 0);
}

/* A sync that waits for a page in flight must leave the mark for others who sync it too. */
static void two_syncs(struct rig *r)
{
	struct index *ix = &r->inode->m.index;
	struct task *t;
	u64 page;

	rig_write(r, 1, 0, PAGE_SIZE);
	rig_launch(r); /* lands at 10 ms */
	rig_write(r, 2, 0, PAGE_SIZE);
	t = world_spawn("fsync", fsync_task, r);
	assert_non_null(t);
	rig_sleep(RIG_IO_NS / 4);
	assert_true(folio_in_writeback(&r->inode->m.cache->folios[index_leaf(ix, 0)->folio[0]]));
	assert_true(index_next(ix, TAG_TOWRITE, 0, &page));
	assert_int_equal(page, 0);
	world_join(t);
	assert_false(index_tagged(ix, TAG_TOWRITE));
	rig_expect_stored(r, 2, 0, PAGE_SIZE);
}

static void test_two_syncs(void **state)
{
	struct rig r = rig_init("sluice", two_syncs);

	(void)state;
	rig_run(&r);
}

static void fails_until_healed(struct rig *r)
{
	rig_write(r, 1, 0, PAGE_SIZE);
	r->fail_writes = true;
	assert_int_equal(file_fsync(r->file, false), -EIO);
	assert_int_equal(file_fsync(r->file, false), -EIO);
	assert_int_equal(engine_sync(r->engine), -EIO);
	rig_expect(r, 1, 0, PAGE_SIZE);
	r->fail_writes = false;
	assert_int_equal(engine_sync(r->engine), 0);
	assert_int_equal(file_fsync(r->file, false), 0);
	rig_expect_stored(r, 1, 0, PAGE_SIZE);
}

static void test_fails_until_healed(void **state)
{
	struct rig r = rig_init("sluice", fails_until_healed);

	(void)state;
	rig_run(&r);
}

static void engine_sync_task(void *arg)
{
	struct rig *r = arg;

	assert_int_equal(engine_sync(r->engine), 0);
}

/* A page that failed, was written well since, and is dirty again, is no reason to fail. */
static void dirty_again(struct rig *r)
{
	struct task *a, *b;

	rig_write(r, 1, 0, 512);
	r->fail_writes = true;
	assert_int_equal(file_fsync(r->file, false), -EIO);
	r->fail_writes = false;
	a = world_spawn("fsync", fsync_task, r);
	b = world_spawn("sync", engine_sync_task, r);
	assert_true(a && b);
	rig_sleep(RIG_IO_NS / 4);
	rig_write(r, 2, 512, 512); /* another block of the page that is in flight */
	world_join(a);
	world_join(b);
	rig_expect_stored(r, 1, 0, 512);
}

static void test_dirty_again(void **state)
{
	struct rig r = rig_init("sluice", dirty_again);

	(void)state;
	r.block_bytes = 512;
	rig_run(&r);
}

/*
 * The flusher is about to run 10 us before a tick when somebody who is already 10 us past it
 * writes and syncs: what he wrote is then younger than the flusher's time.
 */
static void ahead_of_the_flusher(struct rig *r)
{
	u64 tick = round_up(world_now() + NSEC_PER_MSEC, NSEC_PER_MSEC);

	world_sleep_until(tick - 10 * NSEC_PER_USEC);
	wb_wake(r->inode->wb);
	world_spend(COST_SYSCALL, 20 * NSEC_PER_USEC);
	rig_write(r, 1, 0, PAGE_SIZE);
	assert_int_equal(engine_sync(r->engine), 0);
	rig_expect_stored(r, 1, 0, PAGE_SIZE);
}

static void test_sync_ahead_of_the_flusher(void **state)
{
	struct rig r = rig_init("sluice", ahead_of_the_flusher);

	(void)state;
	rig_run(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_syncs),
		cmocka_unit_test(test_fails_until_healed),
		cmocka_unit_test(test_dirty_again),
		cmocka_unit_test(test_sync_ahead_of_the_flusher),
	};

	return cmocka_run_group_tests_name("sync", tests, NULL, NULL);
}
