/* SPDX-License-Identifier: MIT */
/* Where a slow disk's bytes may lie, and that reads and writes are whole sectors of it. */
#include "mount/backing.h"
#include "tmpfs.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static void opens(struct backing *b, u64 size)
{
	struct err e = { "" };

	assert_int_equal(backing_open(b, path, size, &e), 0);
	assert_string_equal(e.text, "");
}

static void refuses(const char *name, u64 size, int error, const char *text)
{
	struct err e = { "" };
	struct backing b;

	assert_int_equal(backing_open(&b, name, size, &e), error);
	if (!strstr(e.text, text))
		fail_msg("no \"%s\" in \"%s\"", text, e.text);
	assert_int_equal(b.fd, -1);
}

static void has_the_size_asked_for(void **state)
{
	struct backing b;

	(void)state;
	need_tmpfs();
	refuses(path, 0, -ENOENT, "with a size it would be made");
	opens(&b, 1 << 20);
	assert_int_equal(b.size_bytes, 1 << 20);
	assert_int_equal(b.sector_bytes, 512);
	backing_close(&b);
	opens(&b, 0);
	assert_int_equal(b.size_bytes, 1 << 20);
	backing_close(&b);
	opens(&b, 2 << 20);
	assert_int_equal(b.size_bytes, 2 << 20);
	backing_close(&b);
	refuses(path, 1 << 20, -EINVAL, "would cut it off");
	assert_int_equal(truncate(path, 1000), 0);
	refuses(path, 0, -EINVAL, "not made of whole sectors of 512 bytes");
	assert_int_equal(truncate(path, 0), 0);
	refuses(path, 0, -EINVAL, "is empty");
	unlink(path);
}

static void is_a_file_or_a_block_device(void **state)
{
	(void)state;
	need_tmpfs();
	refuses("/dev/null", 0, -EINVAL, "is neither a file nor a block device");
	refuses("/dev/shm/no/such/folder", 4096, -ENOENT, "/dev/shm/no/such/folder");
	refuses(folder, 0, -EISDIR, folder);
	/* its files have no direct I/O, and no pages that stay clean */
	if (!access("/proc/self/comm", W_OK))
		refuses("/proc/self/comm", 0, -EINVAL, "past the page cache");
}

static void keeps_what_is_written(void **state)
{
	static _Alignas(4096) u8 out[8192], in[8192];
	struct backing b;

	(void)state;
	need_tmpfs();
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (u8)(i * 7 + i / 256);
	opens(&b, 64 << 10);
	assert_int_equal(backing_write(&b, out, 8192, 512), 0);
	assert_int_equal(backing_read(&b, in, 8192, 512), 0);
	assert_memory_equal(in, out, 8192);
	assert_int_equal(backing_sync(&b), 0);
	assert_int_equal(backing_punch(&b, 1024, 1024), 0);
	assert_int_equal(backing_read(&b, in, 8192, 512), 0);
	memset(out + 512, 0, 1024);
	assert_memory_equal(in, out, 8192);
	/* in part of a sector, or past the end */
	assert_int_equal(backing_write(&b, out, 100, 0), -EINVAL);
	assert_int_equal(backing_write(&b, out, 512, 100), -EINVAL);
	assert_int_equal(backing_write(&b, out, 8192, (64 << 10) - 4096), -EINVAL);
	assert_int_equal(backing_read(&b, in, 512, 64 << 10), -EINVAL);
	assert_int_equal(backing_read(&b, in, 512, ~511ull), -EINVAL);
	assert_int_equal(backing_punch(&b, 512, 100), -EINVAL);
	/* somebody else cuts it off */
	assert_int_equal(truncate(path, 4096), 0);
	assert_int_equal(backing_read(&b, in, 8192, 0), -EIO);
	backing_close(&b);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_the_size_asked_for),
		cmocka_unit_test(is_a_file_or_a_block_device),
		cmocka_unit_test(keeps_what_is_written),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
