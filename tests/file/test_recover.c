// SPDX-License-Identifier: MIT
/*
 * The two places that recovered bytes go to, with what the system may refuse: a file that was cut,
 * punched, is on a file system without holes, or may not become that long; and the recovery folder.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "file/recover.h"
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LENGTH 200000

static int no_holes; /* what fallocate(), which is fallocate64() here, fails with; 0: it works */

int __real_fallocate64(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t length);

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t length)
{
	if (!no_holes)
		return __real_fallocate64(fd, mode, offset, length);
	errno = no_holes;
	return -1;
}

static char folder[] = "recover-XXXXXX";

static int remove_all(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) ? -1 : 0;
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

/* A file without a name that has LENGTH bytes of 'a'. */
static int new_file(struct recover_to_file *t)
{
	static char bytes[LENGTH];
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0) { /* such as 9p */
		char path[64];

		snprintf(path, sizeof(path), "%s/file", folder);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		unlink(path);
	}
	assert_true(fd >= 0);
	memset(bytes, 'a', LENGTH);
	assert_int_equal(pwrite(fd, bytes, LENGTH, 0), LENGTH);
	recover_to_file(t, fd);
	return fd;
}

static off_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

static void expect(int fd, off_t from, off_t to, char byte)
{
	static char bytes[LENGTH];

	assert_int_equal(pread(fd, bytes, (size_t)(to - from), from), to - from);
	for (off_t i = 0; i < to - from; i++)
		if (bytes[i] != byte)
			fail_msg("byte %lld is %d", (long long)(from + i), bytes[i]);
}

static void test_a_promise_is_kept(void **state)
{
	struct recover_to_file t;
	int fd = new_file(&t);

	(void)state;
	assert_int_equal(t.target.shrink(&t.target, LENGTH + 1), 0); /* it is not longer */
	assert_int_equal(size_of(fd), LENGTH);
	assert_int_equal(t.target.lengthen(&t.target, LENGTH - 1), 0);
	assert_int_equal(size_of(fd), LENGTH);
	assert_int_equal(t.target.shrink(&t.target, 1000), 0);
	assert_int_equal(size_of(fd), 1000);
	assert_int_equal(t.target.write(&t.target, 500, "bbbb", 4), 0);
	expect(fd, 0, 500, 'a');
	expect(fd, 500, 504, 'b');
	assert_int_equal(t.target.lengthen(&t.target, 3000), 0);
	assert_int_equal(size_of(fd), 3000);
	expect(fd, 1000, 3000, 0);
	close(fd);
}

static void test_zeros_with_holes_and_without(void **state)
{
	static const int errors[] = { 0, EOPNOTSUPP, ENOSYS };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct recover_to_file t;
		int fd = new_file(&t);

		no_holes = errors[i];
		assert_int_equal(t.target.zero(&t.target, 5000, 5000), 0);
		expect(fd, 0, LENGTH, 'a');
		assert_int_equal(t.target.zero(&t.target, 10000, 150000), 0);
		expect(fd, 0, 10000, 'a');
		expect(fd, 10000, 150000, 0);
		expect(fd, 150000, LENGTH, 'a');
		assert_int_equal(t.target.zero(&t.target, 199000, UINT64_MAX), 0);
		assert_int_equal(size_of(fd), LENGTH); /* as it was */
		expect(fd, 199000, LENGTH, 0);
		no_holes = 0;
		close(fd);
	}
}

static void test_errors_of_the_file(void **state)
{
	struct recover_to_file t;
	int fd = new_file(&t);

	(void)state;
	no_holes = EIO;
	assert_int_equal(t.target.zero(&t.target, 0, 10), -EIO);
	no_holes = EOPNOTSUPP;
	close(fd);
	assert_int_equal(t.target.shrink(&t.target, 10), -EBADF);
	assert_int_equal(t.target.lengthen(&t.target, 10), -EBADF);
	assert_int_equal(t.target.write(&t.target, 0, "x", 1), -EBADF);
	assert_int_equal(t.target.zero(&t.target, 0, 10), -EBADF);
	no_holes = 0;
}

/* Past the limit on the size of files a write is a signal, which ends a process. */
static void test_limits_on_sizes(void **state)
{
	struct rlimit before, limit;
	struct recover_to_file t;
	int fd = new_file(&t);

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ LENGTH, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(t.target.write(&t.target, LENGTH - 1, "xy", 2), -EFBIG);
	assert_int_equal(t.target.lengthen(&t.target, LENGTH + 1), -EFBIG);
	assert_int_equal(t.target.write(&t.target, LENGTH - 1, "x", 1), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	close(fd);
}

/* --- aside */

struct arena {
	struct persist persist;
	struct persist_header header;
	struct persist_file files[2];
};

static void make_arena(struct arena *a)
{
	*a = (struct arena){ .header.uuid = "12345678-and-more",
			     .files[1] = { .size = 9000,
					   .name = { .kind = PERSIST_FILE,
						     .device = 7,
						     .number = 11,
						     .path = "/srv/data" } } };
	a->persist.header = &a->header;
	a->persist.files = a->files;
}

static void read_text(const char *path, char *to, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(to, 1, size - 1, f);
	to[n] = 0;
	fclose(f);
}

static void test_bytes_are_set_aside(void **state)
{
	struct recover_aside t;
	struct arena a;
	char path[64], text[400];
	int fd;

	(void)state;
	make_arena(&a);
	snprintf(path, sizeof(path), "%s/aside", folder);
	assert_int_equal(recover_aside_open(&t, &a.persist, 1, path, "it is gone"), 0);
	assert_int_equal(t.target.shrink(&t.target, 5000), 0);
	assert_int_equal(t.target.zero(&t.target, 100, 100), 0);
	assert_int_equal(t.target.zero(&t.target, 100, 300), 0);
	assert_int_equal(t.target.write(&t.target, 4096, "abcd", 4), 0);
	assert_int_equal(t.target.lengthen(&t.target, 6000), 0);
	assert_int_equal(recover_aside_close(&t), 0);
	read_text(t.list_path, text, sizeof(text));
	assert_string_equal(text,
			    "path /srv/data\ndevice 7\ninode 11\nborn 0\nwhy it is gone\n"
			    "length 9000\nsize 5000\nzeros 100 200\nbytes 4096 4\nsize 6000\n");
	snprintf(path, sizeof(path), "%s/aside/12345678-1.bytes", folder);
	assert_string_equal(t.path, path);
	fd = open(path, O_RDONLY);
	assert_int_equal(size_of(fd), 4100);
	expect(fd, 0, 4096, 0);
	assert_int_equal(pread(fd, text, 4, 4096), 4);
	assert_memory_equal(text, "abcd", 4);
	close(fd);
}

static void test_what_cannot_be_set_aside(void **state)
{
	struct rlimit before, limit;
	struct recover_aside t;
	struct arena a;
	char path[64], name[96];

	(void)state;
	make_arena(&a);
	snprintf(path, sizeof(path), "%s/no/such", folder);
	assert_int_equal(recover_aside_open(&t, &a.persist, 1, path, ""), -ENOENT);
	snprintf(path, sizeof(path), "%s/full", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(name, sizeof(name), "%s/12345678-1.list", path);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_int_equal(recover_aside_open(&t, &a.persist, 1, path, ""), -EISDIR);
	assert_int_equal(rmdir(name), 0);
	snprintf(name, sizeof(name), "%s/12345678-1.bytes", path);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(symlink("/etc/hostname", name), 0); /* somebody else's */
	assert_int_equal(recover_aside_open(&t, &a.persist, 1, path, ""), -ELOOP);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(recover_aside_open(&t, &a.persist, 1, path, ""), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){ 10000, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(t.target.write(&t.target, 9999, "xy", 2), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	close(t.fd);
	assert_int_equal(recover_aside_close(&t), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_promise_is_kept),
		cmocka_unit_test(test_zeros_with_holes_and_without),
		cmocka_unit_test(test_errors_of_the_file),
		cmocka_unit_test(test_limits_on_sizes),
		cmocka_unit_test(test_bytes_are_set_aside),
		cmocka_unit_test(test_what_cannot_be_set_aside),
	};

	return cmocka_run_group_tests_name("recover", tests, make_folder, remove_all);
}
