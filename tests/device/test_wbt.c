/* SPDX-License-Identifier: MIT */
/*
 * Writeback throttling. The limits after each step up are those that a 6.18 kernel printed
 * (tracepoint wbt_step) for a loop device of 128 requests and a virtio disk of 256.
 */
#include "device/wbt.h"
#include "rig.h"
#include <stdlib.h>

#define WINDOW (100 * NSEC_PER_MSEC)

static void assert_limits(const struct wbt *w, s32 step, u32 background, u32 normal, u32 max)
{
	assert_int_equal(w->step, step);
	assert_int_equal(w->background, background);
	assert_int_equal(w->normal, normal);
	assert_int_equal(w->max, max);
}

/* A completed write, or a read that took so long, at `now`. */
static bool note(struct wbt *w, enum io_op op, u64 took, u64 now)
{
	return wbt_note(w, op == IO_READ, took, now);
}

static void test_only_writes_step_up(void **state)
{
	struct wbt w;

	(void)state;
	wbt_init(&w, 2 * NSEC_PER_MSEC, 128, true);
	assert_limits(&w, 0, 4, 8, 16);
	note(&w, IO_WRITE, 0, WINDOW);
	assert_true(note(&w, IO_WRITE, 0, 2 * WINDOW));
	assert_limits(&w, -1, 8, 16, 31);
	note(&w, IO_WRITE, 0, 3 * WINDOW);
	assert_limits(&w, -2, 16, 31, 61);
	note(&w, IO_WRITE, 0, 4 * WINDOW);
	assert_limits(&w, -3, 24, 48, 96);
	assert_false(note(&w, IO_WRITE, 0, 5 * WINDOW)); /* as far up as it goes */
	assert_limits(&w, -3, 24, 48, 96);
}

static void test_a_longer_queue_goes_further_up(void **state)
{
	struct wbt w;

	(void)state;
	wbt_init(&w, 2 * NSEC_PER_MSEC, 256, true);
	for (u64 i = 1; i <= 4; i++)
		note(&w, IO_WRITE, 0, i * WINDOW);
	assert_limits(&w, -3, 31, 61, 121);
	note(&w, IO_WRITE, 0, 5 * WINDOW);
	assert_limits(&w, -4, 48, 96, 192);
}

static void mixed_window(struct wbt *w, u64 read_ns, u64 at)
{
	for (unsigned i = 0; i < 3; i++)
		note(w, IO_WRITE, 0, at);
	note(w, IO_READ, read_ns, at);
}

static void test_slow_reads_step_down(void **state)
{
	struct wbt w;

	(void)state;
	wbt_init(&w, 2 * NSEC_PER_MSEC, 128, true);
	for (u64 i = 1; i <= 3; i++)
		note(&w, IO_WRITE, 0, i * WINDOW);
	assert_int_equal(w.step, -2);
	mixed_window(&w, 2 * NSEC_PER_MSEC + 1, 3 * WINDOW + 1);
	note(&w, IO_WRITE, 0, 4 * WINDOW); /* from above the middle down to it at once */
	assert_limits(&w, 0, 4, 8, 16);
	mixed_window(&w, 3 * NSEC_PER_MSEC, 4 * WINDOW + 1);
	note(&w, IO_WRITE, 0, 5 * WINDOW);
	assert_limits(&w, 1, 2, 4, 8);
	mixed_window(&w, NSEC_PER_MSEC, 5 * WINDOW + 1);
	assert_true(note(&w, IO_WRITE, 0, 6 * WINDOW)); /* fast enough: up again */
	assert_limits(&w, 0, 4, 8, 16);
}

static void test_urgency_decides_the_limit(void **state)
{
	struct io background = { .background = true }, normal = { 0 }, sync = { .sync = true };
	struct wbt w;

	(void)state;
	wbt_init(&w, 2 * NSEC_PER_MSEC, 128, true);
	assert_int_equal(wbt_limit(&w, &background, NSEC_PER_SEC), 4);
	assert_int_equal(wbt_limit(&w, &normal, NSEC_PER_SEC), 8);
	assert_int_equal(wbt_limit(&w, &sync, NSEC_PER_SEC), 16);
	w.throttled_ns = NSEC_PER_SEC;
	assert_int_equal(wbt_limit(&w, &background, 2 * NSEC_PER_SEC - 1), 16);
	assert_int_equal(wbt_limit(&w, &background, 2 * NSEC_PER_SEC), 4);
}

static void test_a_write_cache_is_drained_first(void **state)
{
	struct wbt w;

	(void)state;
	wbt_init(&w, 2 * NSEC_PER_MSEC, 128, true);
	w.in_flight = 1;
	assert_false(wbt_wakes(&w, NSEC_PER_SEC));
	w.throttled_ns = NSEC_PER_SEC; /* a writer sleeps: no draining */
	assert_true(wbt_wakes(&w, NSEC_PER_SEC + 1));
	w.in_flight = 7; /* normal - in_flight is less than background / 2 */
	assert_false(wbt_wakes(&w, NSEC_PER_SEC + 1));
	w.in_flight = 6;
	assert_true(wbt_wakes(&w, NSEC_PER_SEC + 1));
	w.in_flight = 0;
	assert_true(wbt_wakes(&w, 10 * NSEC_PER_SEC));
}

/* A flusher of many single writes to a device of 1 ms an I/O, answered 5 ms later. */
#define WRITES 400
static struct rig_io writes[WRITES];

static u64 write_all(bool write_cache, bool background, bool throttled)
{
	struct device_config c;
	struct store *store;
	u64 start, end;

	assert_int_equal(device_config_init(&c, "rate"), 0);
	c.iops = 1000;
	c.bytes_per_s = 1e9;
	c.latency_ns = 5 * NSEC_PER_MSEC;
	c.wbt_latency_ns = 2 * NSEC_PER_MSEC;
	c.write_cache = write_cache;
	store = rig_store(&c, false);
	start = world_now();
	for (unsigned i = 0; i < WRITES; i++) {
		if (throttled)
			device_note_throttled(store_device(store));
		rig_io_init(&writes[i], store, IO_WRITE, 4096ull * i, 4096);
		writes[i].io.writeback = true;
		writes[i].io.background = background;
		device_submit(store_device(store), &writes[i].io);
	}
	while (!device_idle(store_device(store)))
		world_sleep_until(world_now() + NSEC_PER_MSEC / 10);
	end = 0;
	for (unsigned i = 0; i < WRITES; i++)
		end = max_u64(end, writes[i].end_ns);
	rig_close(store);
	return end - start;
}

static void drained_main(void *arg)
{
	(void)arg;
	/*
	 * Batches of 4 while the window of the first 100 ms is open, then of 8, 16, 24; each pays
	 * the 5 ms once: 10 batches of 4 take 9 ms each, and so on.
	 */
	u64 took = write_all(true, true, false);

	assert_true(took > 400 * NSEC_PER_MSEC + 100 * NSEC_PER_MSEC);
	assert_true(took < 400 * NSEC_PER_MSEC + 200 * NSEC_PER_MSEC);
	/* without a cache, or with writers asleep, the queue never runs dry once it is long */
	assert_true(write_all(false, false, false) < 405 * NSEC_PER_MSEC + 30 * NSEC_PER_MSEC);
	assert_int_equal(write_all(true, true, true), 405 * NSEC_PER_MSEC);
}

static void test_draining_leaves_the_device_idle(void **state)
{
	(void)state;
	rig_run(drained_main, NULL);
}

static void changed_main(void *arg)
{
	struct device_config c;
	struct store *store;
	struct device_stats stats;

	(void)arg;
	assert_int_equal(device_config_init(&c, "rate"), 0);
	store = rig_store(&c, false);
	c.wbt_latency_ns = 2 * NSEC_PER_MSEC;
	c.iops = 1000;
	assert_int_equal(device_reconfigure(store_device(store), &c), 0);
	for (unsigned i = 0; i < 16; i++) {
		rig_io_init(&writes[i], store, IO_WRITE, 4096ull * i, 4096);
		writes[i].io.writeback = writes[i].io.background = true;
		device_submit(store_device(store), &writes[i].io);
	}
	device_stats(store_device(store), &stats);
	assert_int_equal(stats.in_flight_max, 4); /* background work, of the middle depth */
	while (!device_idle(store_device(store)))
		world_sleep_until(world_now() + NSEC_PER_MSEC);
	assert_int_equal(writes[15].end_ns, 16 * NSEC_PER_MSEC); /* and at the new speed */
	rig_close(store);
}

static void test_a_device_that_changes_its_settings(void **state)
{
	(void)state;
	rig_run(changed_main, NULL);
}

static void direct_main(void *arg)
{
	struct device_config c;
	struct store *store;
	struct device_stats stats;

	(void)arg;
	assert_int_equal(device_config_init(&c, "rate"), 0);
	c.wbt_latency_ns = 2 * NSEC_PER_MSEC;
	store = rig_store(&c, false);
	for (unsigned i = 0; i < 100; i++)
		rig_submit(&writes[i], store, IO_WRITE, 4096ull * i, 4096);
	device_stats(store_device(store), &stats);
	assert_int_equal(stats.in_flight, 100); /* direct writes are not write-out */
	while (!device_idle(store_device(store)))
		world_sleep_until(world_now() + NSEC_PER_MSEC);
	rig_close(store);
}

static void test_direct_writes_pass(void **state)
{
	(void)state;
	rig_run(direct_main, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_writes_step_up),
		cmocka_unit_test(test_a_longer_queue_goes_further_up),
		cmocka_unit_test(test_slow_reads_step_down),
		cmocka_unit_test(test_urgency_decides_the_limit),
		cmocka_unit_test(test_a_write_cache_is_drained_first),
		cmocka_unit_test(test_draining_leaves_the_device_idle),
		cmocka_unit_test(test_direct_writes_pass),
		cmocka_unit_test(test_a_device_that_changes_its_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
