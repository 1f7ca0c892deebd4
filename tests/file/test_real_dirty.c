// SPDX-License-Identifier: MIT
/*
 * Real threads write far more than there is memory, with limits that let all of it become dirty:
 * then only write-out makes room, and it allocates none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "file/inner.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define MIB     (1ull << 20)
#define THREADS 3
#define BYTES   (8 * MIB) /* by each */

static struct engine *engine;
static struct device *device;
static _Atomic u64 most_dirty;

static void look(void)
{
	struct engine_stats s;
	u64 most = atomic_load(&most_dirty);

	engine_stats(engine, &s);
	while (s.debt + s.in_flight > most &&
	       !atomic_compare_exchange_weak(&most_dirty, &most, s.debt + s.in_flight))
		;
}

/* Writes in steps of a size that differs between threads; reads all of it back. */
static void writer(void *arg)
{
	u64 id = (u64)(uintptr_t)arg, step = (4ull << (4 * id)) * 1024;
	struct inode *inode;
	struct file *f;
	u8 *buf = malloc(step);

	assert_non_null(buf);
	assert_int_equal(inode_create(engine, 0, PAGE_SIZE, &inode), 0);
	assert_int_equal(file_open(inode, 0, &f), 0);
	for (u64 at = 0; at < BYTES; at += step) {
		memset(buf, (int)(at / step % 251 + id), step);
		assert_int_equal(file_pwrite(f, buf, step, at), step);
		look();
	}
	for (u64 at = 0; at < BYTES; at += step) {
		assert_int_equal(file_pread(f, buf, step, at), step);
		assert_int_equal(buf[0], at / step % 251 + id);
		assert_int_equal(buf[step - 1], at / step % 251 + id);
	}
	engine_task_exit(engine);
	file_close(f);
	free(buf);
}

static void test_more_dirty_than_memory(void **state)
{
	struct engine_config c = { .memory_bytes = MIB,
				   .contents = true,
				   .policy = *policy_find("sluice") };
	struct device_config d;
	struct task *t[THREADS];
	struct engine_stats s;
	char why[256] = "";

	(void)state;
	vm_settings_init(&c.vm);
	c.vm.dirty_ratio = 100;
	c.vm.dirty_background_ratio = 99;
	assert_int_equal(device_config_init(&d, "memory"), 0);
	assert_int_equal(device_create(&d, &device), 0);
	assert_int_equal(engine_create(&c, &engine), 0);
	assert_int_equal(engine_add_device(engine, device, 128, false), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		t[i] = world_spawn("writer", writer, (void *)(uintptr_t)i);
		assert_non_null(t[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		world_join(t[i]);
	assert_true(most_dirty > c.memory_bytes / PAGE_SIZE / 2);
	assert_int_equal(engine_sync(engine), 0);
	engine_stats(engine, &s);
	assert_int_equal(s.debt + s.in_flight + s.pinned, 0);
	assert_int_equal(s.pages_written, s.pages_dirtied);
	if (!engine_audit(engine, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(engine_destroy(engine), 0);
	device_destroy(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_more_dirty_than_memory),
	};

	return cmocka_run_group_tests_name("real_dirty", tests, NULL, NULL);
}
