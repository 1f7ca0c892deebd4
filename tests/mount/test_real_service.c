/* SPDX-License-Identifier: MIT */
/*
 * A slow disk without its mount, with many threads: what is counted, and that no answer comes
 * before the model gives it. That is a bound from below, which a slow machine cannot break.
 */
#include "mount/slow_disk_service.h"
#include "tmpfs.h"
#include <errno.h>
#include <jansson.h>
#include <string.h>

#define THREADS  8
#define REQUESTS 64 /* of each */
#define BLOCK    4096

static void begin(struct slow_disk_service *s, double iops, double bytes_per_s, u64 latency_ns)
{
	struct slow_disk_config c = {
		.backing = path,
		.size_bytes = THREADS * REQUESTS * BLOCK,
		.iops = iops,
		.bytes_per_s = bytes_per_s,
		.latency_ns = latency_ns,
	};
	struct err e = { "" };

	assert_int_equal(service_open(s, &c, &e), 0);
}

struct writer {
	struct slow_disk_service *service;
	u64 number;
	u32 failures;
};

/* Blocks of its own: written, read back, compared. */
static void writer_main(void *arg)
{
	struct writer *w = arg;
	u8 *out = aligned_alloc(BLOCK, BLOCK), *in = aligned_alloc(BLOCK, BLOCK);

	for (u64 i = 0; i < REQUESTS; i++) {
		u64 offset = (w->number + i * THREADS) * BLOCK;

		memset(out, (int)(w->number * 31 + i), BLOCK);
		w->failures += service_write(w->service, out, BLOCK, offset) != 0;
		w->failures += service_read(w->service, in, BLOCK, offset) != 0;
		w->failures += memcmp(in, out, BLOCK) != 0;
	}
	free(out);
	free(in);
}

static void counts_and_takes_its_time(void **state)
{
	const u64 ios = 2 * THREADS * REQUESTS, period = NSEC_PER_SEC / 20000;
	struct writer writers[THREADS];
	struct task *tasks[THREADS];
	struct slow_disk_service s;
	struct slow_disk_stats t;
	u64 start;

	(void)state;
	need_tmpfs();
	begin(&s, 20000, 1e9, 10 * NSEC_PER_USEC);
	start = world_now();
	for (u64 i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){ &s, i, 0 };
		tasks[i] = world_spawn("writer", writer_main, &writers[i]);
		assert_non_null(tasks[i]);
	}
	for (u64 i = 0; i < THREADS; i++) {
		world_join(tasks[i]);
		assert_int_equal(writers[i].failures, 0);
	}
	assert_true(world_now() - start >= ios * period);
	assert_int_equal(service_flush(&s), 0);
	assert_int_equal(service_discard(&s, 0, 2 * BLOCK), 0);
	service_stats(&s, &t);
	assert_int_equal(t.reads, ios / 2);
	assert_int_equal(t.writes, ios / 2);
	assert_int_equal(t.read_bytes, ios / 2 * BLOCK);
	assert_int_equal(t.write_bytes, ios / 2 * BLOCK);
	assert_int_equal(t.flushes, 1);
	assert_int_equal(t.discards, 1);
	assert_int_equal(t.discard_bytes, 2 * BLOCK);
	assert_int_equal(t.errors, 0);
	assert_int_equal(t.in_flight, 0);
	assert_in_range(t.in_flight_max, 2, THREADS);
	assert_true(t.busy_ns >= ios * period);
	service_close(&s);
}

static void answers_in_the_order_of_arrival(void **state)
{
	struct slow_disk_service s;
	u64 before, now = 0;

	(void)state;
	need_tmpfs();
	begin(&s, 1000, 1e6, 5 * NSEC_PER_MSEC);
	/* the larger of 1 ms and a byte each microsecond, and the latency of each */
	before = rate_serve(&s.rate, now, 512);
	assert_int_equal(before, 6 * NSEC_PER_MSEC);
	assert_int_equal(rate_serve(&s.rate, now, 1000), 7 * NSEC_PER_MSEC);
	assert_int_equal(rate_serve(&s.rate, now, 4000), 11 * NSEC_PER_MSEC);
	assert_int_equal(rate_serve(&s.rate, 100 * NSEC_PER_MSEC, 1), 106 * NSEC_PER_MSEC);
	service_close(&s);
}

static void errors_are_answered_and_counted(void **state)
{
	static _Alignas(4096) u8 buf[BLOCK];
	struct slow_disk_service s;
	struct slow_disk_stats t;

	(void)state;
	need_tmpfs();
	begin(&s, 1e6, 1e9, 0);
	assert_int_equal(service_write(&s, buf, 100, 0), -EINVAL);
	assert_int_equal(service_read(&s, buf, BLOCK, 1ull << 40), -EINVAL);
	assert_int_equal(service_discard(&s, 1, 1), -EINVAL);
	service_stats(&s, &t);
	assert_int_equal(t.errors, 3);
	assert_int_equal(t.writes, 1);
	assert_int_equal(t.in_flight, 0);
	service_close(&s);
}

static void the_counters_are_json(void **state)
{
	static _Alignas(4096) u8 buf[BLOCK];
	struct slow_disk_service s;
	json_t *root;
	char *text;

	(void)state;
	need_tmpfs();
	begin(&s, 1e6, 1e9, 1500);
	assert_int_equal(service_write(&s, buf, 1024, 0), 0);
	text = service_stats_json(&s);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	assert_int_equal(json_integer_value(json_object_get(root, "writes")), 1);
	assert_int_equal(json_integer_value(json_object_get(root, "write_bytes")), 1024);
	assert_int_equal(json_integer_value(json_object_get(root, "size_bytes")),
			 THREADS * REQUESTS * BLOCK);
	assert_int_equal(json_integer_value(json_object_get(root, "sector_bytes")), 512);
	assert_true(json_real_value(json_object_get(root, "iops")) == 1e6);
	assert_true(json_real_value(json_object_get(root, "latency_us")) == 1.5);
	json_decref(root);
	free(text);
	service_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_and_takes_its_time),
		cmocka_unit_test(answers_in_the_order_of_arrival),
		cmocka_unit_test(errors_are_answered_and_counted),
		cmocka_unit_test(the_counters_are_json),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
