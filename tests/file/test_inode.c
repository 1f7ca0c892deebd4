/* SPDX-License-Identifier: MIT */
/* Files that go, or are cut, in the midst of things. */
#include "fault_rig.h"

static void destroy_in_flight(struct rig *r)
{
	r->fail_writes = true;
	rig_write(r, 1, 0, 8 * PAGE_SIZE);
	rig_launch(r);
	file_close(r->file);
	r->file = NULL;
	inode_destroy(r->inode); /* waits for the write, which fails */
	rig_expect_sound(r);
}

static void test_destroy_while_a_write_fails(void **state)
{
	struct rig r = rig_init("sluice", destroy_in_flight);

	(void)state;
	rig_run(&r);
}

/* Reads `pages` pages from `first` on, one I/O after the other, from `start_ms` on. */
struct reader {
	struct rig *r;
	u64 start_ms, first, pages;
	struct task *task;
	u8 buf[8 * PAGE_SIZE];
};

static void reader_run(void *arg)
{
	struct reader *d = arg;
	struct file *f;

	world_sleep_until(d->start_ms * NSEC_PER_MSEC);
	assert_int_equal(file_open(d->r->inode, 0, &f), 0);
	assert_true(file_pread(f, d->buf, d->pages * PAGE_SIZE, d->first * PAGE_SIZE) > 0);
	file_close(f);
}

/*
 * The cut to 4 pages waits for pages 12, 13 and 14 of one reader; meanwhile another one, who
 * saw the old size too, comes to page 4, which the cut has passed.
 */
static void truncate_beside_readers(struct rig *r)
{
	u64 t0;
	struct reader readers[] = { { r, 2, 2, 3, NULL, { 0 } }, { r, 9, 12, 3, NULL, { 0 } } };

	rig_write(r, 7, 0, 16 * PAGE_SIZE);
	assert_int_equal(file_fsync(r->file, false), 0);
	assert_int_equal(engine_drop_caches(r->engine), 16);
	t0 = world_now() / NSEC_PER_MSEC + 1;
	for (unsigned i = 0; i < ARRAY_SIZE(readers); i++) {
		readers[i].start_ms += t0;
		readers[i].task = world_spawn("reader", reader_run, &readers[i]);
		assert_non_null(readers[i].task);
	}
	world_sleep_until((t0 + 10) * NSEC_PER_MSEC);
	assert_int_equal(inode_truncate(r->inode, 4 * PAGE_SIZE), 0);
	assert_true(world_now() >= (t0 + 39) * NSEC_PER_MSEC);
	for (unsigned i = 0; i < ARRAY_SIZE(readers); i++)
		world_join(readers[i].task);
	assert_int_equal(inode_truncate(r->inode, 16 * PAGE_SIZE), 0);
	rig_expect(r, 7, 0, 4 * PAGE_SIZE);
	rig_expect(r, 0, 4 * PAGE_SIZE, 12 * PAGE_SIZE);
}

static void test_truncate_beside_readers(void **state)
{
	struct rig r = rig_init("sluice", truncate_beside_readers);

	(void)state;
	r.read_ahead_kb = 0;
	rig_run(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncate_beside_readers),
		cmocka_unit_test(test_destroy_while_a_write_fails),
	};

	return cmocka_run_group_tests_name("inode", tests, NULL, NULL);
}
