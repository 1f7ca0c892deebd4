// SPDX-License-Identifier: MIT
/*
 * Stores that are files: on the disk of the temporary folder and in memory, by either engine, with
 * O_DIRECT and without, against a model and against what the system itself says of the file.
 */
#include "real_rig.h"
#include <pthread.h>

/* --- random operations --- */

static void play(const char *engine, const char *direct, const char *folder, u32 unit, u64 seed)
{
	static struct real_model m;
	static u8 found[REAL_BYTES];
	unsigned fds = real_count_fds();
	int fd;
	struct store *s = real_open(real_device(engine, direct), folder, &fd);

	real_play(s, &m, seed, real_soak() ? 4000 : 300, unit);
	assert_int_equal(real_size(fd), m.size);
	memset(found, 0, sizeof(found));
	assert_int_equal(pread(fd, found, sizeof(found), 0), m.size);
	assert_memory_equal(found, m.bytes, sizeof(found));
	real_close(s, fd);
	assert_int_equal(real_count_fds(), fds);
}

static void play_all(const char *engine)
{
	for (unsigned folder = 0; folder < 2; folder++) {
		play(engine, "1", real_folder(folder), 4096, 1 + folder);
		play(engine, "1", real_folder(folder), 512, 3 + folder);
		play(engine, "0", real_folder(folder), 4096, 5 + folder);
	}
}

static void test_model_threads(void **state)
{
	(void)state;
	play_all("threads");
}

static void test_model_uring(void **state)
{
	(void)state;
	if (!real_has_uring())
		skip();
	play_all("uring");
}

static void test_model_auto(void **state)
{
	(void)state;
	play("auto", "1", real_folder(0), 1024, 7);
}

/* --- O_DIRECT --- */

static void test_direct_is_used(void **state)
{
	int fd, probe = real_file(real_folder(0), O_RDWR);
	struct device *d = real_device("auto", "1");
	u8 *buf = real_buffer(4096);
	struct store *s, *other;
	char path[40];

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", probe);
	fd = open(path, O_RDWR | O_DIRECT);
	if (fd < 0) {
		print_message("# skip: %s takes no O_DIRECT\n", real_folder(0));
		close(probe);
		free(buf);
		device_destroy(d);
		skip();
	}
	close(fd);
	assert_int_equal(store_open_fd(d, probe, &s), 0);
	assert_true(real_says(d, "0 stores with O_DIRECT, 0 without")); /* nothing was moved yet */
	assert_int_equal(real_transfer(s, IO_WRITE, 0, buf, 4096), 0);
	assert_true(real_says(d, "1 stores with O_DIRECT, 0 without"));
	assert_int_equal(store_open_fd(d, real_file(real_folder(0), O_RDWR), &other), 0);
	assert_int_equal(real_transfer(other, IO_READ, 0, buf, 4096), 0);
	assert_true(real_says(d, "2 stores with O_DIRECT, 0 without"));
	store_destroy(s);
	store_destroy(other);
	assert_true(real_says(d, "0 stores with O_DIRECT, 0 without"));
	device_destroy(d);
	d = real_device("auto", "0");
	assert_int_equal(store_open_fd(d, real_file(real_folder(0), O_RDWR), &s), 0);
	assert_int_equal(real_transfer(s, IO_WRITE, 0, buf, 4096), 0);
	assert_true(real_says(d, "0 stores with O_DIRECT, 1 without"));
	store_destroy(s);
	device_destroy(d);
	free(buf);
}

/* --- ends of files --- */

static void test_tail(void **state)
{
	u8 *buf = real_buffer(16384);
	u8 found[16384];
	int fd;
	struct store *s = real_open(real_device("auto", "1"), real_folder(0), &fd);

	(void)state;
	/* Until it is said where the end is, blocks are written whole. */
	assert_int_equal(real_transfer(s, IO_WRITE, 0, buf, 4096), 0);
	assert_int_equal(real_size(fd), 4096);
	store_set_end(s, 5000);
	memset(buf, 1, 16384);
	assert_int_equal(real_transfer(s, IO_WRITE, 0, buf, 16384), 0);
	assert_int_equal(real_size(fd), 5000);
	assert_int_equal(store_size(s), 5000);
	/* all past the end: nothing happens */
	assert_int_equal(real_transfer(s, IO_WRITE, 8192, buf, 8192), 0);
	assert_int_equal(real_size(fd), 5000);
	memset(buf, 2, 16384);
	assert_int_equal(real_transfer(s, IO_READ, 0, buf, 16384), 0);
	for (unsigned i = 0; i < 16384; i++)
		assert_int_equal(buf[i], i < 5000);
	assert_int_equal(real_transfer(s, IO_READ, 8192, buf, 4096), 0);
	assert_int_equal(buf[0] | buf[4095], 0);
	assert_int_equal(pread(fd, found, sizeof(found), 0), 5000);
	assert_int_equal(found[4999], 1);
	/* shorter than a block */
	assert_int_equal(store_truncate(s, 0), 0);
	store_set_end(s, 10);
	memcpy(buf, "0123456789abcdef", 16);
	assert_int_equal(real_transfer(s, IO_WRITE, 0, buf, 512), 0);
	assert_int_equal(real_size(fd), 10);
	assert_int_equal(real_transfer(s, IO_READ, 0, buf, 4096), 0);
	assert_memory_equal(buf, "0123456789\0\0\0\0", 14);
	assert_int_equal(real_flush(s), 0);
	real_close(s, fd);
	free(buf);
}

static struct {
	int fd;
	_Atomic bool stop;
	u64 largest;
} watch;

static void *watch_size(void *arg)
{
	(void)arg;
	while (!atomic_load(&watch.stop))
		watch.largest = max_u64(watch.largest, real_size(watch.fd));
	return NULL;
}

/* Whoever looks on while tails are written never sees a file longer than it is. */
static void test_nobody_sees_wrong_sizes(void **state)
{
	u8 *buf = real_buffer(65536);
	struct store *s = real_open(real_device("auto", "1"), real_folder(0), &watch.fd);
	pthread_t watcher;
	struct real_io io = { .buf = buf };
	struct rng r;

	(void)state;
	rng_init(&r, 1);
	atomic_store(&watch.stop, false);
	watch.largest = 0;
	assert_int_equal(pthread_create(&watcher, NULL, watch_size, NULL), 0);
	store_set_end(s, 65536 - 8192 + 1);
	for (unsigned i = 0; i < 200; i++) {
		if (i % 2)
			assert_int_equal(real_transfer(s, IO_WRITE, 0, buf, 65536), 0);
		real_submit(&io, s, IO_WRITE, 0, 65536, 4096, &r);
		assert_int_equal(real_wait(&io), 0);
	}
	atomic_store(&watch.stop, true);
	pthread_join(watcher, NULL);
	assert_true(watch.largest <= 65536 - 8192 + 1);
	assert_int_equal(real_size(watch.fd), 65536 - 8192 + 1);
	real_close(s, watch.fd);
	free(buf);
}

static void changed_underneath(const char *engine, const char *direct)
{
	u8 *buf = real_buffer(65536);
	int fd;
	struct store *s = real_open(real_device(engine, direct), real_folder(0), &fd);
	struct real_io io = { .buf = buf };
	struct rng r;

	rng_init(&r, 1);
	store_set_end(s, 60000);
	memset(buf, 7, 65536);
	real_submit(&io, s, IO_WRITE, 0, 65536, 4096, &r);
	assert_int_equal(real_wait(&io), 0);
	assert_int_equal(real_size(fd), 60000);
	/* another process shortens it: what is gone reads as zeros */
	assert_int_equal(ftruncate(fd, 20001), 0);
	memset(buf, 9, 65536);
	real_submit(&io, s, IO_READ, 0, 65536, 4096, &r);
	assert_int_equal(real_wait(&io), 0);
	for (unsigned i = 0; i < 65536; i++)
		assert_int_equal(buf[i], i < 20001 ? 7 : 0);
	assert_int_equal(ftruncate(fd, 8192), 0); /* the end of a block */
	real_submit(&io, s, IO_READ, 4096, 32768, 4096, &r);
	assert_int_equal(real_wait(&io), 0);
	assert_int_equal(buf[4095], 7);
	assert_int_equal(buf[4096] | buf[32767], 0);
	/* and a write makes it longer again */
	memset(buf, 8, 4096);
	real_submit(&io, s, IO_WRITE, 40960, 4096, 4096, &r);
	assert_int_equal(real_wait(&io), 0);
	assert_int_equal(real_size(fd), 45056);
	/* lengthened: past our end there is nothing for us */
	assert_int_equal(ftruncate(fd, 100000), 0);
	assert_int_equal(pwrite(fd, "secret", 6, 60000), 6);
	assert_int_equal(real_transfer(s, IO_READ, 57344, buf, 8192), 0);
	for (unsigned i = 0; i < 8192; i++)
		assert_int_equal(buf[i], 0);
	real_close(s, fd);
	free(buf);
}

static void test_changed_underneath(void **state)
{
	(void)state;
	changed_underneath("threads", "1");
	changed_underneath("threads", "0");
	changed_underneath("auto", "1");
}

/* --- what goes wrong --- */

static void test_what_is_no_file(void **state)
{
	struct device_config c;
	struct device *d = real_device("auto", "1"), *memory;
	unsigned fds = real_count_fds();
	struct store *s;
	int pipes[2];

	(void)state;
	assert_int_equal(store_open_fd(d, -1, &s), -EBADF);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(store_open_fd(d, pipes[0], &s), -EINVAL);
	assert_int_equal(store_open_fd(d, pipes[1], &s), -EINVAL);
	assert_int_equal(store_open_fd(d, open("/dev/null", O_RDWR), &s), -EINVAL);
	assert_int_equal(store_open_fd(d, open("/", O_RDONLY), &s), -EINVAL);
	assert_int_equal(device_config_init(&c, "memory"), 0);
	assert_int_equal(device_create(&c, &memory), 0);
	assert_int_equal(store_open_fd(memory, real_file(real_folder(0), O_RDWR), &s), -EINVAL);
	assert_int_equal(device_register_memory(memory, &c, sizeof(c)), -ENOTSUP);
	device_destroy(memory);
	assert_int_equal(real_count_fds(), fds);
	device_destroy(d);
}

static void test_modes(void **state)
{
	u8 *buf = real_buffer(8192);
	int fd = real_file(real_folder(0), O_RDWR), append;
	struct device *d = real_device("auto", "1");
	struct real_io io = { .buf = buf };
	struct store *s;
	char path[40];
	struct rng r;

	(void)state;
	rng_init(&r, 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(pwrite(fd, buf, 8192, 0), 8192);
	/* one that appends: positions are what they are, all the same */
	append = open(path, O_RDWR | O_APPEND);
	assert_int_equal(store_open_fd(d, append, &s), 0);
	memset(buf, 3, 8192);
	assert_int_equal(real_transfer(s, IO_WRITE, 0, buf, 4096), 0);
	assert_int_equal(real_transfer(s, IO_WRITE, 5000, buf, 100), 0);
	assert_int_equal(real_size(fd), 8192);
	store_destroy(s);
	/* read-only */
	assert_int_equal(store_open_fd(d, open(path, O_RDONLY), &s), 0);
	assert_int_equal(real_transfer(s, IO_READ, 0, buf, 8192), 0);
	assert_int_equal(buf[4095], 3);
	assert_int_equal(buf[4096], 0xee);
	assert_int_equal(buf[5099], 3);
	assert_int_equal(real_transfer(s, IO_WRITE, 0, buf, 8192), -EBADF);
	real_submit(&io, s, IO_WRITE, 0, 8192, 4096, &r);
	assert_int_equal(real_wait(&io), -EBADF);
	assert_int_equal(store_truncate(s, 0), -EINVAL);
	assert_int_equal(real_size(fd), 8192);
	store_destroy(s);
	device_destroy(d);
	close(fd);
	free(buf);
}

static int fail_writes(void *ctx, const struct io *io)
{
	return io->op == IO_WRITE ? *(int *)ctx : 0;
}

static int fail_flushes(void *ctx, const struct io *io)
{
	return io->op == IO_FLUSH ? *(int *)ctx : 0;
}

static void injected(const char *engine)
{
	static const int errors[] = { -EIO, -ENOSPC, -ENXIO, -ENODEV, -EDQUOT };
	u8 *buf = real_buffer(8192);
	int fd, error;
	struct store *s = real_open(real_device(engine, "1"), real_folder(0), &fd);
	struct device *d = store_device(s);
	struct real_io io = { .buf = buf };
	struct rng r;

	rng_init(&r, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
		error = errors[i];
		device_set_fault(d, fail_writes, &error);
		real_submit(&io, s, IO_WRITE, 0, 8192, 4096, &r);
		assert_int_equal(real_wait(&io), error);
		assert_int_equal(real_transfer(s, IO_WRITE, 4096, buf, 4096), error);
		assert_int_equal(real_size(fd), 0);
		assert_int_equal(real_transfer(s, IO_READ, 0, buf, 4096), 0);
		device_set_fault(d, fail_flushes, &error);
		assert_int_equal(real_flush(s), error);
		device_set_fault(d, NULL, NULL);
		assert_int_equal(real_flush(s), 0); /* the fault was none of the file's */
	}
	real_submit(&io, s, IO_WRITE, 0, 8192, 4096, &r);
	assert_int_equal(real_wait(&io), 0);
	assert_int_equal(real_size(fd), 8192);
	real_close(s, fd);
	free(buf);
}

static void test_injected_errors(void **state)
{
	(void)state;
	injected("threads");
	injected("auto");
}

/* --- the queue --- */

#define SUBMITTERS 6

static struct store *shared;
static _Atomic u32 failed;

static void submit_many(void *arg)
{
	struct real_io io[3];
	u64 own = (64 + 4 * (u64)(uintptr_t)arg) * 4096; /* pages that nobody else touches */
	struct rng r;

	rng_init(&r, (u64)(uintptr_t)arg);
	for (unsigned i = 0; i < ARRAY_SIZE(io); i++)
		io[i].buf = real_buffer(8192);
	for (unsigned n = 0; n < 100; n++) {
		for (unsigned i = 0; i < ARRAY_SIZE(io); i++)
			real_submit(&io[i], shared, rng_below(&r, 2) ? IO_READ : IO_WRITE,
				    i < 2 ? rng_below(&r, 62) * 4096 : own + 1, 8192, 4096, &r);
		for (unsigned i = 0; i < ARRAY_SIZE(io); i++)
			if (real_wait(&io[i]))
				atomic_fetch_add(&failed, 1);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(io); i++)
		free(io[i].buf);
}

static void full_queue(const char *engine)
{
	const char *settings[] = { "io_engine", engine, "queue_depth", "3", NULL };
	struct device_stats stats;
	struct task *tasks[SUBMITTERS];
	int rc, fd;
	struct device *d = real_device_try(&rc, settings);

	assert_int_equal(rc, 0);
	shared = real_open(d, real_folder(0), &fd);
	for (u64 i = 0; i < SUBMITTERS; i++)
		tasks[i] = world_spawn("submit", submit_many, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < SUBMITTERS; i++)
		world_join(tasks[i]);
	assert_int_equal(atomic_load(&failed), 0);
	device_stats(d, &stats);
	assert_true(stats.in_flight_max <= 3);
	assert_int_equal(stats.in_flight, 0);
	assert_int_equal(stats.reads + stats.writes, SUBMITTERS * 300);
	assert_int_equal(stats.read_bytes + stats.write_bytes, SUBMITTERS * 300ull * 8192);
	assert_true(stats.busy_ns > 0);
	assert_true(device_idle(d));
	real_close(shared, fd);
}

static void test_queue_full(void **state)
{
	(void)state;
	full_queue("threads");
	full_queue("auto");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model_threads),
		cmocka_unit_test(test_model_uring),
		cmocka_unit_test(test_model_auto),
		cmocka_unit_test(test_direct_is_used),
		cmocka_unit_test(test_tail),
		cmocka_unit_test(test_nobody_sees_wrong_sizes),
		cmocka_unit_test(test_changed_underneath),
		cmocka_unit_test(test_what_is_no_file),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_injected_errors),
		cmocka_unit_test(test_queue_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
