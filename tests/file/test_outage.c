/* SPDX-License-Identifier: MIT */
/*
 * A device that fails for good: its writers get its error in bounded time, and others are not
 * held up by what it owes. Two devices, each I/O takes 10 ms; the limit is 64 pages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "file/inner.h"
#include "world/sim.h"
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define LIMIT_PAGES  64
#define RETRY_MAX_NS (2 * NSEC_PER_SEC)
/* pauses of 100, 200, ... 1600 ms, then the longest; a few I/Os of 10 ms */
#define HOPELESS_NS (4 * NSEC_PER_SEC)

struct outage {
	struct policy policy;
	u64 dirty_pages, memory_pages;
	u64 fails_from, fails_to; /* bytes of files of device 0 */
	void (*fn)(struct outage *o);
	struct engine *engine;
	struct device *device[2];
	struct file *file[3]; /* two on device 0, one on device 1 */
	ssize_t result;
	u64 wrote, began_ns, ended_ns;
};

static u8 page[PAGE_SIZE];

static int fault(void *ctx, const struct io *io)
{
	const struct outage *o = ctx;

	return io->op == IO_WRITE && io->offset_bytes < o->fails_to &&
			       io->offset_bytes + io->length_bytes > o->fails_from
		       ? -EIO
		       : 0;
}

static void add_device(struct outage *o, unsigned i)
{
	struct device_config d;

	assert_int_equal(device_config_init(&d, "rate"), 0);
	d.iops = 1e9;
	d.bytes_per_s = 1e12;
	d.latency_ns = 10 * NSEC_PER_MSEC;
	assert_int_equal(device_create(&d, &o->device[i]), 0);
	assert_int_equal(engine_add_device(o->engine, o->device[i], 128, false), 0);
}

static void open_file(struct outage *o, unsigned i, unsigned device)
{
	struct inode *inode;

	assert_int_equal(inode_create(o->engine, device, PAGE_SIZE, &inode), 0);
	assert_int_equal(file_open(inode, 0, &o->file[i]), 0);
}

static void outage_main(void *arg)
{
	struct outage *o = arg;
	struct engine_config c = { .memory_bytes = o->memory_pages * PAGE_SIZE,
				   .contents = true,
				   .policy = o->policy };
	char why[256] = "";

	vm_settings_init(&c.vm);
	c.vm.dirty_bytes = o->dirty_pages * PAGE_SIZE;
	c.vm.dirty_background_bytes = c.vm.dirty_bytes / 2;
	c.vm.retry_max_ms = RETRY_MAX_NS / NSEC_PER_MSEC;
	assert_int_equal(engine_create(&c, &o->engine), 0);
	add_device(o, 0);
	add_device(o, 1);
	device_set_fault(o->device[0], fault, o);
	open_file(o, 0, 0);
	open_file(o, 1, 0);
	open_file(o, 2, 1);
	o->fn(o);
	assert_true(engine_audit(o->engine, why, sizeof(why)));
	for (unsigned i = 0; i < 3; i++)
		file_close(o->file[i]);
	assert_int_equal(engine_destroy(o->engine), 0);
	device_destroy(o->device[0]);
	device_destroy(o->device[1]);
}

static void run(const char *policy, u64 dirty_pages, u64 memory_pages, void (*fn)(struct outage *o))
{
	struct outage o = { .policy = *policy_find(policy),
			    .dirty_pages = dirty_pages,
			    .memory_pages = memory_pages,
			    .fn = fn };
	char why[256] = "";
	struct sim_config c;
	struct world *w;

	sim_config_init(&c);
	w = sim_create(&c);
	assert_non_null(w);
	assert_int_equal(sim_run(w, outage_main, &o, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	sim_destroy(w);
}

static void in_each_policy(u64 dirty_pages, u64 memory_pages, void (*fn)(struct outage *o))
{
	for (size_t i = 0; policy_preset(i); i++)
		run(policy_preset(i)->name, dirty_pages, memory_pages, fn);
}

/* Writes pages of the file one after the other, as a task, until that fails. */
static void write_until_failure(void *arg)
{
	struct outage *o = arg;

	o->began_ns = world_now();
	do
		o->result = file_pwrite(o->file[0], page, PAGE_SIZE, o->wrote * PAGE_SIZE);
	while (o->result == PAGE_SIZE && ++o->wrote < 10000);
	o->ended_ns = world_now();
	engine_task_exit(o->engine);
}

static u64 time_to_write(struct outage *o, unsigned file, u64 pages)
{
	u64 start = world_now();

	for (u64 i = 0; i < pages; i++)
		assert_int_equal(file_pwrite(o->file[file], page, PAGE_SIZE, i * PAGE_SIZE),
				 PAGE_SIZE);
	return world_now() - start;
}

static void fail_all(struct outage *o)
{
	struct task *writer;

	o->fails_from = 0;
	o->fails_to = ~0ull;
	writer = world_spawn("writer", write_until_failure, o);
	assert_non_null(writer);
	world_join(writer);
}

/* How many pages another task could write before it got the error. */
static u64 write_until_refused(struct outage *o, unsigned file, u64 at)
{
	u64 n = 0;
	ssize_t rc;

	while ((rc = file_pwrite(o->file[file], page, PAGE_SIZE, (at + n) * PAGE_SIZE)) > 0)
		n++;
	assert_int_equal(rc, -EIO);
	return n;
}

static void writers_are_told(struct outage *o)
{
	u64 start;

	fail_all(o);
	assert_int_equal(o->result, -EIO);
	assert_in_range(o->wrote, LIMIT_PAGES / 4, 2 * LIMIT_PAGES);
	assert_in_range(o->ended_ns - o->began_ns, RETRY_MAX_NS, HOPELESS_NS);
	/* from now on others, too, without a sleep, and those of other files of the device */
	start = world_now();
	assert_in_range(write_until_refused(o, 0, o->wrote), 0, LIMIT_PAGES);
	assert_in_range(write_until_refused(o, 1, 0), 0, LIMIT_PAGES);
	assert_in_range(world_now() - start, 0, NSEC_PER_SEC);
	/* the device comes back: all is well after the next attempt */
	o->fails_to = 0;
	world_sleep_until(world_now() + RETRY_MAX_NS + NSEC_PER_SEC);
	assert_int_equal(inode_error(file_inode(o->file[0])), 0);
	assert_int_equal(file_pwrite(o->file[0], page, PAGE_SIZE, 0), PAGE_SIZE);
	assert_int_equal(file_fsync(o->file[0], false), 0);
	time_to_write(o, 0, 4 * LIMIT_PAGES);
}

static void test_writers_are_told(void **state)
{
	(void)state;
	in_each_policy(LIMIT_PAGES, 4096, writers_are_told);
}

/* Before it is beyond hope, too: others see nothing of what failed. */
static void others_go_on(struct outage *o)
{
	struct task *writer;
	u64 healthy = time_to_write(o, 2, 1000), ill;

	assert_int_equal(file_fsync(o->file[2], false), 0);
	o->fails_to = ~0ull;
	writer = world_spawn("writer", write_until_failure, o);
	assert_non_null(writer);
	world_sleep_until(world_now() + NSEC_PER_SEC / 2);
	assert_int_equal(o->result, PAGE_SIZE); /* it sleeps */
	ill = time_to_write(o, 2, 1000);
	assert_in_range(ill, 0, 2 * healthy);
	world_join(writer);
	assert_int_equal(o->result, -EIO);
	ill = time_to_write(o, 2, 1000);
	assert_in_range(ill, 0, 2 * healthy);
	assert_int_equal(file_fsync(o->file[2], false), 0);
	o->fails_to = 0;
}

static void test_others_go_on(void **state)
{
	(void)state;
	in_each_policy(LIMIT_PAGES, 4096, others_go_on);
}

/* Part of a device fails: files that do not lie there go on, past writers that wait. */
static void other_files_go_on(struct outage *o)
{
	struct task *writer;

	o->fails_from = 1u << 20;
	o->fails_to = ~0ull;
	o->wrote = 512; /* from 2 MiB on */
	writer = world_spawn("writer", write_until_failure, o);
	assert_non_null(writer);
	world_sleep_until(world_now() + NSEC_PER_SEC / 2);
	assert_int_equal(o->result, PAGE_SIZE);
	for (unsigned i = 0; i < 20; i++) {
		assert_in_range(time_to_write(o, 1, 200), 0, 10 * NSEC_PER_SEC);
		assert_int_equal(file_fsync(o->file[1], false), 0);
	}
	world_join(writer);
	assert_int_equal(o->result, -EIO);
	time_to_write(o, 1, 200);
	assert_int_equal(file_fsync(o->file[1], false), 0);
	assert_int_equal(inode_error(file_inode(o->file[0])), -EIO);
	o->fails_to = 0;
}

static void test_other_files_go_on(void **state)
{
	(void)state;
	in_each_policy(LIMIT_PAGES, 4096, other_files_go_on);
}

/* What is given up is owed no more. */
static void given_up(struct outage *o)
{
	fail_all(o);
	assert_int_equal(o->result, -EIO);
	assert_int_equal(inode_forget(file_inode(o->file[0])), 0);
	o->fails_to = 0;
	world_sleep_until(world_now() + NSEC_PER_SEC);
	time_to_write(o, 0, 4 * LIMIT_PAGES);
	assert_int_equal(file_fsync(o->file[0], false), 0);
	/* and one whose data was cut off */
	fail_all(o);
	assert_int_equal(file_truncate(o->file[0], 0), 0);
	o->fails_to = 0;
	world_sleep_until(world_now() + NSEC_PER_SEC);
	time_to_write(o, 0, 4 * LIMIT_PAGES);
}

static void test_given_up(void **state)
{
	(void)state;
	in_each_policy(LIMIT_PAGES, 4096, given_up);
}

/* The limit lets all memory be dirty: who then needs some has an end to his wait. */
static void memory_is_full(struct outage *o)
{
	u64 start;
	ssize_t rc;

	fail_all(o);
	assert_true(o->result == -EIO || o->result == -ENOMEM);
	assert_in_range(o->ended_ns - o->began_ns, 0, 10 * HOPELESS_NS);
	start = world_now();
	rc = file_pwrite(o->file[2], page, PAGE_SIZE, 0);
	assert_true(rc == PAGE_SIZE || rc == -ENOMEM);
	assert_in_range(world_now() - start, 0, 10 * NSEC_PER_SEC);
	o->fails_to = 0;
	assert_int_equal(file_fsync(o->file[0], false), 0);
	time_to_write(o, 2, 100);
}

static void test_memory_is_full(void **state)
{
	(void)state;
	in_each_policy(1000, 256, memory_is_full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writers_are_told),  cmocka_unit_test(test_others_go_on),
		cmocka_unit_test(test_other_files_go_on), cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_memory_is_full),
	};

	return cmocka_run_group_tests_name("outage", tests, NULL, NULL);
}
