/* SPDX-License-Identifier: MIT */
/* Direct I/O beside the cache: both sides see the same bytes. */
#include "fault_rig.h"

static void past_cache(struct rig *r, u8 byte, u64 offset, size_t length)
{
	u8 buf[PAGE_SIZE];
	struct file *f;

	assert_true(length <= sizeof(buf));
	memset(buf, byte, length);
	assert_int_equal(file_open(r->inode, FILE_DIRECT, &f), 0);
	assert_int_equal(file_pwrite(f, buf, length, offset), length);
	file_close(f);
}

/* The folio cannot go, since it is dirty elsewhere; what was written past it must not stay. */
static void beside_dirty(struct rig *r)
{
	rig_write(r, 1, 0, 8 * PAGE_SIZE);
	assert_int_equal(file_fsync(r->file, false), 0);
	rig_write(r, 2, 6 * PAGE_SIZE, PAGE_SIZE);
	past_cache(r, 3, 4 * PAGE_SIZE, PAGE_SIZE);
	rig_expect_sound(r);
	rig_expect(r, 1, 0, 4 * PAGE_SIZE);
	rig_expect(r, 3, 4 * PAGE_SIZE, PAGE_SIZE);
	rig_expect(r, 1, 5 * PAGE_SIZE, PAGE_SIZE);
	rig_expect(r, 2, 6 * PAGE_SIZE, PAGE_SIZE);
}

static void test_beside_dirty_pages(void **state)
{
	struct rig r = rig_init("sluice", beside_dirty);

	(void)state;
	rig_run(&r);
}

static void beside_dirty_blocks(struct rig *r)
{
	rig_write(r, 1, 0, PAGE_SIZE);
	assert_int_equal(file_fsync(r->file, false), 0);
	rig_write(r, 2, 512, 512);
	past_cache(r, 3, 1024, 512);
	rig_expect_sound(r);
	rig_expect(r, 1, 0, 512);
	rig_expect(r, 2, 512, 512);
	rig_expect(r, 3, 1024, 512);
	rig_expect(r, 1, 1536, PAGE_SIZE - 1536);
	assert_int_equal(file_fsync(r->file, false), 0);
	rig_expect_stored(r, 2, 512, 512);
	rig_expect_stored(r, 3, 1024, 512);
}

static void test_beside_dirty_blocks(void **state)
{
	struct rig r = rig_init("sluice", beside_dirty_blocks);

	(void)state;
	r.block_bytes = 512;
	rig_run(&r);
	r = rig_init("linux-6.1", beside_dirty_blocks);
	r.block_bytes = 512;
	rig_run(&r);
}

static void write_block_0(void *arg)
{
	past_cache(arg, 3, 0, 512);
}

/*
 * While a direct write into a hole is on its way, a reader brings the hole's zeros into the
 * cache, and the page they are in is written out whole.
 */
static void beside_whole_folio(struct rig *r)
{
	struct task *t;

	assert_int_equal(inode_truncate(r->inode, PAGE_SIZE), 0);
	t = world_spawn("direct", write_block_0, r); /* lands at 10 ms */
	assert_non_null(t);
	rig_sleep(RIG_IO_NS / 4);
	rig_expect(r, 0, 0, PAGE_SIZE);
	rig_write(r, 2, 1024, 512);
	assert_int_equal(file_fsync(r->file, false), 0); /* lands at 12.5 ms */
	world_join(t);
	rig_expect_stored(r, 3, 0, 512);
	rig_expect_stored(r, 2, 1024, 512);
	rig_expect(r, 3, 0, 512);
	rig_expect(r, 0, 512, 512);
	rig_expect(r, 2, 1024, 512);
}

static void test_beside_whole_folio(void **state)
{
	struct rig r = rig_init("sluice", beside_whole_folio);

	(void)state;
	r.block_bytes = 512;
	r.policy.writeout = WRITEOUT_FOLIO;
	rig_run(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beside_dirty_pages),
		cmocka_unit_test(test_beside_dirty_blocks),
		cmocka_unit_test(test_beside_whole_folio),
	};

	return cmocka_run_group_tests_name("direct", tests, NULL, NULL);
}
