// SPDX-License-Identifier: MIT
/* Real threads read and write while the cache they do it in grows and shrinks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "file/inner.h"
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#define THREADS 3
#define PAGES   1024 /* of each thread's file */
#define STEPS   6000
#define RESIZES 60
#define MIB     (1ull << 20)

static struct engine *engine;
static struct device *device;
static _Atomic u32 running;

/* Each owns a file, writes stamps and reads back what he wrote. */
static void user(void *arg)
{
	struct rng r;
	struct inode *inode;
	struct file *f;
	static _Thread_local u8 buf[16 * PAGE_SIZE];
	u8 stamp[PAGES] = { 0 };

	rng_init(&r, (u64)(uintptr_t)arg);
	assert_int_equal(inode_create(engine, 0, PAGE_SIZE, &inode), 0);
	assert_int_equal(file_open(inode, 0, &f), 0);
	for (unsigned i = 0; i < STEPS; i++) {
		u64 n = 1 + rng_below(&r, 16), page = rng_below(&r, PAGES - n + 1);
		ssize_t length = (ssize_t)(n * PAGE_SIZE), got;

		if (rng_below(&r, 2)) {
			u8 byte = (u8)(1 + rng_below(&r, 255));

			memset(buf, byte, (size_t)length);
			assert_int_equal(file_pwrite(f, buf, (size_t)length, page * PAGE_SIZE),
					 length);
			memset(stamp + page, byte, n);
			continue;
		}
		got = file_pread(f, buf, (size_t)length, page * PAGE_SIZE);
		assert_true(got >= 0 && got <= length);
		for (u64 p = 0; p < (u64)got / PAGE_SIZE; p++) {
			assert_int_equal(buf[p * PAGE_SIZE], stamp[page + p]);
			assert_int_equal(buf[p * PAGE_SIZE + PAGE_SIZE - 1], stamp[page + p]);
		}
	}
	engine_task_exit(engine);
	file_close(f);
	atomic_fetch_sub(&running, 1);
}

/* Sizes from a third of what the files take to all of it, until the users have ended. */
static void test_reads_and_writes_while_it_changes_its_size(void **state)
{
	struct engine_config c = { .memory_bytes = 4 * MIB,
				   .max_memory_bytes = 16 * MIB,
				   .contents = true,
				   .policy = *policy_find("sluice") };
	struct device_config d;
	struct task *t[THREADS];
	struct engine_memory use;
	char why[256] = "";
	struct rng r;
	u64 left = 0;

	(void)state;
	vm_settings_init(&c.vm);
	assert_int_equal(device_config_init(&d, "memory"), 0);
	assert_int_equal(device_create(&d, &device), 0);
	assert_int_equal(engine_create(&c, &engine), 0);
	assert_int_equal(engine_add_device(engine, device, 128, false), 0);
	running = THREADS;
	for (unsigned i = 0; i < THREADS; i++) {
		t[i] = world_spawn("user", user, (void *)(uintptr_t)(i + 1));
		assert_non_null(t[i]);
	}
	rng_init(&r, 99);
	for (unsigned i = 0; i < RESIZES || running; i++) {
		u64 pages = 1024 + rng_below(&r, 3073);
		int rc = engine_resize(engine, pages * PAGE_SIZE, 100 * NSEC_PER_MSEC, &left);

		assert_true(!rc || (rc == -EAGAIN && left));
	}
	for (unsigned i = 0; i < THREADS; i++)
		world_join(t[i]);
	assert_int_equal(engine_resize(engine, 2 * MIB, 10 * NSEC_PER_SEC, &left), 0);
	engine_memory(engine, &use);
	assert_in_range(use.arena_bytes, 0, 2 * MIB);
	assert_int_equal(use.stuck_bytes, 0);
	assert_int_equal(engine_sync(engine), 0);
	if (!engine_audit(engine, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(engine_destroy(engine), 0);
	device_destroy(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_and_writes_while_it_changes_its_size),
	};

	return cmocka_run_group_tests_name("real_resize", tests, NULL, NULL);
}
