// SPDX-License-Identifier: MIT
/* When each model answers, to the nanosecond. */
#include "base/rng.h"
#include "rig.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

static struct device_config config(const char *model)
{
	struct device_config c;

	assert_int_equal(device_config_init(&c, model), 0);
	c.queue_depth = 65536;
	return c;
}

/* Submits n I/Os of one kind at once; the queue is deep enough for all. */
static struct rig_io *burst(struct store *s, enum io_op op, unsigned n, u32 length)
{
	struct rig_io *ios = calloc(n, sizeof(*ios));

	for (unsigned i = 0; i < n; i++)
		rig_submit(&ios[i], s, op, (u64)i * length, length);
	return ios;
}

static void rate_times(void *arg)
{
	struct device_config c = config("rate");
	struct store *s;
	struct rig_io io[6];

	(void)arg;
	c.iops = 3000;
	c.bytes_per_s = 125e6;
	c.latency_ns = 300000;
	s = rig_store(&c, false);
	rig_submit(&io[0], s, IO_WRITE, 0, 4096);       /* one I/O's time: 333333.3 */
	rig_submit(&io[1], s, IO_READ, 0, 125000);      /* its bytes' time: 1000000 */
	rig_submit(&io[2], s, IO_WRITE, 0, 41666);      /* just below where bytes count */
	rig_submit(&io[3], s, IO_WRITE, 0, 262144 * 3); /* three parts of 2097152 */
	rig_submit(&io[4], s, IO_FLUSH, 0, 0);
	world_sleep_until(20 * NSEC_PER_MSEC);
	rig_submit(&io[5], s, IO_WRITE, 0, 262145); /* the second part has one byte */
	rig_close(s);
	assert_int_equal(io[0].end_ns, 333333 + 300000);
	assert_int_equal(io[1].end_ns, 1333333 + 300000);
	assert_int_equal(io[2].end_ns, 1666666 + 300000);
	assert_int_equal(io[3].end_ns, 1666666 + 3 * 2097152 + 300000);
	assert_int_equal(io[4].end_ns, 0);
	assert_int_equal(io[5].end_ns, 20000000 + 2097152 + 333333 + 300000);
	assert_int_equal(io[3].io.parts, 3);
	assert_int_equal(io[5].io.parts, 2);
}

static void test_rate(void **state)
{
	(void)state;
	rig_run(rate_times, NULL);
}

#define ARRIVALS 20000

/*
 * The written model, done as plainly as can be: s = max(t, end), e = s + max(1/iops, n/bw),
 * answer e + latency, in doubles. Busy and idle stretches take turns.
 */
static void rate_against_doubles(void *arg)
{
	struct device_config c = config("rate");
	struct rig_io *io = calloc(ARRIVALS, sizeof(*io));
	double free_at = 0, answer[ARRIVALS];
	struct store *s;
	struct rng r;
	u64 now = 0;

	(void)arg;
	c.iops = 3000;
	c.bytes_per_s = 700e6;
	c.latency_ns = 300000;
	s = rig_store(&c, false);
	rng_init(&r, 42);
	for (unsigned i = 0; i < ARRIVALS; i++) {
		u32 bytes = 512 * (1 + (u32)rng_below(&r, 512));
		double cost = fmax(1e9 / 3000, bytes / 0.7);

		/* On average what the server can take; sometimes nothing comes for long. */
		now += rng_below(&r, i % 1000 ? 700000 : 50000000);
		world_sleep_until(now);
		rig_submit(&io[i], s, rng_below(&r, 2) ? IO_READ : IO_WRITE, 0, bytes);
		free_at = fmax(free_at, (double)now) + cost;
		answer[i] = free_at + 300000;
	}
	rig_close(s);
	for (unsigned i = 0; i < ARRIVALS; i++) {
		assert_int_equal(io[i].ends, 1);
		assert_true(fabs((double)io[i].end_ns - answer[i]) <= 1);
	}
	free(io);
}

static void test_rate_against_doubles(void **state)
{
	(void)state;
	rig_run(rate_against_doubles, NULL);
}

static void ebs_times(void *arg)
{
	struct device_config c = config("ebs");
	struct store *s, *t;
	struct rig_io io[6];

	(void)arg;
	c.max_io_bytes = 1 << 20;
	c.iops = 1000;
	c.bytes_per_s = 1e9;
	s = rig_store(&c, false);
	rig_submit(&io[0], s, IO_WRITE, 0, 1 << 20);        /* 4 units */
	rig_submit(&io[1], s, IO_WRITE, 0, 300 << 10);      /* 2 */
	rig_submit(&io[2], s, IO_READ, 0, 256 << 10);       /* 1 */
	rig_submit(&io[3], s, IO_READ, 0, (256 << 10) + 1); /* 2 */
	rig_submit(&io[4], s, IO_READ, 0, 1);               /* 1 */
	rig_submit(&io[5], s, IO_FLUSH, 0, 0);
	rig_close(s);
	assert_int_equal(io[0].end_ns, 4500000);
	assert_int_equal(io[1].end_ns, 6500000);
	assert_int_equal(io[2].end_ns, 7500000);
	assert_int_equal(io[3].end_ns, 9500000);
	assert_int_equal(io[4].end_ns, 10500000);
	assert_int_equal(io[5].end_ns, 500000);

	/* Split before it is counted: 300 KiB + 300 KiB are 4 units, 600 KiB would be 3. */
	c.max_io_bytes = 300 << 10;
	c.latency_ns = 0;
	t = rig_store(&c, false);
	world_sleep_until(NSEC_PER_SEC);
	rig_submit(&io[0], t, IO_WRITE, 0, 600 << 10);
	rig_close(t);
	assert_int_equal(io[0].end_ns, NSEC_PER_SEC + 4000000);
}

static void ebs_bandwidth(void *arg)
{
	struct device_config c = config("ebs");
	struct rig_io *io;
	struct store *s;

	(void)arg;
	c.latency_ns = 0;
	s = rig_store(&c, false);
	/* gp3: 125 MiB/s, so 500 parts of 256 KiB take a second although 3000 I/Os could. */
	io = burst(s, IO_WRITE, 1000, 512 << 10);
	rig_close(s);
	assert_int_equal(io[0].end_ns, 4000000);
	assert_int_equal(io[999].end_ns, 4 * NSEC_PER_SEC);
	free(io);
}

static void test_ebs(void **state)
{
	(void)state;
	rig_run(ebs_times, NULL);
	rig_run(ebs_bandwidth, NULL);
}

static void nvme_channels(void *arg)
{
	struct device_config c = config("nvme");
	struct rig_io *io, late[2];
	struct store *s;

	(void)arg;
	c.channels = 4;
	c.latency_sigma = 0;
	s = rig_store(&c, false);
	io = burst(s, IO_READ, 100, 4096);
	world_sleep_until(10 * NSEC_PER_MSEC);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(io[i].end_ns, (i / 4 + 1) * 80000);
	/* A write beside a flush, then a read: each on a channel of its own. */
	rig_submit(&io[0], s, IO_WRITE, 0, 4096);
	rig_submit(&late[0], s, IO_FLUSH, 0, 0);
	rig_submit(&late[1], s, IO_READ, 0, 4096);
	rig_close(s);
	assert_int_equal(io[0].end_ns, 10020000);
	assert_int_equal(late[0].end_ns, 10020000);
	assert_int_equal(late[1].end_ns, 10080000);
	free(io);
}

static void nvme_bandwidth(void *arg)
{
	struct device_config c = config("nvme");
	struct rig_io *in, *out;
	struct store *s;

	(void)arg;
	c.latency_sigma = 0;
	c.read_bytes_per_s = 1e9;
	c.write_bytes_per_s = 5e8;
	c.channels = 1024;
	s = rig_store(&c, false);
	in = burst(s, IO_READ, 500, 128 << 10);
	out = burst(s, IO_WRITE, 500, 128 << 10);
	rig_close(s);
	/* The first is answered when its bytes are across, the latency being shorter... */
	assert_int_equal(in[0].end_ns, 131072);
	/* ...and all share one bus in each direction. */
	assert_int_equal(in[499].end_ns, 500 * 131072);
	assert_int_equal(out[499].end_ns, 500 * 262144);
	free(in);
	free(out);
}

/* With few channels the bytes of a request wait for its turn on a channel. */
static void nvme_both(void *arg)
{
	struct device_config c = config("nvme");
	struct rig_io *io, after[2];
	struct store *s;

	(void)arg;
	c.latency_sigma = 0;
	c.read_bytes_per_s = 1e9;
	c.channels = 1;
	s = rig_store(&c, false);
	io = burst(s, IO_READ, 3, 100000);
	world_sleep_until(NSEC_PER_MSEC);
	rig_submit(&after[0], s, IO_READ, 0, 10000);
	rig_submit(&after[1], s, IO_READ, 0, 100000);
	rig_close(s);
	assert_int_equal(io[0].end_ns, 100000); /* channel free at 80000 */
	assert_int_equal(io[1].end_ns, 200000); /* starts at 80000, bus free at 100000 */
	assert_int_equal(io[2].end_ns, 300000);
	assert_int_equal(after[0].end_ns, 1080000); /* bus free at 1010000 */
	assert_int_equal(after[1].end_ns, 1180000); /* but not started before 1080000 */
	free(io);
}

static int compare_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

#define DRAWS 20001

struct draws {
	u64 seed;
	u64 ns[DRAWS];
};

static void nvme_latencies(void *arg)
{
	struct device_config c = config("nvme");
	struct draws *d = arg;
	struct rig_io io;
	struct store *s;

	c.latency_sigma = 0.5;
	c.seed = d->seed;
	s = rig_store(&c, false);
	for (unsigned i = 0; i < DRAWS; i++) {
		rig_submit(&io, s, IO_READ, 0, 512);
		world_sleep_until(world_now() + 10 * NSEC_PER_MSEC);
		assert_int_equal(io.ends, 1);
		d->ns[i] = io.end_ns - io.io.submit_ns;
	}
	rig_close(s);
}

static void test_nvme(void **state)
{
	(void)state;
	rig_run(nvme_channels, NULL);
	rig_run(nvme_bandwidth, NULL);
	rig_run(nvme_both, NULL);
}

static void test_nvme_latency_is_log_normal(void **state)
{
	struct draws *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));

	(void)state;
	a->seed = b->seed = 11;
	rig_run(nvme_latencies, a);
	rig_run(nvme_latencies, b);
	assert_memory_equal(a->ns, b->ns, sizeof(a->ns));
	b->seed = 12;
	rig_run(nvme_latencies, b);
	assert_memory_not_equal(a->ns, b->ns, sizeof(a->ns));
	qsort(a->ns, DRAWS, sizeof(*a->ns), compare_u64);
	/* The median, and one sigma to either side of it. */
	assert_true(fabs(a->ns[DRAWS / 2] / 80e3 - 1) < 0.02);
	assert_true(fabs(a->ns[(unsigned)(DRAWS * 0.841345)] / (80e3 * exp(0.5)) - 1) < 0.03);
	assert_true(fabs(a->ns[(unsigned)(DRAWS * 0.158655)] / (80e3 * exp(-0.5)) - 1) < 0.03);
	free(a);
	free(b);
}

static void memory_times(void *arg)
{
	struct device_config c = config("memory");
	struct store *s = rig_store(&c, false);
	struct rig_io io;

	(void)arg;
	world_sleep_until(5);
	rig_submit(&io, s, IO_WRITE, 0, 16 << 20);
	assert_int_equal(io.ends, 1);
	assert_int_equal(io.end_ns, 5);
	assert_int_equal(io.io.parts, 13); /* of 1280 KiB */
	rig_submit(&io, s, IO_FLUSH, 0, 0);
	assert_int_equal(io.ends, 1);
	rig_close(s);
}

static void test_memory(void **state)
{
	(void)state;
	rig_run(memory_times, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),   cmocka_unit_test(test_rate_against_doubles),
		cmocka_unit_test(test_ebs),    cmocka_unit_test(test_nvme),
		cmocka_unit_test(test_memory), cmocka_unit_test(test_nvme_latency_is_log_normal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
