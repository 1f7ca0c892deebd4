// SPDX-License-Identifier: MIT
/*
 * How much background write-out is in flight under flush_depth=adaptive: what a window of reads
 * does to the limit, and that readers of a busy device get their share back.
 */
#include "../file/rig.h"

#define MS    NSEC_PER_MSEC
#define FLOOR (2 * (u64)DEPTH_IO_BYTES)

static void test_fast_reads_raise_the_limit(void **state)
{
	(void)state;
	assert_int_equal(depth_next(80 * MIB, 80 * MIB, 100, 100), 90 * MIB);
	assert_int_equal(depth_next(80 * MIB, 0, 600, 100), 90 * MIB); /* just fast enough */
	assert_int_equal(depth_next(1 << 30, 0, 100, 100), 1 << 30);   /* no limit is the most */
}

static void test_slow_reads_lower_it_by_as_much(void **state)
{
	(void)state;
	/* reads take 800 where 600 are allowed: three quarters */
	assert_in_range(depth_next(80 * MIB, 80 * MIB, 800, 100), 59 * MIB, 60 * MIB);
	/* at most by half */
	assert_int_equal(depth_next(80 * MIB, 80 * MIB, 100000, 100), 40 * MIB);
	/* from what was in flight, not from what would have been allowed */
	assert_int_equal(depth_next(1 << 30, 16 * MIB, 100000, 100), 8 * MIB);
	/* but what was nearly idle says nothing */
	assert_int_equal(depth_next(80 * MIB, 0, 100000, 100), FLOOR);
	assert_int_equal(depth_next(FLOOR, FLOOR, 100000, 100), FLOOR);
}

/* So long `n` I/Os of a MiB wait to set out, one after the other. */
static u64 setting_out_ns(struct rig *r, u32 n)
{
	struct wb *wb = r->e->all.wb[0];
	u64 start = world_now();

	for (u32 i = 0; i < n; i++)
		depth_enter(wb, MIB, ~0ull);
	for (u32 i = 0; i < n; i++)
		depth_leave(wb, MIB);
	return world_now() - start;
}

/* While somebody reads no more sets out than twice what the device writes: 100 MiB/s, at first. */
RIG_TEST(test_beside_reads_io_is_spaced_out)
{
	struct rig *r = rig_new("sluice", 64 * MIB);
	struct depth *d;

	rig_start(r);
	d = &r->e->all.wb[0]->depth;
	d->window_ns = world_now() + 60 * NSEC_PER_SEC; /* it says the same all the time */
	assert_int_equal(setting_out_ns(r, 100), 0);
	atomic_store(&d->reading, true);
	assert_int_equal(setting_out_ns(r, 1), 0); /* the first may go */
	assert_int_equal(setting_out_ns(r, 1), 5 * MS);
	assert_int_equal(setting_out_ns(r, 4), 20 * MS);
	world_sleep_until(world_now() + 500 * MS); /* who sends nothing saves nothing */
	assert_int_equal(setting_out_ns(r, 5), 20 * MS);
	atomic_store(&d->reading, false);
	assert_int_equal(setting_out_ns(r, 100), 0);
	assert_int_equal(d->in_flight, 0);
	rig_close(r);
}

struct reader {
	struct file *f;
	u64 until_ns, done;
	struct rig *r;
};

static void reader_main(void *arg)
{
	struct reader *me = arg;

	while (world_now() < me->until_ns) {
		struct iovec iov = { NULL, 64 * KIB };
		u64 at = me->done * 64 * KIB % (8 * MIB);

		assert_int_equal(file_preadv(me->f, &iov, 1, at, FILE_IO_DONTCACHE), 64 * KIB);
		me->done++;
	}
	engine_task_exit(me->r->e);
}

/* A writer of DONTCACHE beside a reader who finds nothing in the cache: reads in 2 s. */
static u64 reads_beside_a_writer(const char *flush_depth, u64 *most)
{
	struct rig *r = rig_new("sluice", 64 * MIB);
	struct reader reader = { .r = r };
	struct file *f;
	struct task *t;
	u64 at = 0;

	r->config.contents = false;
	assert_int_equal(policy_set(&r->config.policy, "flush_depth", flush_depth, NULL), 0);
	r->device_config.bytes_per_s = 100 * MIB;
	rig_start(r);
	reader.f = rig_file(rig_inode(r, 4096), 0);
	for (u64 i = 0; i < 8; i++)
		assert_int_equal(file_pwrite(reader.f, NULL, MIB, i * MIB), MIB);
	assert_int_equal(file_fsync(reader.f, false), 0);
	assert_int_equal(file_advise(reader.f, 0, 8 * MIB, FILE_ADV_DONTNEED), 0);
	f = rig_file(rig_inode(r, 4096), 0);
	reader.until_ns = world_now() + 2 * NSEC_PER_SEC;
	t = world_spawn("reader", reader_main, &reader);
	*most = 0;
	while (world_now() < reader.until_ns) {
		struct iovec iov = { NULL, MIB };

		file_pwritev(f, &iov, 1, at % (256 * MIB), FILE_IO_DONTCACHE);
		at += MIB;
		*most = max_u64(*most, r->e->all.wb[0]->depth.in_flight);
	}
	world_join(t);
	if (!strcmp(flush_depth, "adaptive")) {
		assert_true(r->e->all.wb[0]->depth.base_ns > 0);
		assert_true(depth_reading(r->e->all.wb[0]));
	}
	world_sleep_until(world_now() + 500 * MS);
	rig_drop(f);
	rig_drop(reader.f);
	rig_close(r);
	return reader.done;
}

RIG_TEST(test_readers_get_more_of_an_adaptive_depth)
{
	u64 most, fixed, adaptive;

	fixed = reads_beside_a_writer("fixed", &most);
	assert_int_equal(most, 0); /* nobody counts it */
	adaptive = reads_beside_a_writer("adaptive", &most);
	assert_true(most >= FLOOR);
	assert_true(fixed > 10);
	assert_true(adaptive > 2 * fixed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fast_reads_raise_the_limit),
		cmocka_unit_test(test_slow_reads_lower_it_by_as_much),
		cmocka_unit_test(test_beside_reads_io_is_spaced_out),
		cmocka_unit_test(test_readers_get_more_of_an_adaptive_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
