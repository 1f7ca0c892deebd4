// SPDX-License-Identifier: MIT
/*
 * The ring: that it is chosen where it can be and done without where it is forbidden, that
 * registered memory changes nothing but speed, and that what it did in part is finished.
 */
#include "device/real_store.h"
#include "real_rig.h"
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* --- whether there is one --- */

/* From now on this process may not set up a ring. */
static bool forbid_uring(int error)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (u32)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(rules), rules };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#define NO_FILTER 77

static int without_uring(int error)
{
	const char *by_name[] = { "io_engine", "uring", NULL };
	u8 *buf = real_buffer(8192);
	struct real_io io = { .buf = buf };
	struct device *d;
	struct store *s;
	struct rng r;
	int rc;

	rng_init(&r, 1);
	if (!forbid_uring(error))
		return NO_FILTER;
	if (real_device_try(&rc, by_name) || rc != -error)
		return 1;
	d = real_device("auto", "1");
	if (!real_says(d, "file by threads, 0 MiB"))
		return 2;
	if (device_register_memory(d, buf, 8192) != -ENOTSUP)
		return 3;
	if (store_open_fd(d, real_file(real_folder(0), O_RDWR), &s))
		return 4;
	real_submit(&io, s, IO_WRITE, 0, 8192, 4096, &r);
	if (real_wait(&io))
		return 5;
	memset(buf, 0, 8192);
	real_submit(&io, s, IO_READ, 0, 8192, 4096, &r);
	if (real_wait(&io) || buf[8191] != 0xee)
		return 6;
	store_destroy(s);
	device_destroy(d);
	free(buf);
	return 0;
}

static void test_forbidden(void **state)
{
	static const int errors[] = { EPERM, ENOSYS, EINVAL };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (!child)
			_exit(without_uring(errors[i]));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == NO_FILTER) {
			print_message("# skip: system calls cannot be filtered here\n");
			skip();
		}
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static void test_chosen(void **state)
{
	struct device *d;

	(void)state;
	if (!real_has_uring())
		skip();
	d = real_device("auto", "1");
	assert_true(real_says(d, "file by io_uring, 0 MiB of memory registered"));
	device_destroy(d);
	d = real_device("threads", "1");
	assert_true(real_says(d, "file by threads"));
	device_destroy(d);
}

/* Devices come and go, busy and idle, and leave nothing. */
static void test_come_and_go(void **state)
{
	unsigned fds = real_count_fds();
	struct real_io io = { .buf = real_buffer(4096) };
	struct rng r;

	(void)state;
	rng_init(&r, 1);
	for (unsigned i = 0; i < 50; i++) {
		int fd;
		struct store *s = real_open(real_device("auto", "1"), real_folder(0), &fd);

		if (i % 2) {
			real_submit(&io, s, IO_WRITE, 0, 4096, 4096, &r);
			assert_int_equal(real_wait(&io), 0);
		}
		real_close(s, fd);
	}
	assert_int_equal(real_count_fds(), fds);
	free(io.buf);
}

/* --- registered memory --- */

static void test_registered(void **state)
{
	const size_t area = 4 << 20;
	u8 *memory = real_buffer(area + 65536);
	struct real_io io[8];
	struct store *s;
	struct rng r;
	int fd, rc;

	(void)state;
	if (!real_has_uring())
		skip();
	rng_init(&r, 1);
	s = real_open(real_device("uring", "1"), real_folder(0), &fd);
	assert_int_equal(device_register_memory(store_device(s), memory, 0), 0);
	assert_int_equal(device_register_memory(store_device(s), memory, 1ull << 41), -EINVAL);
	rc = device_register_memory(store_device(s), memory, area);
	if (rc == -ENOMEM || rc == -EPERM) {
		print_message("# skip: no right to lock 4 MiB of memory\n");
		real_close(s, fd);
		free(memory);
		skip();
	}
	assert_int_equal(rc, 0);
	assert_true(real_says(store_device(s), "4 MiB of memory registered"));
	for (unsigned round = 0; round < 50; round++) {
		if (round == 25) { /* none for a while, then less of it */
			assert_int_equal(device_register_memory(store_device(s), NULL, 0), 0);
			assert_true(real_says(store_device(s), "0 MiB of memory registered"));
		}
		if (round == 40)
			assert_int_equal(device_register_memory(store_device(s), memory, area / 2),
					 0);
		for (unsigned i = 0; i < 8; i++) {
			/* within it, at its very end, and in the last round across and past it */
			u64 at = i == 7 ? area - 65536 : i * 65536;

			if (round % 10 == 9 && i == 7)
				at = round % 20 == 9 ? area - 32768 : area;
			io[i].buf = memory + at;
			memset(io[i].buf, (int)(1 + i + round), 65536);
			/* one piece, or up to four */
			real_submit(&io[i], s, IO_WRITE, i * 65536, 65536, round % 2 ? 65536 : 4096,
				    &r);
		}
		for (unsigned i = 0; i < 8; i++)
			assert_int_equal(real_wait(&io[i]), 0);
		memset(memory, 0, area + 65536);
		for (unsigned i = 0; i < 8; i++)
			real_submit(&io[i], s, IO_READ, i * 65536, 65536, 65536, &r);
		for (unsigned i = 0; i < 8; i++) {
			assert_int_equal(real_wait(&io[i]), 0);
			for (unsigned b = 0; b < 65536; b += 511)
				assert_int_equal(io[i].buf[b], 1 + i + round);
		}
	}
	real_close(s, fd);
	free(memory);
}

/* --- vectors --- */

static void vector(unsigned pieces, unsigned piece)
{
	u8 *buf = real_buffer((size_t)pieces * 4096);
	struct iovec *vec = calloc(pieces, sizeof(*vec));
	u8 *found = real_buffer((size_t)pieces * piece);
	struct real_io io;
	int fd;
	struct store *s = real_open(real_device("auto", "1"), real_folder(0), &fd);

	assert_non_null(vec);
	for (unsigned i = 0; i < pieces; i++) {
		vec[i] = (struct iovec){ buf + (size_t)i * 4096, piece };
		memset(vec[i].iov_base, (int)(i % 251) + 1, piece);
	}
	for (unsigned op = 0; op < 2; op++) {
		io.io = (struct io){ .store = s,
				     .op = op ? IO_READ : IO_WRITE,
				     .length_bytes = pieces * piece,
				     .vec = vec,
				     .vec_count = pieces,
				     .end = real_end };
		completion_init(&io.done);
		device_submit(store_device(s), &io.io);
		assert_int_equal(real_wait(&io), 0);
		if (!op)
			memset(buf, 0, (size_t)pieces * 4096);
	}
	for (unsigned i = 0; i < pieces; i++)
		for (unsigned b = 0; b < piece; b += 97)
			assert_int_equal(buf[(size_t)i * 4096 + b], i % 251 + 1);
	assert_int_equal(pread(fd, found, (size_t)pieces * piece, 0), pieces * piece);
	assert_int_equal(found[(pieces - 1) * piece], (pieces - 1) % 251 + 1);
	real_close(s, fd);
	free(found);
	free(vec);
	free(buf);
}

static void test_vectors(void **state)
{
	(void)state;
	vector(1, 4096);
	vector(256, 4096);
	vector(257, 4096);
	vector(IOV_MAX, 512);
	vector(IOV_MAX + 1, 512);
	vector(3000, 4096);
	vector(700, 100); /* pieces that O_DIRECT cannot have */
}

/* --- what comes back --- */

/* The results that a ring can have, given to the store: what it makes of them. */
static void test_results(void **state)
{
	static const int again[] = { -EAGAIN, -EINTR, -EINVAL };
	static const int failed[] = { -EIO, -ENOSPC, -ENXIO, -ENODEV };
	u8 *buf = real_buffer(16384);
	struct iovec vec = { buf, 16384 };
	struct io io = { .op = IO_WRITE, .length_bytes = 16384, .vec = &vec, .vec_count = 1 };
	int fd, error;
	struct store *s = real_open(real_device("threads", "1"), real_folder(0), &fd);
	bool (*landed)(struct store * s, struct io * io, s64 result, int *error) = s->ops->landed;

	(void)state;
	io.store = s;
	for (unsigned i = 0; i < ARRAY_SIZE(again); i++)
		assert_false(landed(s, &io, again[i], &error));
	for (unsigned i = 0; i < ARRAY_SIZE(failed); i++) {
		assert_true(landed(s, &io, failed[i], &error));
		assert_int_equal(error, failed[i]);
	}
	/* the first 5,000 bytes were written: the rest is, from there */
	memset(buf, 4, 16384);
	assert_int_equal(pwrite(fd, buf, 5000, 0), 5000);
	memset(buf, 5, 16384);
	assert_false(landed(s, &io, 5000, &error));
	assert_int_equal(store_size(s), 5000);
	assert_int_equal(store_execute(&io), 0);
	assert_int_equal(pread(fd, buf, 16384, 0), 16384);
	assert_int_equal(buf[4999], 4);
	assert_int_equal(buf[5000], 5);
	assert_int_equal(buf[16383], 5);
	assert_true(landed(s, &io, 16384, &error));
	assert_int_equal(error, 0);
	/* a read that fell short: of the end of the file it is over, elsewhere not */
	io.op = IO_READ;
	assert_false(landed(s, &io, 4096, &error));
	store_set_end(s, 4096);
	assert_true(landed(s, &io, 4096, &error));
	assert_int_equal(error, 0);
	assert_int_equal(buf[4095], 4);
	assert_int_equal(buf[4096], 0);
	assert_int_equal(buf[16383], 0);
	real_close(s, fd);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forbidden), /* first: it forks, best without threads */
		cmocka_unit_test(test_chosen),     cmocka_unit_test(test_come_and_go),
		cmocka_unit_test(test_registered), cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
