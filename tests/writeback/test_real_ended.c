// SPDX-License-Identifier: MIT
/* What threads of the program leave unpaid when they end is asked of those that follow (5.1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "file/file.h"
#include <cmocka.h>
#include <pthread.h>

#define LOCAL_DIRTIED 0 /* of throttle.c */

static struct engine *engine;
static struct inode *inode;

static void dirty(u64 page, u64 n)
{
	static const char bytes[4096];
	struct file *f;

	assert_int_equal(file_open(inode, 0, &f), 0);
	for (u64 i = page; i < page + n; i++)
		assert_int_equal(file_pwrite(f, bytes, 4096, i * 4096), 4096);
	file_close(f);
}

static void *dirty_20(void *unused)
{
	(void)unused;
	dirty(0, 20);
	return NULL;
}

static void *dirty_1(void *unused)
{
	u64 *dirtied = world_local(LOCAL_DIRTIED);

	(void)unused;
	assert_int_equal(*dirtied, 0);
	dirty(100, 1);
	assert_int_equal(*dirtied, 21); /* its own, and what was left */
	dirty(101, 1);
	assert_int_equal(*dirtied, 22); /* which is taken once */
	return NULL;
}

static void *pay(void *unused)
{
	u64 *dirtied = world_local(LOCAL_DIRTIED);

	(void)unused;
	dirty(102, 1);
	assert_int_equal(*dirtied, 23);
	engine_task_exit(engine);
	assert_int_equal(*dirtied, 0);
	return NULL;
}

static void run(void *(*fn)(void *arg))
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, fn, NULL), 0);
	pthread_join(t, NULL);
}

static void test_unpaid_pages_are_passed_on(void **state)
{
	struct engine_config config = { .memory_bytes = 64 << 20,
					.contents = true,
					.policy = *policy_find("linux-7.4") };
	struct device_config memory;
	struct device *device;

	(void)state;
	vm_settings_init(&config.vm);
	assert_int_equal(device_config_init(&memory, "memory"), 0);
	assert_int_equal(device_create(&memory, &device), 0);
	assert_int_equal(engine_create(&config, &engine), 0);
	assert_int_equal(engine_add_device(engine, device, 128, false), 0);
	assert_int_equal(inode_create(engine, 0, 4096, &inode), 0);
	run(dirty_20);
	run(dirty_1);
	run(pay);
	inode_destroy(inode);
	assert_int_equal(engine_destroy(engine), 0);
	device_destroy(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_unpaid_pages_are_passed_on) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
