// SPDX-License-Identifier: MIT
/*
 * fsync and sync, and write-out that fails: data stays dirty, everybody who asks is told, and is
 * told until it is safe.
 */
#include "rig.h"

RIG_TEST(test_fsync_writes_the_dirty_blocks_and_waits)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB);

	rig_write(f, 0, 4 * KIB, 2);
	rig_write(f, 8 * KIB, 8 * KIB, 2);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(r->logged, 2);
	rig_expect_io(r, 0, IO_WRITE, 0, 4 * KIB);
	rig_expect_io(r, 1, IO_WRITE, 8 * KIB, 8 * KIB);
	rig_expect_stored(f->inode, 0, 4 * KIB, 2);
	rig_expect_stored(f->inode, 4 * KIB, 4 * KIB, 1);
	rig_expect_stored(f->inode, 8 * KIB, 8 * KIB, 2);
	assert_int_equal(ledger_level(&f->inode->m.ledger, LEVEL_PINNED), 0);
	r->logged = 0;
	assert_int_equal(file_fsync(f, true), 0);
	assert_int_equal(r->logged, 0); /* nothing is left to do */
	rig_end(r, f);
}

/* One failure: the first fsync tells, the second writes again and then it is well. */
RIG_TEST(test_a_failed_fsync_can_be_repeated)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB);

	rig_write(f, 0, 64 * KIB, 2);
	r->write_error = -EIO;
	r->failures = 1;
	assert_int_equal(file_fsync(f, false), -EIO);
	rig_expect_stored(f->inode, 0, 64 * KIB, 1);
	assert_int_equal(ledger_level(&f->inode->m.ledger, LEVEL_DEBT), 16); /* still owed */
	assert_int_equal(engine_drop_caches(r->e), 0); /* and so it cannot be lost */
	rig_expect_bytes(f, 0, 64 * KIB, 2);
	assert_int_equal(file_fsync(f, false), 0);
	rig_expect_stored(f->inode, 0, 64 * KIB, 2);
	assert_int_equal(file_fsync(f, false), 0);
	rig_end(r, f);
}

/* PostgreSQL's trouble: a retry must not succeed while the data is not safe. */
RIG_TEST(test_fsync_never_lies_however_often_it_is_asked)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB), *other = rig_file(f->inode, 0), *late;

	rig_write(f, 0, 4 * KIB, 2);
	r->write_error = -EIO;
	r->failures = UINT32_MAX;
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(file_fsync(f, false), -EIO);
		assert_int_equal(file_fsync(other, false), -EIO); /* to every open file */
	}
	late = rig_file(f->inode, 0);
	assert_int_equal(file_fsync(late, false), -EIO);
	assert_int_equal(engine_sync(r->e), -EIO);
	r->failures = 0;
	assert_int_equal(file_fsync(late, false), 0);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(engine_sync(r->e), 0);
	rig_expect_stored(f->inode, 0, 4 * KIB, 2);
	file_close(late);
	file_close(other);
	rig_end(r, f);
}

/* The flusher met the error: whoever asks while the data is not safe is told. */
RIG_TEST(test_an_error_of_the_flusher_is_kept)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB);

	rig_write(f, 0, 4 * KIB, 2);
	r->write_error = -ENOSPC;
	r->failures = UINT32_MAX;
	world_sleep_until(40 * NSEC_PER_SEC); /* expired at 30 s and written in vain */
	assert_true(rig_logged_of(r, IO_WRITE) > 0);
	assert_int_equal(f->inode->m.error, -ENOSPC);
	assert_int_equal(file_fsync(f, false), -ENOSPC);
	r->failures = 0;
	world_sleep_until(120 * NSEC_PER_SEC); /* it tries again, and succeeds */
	assert_int_equal(f->inode->m.error, 0);
	rig_expect_stored(f->inode, 0, 4 * KIB, 2);
	assert_int_equal(file_fsync(f, false), 0);
	rig_end(r, f);
}

/* Cutting off what failed is discarding it on purpose. */
RIG_TEST(test_truncation_ends_the_error)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB);

	rig_write(f, 512 * KIB, 4 * KIB, 2);
	r->write_error = -EIO;
	r->failures = 1;
	assert_int_equal(file_fsync(f, false), -EIO);
	assert_int_equal(inode_truncate(f->inode, 512 * KIB), 0);
	assert_int_equal(file_fsync(f, false), 0);
	rig_end(r, f);
}

/* One of two files fails: the other's fsync does not hear of it, sync does. */
RIG_TEST(test_errors_belong_to_their_file)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *a = rig_laid_out(r, 4096, MIB), *b = rig_laid_out(r, 4096, MIB);

	rig_write(a, 0, 4 * KIB, 2);
	rig_write(b, 0, 4 * KIB, 2);
	r->write_error = -EIO;
	r->failures = 1;
	assert_int_equal(file_fsync(a, false), -EIO);
	assert_int_equal(file_fsync(b, false), 0);
	r->failures = UINT32_MAX;
	assert_int_equal(engine_sync(r->e), -EIO);
	r->failures = 0;
	assert_int_equal(engine_sync(r->e), 0);
	rig_drop(a);
	rig_drop(b);
	rig_close(r);
}

/* Of several I/Os only the failed ones are written again. */
RIG_TEST(test_only_what_failed_is_written_again)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB);

	rig_write(f, 0, 4 * KIB, 2);
	rig_write(f, 100 * KIB, 4 * KIB, 2);
	rig_write(f, 200 * KIB, 4 * KIB, 2);
	r->write_error = -EIO;
	r->failures = 1;
	assert_int_equal(file_fsync(f, false), -EIO);
	assert_int_equal(r->logged, 3);
	r->logged = 0;
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(r->logged, 1);
	rig_expect_io(r, 0, IO_WRITE, 0, 4 * KIB);
	rig_end(r, f);
}

RIG_TEST(test_sync_writes_all_files)
{
	struct rig *r = rig_open("sluice");
	struct file *f[20];

	for (unsigned i = 0; i < 20; i++) {
		f[i] = rig_file(rig_inode(r, i % 2 ? 4096 : 1024), 0);
		rig_write(f[i], i * 3000, 5000, 1);
	}
	assert_int_equal(engine_sync(r->e), 0);
	for (unsigned i = 0; i < 20; i++) {
		rig_expect_stored(f[i]->inode, i * 3000, 5000, 1);
		assert_int_equal(ledger_level(&f[i]->inode->m.ledger, LEVEL_PINNED), 0);
		rig_drop(f[i]);
	}
	rig_close(r);
}

/* Writing starts write-out and returns; waiting waits; other pages stay dirty. */
RIG_TEST(test_sync_range_does_what_it_is_asked)
{
	struct rig *r = rig_open("linux-6.1"); /* folios of one page */
	struct file *f = rig_laid_out(r, 4096, MIB);

	for (u64 i = 0; i < 4; i++)
		rig_write(f, i * 64 * KIB, 4 * KIB, 2);
	assert_int_equal(file_sync_range(f, 0, 4 * KIB, FILE_WAIT_BEFORE | FILE_WAIT_AFTER), 0);
	assert_int_equal(r->logged, 0); /* nothing is in flight */
	assert_int_equal(file_sync_range(f, 64 * KIB, 64 * KIB, FILE_WRITE), 0);
	assert_int_equal(r->logged, 0); /* not over yet */
	assert_int_equal(ledger_level(&f->inode->m.ledger, LEVEL_IN_FLIGHT), 1);
	assert_int_equal(file_sync_range(f, 64 * KIB, 1, FILE_WAIT_AFTER), 0);
	assert_int_equal(r->logged, 1);
	rig_expect_io(r, 0, IO_WRITE, 64 * KIB, 4 * KIB);
	assert_int_equal(
		file_sync_range(f, 0, 128 * KIB, FILE_WAIT_BEFORE | FILE_WRITE | FILE_WAIT_AFTER),
		0);
	assert_int_equal(r->logged, 2);
	rig_expect_io(r, 1, IO_WRITE, 0, 4 * KIB);
	assert_int_equal(ledger_level(&f->inode->m.ledger, LEVEL_DEBT), 2);
	r->write_error = -EIO;
	r->failures = 1;
	assert_int_equal(file_sync_range(f, 192 * KIB, 0, FILE_WRITE | FILE_WAIT_AFTER), -EIO);
	assert_int_equal(file_sync_range(f, 0, 0, FILE_WRITE | FILE_WAIT_AFTER), 0);
	assert_int_equal(ledger_level(&f->inode->m.ledger, LEVEL_DEBT), 0);
	assert_int_equal(file_sync_range(f, 0, 0, 8), -EINVAL);
	assert_int_equal(file_sync_range(f, ~0ull, 2, FILE_WRITE), -EINVAL);
	rig_end(r, f);
}

/* Destroying an engine writes all, and says if that failed. */
RIG_TEST(test_destroying_writes_back)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	rig_write(f, 0, 64 * KIB, 1);
	file_close(f);
	assert_int_equal(engine_destroy(r->e), 0);
	assert_int_equal(r->logged, 1);
	rig_expect_io(r, 0, IO_WRITE, 0, 64 * KIB);
	assert_int_equal(engine_create(&r->config, &r->e), 0);
	assert_int_equal(engine_add_device(r->e, r->d, 128, false), 0);
	f = rig_file(rig_inode(r, 4096), 0);
	rig_write(f, 0, 64 * KIB, 1);
	file_close(f);
	r->write_error = -EIO;
	r->failures = UINT32_MAX;
	assert_int_equal(engine_destroy(r->e), -EIO);
	device_destroy(r->d);
	free(r);
}

/* What the device has answered for may still stand in its cache: a flush makes it safe. */
RIG_TEST(test_each_way_to_be_safe_flushes_the_device)
{
	struct rig *r = rig_open("linux-7.4");
	struct file *f = rig_laid_out(r, 4096, MIB), *synced = rig_file(f->inode, FILE_SYNC);
	struct file *direct = rig_file(f->inode, FILE_SYNC | FILE_DIRECT);
	struct device_stats stats;

	rig_write(f, 0, 4 * KIB, 2);
	device_stats(r->d, &stats);
	assert_int_equal(stats.flushes, 0);
	assert_int_equal(file_fsync(f, false), 0);
	device_stats(r->d, &stats);
	assert_int_equal(stats.flushes, 1);
	rig_write(synced, 8 * KIB, 4 * KIB, 2);
	device_stats(r->d, &stats);
	assert_int_equal(stats.flushes, 2);
	rig_write(direct, 16 * KIB, 4 * KIB, 2);
	device_stats(r->d, &stats);
	assert_int_equal(stats.flushes, 3);
	assert_int_equal(engine_sync(r->e), 0);
	device_stats(r->d, &stats);
	assert_int_equal(stats.flushes, 4);
	file_close(direct);
	file_close(synced);
	rig_end(r, f);
}

/* The flush comes when everything has landed, or it would be for nothing. */
struct order {
	u32 writes, flushes, written_at_flush;
};

static int note_order(void *ctx, const struct io *io)
{
	struct order *o = ctx;

	o->writes += io->op == IO_WRITE;
	if (io->op == IO_FLUSH) {
		o->flushes++;
		o->written_at_flush = o->writes;
	}
	return 0;
}

RIG_TEST(test_the_flush_comes_last)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct order o = { 0 };

	device_set_fault(r->d, note_order, &o);
	rig_write(f, 0, MIB, 1);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(o.flushes, 1);
	assert_true(o.writes >= 1);
	assert_int_equal(o.written_at_flush, o.writes);
	rig_end(r, f);
}

/* What is dirtied again while it is being written is not safe when that has landed. */
RIG_TEST(test_a_page_dirtied_in_flight_is_synced)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct ledger *l = &f->inode->m.ledger;

	rig_write(f, 0, 64 * KIB, 1);
	assert_int_equal(file_sync_range(f, 0, 0, FILE_WRITE), 0);
	assert_int_equal(ledger_level(l, LEVEL_IN_FLIGHT), 16);
	rig_write(f, 8 * KIB, 4 * KIB, 2);
	assert_int_equal(ledger_level(l, LEVEL_IN_FLIGHT), 16);
	assert_int_equal(ledger_level(l, LEVEL_DEBT), 1);
	assert_int_equal(file_fsync(f, false), 0);
	assert_int_equal(ledger_level(l, LEVEL_DEBT), 0);
	assert_int_equal(ledger_level(l, LEVEL_IN_FLIGHT), 0);
	rig_expect_stored(f->inode, 8 * KIB, 4 * KIB, 2);
	rig_end(r, f);
}

/* A file whose write failed when it had left the lists as clean is written again by and by. */
RIG_TEST(test_what_failed_is_written_again_unasked)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct ledger *l = &f->inode->m.ledger;

	r->write_error = -EIO;
	r->failures = 1;
	rig_write(f, 0, 4 * KIB, 1);
	world_sleep_until(40 * NSEC_PER_SEC); /* it is written when it is 30 s old */
	assert_int_equal(r->failures, 0);
	world_sleep_until(200 * NSEC_PER_SEC);
	assert_int_equal(ledger_level(l, LEVEL_DEBT), 0);
	rig_expect_stored(f->inode, 0, 4 * KIB, 1);
	rig_end(r, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_way_to_be_safe_flushes_the_device),
		cmocka_unit_test(test_fsync_writes_the_dirty_blocks_and_waits),
		cmocka_unit_test(test_a_failed_fsync_can_be_repeated),
		cmocka_unit_test(test_fsync_never_lies_however_often_it_is_asked),
		cmocka_unit_test(test_an_error_of_the_flusher_is_kept),
		cmocka_unit_test(test_truncation_ends_the_error),
		cmocka_unit_test(test_errors_belong_to_their_file),
		cmocka_unit_test(test_only_what_failed_is_written_again),
		cmocka_unit_test(test_sync_writes_all_files),
		cmocka_unit_test(test_sync_range_does_what_it_is_asked),
		cmocka_unit_test(test_destroying_writes_back),
		cmocka_unit_test(test_the_flush_comes_last),
		cmocka_unit_test(test_a_page_dirtied_in_flight_is_synced),
		cmocka_unit_test(test_what_failed_is_written_again_unasked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
