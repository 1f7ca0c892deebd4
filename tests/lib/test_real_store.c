// SPDX-License-Identifier: MIT
/* Stores of the program's own, in memory: all that can be done with them, and all that fails. */
#include "rig.h"

static void test_bytes_go_there_and_come_back(void **state)
{
	struct sluice *c = rig_cache(GIVEN("memory=16M"));
	struct bucket *b = bucket_new();
	struct sluice_file *f = bucket_open(c, b, O_RDWR);

	(void)state;
	rig_write(f, 0, 100000, 1);
	rig_expect(f, 0, 100000, 1);
	assert_int_equal(b->size, 0); /* a cache writes later */
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(b->size, 100000); /* to the byte, though pages are written */
	rig_compare(b->bytes, 0, 100000, 1);
	assert_true(b->flushes > 0);
	rig_write(f, 50000, 100, 2);
	assert_int_equal(sluice_close(f), 0); /* the last close of a store writes */
	rig_compare(b->bytes + 50000, 50000, 100, 2);
	rig_compare(b->bytes + 50100, 50100, 49900, 1);
	assert_int_equal(b->size, 100000);
	assert_int_equal(b->releases, 1);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	assert_int_equal(b->releases, 1);
	bucket_free(b);
}

static void test_what_is_there_is_read(void **state)
{
	struct sluice *c = rig_cache(GIVEN("memory=16M"));
	struct bucket *b = bucket_new();
	void *bytes = rig_bytes(0, 300001, 3);
	struct sluice_file *f;
	char one;

	(void)state;
	memcpy(b->bytes, bytes, 300001);
	b->size = 300001;
	b->most = 1000; /* calls that do not do all are called again */
	f = bucket_open(c, b, O_RDONLY);
	assert_int_equal(sluice_size(f), 300001);
	rig_expect(f, 123, 299878, 3);
	assert_int_equal(sluice_pread(f, &one, 1, 300001, 0), 0);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(b->writes + b->truncates + b->flushes, 0);
	assert_int_equal(b->releases, 1);
	f = bucket_open(c, b, O_RDWR);
	rig_write(f, 300001, 5000, 3);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(b->size, 305001);
	rig_compare(b->bytes, 0, 305001, 3);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	free(bytes);
	bucket_free(b);
}

static void test_opens_of_one_ctx_are_one_file(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct bucket *b = bucket_new(), *other = bucket_new();
	struct sluice_file *f = bucket_open(c, b, O_RDWR), *g = bucket_open(c, b, O_RDONLY);
	struct sluice_file *h = bucket_open(c, other, O_RDWR);

	(void)state;
	rig_write(f, 0, 5000, 1);
	rig_write(h, 0, 3000, 2);
	rig_expect(g, 0, 5000, 1);
	assert_int_equal(sluice_size(h), 3000);
	assert_int_equal(rig_stats(c).files_open, 3);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(b->size, 0); /* not the last one */
	assert_int_equal(b->releases, 0);
	rig_expect(g, 0, 5000, 1);
	assert_int_equal(sluice_close(g), 0);
	rig_compare(b->bytes, 0, 5000, 1);
	assert_int_equal(b->releases, 1);
	assert_int_equal(sluice_close(h), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
	bucket_free(other);
}

static void test_failing_reads(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct bucket *b = bucket_new();
	struct sluice_file *f;
	char buf[4096];

	(void)state;
	b->size = 1 * MIB;
	b->read_error = -ETIMEDOUT;
	f = bucket_open(c, b, O_RDWR);
	assert_int_equal(sluice_pread(f, buf, sizeof(buf), 0, 0), -ETIMEDOUT);
	/* a part of a page can't be written without reading the rest of it */
	assert_int_equal(sluice_pwrite(f, "x", 1, 8192, 0), -ETIMEDOUT);
	b->read_error = 0;
	assert_int_equal(sluice_pread(f, buf, sizeof(buf), 0, 0), sizeof(buf));
	assert_int_equal(sluice_pwrite(f, "x", 1, 8192, 0), 1);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

struct lost {
	uint64_t bytes, pieces, end;
	unsigned version;
	int error;
	void *store_ctx;
	const char *path;
};

static void lose(void *ctx, const struct sluice_loss *loss)
{
	struct lost *l = ctx;

	assert_int_equal(loss->size, sizeof(*loss));
	assert_true(loss->offset >= l->end && loss->length > 0);
	rig_compare(loss->data, loss->offset, loss->length, l->version);
	l->bytes += loss->length;
	l->pieces++;
	l->end = loss->offset + loss->length;
	l->error = loss->error;
	l->store_ctx = loss->store_ctx;
	l->path = loss->path;
}

static void test_failing_writes_keep_data_and_error(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct bucket *b = bucket_new();
	struct sluice_file *f = bucket_open(c, b, O_RDWR), *g = bucket_open(c, b, O_RDWR);

	(void)state;
	rig_write(f, 0, 200000, 1);
	b->write_error = -EDQUOT;
	for (unsigned i = 0; i < 3; i++) { /* to everybody, each time */
		assert_int_equal(sluice_fsync(f), -EDQUOT);
		assert_int_equal(sluice_fdatasync(g), -EDQUOT);
	}
	assert_int_equal(sluice_sync(c, NULL, NULL), -EDQUOT);
	assert_true(rig_stats(c).write_errors > 0);
	assert_true(rig_stats(c).debt_bytes >= 200000);
	rig_expect(g, 0, 200000, 1);
	assert_int_equal(sluice_close(g), 0);
	assert_int_equal(sluice_close(f), -EDQUOT);
	rig_expect(f, 0, 200000, 1); /* it is open still */
	assert_int_equal(sluice_destroy(c, NULL, NULL), -EBUSY);
	b->write_error = 0;
	assert_int_equal(sluice_fsync(f), 0);
	rig_compare(b->bytes, 0, 200000, 1);
	assert_int_equal(rig_stats(c).debt_bytes, 0);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

struct unsafe_seen {
	uint64_t runs, bytes, first;
	int error;
	void *store_ctx;
	const char *path;
};

static void see_unsafe(void *ctx, const struct sluice_unsafe *what)
{
	struct unsafe_seen *seen = ctx;

	assert_int_equal(what->size, sizeof(*what));
	assert_true(what->ino > 0);
	if (!seen->runs++)
		seen->first = what->offset;
	seen->bytes += what->length;
	seen->error = what->error;
	seen->store_ctx = what->store_ctx;
	seen->path = what->path;
}

/* Statistics, a list and an event name what could not be written: file, range and error. */
static void test_what_is_unsafe_is_named(void **state)
{
	struct sluice *c = rig_cache(GIVEN("memory=16M", "vm.retry_min_ms=10000"));
	struct bucket *b = bucket_new();
	struct sluice_file *f = bucket_open(c, b, O_RDWR);
	struct unsafe_seen seen = { 0 };
	static struct sluice_event events[512];
	unsigned failed = 0;
	ssize_t n;

	(void)state;
	rig_write(f, 0, 100000, 1);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(sluice_show_unsafe(c, see_unsafe, &seen), 0);
	assert_int_equal(seen.runs, 0);
	assert_int_equal(sluice_trace_start(c, 0), 0);
	b->write_error = -EIO;
	rig_write(f, 8192, 4096, 2);
	rig_write(f, 40960, 10000, 2);
	assert_int_equal(sluice_fsync(f), -EIO);
	assert_int_equal(sluice_show_unsafe(c, see_unsafe, &seen), 0);
	assert_int_equal(seen.runs, 2);
	assert_int_equal(seen.first, 8192);
	assert_int_equal(seen.bytes, 4096 + 12288);
	assert_int_equal(seen.error, -EIO);
	assert_ptr_equal(seen.store_ctx, b);
	assert_null(seen.path);
	assert_int_equal(rig_stats(c).unsafe_bytes, 4096 + 12288);
	assert_int_equal(rig_stats(c).unsafe_files, 1);
	n = sluice_trace_read(c, events, 512, NULL);
	for (ssize_t i = 0; i < n; i++) {
		if (strcmp(sluice_event_name(events[i].kind), "sluice_write_failed") != 0)
			continue;
		assert_string_equal(sluice_event_field(events[i].kind, 4), "error");
		assert_int_equal(events[i].field[1], 1);
		/* in whatever order the two I/Os ended */
		assert_true(events[i].field[2] == 40960 || events[i].field[2] == 8192);
		assert_int_equal(events[i].field[3], events[i].field[2] == 8192 ? 4096 : 12288);
		assert_int_equal(events[i].field[4], -EIO);
		failed++;
	}
	assert_int_equal(failed, 2);
	b->write_error = 0;
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(rig_stats(c).unsafe_bytes, 0);
	assert_int_equal(rig_stats(c).unsafe_files, 0);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

static void test_discarding_tells_what_goes(void **state)
{
	struct sluice *c = rig_cache(GIVEN("memory=16M"));
	struct bucket *b = bucket_new();
	struct sluice_file *f = bucket_open(c, b, O_RDWR);
	struct lost lost = { .version = 2 };

	(void)state;
	rig_write(f, 0, 100000, 1);
	assert_int_equal(sluice_fsync(f), 0);
	b->write_error = -EIO;
	rig_write(f, 40960, 8192, 2);
	rig_write(f, 98304, 5000, 2); /* the last page and past the old end */
	assert_int_equal(sluice_fsync(f), -EIO);
	assert_int_equal(sluice_close(f), -EIO);
	assert_int_equal(sluice_discard(f, lose, &lost), 0);
	assert_int_equal(lost.bytes, 8192 + 5000);
	assert_int_equal(lost.error, -EIO);
	assert_ptr_equal(lost.store_ctx, b);
	assert_null(lost.path);
	assert_int_equal(rig_stats(c).debt_bytes, 0);
	assert_int_equal(sluice_size(f), 100000);
	rig_expect(f, 0, 100000, 1);
	assert_int_equal(sluice_fsync(f), 0); /* nothing is owed any more */
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(b->releases, 1);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

static void test_small_blocks_that_are_lost(void **state)
{
	struct sluice *c = rig_cache(GIVEN("block_bytes=512"));
	struct bucket *b = bucket_new();
	struct sluice_file *f;
	struct lost lost = { .version = 2 };

	(void)state;
	b->size = 64 * KIB;
	b->write_error = -EIO;
	f = bucket_open(c, b, O_RDWR);
	rig_write(f, 512, 512, 2);
	rig_write(f, 2048, 1024, 2);
	rig_write(f, 7 * 512, 1024, 2); /* the last block of a page and the first of the next */
	assert_int_equal(sluice_discard(f, lose, &lost), 0);
	assert_int_equal(lost.bytes, 512 + 1024 + 1024);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

static void test_failing_flushes(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct bucket *b = bucket_new();
	struct sluice_file *f = bucket_open(c, b, O_RDWR);

	(void)state;
	rig_write(f, 0, 4096, 1);
	b->flush_error = -EIO;
	assert_int_equal(sluice_fsync(f), -EIO);
	b->flush_error = 0;
	/* what the failed one was to make safe may be lost: that one succeeds now proves nothing */
	assert_int_equal(sluice_fsync(f), -EIO);
	assert_int_equal(sluice_close(f), -EIO);
	assert_int_equal(sluice_discard(f, NULL, NULL), 0);
	rig_write(f, 4096, 4096, 1);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(b->releases, 1);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

/* Answers that are neither a count of what was asked for nor an error. */
static ssize_t odd_answer;
static int flush_is_odd;

static ssize_t odd_read(void *ctx, const struct iovec *iov, int count, uint64_t offset)
{
	return odd_answer ? odd_answer : bucket_read(ctx, iov, count, offset);
}

static ssize_t odd_write(void *ctx, const struct iovec *iov, int count, uint64_t offset)
{
	return odd_answer ? odd_answer : bucket_write(ctx, iov, count, offset);
}

static int odd_flush(void *ctx)
{
	return odd_answer && flush_is_odd ? (int)odd_answer : bucket_flush(ctx);
}

static int odd_truncate(void *ctx, uint64_t size)
{
	return odd_answer ? (int)odd_answer : bucket_truncate(ctx, size);
}

static int odd_reserve(void *ctx, uint64_t offset, uint64_t length)
{
	return odd_answer ? (int)odd_answer : bucket_reserve(ctx, offset, length);
}

static void expect_odd_answers_are_errors(struct sluice_file *f, ssize_t answer)
{
	char byte = 1;

	odd_answer = answer;
	assert_int_equal(sluice_pread(f, &byte, 1, 0, 0), -EIO);
	if ((int)answer) {
		assert_int_equal(sluice_pwrite(f, &byte, 1, 32 * MIB, 0), -EIO);
		assert_int_equal(sluice_truncate(f, 5000), -EIO);
		assert_int_equal(sluice_fallocate(f, SLUICE_KEEP_SIZE, 40 * MIB, 1), -EIO);
		flush_is_odd = 1;
		assert_int_equal(sluice_fsync(f), -EIO);
		flush_is_odd = 0;
		assert_int_equal(sluice_discard(f, NULL, NULL), 0);
	}
	assert_int_equal(sluice_size(f), 65536);
	odd_answer = 0;
	rig_write(f, 0, 65536, 1);
	odd_answer = answer;
	assert_int_equal(sluice_fsync(f), -EIO);
	odd_answer = 0;
	rig_expect(f, 0, 65536, 1); /* none of it counts as written */
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(sluice_advise(f, 0, 0, SLUICE_DONTNEED), 0);
}

static void test_odd_answers_are_errors(void **state)
{
	const struct sluice_store ops = {
		.size = sizeof(ops),
		.read = odd_read,
		.write = odd_write,
		.flush = odd_flush,
		.truncate = odd_truncate,
		.reserve = odd_reserve,
	};
	static const ssize_t odd[] = {
		1 << 20, INT32_MAX, -4096, INT32_MIN, -(1ll << 32), INT64_MIN
	};
	struct sluice *c = rig_cache(GIVEN("memory=16M", "vm.dirty_writeback_centisecs=0"));
	struct bucket *b = bucket_new();
	struct sluice_file *f;

	(void)state;
	assert_int_equal(sluice_open_store(c, &ops, b, 0, O_RDWR, &f), 0);
	rig_write(f, 0, 65536, 1);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(sluice_advise(f, 0, 0, SLUICE_DONTNEED), 0);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		expect_odd_answers_are_errors(f, odd[i]);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

static void test_sizes(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct bucket *b = bucket_new();
	struct sluice_file *f = bucket_open(c, b, O_RDWR);

	(void)state;
	rig_write(f, 0, 10000, 1);
	assert_int_equal(sluice_truncate(f, 5000), 0);
	assert_int_equal(sluice_size(f), 5000);
	assert_int_equal(sluice_truncate(f, 20000), 0);
	rig_expect(f, 0, 5000, 1);
	rig_expect(f, 5000, 15000, 0);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(b->size, 20000);
	rig_compare(b->bytes, 0, 5000, 1);
	rig_compare(b->bytes + 5000, 5000, 15000, 0);
	rig_write(f, 0, 20000, 2);
	b->truncate_error = -EPERM;
	assert_int_equal(sluice_truncate(f, 100), -EPERM);
	assert_int_equal(sluice_size(f), 20000);
	rig_expect(f, 0, 20000, 2); /* what was dirty is not lost */
	assert_int_equal(sluice_truncate(f, 30000), -EPERM);
	assert_int_equal(sluice_size(f), 20000);
	b->truncate_error = 0;
	assert_int_equal(sluice_close(f), 0);
	f = bucket_open(c, b, O_RDWR | O_TRUNC);
	assert_int_equal(sluice_size(f), 0);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(b->size, 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

static void test_a_full_store_says_so_to_the_writer(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct bucket *b = bucket_new();
	struct sluice_file *f = bucket_open(c, b, O_RDWR);
	void *buf = rig_bytes(0, 65536, 1);

	(void)state;
	b->room = 32768;
	rig_write(f, 0, 32768, 1);
	assert_int_equal(sluice_pwrite(f, (char *)buf + 32768, 4096, 32768, 0), -ENOSPC);
	assert_int_equal(sluice_size(f), 32768);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(sluice_fallocate(f, SLUICE_KEEP_SIZE, 0, 65536), -ENOSPC);
	b->room = 65536;
	assert_int_equal(sluice_fallocate(f, 0, 0, 65536), 0);
	assert_int_equal(sluice_size(f), 65536);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	free(buf);
	bucket_free(b);
}

static void test_a_store_that_can_only_be_read(void **state)
{
	const struct sluice_store bare = { .size = sizeof(bare), .read = bucket_read };
	struct sluice *c = rig_cache(NULL);
	struct bucket *b = bucket_new();
	struct sluice_file *f;
	char buf[16];

	(void)state;
	b->size = 8192;
	assert_int_equal(sluice_open_store(c, &bare, b, 8192, O_RDWR, &f), -EROFS);
	assert_int_equal(sluice_open_store(c, &bare, b, 8192, O_WRONLY, &f), -EROFS);
	assert_int_equal(sluice_open_store(c, &bare, b, 8192, O_RDONLY, &f), 0);
	assert_int_equal(sluice_pread(f, buf, 16, 8190, 0), 2);
	assert_int_equal(sluice_pwrite(f, buf, 16, 0, 0), -EBADF);
	assert_int_equal(sluice_truncate(f, 0), -EBADF);
	assert_int_equal(sluice_fsync(f), 0);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	assert_int_equal(b->releases, 0);
	bucket_free(b);
}

static void test_a_store_with_the_least(void **state)
{
	const struct sluice_store plain = { .size = sizeof(plain),
					    .read = bucket_read,
					    .write = bucket_write };
	struct sluice *c = rig_cache(NULL);
	struct bucket *b = bucket_new();
	struct sluice_file *f;

	(void)state;
	assert_int_equal(sluice_open_store(c, &plain, b, 0, O_RDWR, &f), 0);
	rig_write(f, 0, 9000, 1);
	assert_int_equal(sluice_fsync(f), 0); /* its writes are safe at once */
	rig_compare(b->bytes, 0, 9000, 1);
	assert_int_equal(sluice_truncate(f, 100), -EOPNOTSUPP);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

static void test_tables_of_other_ages(void **state)
{
	struct {
		struct sluice_store known;
		uint64_t unknown;
	} newer = { .known = bucket_store };
	struct sluice_store older = bucket_store, none = bucket_store;
	struct sluice *c = rig_cache(NULL);
	struct bucket *b = bucket_new();
	struct sluice_file *f;

	(void)state;
	newer.known.size = sizeof(newer);
	assert_int_equal(sluice_open_store(c, &newer.known, b, 0, O_RDWR, &f), 0);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(b->releases, 1);
	newer.unknown = 1; /* it wants what we can't do */
	assert_int_equal(sluice_open_store(c, &newer.known, b, 0, O_RDWR, &f), -EINVAL);
	/* of an age before release(): it is not looked at */
	older.size = offsetof(struct sluice_store, release);
	assert_int_equal(sluice_open_store(c, &older, b, 0, O_RDWR, &f), 0);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(b->releases, 1);
	older.size = offsetof(struct sluice_store, write);
	assert_int_equal(sluice_open_store(c, &older, b, 0, O_RDONLY, &f), 0);
	assert_int_equal(sluice_close(f), 0);
	older.size = 8;
	assert_int_equal(sluice_open_store(c, &older, b, 0, O_RDONLY, &f), -EINVAL);
	older.size = 20;
	assert_int_equal(sluice_open_store(c, &older, b, 0, O_RDONLY, &f), -EINVAL);
	none.read = NULL;
	assert_int_equal(sluice_open_store(c, &none, b, 0, O_RDONLY, &f), -EINVAL);
	assert_int_equal(sluice_open_store(c, &bucket_store, b, 0, O_RDWR | O_CREAT, &f), -EINVAL);
	assert_int_equal(sluice_open_store(c, &bucket_store, b, 0, O_ACCMODE, &f), -EINVAL);
	assert_int_equal(sluice_open_store(c, &bucket_store, b, (8ull << 40) + 1, O_RDWR, &f),
			 -EFBIG);
	assert_int_equal(b->releases, 1);
	assert_int_equal(rig_stats(c).files_open, 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	bucket_free(b);
}

static void test_appending_and_dsync_by_flags_of_the_open(void **state)
{
	struct sluice *c = rig_cache(NULL);
	struct bucket *b = bucket_new();
	struct sluice_file *f = bucket_open(c, b, O_WRONLY | O_APPEND | O_DSYNC);
	void *buf = rig_bytes(0, 3000, 1);
	char one;

	(void)state;
	assert_int_equal(sluice_pwrite(f, buf, 1000, 7777, 0), 1000);
	assert_int_equal(b->size, 1000);
	assert_int_equal(b->flushes, 1);
	assert_int_equal(sluice_pwrite(f, (char *)buf + 1000, 2000, 0, 0), 2000);
	assert_int_equal(b->size, 3000);
	rig_compare(b->bytes, 0, 3000, 1);
	assert_int_equal(sluice_pread(f, &one, 1, 0, 0), -EBADF);
	assert_int_equal(sluice_close(f), 0);
	assert_int_equal(sluice_destroy(c, NULL, NULL), 0);
	free(buf);
	bucket_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_go_there_and_come_back),
		cmocka_unit_test(test_what_is_there_is_read),
		cmocka_unit_test(test_opens_of_one_ctx_are_one_file),
		cmocka_unit_test(test_failing_reads),
		cmocka_unit_test(test_failing_writes_keep_data_and_error),
		cmocka_unit_test(test_what_is_unsafe_is_named),
		cmocka_unit_test(test_discarding_tells_what_goes),
		cmocka_unit_test(test_small_blocks_that_are_lost),
		cmocka_unit_test(test_failing_flushes),
		cmocka_unit_test(test_odd_answers_are_errors),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_a_full_store_says_so_to_the_writer),
		cmocka_unit_test(test_a_store_that_can_only_be_read),
		cmocka_unit_test(test_a_store_with_the_least),
		cmocka_unit_test(test_tables_of_other_ages),
		cmocka_unit_test(test_appending_and_dsync_by_flags_of_the_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
