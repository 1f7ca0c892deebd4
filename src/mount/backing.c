// SPDX-License-Identifier: MIT
/*
 * The disk is there to measure what the kernel's limits on dirty pages do, so its own bytes
 * must not be dirty pages: they would count against those very limits. Two kinds of place
 * have none: files written past the page cache (O_DIRECT), and tmpfs, whose pages are never
 * written back and so not counted. Anything else is refused. What O_DIRECT asks of offsets
 * (statx(2), STATX_DIOALIGN) becomes the disk's sector.
 */
#include "mount/backing.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define SECTOR_BYTES 512
#define SECTOR_MAX   4096

static bool keeps_no_dirty_pages(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	return fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
}

/* What O_DIRECT wants offsets to be multiples of; 0: the file system would go through the cache. */
static u32 direct_sector(int fd)
{
#ifdef STATX_DIOALIGN
	struct statx x;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) && (x.stx_mask & STATX_DIOALIGN))
		return x.stx_dio_offset_align;
#else
	(void)fd;
#endif
	return SECTOR_BYTES;
}

static int go_direct(struct backing *b, const char *path, struct err *e)
{
	int flags = fcntl(b->fd, F_GETFL);
	u32 sector;

	b->sector_bytes = SECTOR_BYTES;
	if (keeps_no_dirty_pages(b->fd))
		return 0;
	sector = flags < 0 || fcntl(b->fd, F_SETFL, flags | O_DIRECT) ? 0 : direct_sector(b->fd);
	if (!sector || sector > SECTOR_MAX) {
		err_set(e, path, 0,
			"the file system cannot write past the page cache (O_DIRECT), so the "
			"disk's own "
			"writes would count as dirty memory; put the backing on tmpfs or on a file "
			"system that can");
		return -EINVAL;
	}
	if (sector > b->sector_bytes)
		b->sector_bytes = sector;
	return 0;
}

/* Gives the file its size; a block device has its own. */
static int settle_size(struct backing *b, const char *path, u64 wanted, struct err *e)
{
	off_t end = lseek(b->fd, 0, SEEK_END);
	struct stat s;

	if (end < 0 || fstat(b->fd, &s)) {
		int error = errno;

		err_set(e, path, 0, "%s", strerror(error));
		return -error;
	}
	b->size_bytes = (u64)end;
	if (wanted && wanted < b->size_bytes)
		return err_set(e, path, 0,
			       "has %llu bytes already: a size of %llu would cut it off",
			       (unsigned long long)b->size_bytes, (unsigned long long)wanted);
	if (wanted > b->size_bytes && !S_ISREG(s.st_mode))
		return err_set(e, path, 0, "has %llu bytes, and no device grows",
			       (unsigned long long)b->size_bytes);
	if (wanted > b->size_bytes) {
		if (ftruncate(b->fd, (off_t)wanted)) {
			int error = errno;

			err_set(e, path, 0, "cannot get %llu bytes: %s", (unsigned long long)wanted,
				strerror(error));
			return -error;
		}
		b->size_bytes = wanted;
	}
	if (!b->size_bytes)
		return err_set(e, path, 0, "is empty: the disk needs a size");
	if (b->size_bytes % b->sector_bytes)
		return err_set(e, path, 0,
			       "a disk of %llu bytes is not made of whole sectors of %u bytes",
			       (unsigned long long)b->size_bytes, b->sector_bytes);
	return 0;
}

/* Opens it, or makes it if it may be made. */
static int open_or_make(struct backing *b, const char *path, bool may_make)
{
	*b = (struct backing){ .fd = open(path, O_RDWR | O_CLOEXEC) };
	if (b->fd < 0 && errno == ENOENT && may_make) {
		b->fd = open(path, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
		b->made = b->fd >= 0;
	}
	return b->fd < 0 ? -errno : 0;
}

int backing_open(struct backing *b, const char *path, u64 size_bytes, struct err *e)
{
	int rc = open_or_make(b, path, size_bytes);
	struct stat s;

	if (rc) {
		err_set(e, path, 0, "%s%s", strerror(-rc),
			rc == -ENOENT && !size_bytes ? "; with a size it would be made" : "");
		return rc;
	}
	if (!fstat(b->fd, &s) && !S_ISREG(s.st_mode) && !S_ISBLK(s.st_mode)) {
		rc = err_set(e, path, 0, "is neither a file nor a block device");
	} else if (flock(b->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		err_set(e, path, 0, "is in use by another sluice device");
		rc = -EBUSY;
	} else {
		rc = go_direct(b, path, e);
	}
	if (!rc)
		rc = settle_size(b, path, size_bytes, e);
	if (rc)
		backing_undo(b, path);
	return rc;
}

void backing_close(struct backing *b)
{
	close(b->fd);
	b->fd = -1;
}

void backing_undo(struct backing *b, const char *path)
{
	if (b->made)
		unlink(path);
	backing_close(b);
}

static bool in_whole_sectors(const struct backing *b, u64 length, u64 offset)
{
	return !(offset % b->sector_bytes) && !(length % b->sector_bytes) &&
	       offset <= b->size_bytes && length <= b->size_bytes - offset;
}

int backing_read(const struct backing *b, void *buf, size_t length, u64 offset)
{
	if (!in_whole_sectors(b, length, offset))
		return -EINVAL;
	for (size_t done = 0; done < length;) {
		ssize_t got = pread(b->fd, (u8 *)buf + done, length - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) /* nothing: somebody has shortened the file */
			return got ? -errno : -EIO;
		done += (size_t)got;
	}
	return 0;
}

int backing_write(const struct backing *b, const void *buf, size_t length, u64 offset)
{
	if (!in_whole_sectors(b, length, offset))
		return -EINVAL;
	for (size_t done = 0; done < length;) {
		ssize_t put = pwrite(b->fd, (const u8 *)buf + done, length - done,
				     (off_t)(offset + done));

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -ENOSPC;
		done += (size_t)put;
	}
	return 0;
}

int backing_sync(const struct backing *b)
{
	return fdatasync(b->fd) ? -errno : 0;
}

int backing_punch(const struct backing *b, u64 offset, u64 length)
{
	if (!in_whole_sectors(b, length, offset))
		return -EINVAL;
	return fallocate(b->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
			 (off_t)length)
		       ? -errno
		       : 0;
}
