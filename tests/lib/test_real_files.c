// SPDX-License-Identifier: MIT
/* Files of the system's through the cache: every call, and what each refuses. */
#include "rig.h"
#include <sys/resource.h>

static void test_written_is_read_and_kept(void **state)
{
	struct sluice *c = rig_cache(GIVEN("memory=16M"));
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);

	(void)state;
	rig_write(f, 0, 1000000, 1);
	rig_write(f, 777, 5000, 2);
	rig_expect(f, 777, 5000, 2);
	assert_int_equal(sluice_size(f), 1000000);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(rig_file_size("f"), 1000000);
	rig_expect_file("f", 0, 777, 1);
	rig_expect_file("f", 777, 5000, 2);
	rig_expect_file("f", 5777, 994223, 1);
	rig_write(f, 0, 10, 3);
	assert_int_equal(sluice_fdatasync(f), 0);
	rig_expect_file("f", 0, 10, 3);
	rig_write(f, 10, 10, 3);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0); /* flushes */
	rig_expect_file("f", 0, 20, 3);
}

static void test_two_opens_share_one_mapping(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC), *g, *h;

	(void)state;
	unlink(rig_path("link"));
	assert_int_equal(link(rig_path("f"), rig_path("link")), 0);
	g = rig_open(c, "f", O_RDONLY);
	h = rig_open(c, "link", O_RDWR);
	rig_write(f, 0, 10000, 1);
	rig_expect(g, 0, 10000, 1);
	rig_write(h, 5000, 100, 2);
	rig_expect(f, 5000, 100, 2);
	assert_int_equal(sluice_truncate(h, 6000), 0);
	assert_int_equal(sluice_size(g), 6000);
	assert_int_equal(rig_stats(c).files_open, 3);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_close(h), 0);
	rig_expect(g, 5000, 100, 2);
	assert_int_equal(sluice_pwrite(g, "x", 1, 0, 0), -EBADF);
	assert_int_equal(sluice_close(g), 0);
	/* what is cached is found again */
	assert_int_equal(rig_stats(c).files_idle, 1);
	assert_true(rig_stats(c).cached_bytes >= 6000);
	f = rig_open(c, "f", O_RDONLY);
	rig_expect(f, 0, 5000, 1);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void test_vectors(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);
	uint8_t *bytes = rig_bytes(0, 20000, 1), back[20000];
	const struct iovec out[] = {
		{ bytes, 1 }, { bytes + 1, 9999 }, { bytes, 0 }, { bytes + 10000, 10000 }
	};
	const struct iovec in[] = { { back, 7000 }, { back + 7000, 13000 } };

	(void)state;
	assert_int_equal(sluice_pwritev(f, out, 4, 0, 0), 20000);
	assert_int_equal(sluice_preadv(f, in, 2, 0, 0), 20000);
	assert_memory_equal(back, bytes, 20000);
	assert_int_equal(sluice_preadv(f, in, 2, 15000, 0), 5000);
	assert_memory_equal(back, bytes + 15000, 5000);
	assert_int_equal(sluice_preadv(f, in, 0, 0, 0), 0);
	assert_int_equal(sluice_pwritev(f, out, 0, 0, 0), 0);
	assert_int_equal(sluice_preadv(f, in, -1, 0, 0), -EINVAL);
	assert_int_equal(sluice_preadv(f, in, 1025, 0, 0), -EINVAL);
	assert_int_equal(sluice_pwritev(f, out, -1, 0, 0), -EINVAL);
	assert_int_equal(sluice_pwritev(f, out, 1025, 0, 0), -EINVAL);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	free(bytes);
}

static void test_appending(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC), *g;
	uint8_t *bytes = rig_bytes(0, 9000, 1);
	const struct iovec first = { bytes, 4000 }, second = { bytes + 4000, 1000 };
	uint64_t at = 77;

	(void)state;
	assert_int_equal(sluice_append(f, &first, 1, 0, &at), 4000);
	assert_int_equal(at, 0);
	assert_int_equal(sluice_append(f, &second, 1, SLUICE_DSYNC, &at), 1000);
	assert_int_equal(at, 4000);
	assert_int_equal(rig_file_size("f"), 5000);
	assert_int_equal(sluice_append(f, &first, -1, 0, &at), -EINVAL);
	assert_int_equal(sluice_append(f, &first, 1, 8, &at), -EINVAL);
	assert_int_equal(at, 4000);
	g = rig_open(c, "f", O_WRONLY | O_APPEND);
	assert_int_equal(sluice_pwrite(g, bytes + 5000, 4000, 12, 0), 4000);
	assert_int_equal(sluice_append(g, &first, 0, 0, NULL), 0);
	rig_expect(f, 0, 9000, 1);
	assert_int_equal(sluice_close(g), 0);
	g = rig_open(c, "f", O_RDONLY);
	assert_int_equal(sluice_append(g, &first, 1, 0, NULL), -EBADF);
	assert_int_equal(sluice_close(g), 0);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	free(bytes);
}

static void test_flags_of_calls(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);
	uint8_t *bytes = rig_bytes(0, 256 * KIB, 1);
	char buf[4096];

	(void)state;
	assert_int_equal(sluice_pwrite(f, bytes, 256 * KIB, 0, SLUICE_DSYNC), 256 * KIB);
	rig_expect_file("f", 0, 256 * KIB, 1);
	assert_int_equal(rig_stats(c).debt_bytes, 0);
	/* what is not cached can't be had without waiting */
	assert_int_equal(sluice_advise(f, 0, 0, SLUICE_DONTNEED), 0);
	assert_int_equal(sluice_pread(f, buf, 4096, 8192, SLUICE_NOWAIT), -EAGAIN);
	assert_int_equal(sluice_pread(f, buf, 4096, 8192, 0), 4096);
	assert_int_equal(sluice_pread(f, buf, 4096, 8192, SLUICE_NOWAIT), 4096);
	rig_compare(buf, 8192, 4096, 1);
	assert_int_equal(sluice_pwrite(f, bytes, 4096, 0, SLUICE_NOWAIT | SLUICE_DSYNC),
			 -EOPNOTSUPP);
	assert_int_equal(sluice_pwrite(f, bytes + 8192, 4096, 8192, SLUICE_NOWAIT), 4096);
	/* read and gone */
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(sluice_advise(f, 0, 0, SLUICE_DONTNEED), 0);
	assert_int_equal(rig_stats(c).cached_bytes, 0);
	for (uint64_t at = 0; at < 256 * KIB; at += 4096) {
		assert_int_equal(sluice_pread(f, buf, 4096, at, SLUICE_DONTCACHE), 4096);
		rig_compare(buf, at, 4096, 1);
	}
	assert_int_equal(rig_stats(c).cached_bytes, 0);
	assert_int_equal(sluice_pread(f, buf, 1, 0, SLUICE_DSYNC), -EINVAL);
	assert_int_equal(sluice_pread(f, buf, 1, 0, 8), -EINVAL);
	assert_int_equal(sluice_pwrite(f, buf, 1, 0, 8), -EINVAL);
	assert_int_equal(sluice_pwrite(f, buf, 1, UINT64_MAX, 0), -EINVAL);
	assert_int_equal(sluice_pwrite(f, buf, 1, 8ull << 40, 0), -EFBIG);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	free(bytes);
}

static void test_size_and_space(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC), *g;

	(void)state;
	rig_write(f, 0, 100000, 1);
	assert_int_equal(sluice_truncate(f, 50000), 0);
	assert_int_equal(sluice_truncate(f, 200000), 0);
	rig_expect(f, 0, 50000, 1);
	rig_expect(f, 50000, 150000, 0);
	assert_int_equal(sluice_truncate(f, (8ull << 40) + 1), -EFBIG);
	assert_int_equal(sluice_fallocate(f, 0, 200000, 100000), 0);
	assert_int_equal(sluice_size(f), 300000);
	assert_int_equal(sluice_fallocate(f, SLUICE_KEEP_SIZE, 300000, 100000), 0);
	assert_int_equal(sluice_size(f), 300000);
	assert_int_equal(sluice_fallocate(f, SLUICE_PUNCH_HOLE | SLUICE_KEEP_SIZE, 4096, 8192), 0);
	rig_expect(f, 0, 4096, 1);
	rig_expect(f, 4096, 8192, 0);
	rig_expect(f, 12288, 37712, 1);
	assert_int_equal(sluice_fallocate(f, SLUICE_ZERO_RANGE, 20000, 100), 0);
	rig_expect(f, 20000, 100, 0);
	rig_expect(f, 20100, 29900, 1);
	assert_int_equal(sluice_fallocate(f, SLUICE_ZERO_RANGE, 299000, 2000), 0);
	assert_int_equal(sluice_size(f), 301000);
	assert_int_equal(sluice_fallocate(f, SLUICE_PUNCH_HOLE, 0, 4096), -EOPNOTSUPP);
	assert_int_equal(sluice_fallocate(f, 64, 0, 4096), -EOPNOTSUPP);
	assert_int_equal(sluice_fallocate(f, 0, 0, 0), -EINVAL);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(rig_file_size("f"), 301000);
	rig_expect_file("f", 4096, 8192, 0);
	g = rig_open(c, "f", O_RDONLY);
	assert_int_equal(sluice_truncate(g, 0), -EBADF);
	assert_int_equal(sluice_fallocate(g, 0, 0, 1), -EBADF);
	assert_int_equal(sluice_close(g), 0);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void test_seeking_data_and_holes(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);

	(void)state;
	assert_int_equal(sluice_truncate(f, 4 * MIB), 0);
	rig_write(f, 1 * MIB, 8192, 1); /* dirty data is data */
	assert_int_equal(sluice_seek(f, 0, SLUICE_SEEK_DATA), 1 * MIB);
	assert_int_equal(sluice_seek(f, 1 * MIB, SLUICE_SEEK_DATA), 1 * MIB);
	assert_int_equal(sluice_seek(f, 1 * MIB, SLUICE_SEEK_HOLE), 1 * MIB + 8192);
	assert_int_equal(sluice_seek(f, 5, SLUICE_SEEK_HOLE), 5);
	assert_int_equal(sluice_seek(f, 2 * MIB, SLUICE_SEEK_DATA), -ENXIO);
	assert_int_equal(sluice_seek(f, 4 * MIB, SLUICE_SEEK_HOLE), -ENXIO);
	assert_int_equal(sluice_seek(f, 0, SEEK_SET), -EINVAL);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void test_ranges_are_written_when_asked(void **state)
{
	struct sluice *c = rig_cache(GIVEN("vm.dirty_writeback_centisecs=0"));
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);

	(void)state;
	rig_write(f, 0, 1 * MIB, 1);
	assert_int_equal(sluice_sync_file_range(f, 0, 64 * KIB, SLUICE_WRITE | SLUICE_WAIT_AFTER),
			 0);
	rig_expect_file("f", 0, 64 * KIB, 1);
	assert_true(rig_stats(c).debt_bytes < 1 * MIB);
	assert_int_equal(sluice_sync_file_range(f, 0, 0, SLUICE_WRITE), 0);
	assert_int_equal(sluice_sync_file_range(f, 0, 0, SLUICE_WAIT_BEFORE), 0);
	assert_int_equal(rig_stats(c).debt_bytes, 0);
	assert_int_equal(rig_stats(c).in_flight_bytes, 0);
	rig_expect_file("f", 0, 1 * MIB, 1);
	assert_int_equal(sluice_sync_file_range(f, 0, 0, 8), -EINVAL);
	assert_int_equal(sluice_sync_file_range(f, 10, UINT64_MAX, SLUICE_WRITE), -EINVAL);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void test_advice(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);
	char buf[4096];

	(void)state;
	rig_write(f, 0, 1 * MIB, 1);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(sluice_advise(f, 0, 0, SLUICE_DONTNEED), 0);
	assert_int_equal(rig_stats(c).cached_bytes, 0);
	assert_int_equal(sluice_advise(f, 0, 0, SLUICE_RANDOM), 0);
	assert_int_equal(sluice_pread(f, buf, 4096, 0, 0), 4096);
	assert_int_equal(rig_stats(c).cached_bytes, 4096); /* no readahead */
	assert_int_equal(sluice_advise(f, 0, 0, SLUICE_NORMAL), 0);
	assert_int_equal(sluice_advise(f, 0, 0, SLUICE_SEQUENTIAL), 0);
	assert_int_equal(sluice_advise(f, 0, 0, SLUICE_NOREUSE), 0);
	assert_int_equal(sluice_advise(f, 0, 512 * KIB, SLUICE_WILLNEED), 0);
	rig_expect(f, 0, 512 * KIB, 1);
	assert_int_equal(sluice_advise(f, 0, 0, 6), -EINVAL);
	assert_int_equal(sluice_advise(f, 0, 0, -1), -EINVAL);
	assert_int_equal(sluice_advise(f, 1, UINT64_MAX, SLUICE_WILLNEED), -EINVAL);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void test_opening(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct sluice_file *f = (void *)1;

	(void)state;
	unlink(rig_path("g"));
	assert_int_equal(sluice_open(c, rig_path("g"), O_RDWR, 0, &f), -ENOENT);
	assert_int_equal(sluice_open(c, rig_path("no/g"), O_RDWR | O_CREAT, 0644, &f), -ENOENT);
	assert_int_equal(sluice_open(c, rig_folder, O_RDONLY, 0, &f), -EISDIR);
	assert_int_equal(sluice_open(c, "/dev/null", O_RDWR, 0, &f), -EINVAL);
	assert_int_equal(sluice_open(c, rig_path("g"), O_RDWR | O_PATH, 0, &f), -EINVAL);
	assert_ptr_equal(f, (void *)1);
	f = rig_open(c, "g", O_RDWR | O_CREAT | O_EXCL);
	rig_write(f, 0, 100, 1);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_open(c, rig_path("g"), O_RDWR | O_CREAT | O_EXCL, 0644, &f),
			 -EEXIST);
	f = rig_open(c, "g", O_WRONLY | O_TRUNC);
	assert_int_equal(sluice_size(f), 0);
	assert_int_equal(sluice_pread(f, &f, 1, 0, 0), -EBADF);
	assert_int_equal(sluice_close(f), 0);
	unlink(rig_path("h"));
	assert_int_equal(symlink(rig_path("g"), rig_path("h")), 0);
	assert_int_equal(sluice_open(c, rig_path("h"), O_RDONLY | O_NOFOLLOW, 0, &f), -ELOOP);
	f = rig_open(c, "h", O_RDONLY);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(rig_stats(c).files_open, 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
}

static void test_past_the_cache(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);
	struct sluice_file *g = rig_open(c, "f", O_RDWR | O_DIRECT);
	void *buf = NULL;

	(void)state;
	assert_int_equal(posix_memalign(&buf, 4096, 8192), 0);
	rig_write(f, 0, 64 * KIB, 1);
	assert_int_equal(sluice_pread(g, buf, 8192, 4096, 0), 8192); /* written back first */
	rig_compare(buf, 4096, 8192, 1);
	for (size_t i = 0; i < 8192; i++)
		((uint8_t *)buf)[i] = rig_byte(8192 + i, 2);
	assert_int_equal(sluice_pwrite(g, buf, 8192, 8192, 0), 8192);
	rig_expect(f, 8192, 8192, 2);
	rig_expect(f, 0, 8192, 1);
	assert_int_equal(sluice_pread(g, buf, 100, 0, 0), -EINVAL);
	assert_int_equal(sluice_pwrite(g, buf, 4096, 100, 0), -EINVAL);
	assert_int_equal(sluice_pread(g, buf, 4096, 0, SLUICE_NOWAIT), -EOPNOTSUPP);
	assert_int_equal(sluice_close(g), 0);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	free(buf);
}

/* Room that was made before is past it now: the first write-out finds that out, for all others. */
static void test_a_lowered_limit_of_file_sizes(void **state)
{
	struct sluice *c = rig_cache(GIVEN("vm.retry_min_ms=1", "vm.retry_max_ms=1"));
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);
	void *buf = rig_bytes(0, 200 * KIB, 1);
	struct rlimit old, small;

	(void)state;
	rig_write(f, 0, 200 * KIB, 2);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 100 * KIB;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(sluice_pwrite(f, (char *)buf + 120 * KIB, 4 * KIB, 120 * KIB, 0), 4 * KIB);
	assert_int_equal(sluice_fsync(f), -EFBIG);
	assert_int_equal(sluice_pwrite(f, buf, 4 * KIB, 120 * KIB, 0), -EFBIG);
	assert_int_equal(sluice_append(f, &(struct iovec){ buf, 1 }, 1, 0, NULL), -EFBIG);
	assert_int_equal(sluice_pwrite(f, (char *)buf + 92 * KIB, 16 * KIB, 92 * KIB, 0), 8 * KIB);
	assert_int_equal(sluice_fsync(f), -EFBIG); /* until it is safe */
	rig_expect(f, 120 * KIB, 4 * KIB, 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(sluice_pwrite(f, (char *)buf + 160 * KIB, 4 * KIB, 160 * KIB, 0), 4 * KIB);
	assert_int_equal(sluice_fsync(f), 0);
	rig_expect_file("f", 120 * KIB, 4 * KIB, 1);
	rig_expect_file("f", 160 * KIB, 4 * KIB, 1);
	rig_expect_file("f", 92 * KIB, 8 * KIB, 1);
	rig_expect_file("f", 100 * KIB, 20 * KIB, 2);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	free(buf);
}

/* The system would take no byte past it, and kill who tries: so nobody tries. */
static void test_the_limit_of_file_sizes_holds_for_writers(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct sluice_file *f = rig_open(c, "f", O_RDWR | O_CREAT | O_TRUNC);
	void *buf = rig_bytes(0, MIB, 1);
	struct rlimit old, small;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 200 * KIB;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(sluice_pwrite(f, buf, 100 * KIB, 0, 0), 100 * KIB);
	assert_int_equal(sluice_pwrite(f, (char *)buf + 100 * KIB, MIB - 100 * KIB, 100 * KIB, 0),
			 100 * KIB); /* up to there */
	assert_int_equal(sluice_pwrite(f, buf, 1, 200 * KIB, 0), -EFBIG);
	assert_int_equal(sluice_size(f), 200 * KIB);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	rig_expect_file("f", 0, 200 * KIB, 1);
	assert_int_equal(sluice_pwrite(f, buf, 1, 200 * KIB, 0), 1);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_is_read_and_kept),
		cmocka_unit_test(test_two_opens_share_one_mapping),
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_appending),
		cmocka_unit_test(test_flags_of_calls),
		cmocka_unit_test(test_size_and_space),
		cmocka_unit_test(test_seeking_data_and_holes),
		cmocka_unit_test(test_ranges_are_written_when_asked),
		cmocka_unit_test(test_advice),
		cmocka_unit_test(test_opening),
		cmocka_unit_test(test_past_the_cache),
		cmocka_unit_test(test_the_limit_of_file_sizes_holds_for_writers),
		cmocka_unit_test(test_a_lowered_limit_of_file_sizes),
	};

	return cmocka_run_group_tests(tests, rig_begin, rig_end);
}
