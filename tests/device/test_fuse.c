// SPDX-License-Identifier: MIT
/* A device with a server: how I/Os become requests, how many it has at once, when it is full. */
#include "base/bits.h"
#include "device/fuse.h"
#include "rig.h"
#include <errno.h>

static struct device_config config(void)
{
	struct device_config c;

	assert_int_equal(device_config_init(&c, "fuse"), 0);
	c.max_write_bytes = 64 << 10;
	c.max_read_bytes = 128 << 10;
	c.max_pages = 24; /* 96 KiB */
	c.max_background = 3;
	c.congestion_threshold = 4;
	return c;
}

/* A server that answers when it is told to. */
struct server {
	struct device *device;
	struct fuse_request taken[32];
	u32 count, answered;
	struct task *task;
};

static void serve(void *arg)
{
	struct server *s = arg;

	while (fuse_take(s->device, &s->taken[s->count]))
		s->count++;
}

static void answer(struct server *s, int error)
{
	assert_true(s->answered < s->count);
	fuse_answer(s->device, &s->taken[s->answered++], error);
	world_sleep_until(world_now() + 1); /* the server takes what has come free */
}

static struct store *begin(struct server *s, const struct device_config *c)
{
	struct store *store = rig_store(c, false);

	*s = (struct server){ .device = store_device(store) };
	s->task = world_spawn("server", serve, s);
	return store;
}

static void end(struct server *s, struct store *store)
{
	fuse_stop(s->device);
	world_join(s->task);
	store_destroy(store);
	device_destroy(s->device);
}

static void requests(void *arg)
{
	struct device_config c = config();
	struct device_stats stats;
	struct server s;
	struct store *store = begin(&s, &c);
	struct rig_io write, read;

	(void)arg;
	rig_submit(&write, store, IO_WRITE, 4096, 160 << 10); /* 64, 64 and 32 KiB */
	world_sleep_until(world_now() + 1);
	assert_int_equal(s.count, 3);
	assert_int_equal(s.taken[1].offset_bytes, 4096 + (64 << 10));
	assert_int_equal(s.taken[2].bytes, 32 << 10);
	answer(&s, 0);
	answer(&s, 0);
	assert_int_equal(write.ends, 0);
	answer(&s, 0);
	assert_int_equal(write.ends, 1);
	assert_int_equal(write.error, 0);
	rig_submit(&read, store, IO_READ, 0, 160 << 10); /* max_pages: 96 and 64 KiB */
	world_sleep_until(world_now() + 1);
	assert_int_equal(s.count, 5);
	assert_int_equal(s.taken[3].bytes, 96 << 10);
	answer(&s, -EIO);
	answer(&s, 0);
	assert_int_equal(read.error, -EIO);
	device_stats(s.device, &stats);
	assert_int_equal(stats.writes, 3);
	assert_int_equal(stats.reads, 2);
	assert_int_equal(stats.write_sizes[4], 2); /* 64 KiB */
	assert_int_equal(stats.write_sizes[3], 1);
	end(&s, store);
}

static void test_requests_are_as_large_as_agreed(void **state)
{
	(void)state;
	rig_run(requests, NULL);
}

struct asker {
	struct store *store;
	int rc;
	bool back;
};

static void ask(void *arg)
{
	struct asker *a = arg;

	a->rc = device_ask(a->store);
	a->back = true;
}

static void background(void *arg)
{
	struct device_config c = config();
	struct server s;
	struct store *store = begin(&s, &c);
	struct rig_io io[5];
	struct asker a = { .store = store };
	struct task *asker;

	(void)arg;
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(device_is_congested(s.device), i >= 4);
		rig_submit(&io[i], store, IO_WRITE, i * 4096ull, 4096);
	}
	world_sleep_until(world_now() + 1);
	assert_int_equal(s.count, 3); /* max_background */
	asker = world_spawn("asker", ask, &a);
	world_sleep_until(world_now() + 1);
	assert_int_equal(s.count, 4); /* who waits is not held back */
	assert_int_equal(s.taken[3].op, IO_ASK);
	assert_false(a.back);
	answer(&s, 0);
	assert_int_equal(s.count, 5);
	assert_int_equal(s.taken[4].offset_bytes, 3 * 4096);
	assert_true(device_is_congested(s.device)); /* four are left */
	answer(&s, 0);
	assert_false(device_is_congested(s.device));
	answer(&s, 0);
	answer(&s, 0);
	world_join(asker);
	assert_true(a.back && !a.rc);
	answer(&s, 0);
	answer(&s, 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(io[i].ends, 1);
	end(&s, store);
}

static void test_background_requests_queue_and_congest(void **state)
{
	(void)state;
	rig_run(background, NULL);
}

static void orders(void *arg)
{
	struct device_config c = config();
	struct store *store = rig_store(&c, false);
	struct device *d = store_device(store);

	(void)arg;
	assert_int_equal(device_folio_order(d), 0); /* single pages unless asked for */
	c.large_folios = 1;
	assert_int_equal(device_reconfigure(d, &c), 0);
	assert_int_equal(device_folio_order(d), 4); /* 64 KiB fit both ways */
	c.max_pages = 1;
	assert_int_equal(device_reconfigure(d, &c), 0);
	assert_int_equal(device_folio_order(d), 0);
	c.killpriv = 1;
	assert_int_equal(device_reconfigure(d, &c), 0);
	assert_int_equal(device_ask(store), 0); /* nobody is asked */
	assert_true(device_caches_writes(d));
	c.writeback = 0;
	assert_int_equal(device_reconfigure(d, &c), 0);
	assert_false(device_caches_writes(d));
	store_destroy(store);
	device_destroy(d);
}

static void test_the_largest_folio_fits_a_request(void **state)
{
	(void)state;
	rig_run(orders, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_are_as_large_as_agreed),
		cmocka_unit_test(test_background_requests_queue_and_congest),
		cmocka_unit_test(test_the_largest_folio_fits_a_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
