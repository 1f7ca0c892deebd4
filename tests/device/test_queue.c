// SPDX-License-Identifier: MIT
/* The queue before a device: room, order, fairness, and what is counted. */
#include "base/bits.h"
#include "base/rng.h"
#include "rig.h"
#include <errno.h>
#include <stdlib.h>

/* One I/O takes 1 ms (large ones too) and no latency, in parts of 4 KiB. */
static struct device_config config(u32 depth)
{
	struct device_config c;

	assert_int_equal(device_config_init(&c, "rate"), 0);
	c.iops = 1000;
	c.bytes_per_s = 1e9;
	c.max_io_bytes = 4096;
	c.queue_depth = depth;
	return c;
}

struct submitter {
	struct store *store;
	u32 length;
	u64 after_ns; /* when it submits */
	struct rig_io io;
	struct task *task;
};

static void submit_main(void *arg)
{
	struct submitter *s = arg;

	if (s->after_ns)
		world_sleep_until(s->after_ns);
	rig_submit(&s->io, s->store, IO_WRITE, 0, s->length);
}

static void submit_all(struct submitter *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		s[i].task = world_spawn("submitter", submit_main, &s[i]);
	for (unsigned i = 0; i < n; i++)
		world_join(s[i].task);
}

static void depth_blocks(void *arg)
{
	struct device_config c = config(2);
	struct submitter s[6] = { 0 };
	struct device_stats stats;
	struct store *store = rig_store(&c, false);

	(void)arg;
	for (unsigned i = 0; i < 6; i++)
		s[i] = (struct submitter){ .store = store, .length = 4096 };
	submit_all(s, 6);
	while (!device_idle(store_device(store)))
		world_sleep_until(world_now() + NSEC_PER_MSEC);
	device_stats(store_device(store), &stats);
	rig_close(store);
	for (unsigned i = 0; i < 6; i++) {
		/* In as soon as the second before it is out; served one after another. */
		assert_int_equal(s[i].io.io.submit_ns, i < 2 ? 0 : (i - 1) * NSEC_PER_MSEC);
		assert_int_equal(s[i].io.end_ns, (i + 1) * NSEC_PER_MSEC);
		assert_int_equal(s[i].io.order, i);
	}
	assert_int_equal(stats.in_flight_max, 2);
	assert_int_equal(stats.busy_ns, 6 * NSEC_PER_MSEC);
}

static void test_depth_blocks_in_order(void **state)
{
	(void)state;
	rig_ended = 0;
	rig_run(depth_blocks, NULL);
}

/*
 * Two slots. The first two take one each; the third, of ten parts, gets its first one in when
 * the first leaves, and stands in line anew for each further one. Small ones wait for one part of
 * it each, not for all.
 */
static void large_and_small_ones_take_turns(void *arg)
{
	struct device_config c = config(2);
	struct device_stats stats;
	struct store *store = rig_store(&c, false);
	struct submitter s[5] = {
		{ .store = store, .length = 4096 },
		{ .store = store, .length = 4096 },
		{ .store = store, .length = 40960 },
		{ .store = store, .length = 4096 },
		{ .store = store, .length = 4096, .after_ns = NSEC_PER_MSEC + 1 },
	};

	(void)arg;
	submit_all(s, 5);
	device_stats(store_device(store), &stats);
	rig_close(store);
	assert_int_equal(s[2].io.io.submit_ns, 1 * NSEC_PER_MSEC);
	assert_int_equal(s[2].io.io.parts, 10);
	assert_int_equal(s[1].io.end_ns, 2 * NSEC_PER_MSEC);
	assert_int_equal(s[3].io.io.submit_ns, 2 * NSEC_PER_MSEC);
	assert_int_equal(s[3].io.end_ns, 4 * NSEC_PER_MSEC);
	/* behind the second part, which was in line since 1 ms and in at 3 ms */
	assert_int_equal(s[4].io.io.submit_ns, 4 * NSEC_PER_MSEC);
	assert_int_equal(s[4].io.end_ns, 6 * NSEC_PER_MSEC);
	assert_int_equal(s[2].io.end_ns, 14 * NSEC_PER_MSEC);
	assert_int_equal(stats.in_flight_max, 2);
}

static void test_large_and_small_ones_take_turns(void **state)
{
	(void)state;
	rig_run(large_and_small_ones_take_turns, NULL);
}

/* Five tasks that always want more share a queue of depth 1 evenly. */
#define HUNGRY 5

struct hungry {
	struct store *store;
	unsigned done;
};

static void hungry_main(void *arg)
{
	struct hungry *h = arg;
	struct rig_io io;

	while (world_now() < 100 * NSEC_PER_MSEC) {
		rig_io_init(&io, h->store, IO_READ, 0, 4096);
		assert_int_equal(device_submit_wait(store_device(h->store), &io.io), 0);
		h->done++;
	}
}

static void queue_is_fair(void *arg)
{
	struct device_config c = config(1);
	struct hungry h[HUNGRY];
	struct task *task[HUNGRY];
	struct store *store = rig_store(&c, false);

	(void)arg;
	for (unsigned i = 0; i < HUNGRY; i++) {
		h[i] = (struct hungry){ .store = store };
		task[i] = world_spawn("hungry", hungry_main, &h[i]);
	}
	for (unsigned i = 0; i < HUNGRY; i++)
		world_join(task[i]);
	rig_close(store);
	for (unsigned i = 0; i < HUNGRY; i++)
		assert_in_range(h[i].done, 20, 21);
}

static void test_queue_is_fair(void **state)
{
	(void)state;
	rig_run(queue_is_fair, NULL);
}

static void submission_costs(void *arg)
{
	struct device_config c = config(64);
	struct store *s = rig_store(&c, false);
	struct rig_io io;

	(void)arg;
	rig_submit(&io, s, IO_WRITE, 0, 4 * 4096);
	assert_int_equal(io.io.submit_ns, 3000); /* the first one's */
	assert_int_equal(world_now(), 4 * 3000);
	rig_close(s);
	assert_int_equal(io.end_ns, 3000 + 4 * NSEC_PER_MSEC);
}

static void test_submission_costs_cpu_time_per_part(void **state)
{
	(void)state;
	rig_run_paying(3000, submission_costs, NULL);
}

static void ties(void *arg)
{
	struct device_config c;
	struct rig_io io[8];
	struct store *s;

	(void)arg;
	assert_int_equal(device_config_init(&c, "nvme"), 0);
	c.latency_sigma = 0;
	s = rig_store(&c, false);
	for (unsigned i = 0; i < 8; i++)
		rig_submit(&io[i], s, i % 2 ? IO_READ : IO_WRITE, 0, 512);
	rig_close(s);
	/* Writes at 20 us, reads at 80 us; among each other as submitted. */
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(io[i].order, i / 2 + (i % 2 ? 4 : 0));
}

static void test_ties_end_as_submitted(void **state)
{
	(void)state;
	rig_ended = 0;
	rig_run(ties, NULL);
}

static void busy_time(void *arg)
{
	struct device_config c = config(64);
	struct device_stats stats;
	struct device *d;
	struct store *s;
	struct rig_io io[5];

	(void)arg;
	c.latency_ns = 500000;
	s = rig_store(&c, false);
	d = store_device(s);
	device_stats(d, &stats);
	assert_int_equal(stats.busy_ns, 0);
	rig_submit(&io[0], s, IO_WRITE, 0, 4096); /* busy 0 .. 1.5 ms */
	world_sleep_until(1400000);
	device_stats(d, &stats);
	assert_int_equal(stats.busy_ns, 1400000);
	assert_int_equal(stats.in_flight, 1);
	rig_submit(&io[1], s, IO_READ, 0, 4096); /* 1.4 .. 2.9 */
	world_sleep_until(5000000);
	device_stats(d, &stats);
	assert_int_equal(stats.busy_ns, 2900000);
	assert_int_equal(stats.in_flight, 0);
	assert_true(device_idle(d));
	rig_submit(&io[2], s, IO_WRITE, 0, 8193); /* 3 parts: 5.0 .. 8.5 */
	rig_submit(&io[3], s, IO_FLUSH, 0, 0);    /* at once */
	assert_false(device_idle(d));
	world_sleep_until(6000000);
	device_stats(d, &stats);
	assert_int_equal(stats.busy_ns, 3900000);
	assert_int_equal(stats.in_flight, 3);
	world_sleep_until(9000000);
	device_stats(d, &stats);
	rig_close(s);
	assert_int_equal(stats.busy_ns, 6400000);
	assert_int_equal(stats.reads, 1);
	assert_int_equal(stats.writes, 4);
	assert_int_equal(stats.flushes, 1);
	assert_int_equal(stats.read_bytes, 4096);
	assert_int_equal(stats.write_bytes, 4096 + 8193);
	assert_int_equal(stats.in_flight_max, 4);
}

static void test_busy_time_and_counts(void **state)
{
	(void)state;
	rig_run(busy_time, NULL);
}

/* A timed device changes its store when it answers, not before. */
static void applied_at_the_end(void *arg)
{
	struct device_config c = config(64);
	struct store *s = rig_store(&c, true);
	u8 text[6] = "hello", back[6];
	struct iovec out = { text, 6 }, in = { back, 6 };
	struct rig_io io[2];

	(void)arg;
	rig_io_init(&io[0], s, IO_WRITE, 10, 6);
	io[0].io.vec = &out;
	io[0].io.vec_count = 1;
	device_submit(store_device(s), &io[0].io);
	world_sleep_until(900000);
	assert_int_equal(store_size(s), 0);
	assert_false(store_any_written(s, 0, 1));
	world_sleep_until(1100000);
	assert_int_equal(store_size(s), 16);
	rig_io_init(&io[1], s, IO_READ, 10, 6);
	io[1].io.vec = &in;
	io[1].io.vec_count = 1;
	assert_int_equal(device_submit_wait(store_device(s), &io[1].io), 0);
	assert_int_equal(world_now(), 2100000);
	assert_int_equal(io[1].io.submit_ns, 1100000);
	assert_string_equal((char *)back, "hello");
	rig_close(s);
}

static void test_applied_at_the_end(void **state)
{
	(void)state;
	rig_run(applied_at_the_end, NULL);
}

/* Every third I/O fails, in a crowd: all end, and only the good ones are in the store. */
#define CROWD 200

static int every_third(void *ctx, const struct io *io)
{
	++*(unsigned *)ctx;
	return io->offset_bytes / 8192 % 3 == 2 ? -ENOSPC : 0;
}

static void faults_in_a_crowd(void *arg)
{
	struct device_config c = config(4);
	struct rig_io *io = calloc(CROWD, sizeof(*io));
	struct store *s = rig_store(&c, true);
	unsigned asked = 0;

	(void)arg;
	device_set_fault(store_device(s), every_third, &asked);
	for (unsigned i = 0; i < CROWD; i++)
		rig_submit(&io[i], s, IO_WRITE, (u64)i * 8192, 8192);
	rig_close(s);
	assert_int_equal(asked, CROWD);
	for (unsigned i = 0; i < CROWD; i++) {
		assert_int_equal(io[i].ends, 1);
		assert_int_equal(io[i].error, i % 3 == 2 ? -ENOSPC : 0);
		assert_int_equal(io[i].io.error, io[i].error);
	}
	free(io);
}

static void test_faults_in_a_crowd(void **state)
{
	(void)state;
	rig_run(faults_in_a_crowd, NULL);
}

/* Many tasks, all models' kinds of I/O, random sizes and pauses; twice, the same history. */
#define TASKS 12
#define LOAD  150

struct load {
	struct store *store;
	u64 seed;
	u64 sum; /* of all end times, by position */
	u64 parts, bytes;
};

static void load_main(void *arg)
{
	struct load *l = arg;
	struct rng r;

	rng_init(&r, l->seed);
	for (unsigned i = 0; i < LOAD; i++) {
		struct rig_io io;
		u32 length = 512 * (1 + (u32)rng_below(&r, 2000));

		rig_io_init(&io, l->store, rng_below(&r, 3) ? IO_WRITE : IO_READ, 0, length);
		assert_int_equal(device_submit_wait(store_device(l->store), &io.io), 0);
		l->parts += io.io.parts;
		l->bytes += length;
		l->sum = l->sum * 31 + world_now();
		world_sleep_until(world_now() + rng_below(&r, 300000));
	}
}

static void load_model(void *arg)
{
	struct load *total = arg, l[TASKS];
	struct device_config c;
	struct device_stats stats;
	struct task *task[TASKS];
	struct store *store;

	assert_int_equal(device_config_init(&c, total->seed ? "nvme" : "ebs"), 0);
	c.queue_depth = 8;
	c.max_io_bytes = 256 << 10;
	c.seed = 5;
	store = rig_store(&c, false);
	*total = (struct load){ 0 };
	for (unsigned i = 0; i < TASKS; i++) {
		l[i] = (struct load){ .store = store, .seed = i };
		task[i] = world_spawn("load", load_main, &l[i]);
	}
	for (unsigned i = 0; i < TASKS; i++) {
		world_join(task[i]);
		total->sum = total->sum * 31 + l[i].sum;
		total->parts += l[i].parts;
		total->bytes += l[i].bytes;
	}
	device_stats(store_device(store), &stats);
	assert_int_equal(stats.reads + stats.writes, total->parts);
	assert_int_equal(stats.read_bytes + stats.write_bytes, total->bytes);
	assert_int_equal(stats.in_flight, 0);
	assert_true(stats.busy_ns <= world_now());
	rig_close(store);
}

static void test_same_seed_same_history(void **state)
{
	(void)state;
	for (u64 nvme = 0; nvme < 2; nvme++) {
		struct load a = { .seed = nvme }, b = { .seed = nvme };

		rig_run_paying(3000, load_model, &a);
		rig_run_paying(3000, load_model, &b);
		assert_int_equal(a.sum, b.sum);
		assert_true(a.parts > TASKS * LOAD);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_depth_blocks_in_order),
		cmocka_unit_test(test_large_and_small_ones_take_turns),
		cmocka_unit_test(test_queue_is_fair),
		cmocka_unit_test(test_submission_costs_cpu_time_per_part),
		cmocka_unit_test(test_ties_end_as_submitted),
		cmocka_unit_test(test_busy_time_and_counts),
		cmocka_unit_test(test_applied_at_the_end),
		cmocka_unit_test(test_faults_in_a_crowd),
		cmocka_unit_test(test_same_seed_same_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
