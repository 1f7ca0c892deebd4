/* SPDX-License-Identifier: MIT */
/*
 * Devices of model "file" in the real world, files that vanish by themselves, and a model of a
 * file's contents to compare with.
 */
#ifndef SLUICE_TESTS_DEVICE_REAL_RIG_H
#define SLUICE_TESTS_DEVICE_REAL_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "device/device.h"
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes that a random test plays with; a model of them that needs no wider numbers. */
#define REAL_BYTES (1u << 20)
#define REAL_LANES 8 /* I/Os in flight at a time */

struct real_model {
	u8 bytes[REAL_BYTES]; /* zero from `end` on */
	u64 end, size;        /* of the file for its users; on the device */
};

static inline bool real_soak(void)
{
	return getenv("SLUICE_SOAK") != NULL;
}

/* A device of model "file"; keys and values follow, up to NULL. NULL: there is none, why in *rc */
static inline struct device *real_device_try(int *rc, const char *const *settings)
{
	struct device_config c;
	struct device *d = NULL;
	struct err e = { "" };

	assert_int_equal(device_config_init(&c, "file"), 0);
	for (; settings && *settings; settings += 2)
		assert_int_equal(device_config_set(&c, settings[0], settings[1], &e), 0);
	*rc = device_create(&c, &d);
	return *rc ? NULL : d;
}

static inline struct device *real_device(const char *engine, const char *direct)
{
	const char *settings[] = { "io_engine", engine, "direct", direct, NULL };
	int rc;
	struct device *d = real_device_try(&rc, settings);

	assert_int_equal(rc, 0);
	assert_non_null(d);
	return d;
}

/* Whether this kernel lets us have a ring; says so if not. */
static inline bool real_has_uring(void)
{
	const char *settings[] = { "io_engine", "uring", NULL };
	int rc;
	struct device *d = real_device_try(&rc, settings);

	if (d)
		device_destroy(d);
	else
		print_message("# skip: no io_uring here: %s\n", strerror(-rc));
	return d != NULL;
}

/* The folders files are made in: where temporary files go, and one in memory. */
static inline const char *real_folder(unsigned i)
{
	const char *tmp = getenv("TMPDIR");

	return i ? "/dev/shm" : tmp && *tmp ? tmp : "/tmp";
}

/* A file without a name, so that it is gone whatever happens to the test. */
static inline int real_file(const char *folder, int flags)
{
	char path[4096];
	int fd, again;

	snprintf(path, sizeof(path), "%s/sluice-device-XXXXXX", folder);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	again = open(path, flags | O_CLOEXEC);
	unlink(path);
	close(fd);
	assert_true(again >= 0);
	return again;
}

static inline unsigned real_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline u8 *real_buffer(size_t bytes)
{
	void *p = NULL;

	if (posix_memalign(&p, PAGE_SIZE, bytes) || !p)
		abort();
	memset(p, 0xee, bytes);
	return p;
}

static inline int real_transfer(struct store *s, enum io_op op, u64 offset, void *buf, u32 length)
{
	struct iovec vec = { buf, length };
	struct io io = { .store = s,
			 .op = op,
			 .offset_bytes = offset,
			 .length_bytes = length,
			 .vec = &vec,
			 .vec_count = 1 };

	return device_submit_wait(store_device(s), &io);
}

static inline int real_flush(struct store *s)
{
	struct io io = { .store = s, .op = IO_FLUSH };

	return device_submit_wait(store_device(s), &io);
}

/* A new file as a store, and *fd for looking at it past the store. */
static inline struct store *real_open(struct device *d, const char *folder, int *fd)
{
	struct store *s;

	*fd = real_file(folder, O_RDWR);
	assert_int_equal(store_open_fd(d, fcntl(*fd, F_DUPFD_CLOEXEC, 0), &s), 0);
	return s;
}

/* Its device goes, too. */
static inline void real_close(struct store *s, int fd)
{
	struct device *d = store_device(s);

	store_destroy(s);
	device_destroy(d);
	close(fd);
}

static inline u64 real_size(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (u64)st.st_size;
}

static inline bool real_says(struct device *d, const char *what)
{
	char text[200];

	device_describe(d, text, sizeof(text));
	return strstr(text, what) != NULL;
}

/* --- I/Os in flight --- */

struct real_io {
	struct io io;
	struct completion done;
	struct iovec vec[4];
	u8 *buf;
};

static inline void real_end(struct io *io, int error)
{
	struct real_io *r = container_of(io, struct real_io, io);

	assert(io->error == error);
	completion_done(&r->done);
}

/* Submits an I/O of length bytes at buf, in up to 4 pieces whose lengths are multiples of unit. */
static inline void real_submit(struct real_io *r, struct store *s, enum io_op op, u64 offset,
			       u32 length, u32 unit, struct rng *rng)
{
	u32 at = 0, n = 0;

	while (at < length) {
		u32 left = length - at, units = left / unit;
		u32 piece = n == 3 || units < 2 ? left : unit * (1 + (u32)rng_below(rng, units));

		r->vec[n++] = (struct iovec){ r->buf + at, piece };
		at += piece;
	}
	r->io = (struct io){ .store = s,
			     .op = op,
			     .offset_bytes = offset,
			     .length_bytes = length,
			     .vec = r->vec,
			     .vec_count = n,
			     .end = real_end };
	completion_init(&r->done);
	device_submit(store_device(s), &r->io);
}

static inline int real_wait(struct real_io *r)
{
	completion_wait(&r->done);
	return r->io.error;
}

/* --- random operations against the model; real_ops.c --- */

/*
 * Plays `rounds` random operations on the store, which is empty, with everything the file layer
 * does to one: I/Os of whole blocks of `unit` bytes in flight together, some of single bytes,
 * truncation, holes. m is what must then be in the store.
 */
void real_play(struct store *s, struct real_model *m, u64 seed, unsigned rounds, u32 unit);

#endif
