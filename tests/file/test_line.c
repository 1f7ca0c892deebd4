// SPDX-License-Identifier: MIT
/*
 * Tasks over the hard limit that sleep without a lock (write_lock=folio) go on in the order they
 * came: all get the same share, and none waits much longer than the others' turns take.
 */
#include "rig.h"

#define TASKS   8
#define SECONDS 30ull

struct writer {
	struct rig *r;
	struct file *f;
	u64 end_ns, writes, longest_ns;
	u64 seed;
};

/* Random single pages of a file of its own, as fast as they go. */
static void writer_main(void *arg)
{
	struct writer *w = arg;

	for (u64 at = w->seed; world_now() < w->end_ns; w->writes++) {
		u64 start = world_now();

		at = at * 6364136223846793005u + 1442695040888963407u;
		assert_int_equal(file_pwrite(w->f, NULL, 4096, (at >> 33) % 8192 * 4096), 4096);
		w->longest_ns = max_u64(w->longest_ns, world_now() - start);
	}
	engine_task_exit(w->r->e);
}

static void run_writers(struct writer *w, u64 dirty_bytes, u64 *written)
{
	struct rig *r = rig_new("sluice", 256 * MIB);
	struct task *task[TASKS];
	struct engine_stats stats;

	r->config.contents = false;
	r->device_config.iops = 400;
	r->config.vm.dirty_bytes = dirty_bytes;
	r->config.vm.dirty_background_bytes = dirty_bytes / 2;
	rig_start(r);
	for (u32 i = 0; i < TASKS; i++) {
		w[i] = (struct writer){ .r = r,
					.f = rig_file(rig_inode(r, 4096), 0),
					.end_ns = world_now() + SECONDS * NSEC_PER_SEC,
					.seed = i };
		task[i] = world_spawn("writer", writer_main, &w[i]);
	}
	for (u32 i = 0; i < TASKS; i++)
		world_join(task[i]);
	engine_stats(r->e, &stats);
	assert_true(stats.throttle_sleeps > 0);
	/* the first pages of each task are free, and may pass the limit */
	assert_true(stats.debt_max <= dirty_bytes / 4096 + TASKS * 32);
	*written = stats.pages_written;
	for (u32 i = 0; i < TASKS; i++)
		file_close(w[i].f);
	rig_close(r);
}

RIG_TEST(test_turns)
{
	static const u64 limits[] = { 512 * KIB, MIB, 4 * MIB };

	for (u32 l = 0; l < ARRAY_SIZE(limits); l++) {
		struct writer w[TASKS];
		u64 least = UINT64_MAX, most = 0, longest = 0, written;

		run_writers(w, limits[l], &written);
		for (u32 i = 0; i < TASKS; i++) {
			least = min_u64(least, w[i].writes);
			most = max_u64(most, w[i].writes);
			longest = max_u64(longest, w[i].longest_ns);
		}
		print_message("# limit %llu KiB: %llu to %llu writes, the longest %llu ms\n",
			      (unsigned long long)(limits[l] / KIB), (unsigned long long)least,
			      (unsigned long long)most,
			      (unsigned long long)(longest / NSEC_PER_MSEC));
		/* the device is kept busy: 400 pages a second, less the start and the end */
		assert_true(written >= 400 * SECONDS * 9 / 10);
		assert_true(most <= 2 * least);
		assert_true(longest <= 300 * NSEC_PER_MSEC);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests_name("line", tests, NULL, NULL);
}
