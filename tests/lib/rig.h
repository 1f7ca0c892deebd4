/* SPDX-License-Identifier: MIT */
/* Caches of the library on files of a temporary folder, and a store in memory that can fail. */
#ifndef SLUICE_TESTS_LIB_RIG_H
#define SLUICE_TESTS_LIB_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sluice.h"

#define KIB        1024ull
#define MIB        (1024 * KIB)
#define GIVEN(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* A folder of the test program's own; its files are removed one by one, and it last. */
static char rig_folder[64];

static inline int rig_begin(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(rig_folder, sizeof(rig_folder), "%.40s/sluice-lib-XXXXXX", tmp ? tmp : "/var/tmp");
	return mkdtemp(rig_folder) ? 0 : -1;
}

static inline const char *rig_path(const char *name)
{
	static _Thread_local char path[4][128];
	static _Thread_local unsigned next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", rig_folder, name);
	return p;
}

static inline int rig_end(void **state)
{
	static const char *const names[] = { "f", "g", "h", "link", "small" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(rig_path(names[i]));
	return rmdir(rig_folder);
}

static inline struct sluice *rig_cache(const char *const *settings)
{
	char why[SLUICE_ERROR_MAX] = "untouched";
	struct sluice *c;
	int rc = sluice_create(settings, why, sizeof(why), &c);

	if (rc)
		fail_msg("sluice_create: %d, %s", rc, why);
	assert_string_equal(why, "");
	return c;
}

static inline struct sluice_file *rig_open(struct sluice *c, const char *name, int flags)
{
	struct sluice_file *f;

	assert_int_equal(sluice_open(c, rig_path(name), flags, 0644, &f), 0);
	return f;
}

/* The byte at an offset, by who wrote it; 0 is nobody's. */
static inline uint8_t rig_byte(uint64_t offset, unsigned version)
{
	return version ? (uint8_t)(1 + (offset * 31 + (offset >> 12) * 7 + version * 101) % 255)
		       : 0;
}

static inline void *rig_bytes(uint64_t offset, size_t length, unsigned version)
{
	uint8_t *buf = malloc(length);

	assert_non_null(buf);
	for (size_t i = 0; i < length; i++)
		buf[i] = rig_byte(offset + i, version);
	return buf;
}

static inline void rig_write(struct sluice_file *f, uint64_t offset, size_t length,
			     unsigned version)
{
	void *buf = rig_bytes(offset, length, version);

	assert_int_equal(sluice_pwrite(f, buf, length, offset, 0), length);
	free(buf);
}

static inline void rig_compare(const void *found, uint64_t offset, size_t length, unsigned version)
{
	const uint8_t *buf = found;

	for (size_t i = 0; i < length; i++)
		if (buf[i] != rig_byte(offset + i, version))
			fail_msg("byte %llu is %02x, not that of version %u",
				 (unsigned long long)(offset + i), buf[i], version);
}

static inline void rig_expect(struct sluice_file *f, uint64_t offset, size_t length,
			      unsigned version)
{
	uint8_t *buf = malloc(length);

	memset(buf, 0xa5, length);
	assert_int_equal(sluice_pread(f, buf, length, offset, 0), length);
	rig_compare(buf, offset, length, version);
	free(buf);
}

/* The same of what the file itself has, whatever the cache has. */
static inline void rig_expect_file(const char *name, uint64_t offset, size_t length,
				   unsigned version)
{
	uint8_t *buf = malloc(length);
	int fd = open(rig_path(name), O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, buf, length, (off_t)offset), length);
	close(fd);
	rig_compare(buf, offset, length, version);
	free(buf);
}

static inline uint64_t rig_file_size(const char *name)
{
	struct stat st;

	assert_int_equal(stat(rig_path(name), &st), 0);
	return (uint64_t)st.st_size;
}

static inline struct sluice_stats rig_stats(struct sluice *c)
{
	struct sluice_stats s = { .size = sizeof(s) };

	assert_int_equal(sluice_stats(c, &s), 0);
	assert_int_equal(s.size, sizeof(s));
	return s;
}

/* --- a store in memory, as an object store would be */

#define BUCKET_MAX (8 * MIB)

struct bucket {
	pthread_mutex_t lock; /* protects bytes, size, room */
	uint8_t *bytes;
	uint64_t size;
	uint64_t room; /* of all that may be reserved; 0: there is always room */
	size_t most;   /* of one call; 0: as much as is asked for. Set while nobody calls */
	/* negative errnos that the calls give, 0: none */
	_Atomic int read_error, write_error, flush_error, truncate_error;
	_Atomic unsigned reads, writes, flushes, truncates, reserves, releases;
};

static inline struct bucket *bucket_new(void)
{
	struct bucket *b = calloc(1, sizeof(*b));

	if (!b || !(b->bytes = calloc(1, BUCKET_MAX)))
		abort();
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

static inline void bucket_free(struct bucket *b)
{
	pthread_mutex_destroy(&b->lock);
	free(b->bytes);
	free(b);
}

/* Moves what fits; `most` cuts it. */
static inline ssize_t bucket_move(struct bucket *b, const struct iovec *iov, int count,
				  uint64_t offset, uint64_t end, int to_write)
{
	size_t most = b->most, done = 0;

	for (int i = 0; i < count; i++) {
		size_t n = iov[i].iov_len;

		if (most && n > most - done)
			n = most - done;
		if (offset >= end)
			n = 0;
		else if (n > end - offset)
			n = end - offset;
		if (to_write)
			memcpy(b->bytes + offset, iov[i].iov_base, n);
		else
			memcpy(iov[i].iov_base, b->bytes + offset, n);
		offset += n;
		done += n;
		if (n < iov[i].iov_len)
			break;
	}
	return (ssize_t)done;
}

static inline ssize_t bucket_read(void *ctx, const struct iovec *iov, int count, uint64_t offset)
{
	struct bucket *b = ctx;
	ssize_t n;

	atomic_fetch_add(&b->reads, 1);
	if (b->read_error)
		return b->read_error;
	pthread_mutex_lock(&b->lock);
	n = bucket_move(b, iov, count, offset, b->size, 0);
	pthread_mutex_unlock(&b->lock);
	return n;
}

static inline ssize_t bucket_write(void *ctx, const struct iovec *iov, int count, uint64_t offset)
{
	struct bucket *b = ctx;
	ssize_t n;

	atomic_fetch_add(&b->writes, 1);
	if (b->write_error)
		return b->write_error;
	pthread_mutex_lock(&b->lock);
	n = bucket_move(b, iov, count, offset, BUCKET_MAX, 1);
	if (n > 0 && offset + (uint64_t)n > b->size)
		b->size = offset + (uint64_t)n;
	pthread_mutex_unlock(&b->lock);
	return n;
}

static inline int bucket_flush(void *ctx)
{
	struct bucket *b = ctx;

	atomic_fetch_add(&b->flushes, 1);
	return b->flush_error;
}

static inline int bucket_truncate(void *ctx, uint64_t size)
{
	struct bucket *b = ctx;

	atomic_fetch_add(&b->truncates, 1);
	if (b->truncate_error || size > BUCKET_MAX)
		return b->truncate_error ? b->truncate_error : -EFBIG;
	pthread_mutex_lock(&b->lock);
	if (size < b->size)
		memset(b->bytes + size, 0, b->size - size);
	b->size = size;
	pthread_mutex_unlock(&b->lock);
	return 0;
}

static inline int bucket_reserve(void *ctx, uint64_t offset, uint64_t length)
{
	struct bucket *b = ctx;

	atomic_fetch_add(&b->reserves, 1);
	return b->room && offset + length > b->room ? -ENOSPC : 0;
}

static inline void bucket_release(void *ctx)
{
	struct bucket *b = ctx;

	atomic_fetch_add(&b->releases, 1);
}

static const struct sluice_store bucket_store = {
	.size = sizeof(bucket_store),
	.read = bucket_read,
	.write = bucket_write,
	.flush = bucket_flush,
	.truncate = bucket_truncate,
	.reserve = bucket_reserve,
	.release = bucket_release,
};

static inline struct sluice_file *bucket_open(struct sluice *c, struct bucket *b, int flags)
{
	struct sluice_file *f;
	uint64_t size;

	pthread_mutex_lock(&b->lock);
	size = b->size;
	pthread_mutex_unlock(&b->lock);
	assert_int_equal(sluice_open_store(c, &bucket_store, b, size, flags, &f), 0);
	return f;
}

#endif
