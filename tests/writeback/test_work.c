/* SPDX-License-Identifier: MIT */
/* Queued work beside what a flusher does of its own accord: Linux writeback reference, 6.2. */
#include "../file/rig.h"

/* Background work goes in rounds, and what somebody waits for comes between two of them. */
RIG_TEST(test_background_gives_way_to_work)
{
	struct rig *r = rig_new("linux-7.4", 64 * MIB);
	struct wb_work work = { .pages = 1, .reason = WB_REASON_SYNC };
	struct completion done;
	struct engine_stats stats;
	struct file *f[8];
	u64 start;

	r->config.contents = false;
	r->config.vm.dirty_bytes = 48 * MIB;
	r->config.vm.dirty_background_bytes = MIB;
	r->device_config.bytes_per_s = 8.0 * MIB; /* half a second for each file */
	r->device_config.queue_depth = 2;
	rig_start(r);
	for (size_t i = 0; i < ARRAY_SIZE(f); i++) {
		f[i] = rig_file(rig_inode(r, 4096), 0);
		for (u64 page = 0; page < 1024; page++)
			assert_int_equal(file_pwrite(f[i], NULL, 4096, page * 4096), 4096);
	}
	start = world_now();
	world_sleep_until(start + 50 * NSEC_PER_MSEC);
	completion_init(&done);
	list_init(&work.link);
	work.done = &done;
	wb_queue_work(r->e->all.wb[0], &work);
	completion_wait(&done);
	assert_in_range(world_now() - start, 0, 2 * NSEC_PER_SEC);
	engine_stats(r->e, &stats);
	assert_true(stats.dirty >= 2048); /* and there was more to do */
	for (size_t i = 0; i < ARRAY_SIZE(f); i++)
		rig_drop(f[i]);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_background_gives_way_to_work) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
