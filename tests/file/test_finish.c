// SPDX-License-Identifier: MIT
/* The engine as a whole: syncs that can be watched and left, other limits, what an end tells. */
#include "rig.h"

static u64 debt(struct rig *r)
{
	struct engine_stats s;

	engine_stats(r->e, &s);
	return s.debt + s.in_flight;
}

/* --- sync with progress */

struct watcher {
	struct rig *r;
	u32 calls, stop_at;
	u64 last, first, last_ns, longest_ns;
};

static int watch(void *ctx, u64 pages)
{
	struct watcher *w = ctx;
	u64 now = world_now();

	assert_int_equal(pages, debt(w->r));
	if (!w->calls)
		w->first = pages;
	else
		assert_true(pages <= w->last);
	if (w->calls)
		w->longest_ns = max_u64(w->longest_ns, now - w->last_ns);
	w->last = pages;
	w->last_ns = now;
	return ++w->calls == w->stop_at ? 7 : 0;
}

/* 4 MiB at 4 MiB/s. */
static struct rig *slow_rig(struct file **f)
{
	struct rig *r = rig_new("sluice", 64 * MIB);

	r->device_config.bytes_per_s = 4.0 * MIB;
	rig_start(r);
	*f = rig_file(rig_inode(r, 4096), 0);
	rig_write(*f, 0, 4 * MIB, 1);
	return r;
}

RIG_TEST(test_progress)
{
	struct file *f;
	struct rig *r = slow_rig(&f);
	struct watcher w = { .r = r };

	assert_int_equal(engine_sync_progress(r->e, watch, &w), 0);
	assert_int_equal(w.first, 1024);
	assert_int_equal(w.last, 0);
	assert_in_range(w.calls, 45, 60);
	assert_true(w.longest_ns <= 25 * NSEC_PER_MSEC);
	rig_expect_stored(f->inode, 0, 4 * MIB, 1);
	/* nothing to do: still told, at the start and the end */
	w = (struct watcher){ .r = r };
	assert_int_equal(engine_sync_progress(r->e, watch, &w), 0);
	assert_in_range(w.calls, 2, 3);
	rig_end(r, f);
}

RIG_TEST(test_progress_left)
{
	struct file *f;
	struct rig *r = slow_rig(&f);
	struct watcher w = { .r = r, .stop_at = 3 };
	u64 start = world_now();

	assert_int_equal(engine_sync_progress(r->e, watch, &w), 7);
	assert_int_equal(w.calls, 3);
	assert_true(world_now() - start <= 50 * NSEC_PER_MSEC);
	assert_true(debt(r) > 900);
	w = (struct watcher){ .r = r, .stop_at = 1 };
	assert_int_equal(engine_sync_progress(r->e, watch, &w), 7);
	/* what has been started goes on */
	world_sleep_until(start + 1200 * NSEC_PER_MSEC);
	assert_int_equal(debt(r), 0);
	rig_write(f, 0, 4 * MIB, 2);
	w = (struct watcher){ .r = r, .stop_at = 2 };
	assert_int_equal(engine_sync_progress(r->e, watch, &w), 7);
	rig_drop(f);
	rig_close(r); /* in the midst of it */
}

RIG_TEST(test_progress_failure)
{
	struct file *f;
	struct rig *r = slow_rig(&f);
	struct watcher w = { .r = r };

	r->write_error = -EIO;
	r->failures = 1;
	assert_int_equal(engine_sync_progress(r->e, watch, &w), -EIO);
	assert_true(w.last > 0);
	w = (struct watcher){ .r = r };
	assert_int_equal(engine_sync_progress(r->e, watch, &w), 0);
	assert_int_equal(w.last, 0);
	rig_end(r, f);
}

static void sync_main(void *arg)
{
	assert_int_equal(engine_sync(arg), 0);
}

/* Files can be made, opened and destroyed while a sync waits for others. */
RIG_TEST(test_sync_holds_nobody_up)
{
	struct file *f, *g;
	struct rig *r = slow_rig(&f);
	struct task *task = world_spawn("sync", sync_main, r->e);
	u64 start;

	world_sleep_until(world_now() + 100 * NSEC_PER_MSEC);
	start = world_now();
	g = rig_file(rig_inode(r, 4096), 0);
	rig_write(g, 0, 4096, 1);
	rig_audit(r);
	rig_drop(g);
	assert_int_equal(world_now(), start);
	rig_drop(f); /* which it waits for */
	world_join(task);
	rig_close(r);
}

/* --- limits */

RIG_TEST(test_other_limits)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct vm_settings vm, was;
	struct engine_stats s;

	engine_vm(r->e, &was);
	assert_int_equal(was.dirty_ratio, 20);
	assert_int_equal(was.dirty_expire_centisecs, 3000);
	rig_write(f, 0, 4 * MIB, 1); /* less than a tenth of 64 MiB */
	world_sleep_until(world_now() + NSEC_PER_SEC);
	assert_int_equal(debt(r), 1024);

	vm = was;
	vm.dirty_ratio = 101;
	assert_int_equal(engine_set_vm(r->e, &vm), -EINVAL);
	vm = was;
	vm.dirty_background_ratio = 101;
	assert_int_equal(engine_set_vm(r->e, &vm), -EINVAL);
	vm = was;
	vm.dirty_bytes = 4096;
	assert_int_equal(engine_set_vm(r->e, &vm), -EINVAL);
	engine_vm(r->e, &vm);
	assert_memory_equal(&vm, &was, sizeof(vm));

	vm.dirty_background_bytes = MIB;
	vm.dirty_bytes = 2 * MIB;
	assert_int_equal(engine_set_vm(r->e, &vm), 0);
	world_sleep_until(world_now() + NSEC_PER_SEC);
	assert_true(debt(r) <= 256); /* the flusher was woken, and knows the new threshold */
	engine_stats(r->e, &s);
	assert_int_equal(s.thresh, 512);
	assert_int_equal(s.background_thresh, 256);
	assert_int_equal(s.dirty_limit, 512);
	/* periodic work can be had, and not */
	assert_int_equal(file_fsync(f, false), 0);
	vm.dirty_writeback_centisecs = 0;
	assert_int_equal(engine_set_vm(r->e, &vm), 0);
	rig_write(f, 0, 4096, 2);
	world_sleep_until(world_now() + 60 * NSEC_PER_SEC);
	assert_int_equal(debt(r), 1);
	vm.dirty_writeback_centisecs = 100;
	vm.dirty_expire_centisecs = 100;
	assert_int_equal(engine_set_vm(r->e, &vm), 0);
	world_sleep_until(world_now() + 3 * NSEC_PER_SEC);
	assert_int_equal(debt(r), 0);
	rig_end(r, f);
}

/* --- losses */

struct told {
	u32 calls;
	void *owner;
	u64 bytes;
	int error;
};

static void tell(void *ctx, struct inode *inode, u64 bytes, int error)
{
	struct told *t = ctx;

	t->calls++;
	t->owner = inode_owner(inode);
	t->bytes = bytes;
	t->error = error;
	assert_int_equal(inode_unwritten_bytes(inode), bytes);
}

static void end(struct rig *r, struct engine_losses *losses, int rc)
{
	assert_int_equal(engine_destroy_telling(r->e, losses), rc);
	device_destroy(r->d);
	free(r);
}

RIG_TEST(test_losses)
{
	struct rig *r = rig_open("sluice");
	struct file *good = rig_file(rig_inode(r, 4096), 0);
	struct file *bad = rig_file(rig_inode(r, 512), 0);
	struct told told = { 0 };
	struct engine_losses losses = { .lost = tell, .ctx = &told, .bytes = 5 };

	rig_write(good, 0, 100000, 1);
	assert_int_equal(file_fsync(good, false), 0);
	rig_write(bad, 0, 10000, 1);
	inode_set_owner(bad->inode, &told);
	file_close(good);
	file_close(bad);
	r->write_error = -ENOSPC;
	r->failures = UINT32_MAX;
	end(r, &losses, -ENOSPC);
	assert_int_equal(told.calls, 1);
	assert_ptr_equal(told.owner, &told);
	assert_int_equal(told.bytes, 3 * 4096);
	assert_int_equal(told.error, -ENOSPC);
	assert_int_equal(losses.files, 1);
	assert_int_equal(losses.bytes, 5 + 3 * 4096);
	assert_int_equal(losses.error, -ENOSPC);
}

RIG_TEST(test_no_losses)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct told told = { 0 };
	struct engine_losses losses = { .lost = tell, .ctx = &told };

	rig_write(f, 0, 100000, 1);
	file_close(f);
	r->write_error = -EIO;
	r->failures = 0;
	end(r, &losses, 0);
	assert_int_equal(told.calls, 0);
	assert_int_equal(losses.files, 0);
	assert_int_equal(losses.error, 0);
}

static void add_shown(void *ctx, u64 offset, const void *data, u64 length)
{
	struct told *t = ctx;

	assert_int_equal(((const u8 *)data)[length - 1], rig_byte(offset + length - 1, 1));
	t->bytes += length;
}

static void tell_what(void *ctx, struct inode *inode, u64 bytes, int error)
{
	struct told *t = ctx;

	t->calls++;
	t->error = error;
	assert_int_equal(bytes, 3 * 4096);
	inode_show_unwritten(inode, add_shown, t);
}

struct refusing {
	struct store *store;
	u32 refusals;
};

static int refuse(void *ctx, const struct io *io)
{
	struct refusing *r = ctx;

	if (io->store != r->store || io->op != IO_WRITE || !r->refusals)
		return 0;
	r->refusals--;
	return -EFBIG;
}

static u64 answer_late(void *ctx, const struct io *io)
{
	const struct refusing *r = ctx;

	return (io->store == r->store ? 20 : 150) * NSEC_PER_MSEC;
}

/*
 * An end while the flusher tries again all the time, so that what was refused is mostly on its way
 * once more: after `refusals` the device takes it.
 */
static void end_while_trying(u64 after_ns, u32 refusals)
{
	struct rig *r = rig_new("sluice", 64 * MIB);
	struct told told = { 0 };
	struct engine_losses losses = { .lost = tell_what, .ctx = &told };
	struct refusing refusing;
	struct file *f, *others[2];
	int rc;

	r->config.vm.retry_min_ms = r->config.vm.retry_max_ms = 1;
	rig_start(r);
	others[0] = rig_file(rig_inode(r, 4096), 0);
	f = rig_file(rig_inode(r, 512), 0);
	others[1] = rig_file(rig_inode(r, 4096), 0);
	refusing = (struct refusing){ inode_store(f->inode), refusals };
	device_set_fault(r->d, refuse, &refusing);
	device_set_delay(r->d, answer_late, &refusing);
	rig_write(f, 0, 10000, 1);
	file_sync_range(f, 0, 0, FILE_WRITE);
	file_close(f);
	world_sleep_until(world_now() + after_ns);
	for (u32 i = 0; i < 2; i++) { /* which are waited for meanwhile */
		rig_write(others[i], 0, 4096, 1);
		file_close(others[i]);
	}
	rc = engine_destroy_telling(r->e, &losses);
	assert_int_equal(rc, told.calls ? -EFBIG : 0);
	assert_int_equal(losses.error, rc);
	assert_int_equal(told.error, rc);
	assert_int_equal(told.bytes, rc ? 10000 : 0);
	if (refusals == UINT32_MAX)
		assert_int_equal(rc, -EFBIG);
	device_destroy(r->d);
	free(r);
}

RIG_TEST(test_losses_of_what_is_tried_again)
{
	for (u64 ms = 0; ms < 60; ms += 3) {
		end_while_trying(ms * NSEC_PER_MSEC, UINT32_MAX);
		for (u32 refusals = 1; refusals < 8; refusals++)
			end_while_trying(ms * NSEC_PER_MSEC, refusals);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_progress_left),
		cmocka_unit_test(test_progress_failure),
		cmocka_unit_test(test_sync_holds_nobody_up),
		cmocka_unit_test(test_other_limits),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_no_losses),
		cmocka_unit_test(test_losses_of_what_is_tried_again),
	};

	return cmocka_run_group_tests_name("finish", tests, NULL, NULL);
}
