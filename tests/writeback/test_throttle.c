// SPDX-License-Identifier: MIT
/*
 * The throttle at work: Linux writeback reference, section 5. CPU time is free, so a task only
 * loses time where it is made to sleep. Limits as in test_flusher.c: 64 MiB have thresh 3276,
 * background 1636, free running up to (3276 + 1636)/2 = 2456 pages.
 */
#include "../file/rig.h"

#define SEC      NSEC_PER_SEC
#define FREERUN  2456
#define THRESH   3276
#define TASK_MAX 600

/* A device that as good as stands still: a page takes 4 s. */
static struct rig *open_stopped(const char *policy)
{
	struct rig *r = rig_new(policy, 64 * MIB);

	r->config.contents = false;
	r->device_config.bytes_per_s = 1024;
	return r;
}

RIG_TEST(test_nobody_is_looked_at_below_the_free_running_ceiling)
{
	struct rig *r = open_stopped("linux-7.4");
	struct file *f;

	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_dirty(f, 0, FREERUN);
	assert_int_equal(world_now(), 0);
	assert_int_equal(rig_stats(r).throttle_calls, 0);
	assert_int_equal(rig_stats(r).throttle_sleeps, 0);
	/* here one looks every 2^(ilog2(3276 - 2456)/2) = 16 pages (5.2, step 3) */
	assert_true(*world_local(1) - 1 >= 16 && *world_local(1) - 1 <= 32);
	rig_dirty(f, FREERUN, 33);
	assert_true(rig_stats(r).throttle_calls > 0);
	rig_end(r, f);
}

/* Dirty and in flight count together: the flusher at work makes no room by starting I/O. */
RIG_TEST(test_flight_counts)
{
	struct rig *r = open_stopped("linux-7.4");
	struct file *f;

	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_dirty(f, 0, 2000);
	assert_int_equal(file_advise(f, 0, 2000 * 4096, FILE_ADV_DONTNEED), 0);
	assert_int_equal(rig_stats(r).dirty, 0);
	assert_int_equal(rig_stats(r).writeback, 2000);
	rig_dirty(f, 2000, FREERUN - 2000 + 33);
	assert_true(rig_stats(r).throttle_calls > 0);
	rig_end(r, f);
}

/* A write to what is dirty already costs nothing, however far above the limits (3.1). */
RIG_TEST(test_rewriting_dirty_pages_is_free)
{
	struct rig *r = open_stopped("linux-7.4");
	struct file *f;
	u64 began, calls;

	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_dirty(f, 0, FREERUN + 100);
	rig_dirty(f, FREERUN + 99, 1);
	began = world_now();
	calls = rig_stats(r).throttle_calls;
	for (unsigned i = 0; i < 1000; i++) /* the last ones: not even in flight */
		rig_dirty(f, FREERUN + 60 + i % 40, 1);
	assert_int_equal(world_now(), began);
	assert_int_equal(rig_stats(r).throttle_calls, calls);
	rig_end(r, f);
}

/* No sleep is planned for more than 200 ms; the timer wheel adds at most a tick to 50. */
struct hurried {
	struct rig *r;
	struct file *f;
	u64 first, until_ns;
	u64 writes, longest_ns;
	struct task *task;
};

static void hurry(void *arg)
{
	struct hurried *h = arg;

	while (world_now() < h->until_ns) {
		u64 began = world_now();

		rig_dirty(h->f, h->first + h->writes++, 1);
		h->longest_ns = max_u64(h->longest_ns, world_now() - began);
	}
	engine_task_exit(h->r->e);
}

static void hurry_all(struct rig *r, struct file *f, struct hurried *h, unsigned n, u64 ns)
{
	u64 until_ns = world_now() + ns;

	for (unsigned i = 0; i < n; i++) {
		h[i] = (struct hurried){ .r = r, .f = f, .first = i << 20, .until_ns = until_ns };
		h[i].task = world_spawn("hurried", hurry, &h[i]);
	}
	for (unsigned i = 0; i < n; i++)
		world_join(h[i].task);
}

RIG_TEST(test_a_step_sleeps_200_ms_at_most)
{
	static const char *const policies[] = { "linux-6.1", "linux-7.4", "sluice" };

	for (unsigned p = 0; p < ARRAY_SIZE(policies); p++) {
		struct rig *r = rig_new(policies[p], 64 * MIB);
		struct hurried h[4];
		struct engine_stats s;
		struct file *f;
		u64 writes = 0;

		r->config.contents = false;
		r->config.policy.write_lock = WRITE_LOCK_FOLIO; /* no waiting for each other */
		r->device_config.iops = 500;
		rig_start(r);
		f = rig_file(rig_inode(r, 4096), 0);
		hurry_all(r, f, h, 4, 8 * SEC);
		s = rig_stats(r);
		assert_true(s.throttle_sleeps > 100);
		assert_true(s.throttle_sleep_ns / s.throttle_sleeps <= 200 * NSEC_PER_MSEC);
		for (unsigned i = 0; i < 4; i++) {
			assert_in_range(h[i].longest_ns, 1, 204 * NSEC_PER_MSEC);
			writes += h[i].writes;
		}
		/* and the limit held, and the device was not left idle: it gives 256 KiB I/Os */
		assert_true(s.dirty_max <= THRESH);
		assert_true(writes > 4 * THRESH);
		r->logged = 0;
		rig_end(r, f);
	}
}

/* Writers against a device that does not answer stay below the limit, for ever. */
RIG_TEST(test_a_stopped_device_holds_writers_below_the_limit)
{
	static const char *const policies[] = { "linux-6.1", "linux-6.12", "linux-7.4", "sluice" };

	for (unsigned p = 0; p < ARRAY_SIZE(policies); p++) {
		struct rig *r = open_stopped(policies[p]);
		struct hurried h[8];
		struct file *f;
		u64 pages = 0, after_60_s;

		r->config.policy.write_lock = WRITE_LOCK_FOLIO;
		rig_start(r);
		f = rig_file(rig_inode(r, 4096), 0);
		for (unsigned i = 0; i < 8; i++) {
			h[i] = (struct hurried){ .r = r,
						 .f = f,
						 .first = i << 20,
						 .until_ns = world_now() + 120 * SEC };
			h[i].task = world_spawn("hurried", hurry, &h[i]);
		}
		world_sleep_until(world_now() + 60 * SEC);
		after_60_s = rig_stats(r).dirty + rig_stats(r).writeback;
		world_sleep_until(world_now() + 59 * SEC);
		pages = rig_stats(r).dirty + rig_stats(r).writeback;
		/* a task adds what it may dirty unseen, 16 pages near the ceiling */
		assert_true(pages <= THRESH + 8 * 16);
		assert_true(pages >= FREERUN);
		assert_true(pages - after_60_s <
			    64); /* and the last 59 s brought next to nothing */
		for (unsigned i = 0; i < 8; i++)
			world_join(h[i].task);
		rig_end(r, f);
	}
}

/* A device as fast as its writer: flushing begins at the background limit, nobody sleeps. */
RIG_TEST(test_a_fast_device_never_throttles)
{
	static const char *const policies[] = { "linux-6.1", "linux-7.4", "sluice" };

	for (unsigned p = 0; p < ARRAY_SIZE(policies); p++) {
		struct rig *r = rig_new(policies[p], 64 * MIB);
		struct file *f;
		u64 start = world_now();

		r->config.contents = false; /* 1 GiB/s */
		rig_start(r);
		f = rig_file(rig_inode(r, 4096), 0);
		for (u64 i = 0; i < 2000; i++) { /* 100 MiB/s for 20 s */
			assert_int_equal(file_pwrite(f, NULL, MIB, i * MIB), MIB);
			world_sleep_until(start + (i + 1) * 10 * NSEC_PER_MSEC);
		}
		assert_int_equal(rig_stats(r).throttle_sleeps, 0);
		assert_true(rig_stats(r).dirty_max < FREERUN);
		rig_end(r, f);
	}
}

/*
 * A strict device has limits of its own. While it has completed nothing its part of 52,416 pages
 * (1 GiB) is a hundredth of what is free below the limit: W = (52416 - d)/100. Writers run free
 * up to three quarters of it (5.7): d = 0.75 * (52416 - d)/100, 390 pages.
 */
/* How long the second of 2 GiB takes, by 1 MiB; the longest of its writes in *longest. */
static u64 stream_ns(const char *policy, u64 bytes_per_s, u64 *longest)
{
	struct rig *r = rig_new(policy, 256 * MIB);
	u64 start = world_now(), took;
	struct file *f;

	r->config.contents = false;
	r->device_config.bytes_per_s = (double)bytes_per_s;
	r->device_config.iops = 1e6;
	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	*longest = 0;
	for (u64 i = 0; i < 2048; i++) {
		u64 before = world_now();

		assert_int_equal(file_pwrite(f, NULL, MIB, i * MIB), MIB);
		*longest = i < 1024 ? 0 : max_u64(*longest, world_now() - before);
		start = i < 1024 ? world_now() : start;
	}
	took = world_now() - start;
	rig_end(r, f);
	return took;
}

/*
 * What lies between free running and the limit of so small a cache, 13 MiB, is drained in 3 ms, by
 * pauses of whole jiffies the device is idle half of the time.
 */
RIG_TEST(test_a_device_does_not_run_dry_while_its_writer_sleeps)
{
	u64 longest, took = stream_ns("sluice", 4096 * MIB, &longest);

	assert_in_range(took, SEC / 4 - 10 * NSEC_PER_MSEC, SEC / 4 + 10 * NSEC_PER_MSEC);
	assert_true(longest <= 2 * NSEC_PER_MSEC);
	took = stream_ns("linux-7.4", 4096 * MIB, &longest);
	assert_true(took > SEC / 2);
}

RIG_TEST(test_a_strict_device_throttles_at_three_quarters_of_its_part)
{
	struct rig *r = open_stopped("linux-7.4");
	struct file *f;

	r->config.memory_bytes = 1024 * MIB;
	r->strict_limit = true;
	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	assert_int_equal(rig_stats(r).thresh, 52416);
	rig_dirty(f, 0, 389);
	assert_int_equal(rig_stats(r).throttle_calls, 0);
	rig_dirty(f, 389, 33);
	assert_true(rig_stats(r).throttle_calls > 0);
	/* the hard limit, W itself: 519 */
	{
		struct hurried h[4];

		r->e->all.policy.write_lock = WRITE_LOCK_FOLIO;
		hurry_all(r, f, h, 4, 3 * SEC); /* the first page lands at 4 s */
		assert_true(rig_stats(r).dirty + rig_stats(r).writeback <= 519 + 4 * 8);
	}
	rig_end(r, f);
}

/* What /sys/class/bdi would say to it (4.8). The limit is 52,416 pages. */
RIG_TEST(test_a_devices_part_is_set_as_in_sysfs)
{
	struct rig *r = open_stopped("linux-7.4");
	struct bdi_settings s;
	struct wb *wb;

	r->config.memory_bytes = 1024 * MIB;
	rig_start(r);
	wb = r->e->all.wb[0];
	bdi_settings_init(&s);
	assert_int_equal(engine_set_bdi(r->e, 0, &s), 0);
	assert_int_equal(wb_threshold(wb, 52416, 0), 52416 / 8); /* it has written nothing yet */
	/* bytes become a ratio, and that pages again: 512 of them 511 */
	s.max_bytes = 2 * MIB;
	s.strict_limit = true;
	assert_int_equal(engine_set_bdi(r->e, 0, &s), 0);
	assert_int_equal(wb->max_ratio, 9768);
	assert_true(wb->strict_limit);
	assert_int_equal(wb_threshold(wb, 52416, 0), 511);
	/* min is given whatever the share */
	s = (struct bdi_settings){ .min_ratio = 250000, .max_ratio = 500000, .read_ahead_kb = 64 };
	assert_int_equal(engine_set_bdi(r->e, 0, &s), 0);
	assert_int_equal(wb_threshold(wb, 52416, 52416), 52416 / 4);
	assert_int_equal(wb->ra_pages, 16);
	/* what is refused changes nothing */
	s.min_ratio = 500001;
	assert_int_equal(engine_set_bdi(r->e, 0, &s), -EINVAL);
	s = (struct bdi_settings){ .max_bytes = 52417 * PAGE_SIZE };
	assert_int_equal(engine_set_bdi(r->e, 0, &s), -EINVAL);
	s = (struct bdi_settings){ .min_ratio = BDI_RATIO_ALL, .max_ratio = BDI_RATIO_ALL };
	assert_int_equal(engine_set_bdi(r->e, 0, &s), -EINVAL);
	assert_int_equal(wb->min_ratio, 250000);
	assert_int_equal(wb->max_ratio, 500000);
	rig_close(r);
}

/* A flusher before 5.14 does not see what a CPU has not handed in: 4 CPUs, batches of 24 pages. */
static void look_for_work(bool per_cpu, u64 pages, bool found)
{
	struct rig *r = open_stopped("linux-6.12");
	struct file *f;

	r->config.memory_bytes = 1024 * MIB;
	r->config.policy.wb_counters = per_cpu ? WB_COUNTERS_PER_CPU : WB_COUNTERS_EXACT;
	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	/* its part of the background limit is 0, so any dirty page is work */
	assert_int_equal(wb_threshold(r->e->all.wb[0], rig_stats(r).background_thresh, 0), 0);
	rig_dirty(f, 0, pages);
	assert_int_equal(wb_over_background(r->e->all.wb[0]), found);
	rig_end(r, f);
}

RIG_TEST(test_a_flusher_may_not_see_a_cpus_last_pages)
{
	look_for_work(false, 1, true);
	look_for_work(true, 1, false);
	look_for_work(true, 23, false);
	look_for_work(true, 24, true);
}

/* The same without strictness: nothing happens before the whole cache's limits. */
RIG_TEST(test_a_device_that_is_not_strict)
{
	struct rig *r = open_stopped("linux-7.4");
	struct file *f;

	r->config.memory_bytes = 1024 * MIB;
	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_dirty(f, 0, 5000);
	assert_int_equal(rig_stats(r).throttle_calls, 0);
	rig_end(r, f);
}

struct small {
	struct rig *r;
	struct file *f;
	u64 first, pages;
	struct completion *end;
	struct task *task;
	bool exits;
};

static void write_little(void *arg)
{
	struct small *s = arg;

	rig_dirty(s->f, s->first, s->pages);
	if (s->end)
		completion_wait(s->end);
	if (s->exits)
		engine_task_exit(s->r->e);
}

/*
 * Tasks that dirty less than their first interval, 32 pages, and less than the 8 that are let
 * pass above the limit, would never look. The CPU counts too: after thresh/(32 * CPUs) =
 * 3276/128 = 25 pages whoever comes next looks (5.1).
 */
RIG_TEST(test_many_small_dirtiers_are_seen_by_their_cpu)
{
	for (unsigned blind = 0; blind < 2; blind++) {
		struct rig *r = open_stopped("linux-7.4");
		struct small s[TASK_MAX];
		struct completion end;
		struct file *f;

		r->config.policy.write_lock = WRITE_LOCK_FOLIO;
		rig_start(r);
		f = rig_file(rig_inode(r, 4096), 0);
		assert_int_equal(r->e->all.ratelimit_pages, 25);
		if (blind)
			r->e->all.ratelimit_pages = UINT32_MAX;
		completion_init(&end);
		for (unsigned i = 0; i < TASK_MAX; i++) { /* 4200 pages in all */
			s[i] = (struct small){ r, f, i * 100, 7, &end, NULL, false };
			s[i].task = world_spawn("small", write_little, &s[i]);
		}
		world_sleep_until(world_now() + 20 * SEC);
		if (blind)
			assert_int_equal(rig_stats(r).throttle_calls, 0);
		else
			assert_true(rig_stats(r).throttle_calls > (4200 - FREERUN) / 25 / 2);
		completion_done(&end);
		for (unsigned i = 0; i < TASK_MAX; i++)
			world_join(s[i].task);
		rig_end(r, f);
	}
}

/* What a task left unpaid is paid by the next on its CPU, up to that one's interval (5.1). */
RIG_TEST(test_leaked_dirtying_is_paid_by_others)
{
	struct rig *r = open_stopped("linux-7.4");
	struct small s;
	struct file *f;
	u32 leaked = 0;
	unsigned cpu = 0;

	rig_start(r);
	f = rig_file(rig_inode(r, 4096), 0);
	s = (struct small){ r, f, 1000, 20, NULL, NULL, true };
	s.task = world_spawn("leaves", write_little, &s);
	world_join(s.task);
	for (unsigned i = 0; i < 4; i++) {
		u32 here = atomic_load(&r->e->all.cpu[i].leaked);

		cpu = here ? i : cpu;
		leaked += here;
	}
	assert_int_equal(leaked, 20);
	/* move what it left to this task's CPU: which one that was is the scheduler's business */
	atomic_store(&r->e->all.cpu[cpu].leaked, 0);
	atomic_store(&r->e->all.cpu[world_cpu()].leaked, 20);
	assert_int_equal(*world_local(0), 0);
	rig_dirty(f, 0, 1); /* looks before it dirties: 20 taken over, then 1 of its own */
	assert_int_equal(*world_local(0), 21);
	assert_int_equal(atomic_load(&r->e->all.cpu[world_cpu()].leaked), 0);
	/* no more than up to the interval of 32 */
	atomic_store(&r->e->all.cpu[world_cpu()].leaked, 100);
	rig_dirty(f, 1, 1); /* takes 11, is at 32, looks, is free and owes nothing; then 1 */
	assert_int_equal(atomic_load(&r->e->all.cpu[world_cpu()].leaked), 89);
	assert_int_equal(*world_local(0), 1);
	rig_end(r, f);
}

RIG_TEST(test_nowait_refuses_to_sleep)
{
	struct rig *r = open_stopped("linux-7.4");
	struct inode *inode;
	struct file *f;
	u64 began;

	rig_start(r);
	inode = rig_inode(r, 4096);
	f = rig_file(inode, 0);
	assert_int_equal(throttle_poll(inode, true), 0);
	rig_dirty(f, 0, THRESH - 200);
	began = world_now();
	throttle_charge(&r->e->all, 5000); /* as if it had dirtied as much unseen */
	assert_int_equal(throttle_poll(inode, true), -EAGAIN);
	assert_int_equal(world_now(), began);
	assert_int_equal(throttle_poll(inode, false), 0);
	assert_true(world_now() > began);
	rig_end(r, f);
}

/* What each accounting charges for 4 KiB in a clean folio of 256 KiB. */
RIG_TEST(test_what_is_charged)
{
	static const struct {
		enum policy_accounting accounting;
		u64 charged, dirty, flight, limiter;
	} cases[] = {
		{ ACCOUNT_FOLIO, 64, 64, 64, 64 },
		{ ACCOUNT_PAGE, 1, 1, 64, 64 }, /* P1: rate limiters and flight stay per folio */
		{ ACCOUNT_DEBT, 1, 1, 1, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig *r = rig_new("linux-7.4", 64 * MIB);
		struct file *f;

		r->config.contents = false;
		r->config.policy.accounting = cases[i].accounting;
		rig_start(r);
		f = rig_file(rig_inode(r, 4096), 0);
		assert_int_equal(file_pwrite(f, NULL, 256 * KIB, 0), 256 * KIB);
		assert_int_equal(file_fsync(f, false), 0);
		*world_local(0) = 0;
		rig_dirty(f, 5, 1);
		assert_int_equal(rig_stats(r).charged, 64 + cases[i].charged);
		assert_int_equal(rig_stats(r).dirty, cases[i].dirty);
		assert_int_equal(rig_stats(r).pinned, 64);
		assert_int_equal(*world_local(0), cases[i].limiter);
		rig_dirty(f, 6, 1); /* into the dirty folio */
		assert_int_equal(rig_stats(r).dirty, i ? 2 : 64);
		/* 64 were enough for a look, which found it free and owing nothing */
		assert_int_equal(*world_local(0), i == 2 ? 2 : 0);
		assert_int_equal(file_advise(f, 0, 0, FILE_ADV_DONTNEED), 0);
		assert_int_equal(rig_stats(r).writeback, i == 2 ? 2 : cases[i].flight);
		rig_end(r, f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_is_looked_at_below_the_free_running_ceiling),
		cmocka_unit_test(test_flight_counts),
		cmocka_unit_test(test_rewriting_dirty_pages_is_free),
		cmocka_unit_test(test_a_step_sleeps_200_ms_at_most),
		cmocka_unit_test(test_a_stopped_device_holds_writers_below_the_limit),
		cmocka_unit_test(test_a_fast_device_never_throttles),
		cmocka_unit_test(test_a_device_does_not_run_dry_while_its_writer_sleeps),
		cmocka_unit_test(test_a_strict_device_throttles_at_three_quarters_of_its_part),
		cmocka_unit_test(test_a_devices_part_is_set_as_in_sysfs),
		cmocka_unit_test(test_a_flusher_may_not_see_a_cpus_last_pages),
		cmocka_unit_test(test_a_device_that_is_not_strict),
		cmocka_unit_test(test_many_small_dirtiers_are_seen_by_their_cpu),
		cmocka_unit_test(test_leaked_dirtying_is_paid_by_others),
		cmocka_unit_test(test_nowait_refuses_to_sleep),
		cmocka_unit_test(test_what_is_charged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
