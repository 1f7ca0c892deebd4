// SPDX-License-Identifier: MIT
/*
 * Files and the room on their device: what is reserved and given back, holes, and what a full
 * device or a limit says. In memory, where blocks are counted exactly.
 */
#include "real_rig.h"
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

static u64 allocated(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (u64)st.st_blocks * 512;
}

static void test_room(void **state)
{
	char name[] = "/dev/shm/sluice-room-XXXXXX"; /* what has no name gives nothing back */
	u8 *buf = real_buffer(8192);
	int fd = mkstemp(name);
	struct store *s;
	u64 before;

	(void)state;
	assert_int_equal(store_open_fd(real_device("auto", "1"), fcntl(fd, F_DUPFD, 0), &s), 0);
	store_set_end(s, 5000);
	assert_int_equal(real_transfer(s, IO_WRITE, 0, buf, 8192), 0);
	before = allocated(fd);
	assert_int_equal(before, 8192);
	assert_int_equal(store_reserve(s, 0, 0), 0);
	assert_int_equal(allocated(fd), before);
	assert_int_equal(store_reserve(s, 0, 1 << 20), 0);
	assert_true(allocated(fd) >= 1 << 20);
	assert_int_equal(real_size(fd), 5000);
	assert_int_equal(store_size(s), 5000);
	before = allocated(fd);
	assert_int_equal(store_reserve(s, 4096, 65536), 0); /* it is there already */
	assert_int_equal(allocated(fd), before);
	assert_int_equal(store_reserve(s, 1ull << 42, STORE_SIZE_MAX), -EFBIG);
	/* more than there can be: nothing is taken from what others need */
	assert_int_equal(store_reserve(s, 0, 1ull << 42), -ENOSPC);
	assert_int_equal(allocated(fd), before);
	store_destroy(s);
	unlink(name);
	assert_int_equal(allocated(fd), 8192); /* what was not used is given back */
	assert_int_equal(real_size(fd), 5000);
	close(fd);
	free(buf);
}

/* What is known to have room is known without asking, and forgotten when it goes. */
static void test_room_is_remembered(void **state)
{
	u8 *buf = real_buffer(1 << 20);
	int fd = real_file(real_folder(1), O_RDWR);
	struct store *s;

	(void)state;
	assert_int_equal(pwrite(fd, buf, 1 << 20, 0), 1 << 20);
	assert_int_equal(store_open_fd(real_device("auto", "1"), fcntl(fd, F_DUPFD, 0), &s), 0);
	assert_false(store_has_room(s, 65536, 4096));
	assert_int_equal(store_reserve(s, 65536, 4096), 0); /* from there on it is full of data */
	assert_true(store_has_room(s, 65536, (1 << 20) - 65536));
	assert_false(store_has_room(s, 65536 - 1, 4096));
	assert_false(store_has_room(s, (1 << 20) - 1, 2));
	assert_int_equal(store_reserve(s, 0, 4096), 0);
	assert_true(store_has_room(s, 0, 1 << 20));
	assert_int_equal(allocated(fd), 1 << 20); /* nothing had to be made */
	assert_int_equal(store_punch(s, 100, 1), 0);
	assert_true(store_has_room(s, 0, 100 * 4096));
	assert_false(store_has_room(s, 0, 100 * 4096 + 1));
	assert_int_equal(store_reserve(s, 0, 1 << 20), 0);
	assert_int_equal(allocated(fd), 1 << 20); /* the hole is filled */
	assert_true(store_has_room(s, 0, 1 << 20));
	assert_int_equal(store_truncate(s, 5000), 0);
	assert_true(store_has_room(s, 0, 5000));
	assert_false(store_has_room(s, 0, 5001));
	assert_int_equal(store_reserve(s, 0, 10000), 0);
	assert_true(store_has_room(s, 0, 10000));
	real_close(s, fd);
	free(buf);
}

static void test_holes(void **state)
{
	u8 *buf = real_buffer(65536);
	int fd;
	struct device *d = real_device("auto", "1");
	struct store *s = real_open(d, real_folder(1), &fd);

	(void)state;
	assert_int_equal(real_transfer(s, IO_WRITE, 65536, buf, 65536), 0);
	assert_int_equal(store_next(s, 0, 100, true), 16);
	assert_int_equal(store_next(s, 0, 10, true), 10);
	assert_int_equal(store_next(s, 16, 100, false), 32);
	assert_int_equal(store_next(s, 16, 20, false), 20);
	assert_int_equal(store_next(s, 32, 100, true), 100);
	assert_int_equal(store_next(s, 50, 100, false), 50);
	assert_int_equal(store_punch(s, 20, 4), 0);
	assert_int_equal(store_next(s, 16, 100, false), 20);
	assert_int_equal(store_next(s, 20, 100, true), 24);
	assert_int_equal(allocated(fd), 49152);
	assert_int_equal(real_size(fd), 131072);
	assert_int_equal(store_punch(s, 24, ~0ull >> 13), 0); /* keeps the size */
	assert_int_equal(allocated(fd), 16384);
	assert_int_equal(real_size(fd), 131072);
	assert_int_equal(store_lay_out(s, 200000), 0);
	assert_int_equal(real_size(fd), 200000);
	assert_true(allocated(fd) >= 200000);
	assert_int_equal(store_lay_out(s, 1000), 0);
	assert_int_equal(real_size(fd), 200000);
	assert_int_equal(store_lay_out(s, STORE_SIZE_MAX + 1), -EFBIG);
	assert_int_equal(real_transfer(s, IO_WRITE, STORE_SIZE_MAX - 4096, buf, 8192), -EFBIG);
	real_close(s, fd);
	free(buf);
}

/*
 * What the system refuses comes through, from each way an I/O can go; the signal that goes with
 * it kills nobody unless it is his own thread that writes.
 */
static void test_file_size_limit(void **state)
{
	static const char *const engines[] = { "threads", "auto" };
	struct rlimit old, limit;
	u8 *buf = real_buffer(65536);
	struct rng r;

	(void)state;
	rng_init(&r, 1);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){ 32768, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct real_io io = { .buf = buf };
		int fd;
		struct store *s = real_open(real_device(engines[i], "1"), real_folder(0), &fd);

		real_submit(&io, s, IO_WRITE, 0, 65536, 4096, &r); /* short, then refused */
		assert_int_equal(real_wait(&io), -EFBIG);
		real_submit(&io, s, IO_WRITE, 32768, 4096, 4096, &r);
		assert_int_equal(real_wait(&io), -EFBIG);
		signal(SIGXFSZ, SIG_IGN);
		assert_int_equal(real_transfer(s, IO_WRITE, 65536, buf, 4096), -EFBIG);
		signal(SIGXFSZ, SIG_DFL);
		real_submit(&io, s, IO_WRITE, 28672, 4096, 4096, &r);
		assert_int_equal(real_wait(&io), 0);
		assert_int_equal(real_size(fd), 32768);
		assert_int_equal(store_size(s), 32768);
		real_close(s, fd);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	free(buf);
}

#define NO_MOUNT 77

/* In a process of its own, with a mount of its own that goes with it. */
static int fill_a_small_disk(void)
{
	u8 *buf = real_buffer(1 << 20);
	struct real_io io = { .buf = buf };
	struct device *d;
	struct store *s;
	struct rng r;
	int fd, error;

	rng_init(&r, 1);
	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return NO_MOUNT;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return NO_MOUNT;
	/* over a folder that is there already: nothing of it shows outside */
	if (mount("none", "/dev/shm", "tmpfs", 0, "size=1m"))
		return NO_MOUNT;
	d = real_device("auto", "1");
	fd = real_file("/dev/shm", O_RDWR);
	if (store_open_fd(d, fd, &s))
		return 1;
	error = real_transfer(s, IO_WRITE, 0, buf, 512 << 10);
	if (error || store_reserve(s, 512 << 10, 256 << 10))
		return 2;
	if (store_reserve(s, 768 << 10, 512 << 10) != -ENOSPC)
		return 3;
	/* what was promised is there */
	if (real_transfer(s, IO_WRITE, 512 << 10, buf, 256 << 10))
		return 4;
	real_submit(&io, s, IO_WRITE, 768 << 10, 512 << 10, 4096, &r);
	if (real_wait(&io) != -ENOSPC)
		return 5;
	store_destroy(s);
	device_destroy(d);
	return 0;
}

static void test_full(void **state)
{
	pid_t child;
	int status;

	(void)state;
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(fill_a_small_disk());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_MOUNT) {
		print_message("# skip: no right to mount a small file system\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full), /* first: it forks, best without threads */
		cmocka_unit_test(test_room),  cmocka_unit_test(test_room_is_remembered),
		cmocka_unit_test(test_holes), cmocka_unit_test(test_file_size_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
