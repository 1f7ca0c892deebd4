/* SPDX-License-Identifier: MIT */
/* Buffered reads of one file by several. */
#include "fault_rig.h"

static void read_first_page(void *arg)
{
	struct rig *r = arg;
	u8 buf[PAGE_SIZE];
	struct file *f;

	assert_int_equal(file_open(r->inode, 0, &f), 0);
	assert_int_equal(file_pread(f, buf, sizeof(buf), 0), sizeof(buf));
	for (unsigned i = 0; i < sizeof(buf); i++)
		assert_int_equal(buf[i], 5);
	file_close(f);
}

/*
 * The first reader waits for the device to take its window, whose mark is in the folio at page
 * 0. The second, who has no window yet, finds it there.
 */
static void found_mark(struct rig *r)
{
	struct task *t[2];

	rig_write(r, 5, 0, 64 * PAGE_SIZE);
	assert_int_equal(file_fsync(r->file, false), 0);
	assert_int_equal(engine_drop_caches(r->engine), 64);
	assert_int_equal(file_advise(r->file, 60 * PAGE_SIZE, PAGE_SIZE, FILE_ADV_WILLNEED), 0);
	for (unsigned i = 0; i < 2; i++) {
		t[i] = world_spawn("reader", read_first_page, r);
		assert_non_null(t[i]);
		rig_sleep(NSEC_PER_MSEC);
	}
	world_join(t[0]);
	world_join(t[1]);
	/* 4 pages were there and 1 is read: twice as many follow */
	assert_int_equal(mapping_next_hole(&r->inode->m, 0, 64), 4 + 2 * (4 + 1));
}

static void test_mark_of_another_reader(void **state)
{
	struct rig r = rig_init("linux-6.12", found_mark);

	(void)state;
	r.queue_depth = 1;
	rig_run(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mark_of_another_reader),
	};

	return cmocka_run_group_tests_name("read", tests, NULL, NULL);
}
