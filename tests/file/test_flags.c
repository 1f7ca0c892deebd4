// SPDX-License-Identifier: MIT
/* Vectors, appends, and the flags of single calls. */
#include "rig.h"
#include <limits.h>

static u64 cached(struct rig *r)
{
	struct engine_stats s;

	engine_stats(r->e, &s);
	return s.cached;
}

static void fill(u8 *buf, u64 offset, u64 length, u8 version)
{
	for (u64 i = 0; i < length; i++)
		buf[i] = rig_byte(offset + i, version);
}

/* --- vectors */

RIG_TEST(test_vectors)
{
	static u8 a[1], b[5000], c[8192];
	struct iovec out[] = { { a, 1 }, { NULL, 0 }, { b, 5000 }, { c, 8192 } };
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 512), 0);

	fill(a, 100, 1, 1);
	fill(b, 101, 5000, 1);
	fill(c, 5101, 8192, 1);
	assert_int_equal(file_pwritev(f, out, 4, 100, 0), 13193);
	rig_expect_bytes(f, 100, 13193, 1);
	rig_expect_bytes(f, 0, 100, 0);
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	memset(c, 0, sizeof(c));
	/* the end of the file is in the last buffer */
	assert_int_equal(file_preadv(f, out, 4, 200, 0), 13093);
	assert_int_equal(a[0], rig_byte(200, 1));
	assert_int_equal(b[4999], rig_byte(5200, 1));
	assert_int_equal(c[8091], rig_byte(13292, 1));
	assert_int_equal(c[8092], 0);
	assert_int_equal(file_preadv(f, out, 4, 13293, 0), 0);
	assert_int_equal(file_preadv(f, out, 0, 0, 0), 0);
	assert_int_equal(file_pwritev(f, out, 0, 0, 0), 0);
	rig_end(r, f);
}

RIG_TEST(test_bad_vectors)
{
	struct iovec huge[] = { { NULL, SSIZE_MAX }, { NULL, 1 } };
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct file *direct = rig_file(f->inode, FILE_DIRECT);
	struct iovec odd[] = { { NULL, 100 }, { NULL, 3996 } };
	u64 at;

	assert_int_equal(file_preadv(f, huge, 2, 0, 0), -EINVAL);
	assert_int_equal(file_pwritev(f, huge, 2, 0, 0), -EINVAL);
	assert_int_equal(file_append(f, huge, 2, 0, &at), -EINVAL);
	assert_int_equal(file_preadv(f, odd, 1, 0, 8), -EINVAL);
	assert_int_equal(file_pwritev(f, odd, 1, 0, 8), -EINVAL);
	assert_int_equal(file_pwritev(direct, odd, 2, 0, 0), -EINVAL);
	assert_int_equal(file_preadv(f, odd, 1, UINT64_MAX - 10, 0), -EINVAL);
	assert_int_equal(file_pwritev(f, odd, 1, FILE_MAX_BYTES - 10, 0), -EFBIG);
	file_close(direct);
	rig_end(r, f);
}

/* Past the cache from several buffers, at the end of the file. */
RIG_TEST(test_direct_vectors)
{
	static u8 a[4096], b[8192];
	struct iovec iov[] = { { a, 4096 }, { NULL, 0 }, { b, 8192 } };
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), FILE_DIRECT);
	u64 at = 7;

	fill(a, 0, 4096, 3);
	fill(b, 4096, 8192, 3);
	assert_int_equal(file_append(f, iov, 3, 0, &at), 12288);
	assert_int_equal(at, 0);
	rig_expect_stored(f->inode, 0, 12288, 3);
	assert_int_equal(inode_truncate(f->inode, 5000), 0);
	memset(a, 0, sizeof(a));
	memset(b, 0, sizeof(b));
	assert_int_equal(file_preadv(f, iov, 3, 0, 0), 5000);
	assert_int_equal(a[4095], rig_byte(4095, 3));
	assert_int_equal(b[903], rig_byte(4999, 3));
	assert_int_equal(file_append(f, iov, 3, 0, &at), -EINVAL); /* 5000 is no block's end */
	rig_end(r, f);
}

/* --- appends */

#define APPENDERS 4
#define APPENDS   50

struct appender {
	struct rig *r;
	struct file *f;
	u8 number;
	u64 at[APPENDS], length[APPENDS];
};

static void appender_main(void *arg)
{
	struct appender *a = arg;
	static u8 buf[APPENDERS][300000];

	for (unsigned i = 0; i < APPENDS; i++) {
		u64 length = i % 7 ? 1 + i * 113 % 6000 : 290000;
		struct iovec iov = { buf[a->number], length };

		memset(buf[a->number], a->number * APPENDS + (int)i + 1, length);
		a->length[i] = length;
		assert_int_equal(file_append(a->f, &iov, 1, 0, &a->at[i]), length);
		world_sleep_until(world_now() + (i * 37 % 11) * NSEC_PER_USEC);
	}
	engine_task_exit(a->r->e);
}

/* Several tasks, throttled in between: each record is in one piece, and the file has no gaps. */
static void appenders_meet(const char *write_lock)
{
	static struct appender a[APPENDERS];
	struct rig *r = rig_new("sluice", 16 * MIB);
	struct task *task[APPENDERS];
	struct engine_stats stats;
	u64 sum = 0;
	struct inode *inode;
	struct file *f;

	assert_int_equal(policy_set(&r->config.policy, "write_lock", write_lock, NULL), 0);
	r->config.vm.dirty_bytes = MIB;
	r->config.vm.dirty_background_bytes = MIB / 2;
	rig_start(r);
	inode = rig_inode(r, 4096);
	for (u8 i = 0; i < APPENDERS; i++) {
		a[i] = (struct appender){ .r = r,
					  .f = rig_file(inode, i ? 0 : FILE_APPEND),
					  .number = i };
		task[i] = world_spawn("appender", appender_main, &a[i]);
	}
	for (unsigned i = 0; i < APPENDERS; i++)
		world_join(task[i]);
	engine_stats(r->e, &stats);
	assert_true(stats.throttle_sleeps > 0);
	f = rig_file(inode, 0);
	for (unsigned i = 0; i < APPENDERS; i++) {
		for (unsigned j = 0; j < APPENDS; j++) {
			u8 *buf = malloc(a[i].length[j]);

			sum += a[i].length[j];
			assert_int_equal(file_pread(f, buf, a[i].length[j], a[i].at[j]),
					 a[i].length[j]);
			for (u64 k = 0; k < a[i].length[j]; k++)
				assert_int_equal(buf[k], (u8)(i * APPENDS + j + 1));
			free(buf);
		}
		file_close(a[i].f);
	}
	assert_int_equal(inode_size(inode), sum);
	rig_end(r, f);
}

RIG_TEST(test_appenders_meet)
{
	appenders_meet("folio");
	appenders_meet("inode");
}

/* A file opened to append puts every write at its end, wherever it says. */
RIG_TEST(test_append_mode)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), FILE_APPEND);
	u8 byte = 7;

	rig_write(f, 0, 5000, 1);
	assert_int_equal(file_pwrite(f, &byte, 1, 0), 1);
	assert_int_equal(inode_size(f->inode), 5001);
	rig_expect_bytes(f, 0, 5000, 1);
	assert_int_equal(file_pread(f, &byte, 1, 5000), 1);
	assert_int_equal(byte, 7);
	rig_end(r, f);
}

/* --- NOWAIT */

static ssize_t read_nowait(struct file *f, void *buf, size_t length, u64 offset)
{
	struct iovec iov = { buf, length };

	return file_preadv(f, &iov, 1, offset, FILE_IO_NOWAIT);
}

static ssize_t write_nowait(struct file *f, size_t length, u64 offset)
{
	static u8 zeros[64 * 1024];
	struct iovec iov = { zeros, length };

	return file_pwritev(f, &iov, 1, offset, FILE_IO_NOWAIT);
}

RIG_TEST(test_nowait_reads)
{
	static u8 buf[64 * 1024];
	struct rig *r = rig_open("sluice");
	struct file *f = rig_laid_out(r, 4096, 256 * KIB);
	struct file *direct = rig_file(f->inode, FILE_DIRECT);
	u64 start = world_now();

	assert_int_equal(read_nowait(f, buf, 4096, 0), -EAGAIN);
	assert_int_equal(r->logged, 0);
	assert_int_equal(world_now(), start);
	assert_int_equal(file_pread(f, buf, 1000, 8192), 1000); /* a miss: a window from there */
	start = world_now();
	assert_int_equal(read_nowait(f, buf, 100, 8292), 100);
	assert_int_equal(buf[0], rig_byte(8292, 1));
	assert_int_equal(read_nowait(f, buf, 4096, 0), -EAGAIN);
	assert_int_equal(read_nowait(direct, buf, 4096, 0), -EOPNOTSUPP);
	assert_int_equal(world_now(), start);
	/* what is cached of the range, then no more */
	assert_int_equal(file_advise(f, 0, 0, FILE_ADV_DONTNEED), 0);
	rig_write(f, 16384, 8192, 2);
	assert_int_equal(read_nowait(f, buf, 64 * 1024, 16384 + 50), 8192 - 50);
	assert_int_equal(read_nowait(f, buf, 4096, 256 * KIB), 0);
	file_close(direct);
	rig_end(r, f);
}

RIG_TEST(test_nowait_writes)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_laid_out(r, 4096, 256 * KIB);
	struct file *sync = rig_file(f->inode, FILE_SYNC);
	u64 start = world_now();
	struct iovec iov = { NULL, 1 };

	assert_int_equal(write_nowait(f, 100, 0), -EAGAIN); /* the rest of the block is not here */
	assert_int_equal(r->logged, 0);
	assert_int_equal(write_nowait(f, 8192, 4096), 8192); /* whole blocks */
	assert_int_equal(write_nowait(f, 100, 4097), 100);
	assert_int_equal(write_nowait(f, 8192 + 100, 4096), 8192); /* a part */
	assert_int_equal(write_nowait(sync, 4096, 4096), -EOPNOTSUPP);
	assert_int_equal(file_pwritev(f, &iov, 1, 0, FILE_IO_NOWAIT | FILE_IO_DSYNC), -EOPNOTSUPP);
	assert_int_equal(world_now(), start);
	/* it grows: a simulated device is never full */
	assert_int_equal(write_nowait(f, 4096, 260 * KIB), 4096);
	assert_int_equal(inode_size(f->inode), 264 * KIB);
	file_close(sync);
	rig_end(r, f);
}

struct sleeper {
	struct rig *r;
	struct file *f;
};

static void sleeper_main(void *arg)
{
	struct sleeper *s = arg;

	for (unsigned i = 0; i < 1024; i++)
		rig_write(s->f, i * 16 * KIB, 16 * KIB, 1);
	engine_task_exit(s->r->e);
}

/*
 * While the throttle lets a writer sleep: the lock he holds under write_lock=inode is not waited
 * for, and the throttle is not either.
 */
static void beside_a_sleeper(const char *write_lock, bool same_file, ssize_t reads)
{
	struct rig *r = rig_new("sluice", 64 * MIB);
	u64 start, again = 0;
	struct sleeper s;
	struct task *task;
	struct file *f;
	u8 byte;

	assert_int_equal(policy_set(&r->config.policy, "write_lock", write_lock, NULL), 0);
	r->config.vm.dirty_bytes = 2 * MIB;
	r->config.vm.dirty_background_bytes = MIB;
	r->device_config.iops = 100;
	r->device_config.bytes_per_s = 4.0 * MIB;
	rig_start(r);
	s = (struct sleeper){ r, rig_file(rig_inode(r, 4096), 0) };
	f = same_file ? s.f : rig_laid_out(r, 4096, MIB);
	assert_int_equal(file_pwrite(f, "x", 1, 0), 1);
	task = world_spawn("sleeper", sleeper_main, &s);
	world_sleep_until(world_now() + NSEC_PER_SEC);
	start = world_now();
	assert_int_equal(read_nowait(f, &byte, 1, 0), reads);
	for (unsigned i = 0; i < 200 && !again; i++)
		again = write_nowait(f, 4096, 4096 * (i + 1)) == -EAGAIN;
	assert_true(again);
	assert_int_equal(world_now(), start);
	world_join(task);
	if (!same_file)
		rig_drop(f);
	rig_drop(s.f);
	rig_close(r);
}

RIG_TEST(test_nowait_beside_a_sleeper)
{
	beside_a_sleeper("inode", true, -EAGAIN);
	beside_a_sleeper("inode", false, 1);
	beside_a_sleeper("folio", false, 1);
	beside_a_sleeper("folio", true, 1);
}

/* --- DSYNC */

RIG_TEST(test_dsync)
{
	static u8 buf[8192];
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct iovec iov = { buf, sizeof(buf) };
	u64 at;

	fill(buf, 4096, sizeof(buf), 1);
	rig_write(f, 40960, 4096, 1); /* is not asked for */
	assert_int_equal(file_pwritev(f, &iov, 1, 4096, FILE_IO_DSYNC), 8192);
	rig_expect_stored(f->inode, 4096, 8192, 1);
	assert_int_equal(r->logged, 1);
	rig_expect_io(r, 0, IO_WRITE, 4096, 8192);
	fill(buf, 45056, sizeof(buf), 1);
	assert_int_equal(file_append(f, &iov, 1, FILE_IO_DSYNC, &at), 8192);
	assert_int_equal(at, 45056);
	rig_expect_stored(f->inode, 45056, 8192, 1);
	rig_end(r, f);
}

/* --- DONTCACHE */

static ssize_t write_dontcache(struct file *f, u64 length, u64 offset, u8 version)
{
	u8 *buf = malloc(length);
	struct iovec iov = { buf, length };
	ssize_t n;

	fill(buf, offset, length, version);
	n = file_pwritev(f, &iov, 1, offset, FILE_IO_DONTCACHE);
	free(buf);
	return n;
}

static void read_dontcache(struct file *f, u64 length, u64 offset, u8 version)
{
	u8 *buf = malloc(length);
	struct iovec iov = { buf, length };

	assert_int_equal(file_preadv(f, &iov, 1, offset, FILE_IO_DONTCACHE), length);
	for (u64 i = 0; i < length; i++)
		assert_int_equal(buf[i], rig_byte(offset + i, version));
	free(buf);
}

static void settle(void)
{
	world_sleep_until(world_now() + NSEC_PER_SEC / 10);
}

RIG_TEST(test_dontcache_writes)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	assert_int_equal(write_dontcache(f, 300 * KIB, 0, 1), 300 * KIB);
	assert_true(cached(r) > 0); /* in flight */
	settle();
	assert_int_equal(cached(r), 0);
	rig_expect_stored(f->inode, 0, 300 * KIB, 1);
	/* what was cached before stays, what others use meanwhile too */
	rig_write(f, 0, 8192, 2);
	assert_int_equal(write_dontcache(f, 16 * KIB, 0, 3), 16 * KIB);
	assert_int_equal(write_dontcache(f, 8 * KIB, 64 * KIB, 3), 8 * KIB);
	rig_expect_bytes(f, 64 * KIB, 1, 3);
	settle();
	assert_int_equal(rig_order(f, 0), 1);
	assert_int_equal(rig_order(f, 2), -1);
	assert_int_equal(rig_order(f, 16), 1);
	rig_expect_bytes(f, 0, 16 * KIB, 3);
	rig_end(r, f);
}

/* A long stream of small ones keeps next to nothing in memory, and all arrives. */
RIG_TEST(test_dontcache_stream)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 512), 0);
	u64 most = 0;

	for (u64 at = 0; at < 16 * MIB; at += 3000) {
		assert_int_equal(write_dontcache(f, 3000, at, 1), 3000);
		most = max_u64(most, cached(r));
	}
	assert_true(most <= 2049); /* an eighth of memory and a page */
	settle();
	assert_int_equal(cached(r), 0);
	assert_int_equal(file_fsync(f, false), 0);
	rig_expect_stored(f->inode, 0, 16 * MIB / 3000 * 3000, 1);
	rig_end(r, f);
}

/* A write that fails keeps its data: it is dropped when a later one has succeeded. */
RIG_TEST(test_dontcache_failure)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_file(rig_inode(r, 4096), 0);

	r->write_error = -EIO;
	r->failures = 1;
	assert_int_equal(write_dontcache(f, 64 * KIB, 0, 1), 64 * KIB);
	settle();
	assert_int_equal(cached(r), 16);
	assert_int_equal(file_fsync(f, false), 0);
	rig_expect_stored(f->inode, 0, 64 * KIB, 1);
	assert_int_equal(cached(r), 0);
	rig_end(r, f);
}

RIG_TEST(test_dontcache_reads)
{
	struct rig *r = rig_open("sluice");
	struct file *f = rig_laid_out(r, 4096, 2 * MIB);
	u64 most = 0;

	rig_expect_bytes(f, MIB, 4096, 1); /* stays */
	for (u64 at = 0; at < 2 * MIB; at += 16 * KIB) {
		read_dontcache(f, 16 * KIB, at, 1);
		most = max_u64(most, cached(r));
	}
	assert_true(rig_order(f, MIB / 4096) >= 0);
	assert_int_equal(cached(r), 1u << rig_order(f, MIB / 4096));
	assert_true(most <= 128); /* two windows and what was there */
	read_dontcache(f, 4096, 512 * KIB, 1);
	assert_int_equal(rig_order(f, 128), -1);
	/* in the cache because of others: it stays */
	rig_expect_bytes(f, 512 * KIB, 4096, 1);
	read_dontcache(f, 4096, 512 * KIB, 1);
	assert_int_equal(rig_order(f, 128), 0);
	rig_end(r, f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_bad_vectors),
		cmocka_unit_test(test_direct_vectors),
		cmocka_unit_test(test_appenders_meet),
		cmocka_unit_test(test_append_mode),
		cmocka_unit_test(test_nowait_reads),
		cmocka_unit_test(test_nowait_writes),
		cmocka_unit_test(test_nowait_beside_a_sleeper),
		cmocka_unit_test(test_dsync),
		cmocka_unit_test(test_dontcache_writes),
		cmocka_unit_test(test_dontcache_stream),
		cmocka_unit_test(test_dontcache_failure),
		cmocka_unit_test(test_dontcache_reads),
	};

	return cmocka_run_group_tests_name("flags", tests, NULL, NULL);
}
