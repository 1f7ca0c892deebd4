/* SPDX-License-Identifier: MIT */
/*
 * Errors with a memory: what fsync says of data that could not be written, when it is tried again,
 * and how Linux does it. Writes fail here with the device answering as usual, after 10 ms.
 */
#include "fault_rig.h"

static void run(const char *policy, enum policy_errors errors, void (*fn)(struct rig *r))
{
	struct rig r = rig_init(policy, fn);

	r.policy.errors = errors;
	rig_run(&r);
}

static struct file *open_another(struct rig *r)
{
	struct file *f;

	assert_int_equal(file_open(r->inode, 0, &f), 0);
	return f;
}

/* Makes a page dirty and its write-out fail, with nobody told. */
static void fail_one_page(struct rig *r)
{
	rig_write(r, 1, 0, PAGE_SIZE);
	r->fail_writes = true;
	rig_launch(r);
	rig_sleep(2 * RIG_IO_NS);
}

static void again_and_again(struct rig *r)
{
	fail_one_page(r);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(file_fsync(r->file, false), -EIO);
	assert_int_equal(inode_error(r->inode), -EIO);
	assert_int_equal(inode_unwritten_bytes(r->inode), PAGE_SIZE);
	rig_expect(r, 1, 0, PAGE_SIZE);
	r->fail_writes = false;
	assert_int_equal(file_fsync(r->file, false), 0);
	assert_int_equal(inode_error(r->inode), 0);
	assert_int_equal(inode_unwritten_bytes(r->inode), 0);
	rig_expect_stored(r, 1, 0, PAGE_SIZE);
}

static void test_fsync_fails_until_all_is_safe(void **state)
{
	(void)state;
	run("sluice", ERRORS_KEEP, again_and_again);
}

static void closed_before_it_failed(struct rig *r)
{
	rig_write(r, 1, 0, PAGE_SIZE);
	file_close(r->file);
	r->fail_writes = true;
	assert_int_equal(engine_sync(r->engine), -EIO);
	r->file = open_another(r);
	assert_int_equal(file_fsync(r->file, false), -EIO);
	r->fail_writes = false;
	assert_int_equal(file_fsync(r->file, false), 0);
}

static void test_opened_after_the_failure(void **state)
{
	(void)state;
	run("sluice", ERRORS_KEEP, closed_before_it_failed);
}

static void two_descriptors(struct rig *r)
{
	struct file *other = open_another(r);

	fail_one_page(r);
	assert_int_equal(file_fsync(r->file, false), -EIO);
	assert_int_equal(file_fsync(other, false), -EIO);
	assert_int_equal(engine_sync(r->engine), -EIO);
	assert_int_equal(file_fsync(r->file, false), -EIO); /* a sync takes nothing away */
	assert_int_equal(file_fsync(other, false), -EIO);
	r->fail_writes = false;
	assert_int_equal(file_fsync(other, false), 0);
	assert_int_equal(file_fsync(r->file, false), 0);
	file_close(other);
}

static void test_both_descriptors_are_told(void **state)
{
	(void)state;
	run("sluice", ERRORS_KEEP, two_descriptors);
}

static void given_up(struct rig *r)
{
	rig_write(r, 1, 0, PAGE_SIZE);
	assert_int_equal(file_fsync(r->file, false), 0);
	rig_write(r, 2, 0, PAGE_SIZE);
	r->fail_writes = true;
	assert_int_equal(file_fsync(r->file, false), -EIO);
	assert_int_equal(inode_forget(r->inode), 0);
	assert_int_equal(inode_error(r->inode), 0);
	assert_int_equal(file_fsync(r->file, false), 0);
	rig_expect(r, 1, 0, PAGE_SIZE);
	r->fail_writes = false;
}

static void test_data_given_up_is_no_error(void **state)
{
	(void)state;
	run("sluice", ERRORS_KEEP, given_up);
}

static void add_shown(void *ctx, u64 offset, const void *data, u64 length)
{
	u64 *bytes = ctx;

	(void)offset;
	assert_int_equal(*(const u8 *)data, 2);
	*bytes += length;
}

/* What is given up is told when it is known: not before what is on its way has landed. */
static void given_up_on_its_way(struct rig *r)
{
	for (u32 heals = 0; heals < 2; heals++) {
		u64 bytes = 0;

		rig_write(r, 2, 0, 2 * PAGE_SIZE);
		r->fail_writes = true;
		assert_int_equal(file_fsync(r->file, false), -EIO);
		while (!ledger_level(&r->inode->m.ledger, LEVEL_IN_FLIGHT))
			rig_sleep(RIG_IO_NS / 2);
		r->fail_writes = !heals;
		assert_int_equal(inode_forget_telling(r->inode, add_shown, &bytes), 0);
		assert_int_equal(bytes, heals ? 0 : 2 * PAGE_SIZE);
		assert_int_equal(inode_unwritten_bytes(r->inode), 0);
		assert_int_equal(inode_error(r->inode), 0);
	}
	rig_expect_stored(r, 2, 0, 2 * PAGE_SIZE);
}

static void test_what_is_given_up_is_told(void **state)
{
	(void)state;
	run("sluice", ERRORS_KEEP, given_up_on_its_way);
}

/* --- pauses */

static u64 writes_so_far(struct rig *r)
{
	struct device_stats s;

	device_stats(r->device, &s);
	return s.writes;
}

/* Fails at 10 ms; tried again 100, 200, 400 and 400 ms after each failure. */
static void pauses(struct rig *r)
{
	struct vm_settings vm;

	engine_vm(r->engine, &vm);
	vm.retry_min_ms = 100;
	vm.retry_max_ms = 400;
	assert_int_equal(engine_set_vm(r->engine, &vm), 0);
	fail_one_page(r);
	assert_int_equal(writes_so_far(r), 1);
	rig_sleep(85 * NSEC_PER_MSEC); /* 105 */
	assert_int_equal(writes_so_far(r), 1);
	rig_sleep(20 * NSEC_PER_MSEC); /* 125: sent at 110, fails at 120 */
	assert_int_equal(writes_so_far(r), 2);
	rig_sleep(190 * NSEC_PER_MSEC); /* 315 */
	assert_int_equal(writes_so_far(r), 2);
	rig_sleep(20 * NSEC_PER_MSEC); /* 335: sent at 320 */
	assert_int_equal(writes_so_far(r), 3);
	rig_sleep(390 * NSEC_PER_MSEC); /* 725 */
	assert_int_equal(writes_so_far(r), 3);
	rig_sleep(20 * NSEC_PER_MSEC); /* 745: sent at 730 */
	assert_int_equal(writes_so_far(r), 4);
	rig_sleep(390 * NSEC_PER_MSEC); /* 1135: not longer than that */
	assert_int_equal(writes_so_far(r), 4);
	rig_sleep(20 * NSEC_PER_MSEC); /* 1155: sent at 1140 */
	assert_int_equal(writes_so_far(r), 5);
	assert_int_equal(inode_unwritten_bytes(r->inode), PAGE_SIZE);
	r->fail_writes = false;
	rig_sleep(420 * NSEC_PER_MSEC); /* 1575: sent at 1550, well */
	assert_int_equal(writes_so_far(r), 6);
	assert_int_equal(inode_unwritten_bytes(r->inode), 0);
	assert_int_equal(inode_error(r->inode), 0);
	rig_expect_stored(r, 1, 0, PAGE_SIZE);
	/* and the next failure begins with the shortest pause */
	fail_one_page(r);
	assert_int_equal(writes_so_far(r), 7);
	rig_sleep(120 * NSEC_PER_MSEC);
	assert_int_equal(writes_so_far(r), 8);
	r->fail_writes = false;
}

static void test_pauses_grow_and_are_bounded(void **state)
{
	(void)state;
	run("sluice", ERRORS_KEEP, pauses);
}

/* Without a pause: who waits for what fails does not wait for each new attempt, too. */
static void no_pause(struct rig *r)
{
	struct vm_settings vm;
	u64 start;

	engine_vm(r->engine, &vm);
	vm.retry_min_ms = 0;
	vm.dirty_bytes = 64 * PAGE_SIZE;
	vm.dirty_background_bytes = PAGE_SIZE;
	assert_int_equal(engine_set_vm(r->engine, &vm), 0);
	r->fail_writes = true;
	for (unsigned i = 0; i < 32; i += 2)
		rig_write(r, 1, i * PAGE_SIZE, PAGE_SIZE);
	rig_sleep(RIG_IO_NS / 2);
	start = world_now();
	assert_int_equal(file_fsync(r->file, false), -EIO);
	assert_in_range(world_now() - start, 0, 100 * RIG_IO_NS);
	assert_int_equal(engine_sync(r->engine), -EIO);
	assert_in_range(world_now() - start, 0, 200 * RIG_IO_NS);
	r->fail_writes = false;
}

static void test_syncs_end_without_pauses_too(void **state)
{
	static const char *const policies[] = { "sluice", "linux-7.4" };

	(void)state;
	for (u32 depth = 1; depth <= 32; depth *= 2) {
		for (unsigned i = 0; i < 2; i++) {
			struct rig r = rig_init(policies[i], no_pause);

			r.policy.errors = ERRORS_KEEP;
			r.queue_depth = depth;
			rig_run(&r);
		}
	}
}

static void show(void *ctx, struct inode *inode, u64 offset, u64 length, int error)
{
	u64 *seen = ctx;

	assert_int_equal(error, -EIO);
	assert_int_equal(inode_size(inode), 20 * PAGE_SIZE);
	seen[seen[0] * 2 + 1] = offset;
	seen[seen[0] * 2 + 2] = length;
	seen[0]++;
}

static void unsafe_is_shown(struct rig *r)
{
	struct engine_stats stats;
	u64 seen[9] = { 0 };

	rig_write(r, 1, 0, 20 * PAGE_SIZE);
	assert_int_equal(file_fsync(r->file, false), 0);
	engine_show_unsafe(r->engine, show, seen);
	assert_int_equal(seen[0], 0);
	rig_write(r, 2, PAGE_SIZE, 2 * PAGE_SIZE);
	rig_write(r, 2, 10 * PAGE_SIZE, PAGE_SIZE);
	r->fail_writes = true;
	assert_int_equal(file_fsync(r->file, false), -EIO);
	engine_show_unsafe(r->engine, show, seen);
	assert_int_equal(seen[0], 2);
	assert_int_equal(seen[1], PAGE_SIZE);
	assert_int_equal(seen[2], 2 * PAGE_SIZE);
	assert_int_equal(seen[3], 10 * PAGE_SIZE);
	assert_int_equal(seen[4], PAGE_SIZE);
	engine_stats(r->engine, &stats);
	assert_int_equal(stats.write_failures, 2);
	r->fail_writes = false;
	assert_int_equal(file_fsync(r->file, false), 0);
	seen[0] = 0;
	engine_show_unsafe(r->engine, show, seen);
	assert_int_equal(seen[0], 0);
}

static void test_what_is_unsafe_is_shown(void **state)
{
	(void)state;
	run("sluice", ERRORS_KEEP, unsafe_is_shown);
}

/* --- Linux */

static void linux_tells_once(struct rig *r)
{
	struct file *other = open_another(r), *late;

	fail_one_page(r);
	r->fail_writes = false;
	assert_int_equal(inode_unwritten_bytes(r->inode), 0); /* clean, though not written */
	rig_expect(r, 1, 0, PAGE_SIZE);
	late = open_another(r); /* nobody was told yet */
	assert_int_equal(file_fsync(r->file, false), -EIO);
	assert_int_equal(file_fsync(r->file, false), 0);
	assert_int_equal(file_fsync(other, false), -EIO);
	assert_int_equal(file_fsync(other, false), 0);
	assert_int_equal(file_fsync(late, false), -EIO);
	file_close(late);
	late = open_another(r); /* now somebody was */
	assert_int_equal(file_fsync(late, false), 0);
	assert_int_equal(engine_drop_caches(r->engine), 1);
	rig_expect(r, 0, 0, PAGE_SIZE); /* what was on the device: nothing */
	file_close(late);
	file_close(other);
}

static void test_linux_tells_each_file_once(void **state)
{
	(void)state;
	run("linux-7.4", ERRORS_LINUX, linux_tells_once);
}

static void linux_tells_of_each_failure(struct rig *r)
{
	fail_one_page(r);
	assert_int_equal(file_fsync(r->file, false), -EIO);
	fail_one_page(r);
	assert_int_equal(file_sync_range(r->file, 0, 0, FILE_WAIT_AFTER), -EIO);
	assert_int_equal(file_fsync(r->file, false), 0);
	rig_write(r, 1, 0, PAGE_SIZE);
	assert_int_equal(
		file_pwritev(r->file, &(struct iovec){ r->buf, PAGE_SIZE }, 1, 0, FILE_IO_DSYNC),
		-EIO);
	r->fail_writes = false;
	assert_int_equal(file_fsync(r->file, false), 0);
	rig_expect_sound(r);
}

static void test_linux_tells_of_each_failure(void **state)
{
	(void)state;
	run("linux-6.1", ERRORS_LINUX, linux_tells_of_each_failure);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fsync_fails_until_all_is_safe),
		cmocka_unit_test(test_opened_after_the_failure),
		cmocka_unit_test(test_both_descriptors_are_told),
		cmocka_unit_test(test_data_given_up_is_no_error),
		cmocka_unit_test(test_what_is_given_up_is_told),
		cmocka_unit_test(test_pauses_grow_and_are_bounded),
		cmocka_unit_test(test_syncs_end_without_pauses_too),
		cmocka_unit_test(test_what_is_unsafe_is_shown),
		cmocka_unit_test(test_linux_tells_each_file_once),
		cmocka_unit_test(test_linux_tells_of_each_failure),
	};

	return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
