// SPDX-License-Identifier: MIT
/*
 * The operating system as an engine for jobs: each call is a system call. What comes out says
 * what the kernel's own page cache does, beside what ours does with the same jobs.
 *
 * DONTCACHE is a flag of each read and write (RWF_DONTCACHE, Linux 6.14), and file systems
 * know it or not; opening a file asks, by a read of one byte.
 */
#include "job/engine_posix.h"
#include "base/bits.h"
#include "base/rng.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x80
#endif

#define LAY_OUT_BLOCK (1u << 20)

struct job_file {
	int fd;
	int io_flags; /* of preadv2(2) and pwritev2(2) */
	unsigned flags;
	char *map; /* NULL: it is read and written */
	u64 map_start, map_bytes;
};

static int open_flags(unsigned flags)
{
	return (flags & JOB_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC |
	       (flags & JOB_CREATE ? O_CREAT : 0) | (flags & JOB_DIRECT ? O_DIRECT : 0) |
	       (flags & JOB_SYNC ? O_SYNC : 0) | (flags & JOB_DSYNC ? O_DSYNC : 0) |
	       (flags & JOB_TRUNCATE ? O_TRUNC : 0);
}

/* -EOPNOTSUPP if the kernel or the file system knows no DONTCACHE. */
static int probe_dontcache(int fd)
{
	char byte;
	struct iovec v = { &byte, 1 };

	return preadv2(fd, &v, 1, 0, RWF_DONTCACHE) < 0 ? -errno : 0;
}

static int posix_open(struct job_engine *je, const char *path, unsigned flags,
		      struct job_file **out)
{
	struct job_file *f = calloc(1, sizeof(*f));
	int rc = 0;

	(void)je;
	if (!f)
		return -ENOMEM;
	f->fd = open(path, open_flags(flags), 0644);
	if (f->fd < 0)
		rc = -errno;
	/* direct I/O leaves nothing in the cache anyway */
	if (!rc && (flags & JOB_DONTCACHE) && !(flags & JOB_DIRECT)) {
		rc = probe_dontcache(f->fd);
		f->io_flags = RWF_DONTCACHE;
	}
	if (rc) {
		if (f->fd >= 0)
			close(f->fd);
		free(f);
		return rc;
	}
	f->flags = flags;
	*out = f;
	return 0;
}

static int posix_map(struct job_file *f, u64 offset, u64 len)
{
	int how = PROT_READ | (f->flags & JOB_WRITE ? PROT_WRITE : 0);
	u64 start = round_down(offset, PAGE_SIZE);
	void *map = mmap(NULL, offset + len - start, how, MAP_SHARED, f->fd, (off_t)start);

	if (map == MAP_FAILED)
		return -errno;
	f->map = map;
	f->map_start = start;
	f->map_bytes = offset + len - start;
	return 0;
}

/* Copies from or to the map, of a part that it has. */
static ssize_t map_copy(struct job_file *f, void *to, const void *from, size_t len, u64 offset)
{
	u64 at = offset - f->map_start, page = round_down(at, PAGE_SIZE);

	if (offset < f->map_start || at + len > f->map_bytes)
		return -EFAULT;
	memcpy(to ? to : f->map + at, from ? from : f->map + at, len);
	/* a map has no O_DIRECT: as in fio, what was touched is written out at once instead */
	if (f->flags & JOB_DIRECT && msync(f->map + page, at + len - page, MS_SYNC))
		return -errno;
	return (ssize_t)len;
}

static void posix_close(struct job_file *f)
{
	if (f->map)
		munmap(f->map, f->map_bytes);
	close(f->fd);
	free(f);
}

static ssize_t posix_pread(struct job_file *f, void *buf, size_t len, u64 offset)
{
	struct iovec v = { buf, len };
	ssize_t got;

	if (f->map)
		return map_copy(f, buf, NULL, len, offset);
	do
		got = f->io_flags ? preadv2(f->fd, &v, 1, (off_t)offset, f->io_flags)
				  : pread(f->fd, buf, len, (off_t)offset);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static ssize_t posix_pwrite(struct job_file *f, const void *buf, size_t len, u64 offset)
{
	struct iovec v = { (void *)buf, len };
	ssize_t put;

	if (f->map)
		return map_copy(f, NULL, buf, len, offset);
	do
		put = f->io_flags ? pwritev2(f->fd, &v, 1, (off_t)offset, f->io_flags)
				  : pwrite(f->fd, buf, len, (off_t)offset);
	while (put < 0 && errno == EINTR);
	return put < 0 ? -errno : put;
}

static int posix_fsync(struct job_file *f, bool data_only)
{
	if (f->map)
		return msync(f->map, f->map_bytes, MS_SYNC) ? -errno : 0;
	return (data_only ? fdatasync(f->fd) : fsync(f->fd)) ? -errno : 0;
}

static int posix_advise(struct job_file *f, u64 offset, u64 len, enum job_advice advice)
{
	static const int to_system[] = {
		[JOB_ADV_NORMAL] = POSIX_FADV_NORMAL,
		[JOB_ADV_SEQUENTIAL] = POSIX_FADV_SEQUENTIAL,
		[JOB_ADV_RANDOM] = POSIX_FADV_RANDOM,
		[JOB_ADV_WILLNEED] = POSIX_FADV_WILLNEED,
		[JOB_ADV_DONTNEED] = POSIX_FADV_DONTNEED,
		[JOB_ADV_NOREUSE] = POSIX_FADV_NOREUSE,
	};
	static const int for_map[] = {
		[JOB_ADV_NORMAL] = MADV_NORMAL,
		[JOB_ADV_SEQUENTIAL] = MADV_SEQUENTIAL,
		[JOB_ADV_RANDOM] = MADV_RANDOM,
	};

	if ((size_t)advice >= ARRAY_SIZE(to_system))
		return -EINVAL;
	if (f->map && advice <= JOB_ADV_RANDOM && madvise(f->map, f->map_bytes, for_map[advice]))
		return -errno;
	return -posix_fadvise(f->fd, (off_t)offset, (off_t)len, to_system[advice]);
}

/* Devices have the size they have. */
static bool is_device(int fd)
{
	struct stat s;

	return !fstat(fd, &s) && (S_ISBLK(s.st_mode) || S_ISCHR(s.st_mode));
}

static int posix_truncate(struct job_file *f, u64 size)
{
	if (is_device(f->fd))
		return 0;
	return ftruncate(f->fd, (off_t)size) ? -errno : 0;
}

/* Of a block device too. */
static u64 posix_size(struct job_file *f)
{
	off_t end = lseek(f->fd, 0, SEEK_END);

	return end < 0 ? 0 : (u64)end;
}

/* Devices stay. */
static int posix_unlink(struct job_engine *je, const char *path)
{
	struct stat s;

	(void)je;
	if (!lstat(path, &s) && !S_ISREG(s.st_mode) && !S_ISLNK(s.st_mode))
		return 0;
	return unlink(path) ? -errno : 0;
}

static int write_all(int fd, const u8 *buf, size_t length, u64 offset)
{
	while (length) {
		ssize_t put = pwrite(fd, buf, length, (off_t)offset);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -ENOSPC;
		buf += put;
		length -= (size_t)put;
		offset += (u64)put;
	}
	return 0;
}

/* What the file lacks, with contents that no device can make small. */
static int fill_up(int fd, u64 size)
{
	off_t end = lseek(fd, 0, SEEK_END);
	u64 *block = malloc(LAY_OUT_BLOCK);
	struct rng rng;
	int rc = end < 0 ? -errno : block ? 0 : -ENOMEM;

	rng_init(&rng, (u64)end);
	for (size_t i = 0; i < LAY_OUT_BLOCK / sizeof(u64) && !rc; i++)
		block[i] = rng_u64(&rng);
	for (u64 at = (u64)end, length; at < size && !rc; at += length) {
		length = min_u64(LAY_OUT_BLOCK - at % LAY_OUT_BLOCK, size - at);
		block[0] = at;
		rc = write_all(fd, (const u8 *)block, length, at);
	}
	free(block);
	if (!rc && fsync(fd))
		rc = -errno;
	return rc;
}

int posix_lay_out(const char *path, u64 size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644), rc;

	if (fd < 0)
		return -errno;
	rc = is_device(fd) ? 0 : fill_up(fd, size);
	if (close(fd) && !rc)
		rc = -errno;
	return rc;
}

static int engine_lay_out(struct job_engine *je, const char *path, u64 size)
{
	(void)je;
	return posix_lay_out(path, size);
}

int posix_folder(const char *path)
{
	struct stat s;

	if (stat(path, &s))
		return -errno;
	return S_ISDIR(s.st_mode) ? 0 : -ENOTDIR;
}

static int engine_folder(struct job_engine *je, const char *path)
{
	(void)je;
	return posix_folder(path);
}

static int posix_sync_range(struct job_file *f, u64 offset, u64 len, unsigned flags)
{
	unsigned how = (flags & JOB_RANGE_WAIT_BEFORE ? SYNC_FILE_RANGE_WAIT_BEFORE : 0) |
		       (flags & JOB_RANGE_WRITE ? SYNC_FILE_RANGE_WRITE : 0) |
		       (flags & JOB_RANGE_WAIT_AFTER ? SYNC_FILE_RANGE_WAIT_AFTER : 0);

	return sync_file_range(f->fd, (off_t)offset, (off_t)len, how) ? -errno : 0;
}

static int posix_allocate(struct job_file *f, u64 offset, u64 len, bool keep_size)
{
	int rc;

	do
		rc = fallocate(f->fd, keep_size ? FALLOC_FL_KEEP_SIZE : 0, (off_t)offset,
			       (off_t)len)
			     ? -errno
			     : 0;
	while (rc == -EINTR);
	return rc;
}

static void posix_task_exit(struct job_engine *je)
{
	(void)je;
}

int engine_posix_create(struct job_engine **out)
{
	struct job_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	*e = (struct job_engine){ .name = "posix",
				  .open = posix_open,
				  .close = posix_close,
				  .pread = posix_pread,
				  .pwrite = posix_pwrite,
				  .fsync = posix_fsync,
				  .advise = posix_advise,
				  .truncate = posix_truncate,
				  .size = posix_size,
				  .unlink = posix_unlink,
				  .lay_out = engine_lay_out,
				  .task_exit = posix_task_exit,
				  .features = JOB_CAN_DONTCACHE,
				  .sync_range = posix_sync_range,
				  .folder = engine_folder,
				  .allocate = posix_allocate,
				  .map = posix_map };
	*out = e;
	return 0;
}

void engine_posix_destroy(struct job_engine *je)
{
	free(je);
}
