// SPDX-License-Identifier: MIT
/* Files of the real world by their paths. */
#include "real_rig.h"

static const struct path_config defaults = { .idle_max = 16 };

static void test_open_write_read(void **state)
{
	struct real r;
	struct file *f;

	(void)state;
	real_start(&r, defaults, 16 * MIB);
	assert_int_equal(path_open(r.t, real_name(&r, "a"), O_RDONLY, 0, &f), -ENOENT);
	f = real_open(&r, "a", O_RDWR | O_CREAT | O_EXCL);
	assert_int_equal(path_open(r.t, real_name(&r, "a"), O_RDWR | O_CREAT | O_EXCL, 0644, &f),
			 -EEXIST);
	real_write(f, "hello, world", 0);
	real_expect(f, "world", 7);
	assert_int_equal(file_fsync(f, false), 0);
	real_expect_stored(&r, "a", "hello, world");
	assert_int_equal(file_truncate(f, 5), 0);
	real_expect_stored(&r, "a", "hello");
	path_close(f);

	f = real_open(&r, "a", O_WRONLY | O_APPEND);
	assert_int_equal(file_pread(f, (char[1]){ 0 }, 1, 0), -EBADF);
	real_write(f, "!!", 0);
	path_close(f);
	f = real_open(&r, "a", O_RDONLY);
	real_expect(f, "hello!!", 0);
	assert_int_equal(file_pwrite(f, "x", 1, 0), -EBADF);
	assert_int_equal(file_truncate(f, 0), -EBADF);
	assert_int_equal(file_fallocate(f, 0, 0, 1), -EBADF);
	path_close(f);
	f = real_open(&r, "a", O_WRONLY | O_TRUNC);
	assert_int_equal(inode_size(file_inode(f)), 0);
	path_close(f);
	f = real_open(&r, "a", O_RDWR | O_SYNC);
	real_write(f, "safe", 0);
	real_expect_stored(&r, "a", "safe");
	path_close(f);
	real_end(&r);
}

static void test_what_is_refused(void **state)
{
	static const int bad[] = { O_PATH, O_DIRECTORY, O_RDONLY | O_TRUNC, O_ACCMODE, O_ASYNC };
	struct real r;
	struct file *f = NULL;

	(void)state;
	real_start(&r, defaults, 16 * MIB);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(path_open(r.t, real_name(&r, "a"), bad[i], 0, &f), -EINVAL);
	assert_int_equal(path_open(r.t, r.folder, O_RDONLY, 0, &f), -EISDIR);
	assert_int_equal(path_open(r.t, r.folder, O_RDWR, 0, &f), -EISDIR);
	assert_int_equal(mkfifo(real_name(&r, "fifo"), 0644), 0);
	assert_int_equal(path_open(r.t, real_name(&r, "fifo"), O_RDONLY, 0, &f), -EINVAL);
	assert_int_equal(path_open(r.t, "/dev/null", O_RDWR, 0, &f), -EINVAL);
	assert_int_equal(symlink("nowhere", real_name(&r, "link")), 0);
	assert_int_equal(path_open(r.t, real_name(&r, "link"), O_RDONLY, 0, &f), -ENOENT);
	assert_int_equal(path_open(r.t, real_name(&r, "link"), O_RDONLY | O_NOFOLLOW, 0, &f),
			 -ELOOP);
	real_end(&r);
}

static void test_one_inode_for_all_names(void **state)
{
	struct path_stats stats;
	struct file *f, *g, *h;
	struct real r;

	(void)state;
	real_start(&r, defaults, 16 * MIB);
	f = real_open(&r, "a", O_RDWR | O_CREAT);
	assert_int_equal(link(real_name(&r, "a"), real_name(&r, "b")), 0);
	g = real_open(&r, "b", O_RDWR);
	h = real_open(&r, "a", O_RDONLY);
	assert_ptr_equal(file_inode(f), file_inode(g));
	assert_ptr_equal(file_inode(f), file_inode(h));
	assert_non_null(strstr(path_of_inode(file_inode(h)), "/a"));
	real_write(g, "written by one", 0);
	real_expect(h, "written by one", 0);
	path_stats(r.t, &stats);
	assert_int_equal(stats.open_inodes, 1);
	path_close(f);
	path_close(g);
	real_expect(h, "written by one", 0);
	path_close(h);
	path_stats(r.t, &stats);
	assert_int_equal(stats.open_inodes, 0);
	assert_int_equal(stats.idle_inodes, 1);
	real_end(&r);
}

/* Opened for reading only at first: later opens may write, and those that read see it. */
static void test_from_reading_to_writing(void **state)
{
	struct file *f, *g;
	struct real r;

	(void)state;
	real_start(&r, defaults, 16 * MIB);
	real_store(&r, "a", 0, "as it was");
	f = real_open(&r, "a", O_RDONLY);
	real_expect(f, "as it was", 0);
	g = real_open(&r, "a", O_RDWR);
	real_write(g, "new", 0);
	assert_int_equal(file_fsync(g, true), 0);
	real_expect_stored(&r, "a", "newit was");
	engine_drop_caches(r.e);
	real_expect(f, "newit was", 0);
	path_close(g);
	path_close(f);
	real_end(&r);
}

static void test_unlinked_files_go_on(void **state)
{
	struct path_stats stats;
	struct file *f, *g;
	struct real r;

	(void)state;
	real_start(&r, defaults, 16 * MIB);
	f = real_open(&r, "a", O_RDWR | O_CREAT);
	real_write(f, "first", 0);
	assert_int_equal(path_unlink(r.t, real_name(&r, "a")), 0);
	g = real_open(&r, "a", O_RDWR | O_CREAT);
	real_write(g, "second", 0);
	assert_int_equal(file_fsync(f, false), 0);
	engine_drop_caches(r.e);
	real_expect(f, "first", 0);
	real_expect(g, "second", 0);
	path_close(f); /* nobody can open it any more */
	path_stats(r.t, &stats);
	assert_int_equal(stats.idle_inodes, 0);
	assert_int_equal(stats.open_inodes, 1);
	path_close(g);
	path_stats(r.t, &stats);
	assert_int_equal(stats.idle_inodes, 1);
	assert_int_equal(path_unlink(r.t, real_name(&r, "a")), 0);
	path_stats(r.t, &stats);
	assert_int_equal(stats.idle_inodes, 0);
	assert_int_equal(path_unlink(r.t, real_name(&r, "a")), -ENOENT);
	real_end(&r);
}

static void test_idle_files_stay_cached(void **state)
{
	struct device_stats before, after;
	struct path_stats stats;
	struct file *f;
	struct real r;

	(void)state;
	real_start(&r, (struct path_config){ .idle_max = 2 }, 16 * MIB);
	real_store(&r, "a", 0, "kept in the cache");
	f = real_open(&r, "a", O_RDONLY);
	real_expect(f, "kept in the cache", 0);
	path_close(f);
	device_stats(r.d, &before);
	f = real_open(&r, "a", O_RDONLY);
	real_expect(f, "kept in the cache", 0);
	device_stats(r.d, &after);
	assert_int_equal(before.reads, after.reads);
	path_close(f);

	/* two more push it out, with what they wrote */
	for (unsigned i = 0; i < 2; i++) {
		f = real_open(&r, i ? "c" : "b", O_RDWR | O_CREAT);
		real_write(f, "dirty", 0);
		path_close(f);
	}
	path_stats(r.t, &stats);
	assert_int_equal(stats.idle_inodes, 2);
	assert_int_equal(stats.dropped, 1);
	f = real_open(&r, "d", O_RDWR | O_CREAT);
	path_close(f);
	f = real_open(&r, "e", O_RDWR | O_CREAT);
	path_close(f);
	path_stats(r.t, &stats);
	assert_int_equal(stats.idle_inodes, 2);
	assert_int_equal(stats.dropped, 3);
	path_stats(r.t, &stats);
	real_end(&r);
}

static void test_dropped_files_are_written(void **state)
{
	struct file *f;
	struct real r;

	(void)state;
	real_start(&r, (struct path_config){ .idle_max = 0 }, 16 * MIB);
	f = real_open(&r, "a", O_RDWR | O_CREAT);
	real_write(f, "not lost", 0);
	path_close(f);
	real_expect_stored(&r, "a", "not lost");
	real_end(&r);
}

/* Descriptors are bounded, whatever is opened; what is dropped gives its own back. */
static void test_descriptors_are_bounded(void **state)
{
	u64 before = real_fds(), used;
	struct file *f[5];
	char name[16];
	struct real r;

	(void)state;
	real_start(&r, (struct path_config){ .idle_max = 4, .inodes_max = 4 }, 16 * MIB);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		f[0] = real_open(&r, name, O_RDWR | O_CREAT);
		path_close(f[0]);
	}
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		f[i] = real_open(&r, name, O_RDWR);
	}
	used = real_fds();
	assert_int_equal(path_open(r.t, real_name(&r, "f9"), O_RDWR, 0, &f[4]), -EMFILE);
	f[4] = real_open(&r, "f1", O_RDONLY); /* which is open already */
	assert_int_equal(real_fds(), used);
	path_close(f[4]);
	path_close(f[2]);
	f[2] = real_open(&r, "f9", O_RDWR);
	assert_int_equal(real_fds(), used);
	for (unsigned i = 0; i < 4; i++)
		path_close(f[i]);
	real_end(&r);
	assert_int_equal(real_fds(), before);
}

static void wait_clean(struct file *f)
{
	assert_int_equal(file_fsync(f, false), 0);
}

static void expect_changed(struct real *r, u64 times)
{
	struct path_stats stats;

	path_stats(r->t, &stats);
	assert_int_equal(stats.changed, times);
}

/* Lets the clock by which file systems stamp files go on. */
static void tick(void)
{
	world_sleep_until(world_now() + 20 * NSEC_PER_MSEC);
}

static void test_changed_by_others(void **state)
{
	struct file *f;
	struct real r;

	(void)state;
	real_start(&r, defaults, 16 * MIB);
	f = real_open(&r, "a", O_RDWR | O_CREAT);
	real_write(f, "ours ours ours", 0);
	wait_clean(f);
	path_close(f);
	f = real_open(&r, "a", O_RDONLY);
	expect_changed(&r, 0);
	path_close(f);
	tick();
	real_store(&r, "a", 0, "theirs"); /* of the same size */
	f = real_open(&r, "a", O_RDWR);
	expect_changed(&r, 1);
	real_expect(f, "theirsurs ours", 0);
	path_close(f);
	tick();
	real_store(&r, "a", O_APPEND, ", more");
	f = real_open(&r, "a", O_RDWR);
	expect_changed(&r, 2);
	real_expect(f, "theirsurs ours, more", 0);
	path_close(f);
	tick();
	assert_int_equal(truncate(real_name(&r, "a"), 3), 0);
	f = real_open(&r, "a", O_RDWR);
	expect_changed(&r, 3);
	assert_int_equal(inode_size(file_inode(f)), 3);
	path_close(f);
	real_end(&r);
}

/* Our own write-out after the last close is no change by others, though it changes the times. */
static void test_our_own_write_out(void **state)
{
	struct inode *inode;
	struct file *f;
	struct real r;

	(void)state;
	real_start(&r, defaults, 16 * MIB);
	f = real_open(&r, "a", O_RDWR | O_CREAT);
	real_write(f, "dirty at the close", 0);
	inode = file_inode(f);
	path_close(f);
	tick();
	assert_int_equal(engine_sync(r.e), 0);
	f = real_open(&r, "a", O_RDWR);
	expect_changed(&r, 0);
	assert_ptr_equal(file_inode(f), inode);
	/* still dirty when it is opened again */
	real_write(f, "again", 0);
	path_close(f);
	f = real_open(&r, "a", O_RDWR);
	expect_changed(&r, 0);
	path_close(f);
	tick();
	assert_int_equal(engine_sync(r.e), 0);
	tick();
	real_store(&r, "a", 0, "AGAIN"); /* after our write-out */
	f = real_open(&r, "a", O_RDWR);
	expect_changed(&r, 1);
	real_expect(f, "AGAIN at the close", 0);
	path_close(f);
	real_end(&r);
}

/* Room made past the end is not kept by files that nobody has open. */
static void test_room_is_given_back(void **state)
{
	struct file *f, *g;
	struct stat st;
	struct real r;

	(void)state;
	real_start(&r, defaults, 16 * MIB);
	f = real_open(&r, "a", O_RDWR | O_CREAT);
	for (u64 at = 0; at < 300 * KIB; at += KIB)
		real_write(f, "some bytes now and then", at);
	wait_clean(f);
	path_close(f);
	g = real_open(&r, "b", O_RDWR | O_CREAT); /* which looks at idle ones */
	assert_int_equal(stat(real_name(&r, "a"), &st), 0);
	assert_true((u64)st.st_blocks * 512 <= 304 * KIB);
	path_close(g);
	f = real_open(&r, "a", O_RDWR);
	expect_changed(&r, 0);
	path_close(f);
	real_end(&r);
}

/* --- many threads, few inodes */

#define THREADS 4
#define FILES   6
#define ROUNDS  200

struct opener {
	struct real *r;
	unsigned number;
};

/* Each file has a byte per thread, at a place of its own: what it wrote last is what it reads. */
static void opener_main(void *arg)
{
	struct opener *o = arg;
	u8 last[FILES] = { 0 };

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned n = (i * 7 + o->number * 3) % FILES;
		u64 place = o->number * 5000 + n;
		char name[96];
		struct file *f;
		u8 byte;

		snprintf(name, sizeof(name), "%s/f%u", o->r->folder, n);
		assert_int_equal(path_open(o->r->t, name, O_RDWR | O_CREAT, 0644, &f), 0);
		if (last[n]) {
			assert_int_equal(file_pread(f, &byte, 1, place), 1);
			assert_int_equal(byte, last[n]);
		}
		last[n] = (u8)(i % 255 + 1);
		assert_int_equal(file_pwrite(f, &last[n], 1, place), 1);
		path_close(f);
	}
	engine_task_exit(o->r->e);
}

static struct file *open_fd(struct real *r, const char *name, int flags, bool want_kept)
{
	int fd = open(real_name(r, name), flags & O_ACCMODE ? O_RDWR | O_CREAT : O_RDONLY, 0644);
	struct file *f;
	bool kept;

	assert_true(fd >= 0);
	assert_int_equal(path_open_fd(r->t, fd, name, flags, &kept, &f), 0);
	assert_int_equal(kept, want_kept);
	assert_string_equal(path_of_inode(file_inode(f)), name);
	return f;
}

/* Who works by descriptors: sizes, and changes of attributes that are his own. */
static void test_by_descriptors(void **state)
{
	struct stat before, after;
	struct path_stats stats;
	struct real r;
	struct file *f;
	u64 size = 0;

	(void)state;
	real_start(&r, defaults, 16 * MIB);
	f = open_fd(&r, "a", O_WRONLY, false);
	real_write(f, "hello", 0);
	assert_int_equal(stat(real_name(&r, "a"), &before), 0);
	assert_true(path_size(r.t, &before, &size));
	assert_int_equal(size, 5);
	assert_int_equal(file_fsync(f, false), 0);
	path_close(f);
	assert_false(path_size(r.t, &before, &size)); /* the system knows it, too */

	f = open_fd(&r, "a", O_RDONLY, true);
	path_close(f);
	assert_int_equal(stat(real_name(&r, "a"), &before), 0);
	world_sleep_until(world_now() + 20 * NSEC_PER_MSEC); /* so that ctime moves */
	assert_int_equal(chmod(real_name(&r, "a"), 0600), 0);
	assert_int_equal(stat(real_name(&r, "a"), &after), 0);
	path_touched(r.t, &before, &after);
	f = open_fd(&r, "a", O_RDONLY, true);
	path_close(f);
	world_sleep_until(world_now() + 20 * NSEC_PER_MSEC);
	assert_int_equal(chmod(real_name(&r, "a"), 0644), 0); /* somebody else's */
	f = open_fd(&r, "a", O_RDONLY, false);
	path_close(f);

	assert_int_equal(unlink(real_name(&r, "a")), 0);
	path_stats(r.t, &stats);
	assert_int_equal(stats.idle_inodes, 1);
	path_unlinked(r.t, &after);
	path_stats(r.t, &stats);
	assert_int_equal(stats.idle_inodes, 0);
	real_end(&r);
}

static void test_many_openers(void **state)
{
	struct opener o[THREADS];
	struct task *task[THREADS];
	struct real r;

	(void)state;
	/* more files than may be kept, but as many as threads can have open */
	real_start(&r, (struct path_config){ .idle_max = 2, .inodes_max = THREADS + 1 }, 16 * MIB);
	for (unsigned i = 0; i < THREADS; i++) {
		o[i] = (struct opener){ &r, i };
		task[i] = world_spawn("opener", opener_main, &o[i]);
		assert_non_null(task[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		world_join(task[i]);
	real_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_write_read),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_one_inode_for_all_names),
		cmocka_unit_test(test_from_reading_to_writing),
		cmocka_unit_test(test_unlinked_files_go_on),
		cmocka_unit_test(test_idle_files_stay_cached),
		cmocka_unit_test(test_dropped_files_are_written),
		cmocka_unit_test(test_descriptors_are_bounded),
		cmocka_unit_test(test_changed_by_others),
		cmocka_unit_test(test_our_own_write_out),
		cmocka_unit_test(test_room_is_given_back),
		cmocka_unit_test(test_by_descriptors),
		cmocka_unit_test(test_many_openers),
	};

	return cmocka_run_group_tests_name("real_path", tests, NULL, NULL);
}
