// SPDX-License-Identifier: MIT
/*
 * What is done with open files: the calls of the engine's front under public names. Flags have the
 * same values on both sides, and what the front checks is not checked again.
 */
#include "file/tenant.h"
#include "lib/inner.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define IOV_MAX_COUNT 1024

static_assert(SLUICE_NOWAIT == FILE_IO_NOWAIT && SLUICE_DSYNC == FILE_IO_DSYNC &&
		      SLUICE_DONTCACHE == FILE_IO_DONTCACHE,
	      "flags go through as they are");
static_assert(SLUICE_WAIT_BEFORE == FILE_WAIT_BEFORE && SLUICE_WRITE == FILE_WRITE &&
		      SLUICE_WAIT_AFTER == FILE_WAIT_AFTER,
	      "flags go through as they are");
static_assert(SLUICE_NORMAL == POSIX_FADV_NORMAL && SLUICE_RANDOM == POSIX_FADV_RANDOM &&
		      SLUICE_SEQUENTIAL == POSIX_FADV_SEQUENTIAL &&
		      SLUICE_WILLNEED == POSIX_FADV_WILLNEED &&
		      SLUICE_DONTNEED == POSIX_FADV_DONTNEED &&
		      SLUICE_NOREUSE == POSIX_FADV_NOREUSE,
	      "as the system's");
static_assert(SLUICE_SEEK_DATA == SEEK_DATA && SLUICE_SEEK_HOLE == SEEK_HOLE, "as the system's");

#define READ_FLAGS  ((unsigned)(SLUICE_NOWAIT | SLUICE_DONTCACHE))
#define WRITE_FLAGS ((unsigned)(SLUICE_NOWAIT | SLUICE_DSYNC | SLUICE_DONTCACHE))

static bool bad_count(int iov_count)
{
	return iov_count < 0 || iov_count > IOV_MAX_COUNT;
}

ssize_t sluice_pread(struct sluice_file *f, void *buf, size_t length, uint64_t offset,
		     unsigned flags)
{
	const struct iovec iov = { buf, length };

	if (flags & ~READ_FLAGS)
		return -EINVAL;
	if (!flags)
		return file_pread(f->file, buf, length, offset);
	return file_preadv(f->file, &iov, 1, offset, flags);
}

ssize_t sluice_preadv(struct sluice_file *f, const struct iovec *iov, int iov_count,
		      uint64_t offset, unsigned flags)
{
	if (bad_count(iov_count) || flags & ~READ_FLAGS)
		return -EINVAL;
	return file_preadv(f->file, iov, (unsigned)iov_count, offset, flags);
}

ssize_t sluice_pwrite(struct sluice_file *f, const void *buf, size_t length, uint64_t offset,
		      unsigned flags)
{
	const struct iovec iov = { (void *)buf, length };

	if (flags & ~WRITE_FLAGS)
		return -EINVAL;
	if (!flags)
		return file_pwrite(f->file, buf, length, offset);
	return file_pwritev(f->file, &iov, 1, offset, flags);
}

ssize_t sluice_pwritev(struct sluice_file *f, const struct iovec *iov, int iov_count,
		       uint64_t offset, unsigned flags)
{
	if (bad_count(iov_count) || flags & ~WRITE_FLAGS)
		return -EINVAL;
	return file_pwritev(f->file, iov, (unsigned)iov_count, offset, flags);
}

ssize_t sluice_pwritev_for(struct sluice_file *f, struct sluice_tenant *t, const struct iovec *iov,
			   int iov_count, uint64_t offset, unsigned flags)
{
	if (bad_count(iov_count) || flags & ~WRITE_FLAGS)
		return -EINVAL;
	return file_pwritev_for(f->file, (struct tenant *)t, iov, (unsigned)iov_count, offset,
				flags);
}

ssize_t sluice_append(struct sluice_file *f, const struct iovec *iov, int iov_count, unsigned flags,
		      uint64_t *offset)
{
	u64 at = 0;
	ssize_t n;

	if (bad_count(iov_count) || flags & ~WRITE_FLAGS)
		return -EINVAL;
	n = file_append(f->file, iov, (unsigned)iov_count, flags, &at);
	if (n >= 0 && offset)
		*offset = at;
	return n;
}

ssize_t sluice_borrow(struct sluice_file *f, struct iovec *iov, int iov_count, size_t length,
		      uint64_t offset, unsigned flags, struct sluice_loan **out)
{
	struct file_loan *loan = NULL;
	ssize_t n;

	if (bad_count(iov_count) || !iov_count || flags & ~(unsigned)SLUICE_NOWAIT)
		return -EINVAL;
	n = file_borrow(f->file, offset, length, iov, (unsigned)iov_count, flags, &loan);
	if (n >= 0)
		*out = (struct sluice_loan *)loan;
	return n;
}

void sluice_give_back(struct sluice_loan *loan)
{
	file_give_back((struct file_loan *)loan);
}

uint64_t sluice_size(struct sluice_file *f)
{
	return inode_size(file_inode(f->file));
}

int sluice_truncate(struct sluice_file *f, uint64_t size)
{
	return file_truncate(f->file, size);
}

int sluice_fallocate(struct sluice_file *f, int mode, uint64_t offset, uint64_t length)
{
	unsigned ours = (mode & SLUICE_KEEP_SIZE ? FILE_KEEP_SIZE : 0) |
			(mode & SLUICE_PUNCH_HOLE ? FILE_PUNCH_HOLE : 0) |
			(mode & SLUICE_ZERO_RANGE ? FILE_ZERO_RANGE : 0);

	if (mode & ~(SLUICE_KEEP_SIZE | SLUICE_PUNCH_HOLE | SLUICE_ZERO_RANGE))
		return -EOPNOTSUPP;
	return file_fallocate(f->file, ours, offset, length);
}

int64_t sluice_seek(struct sluice_file *f, uint64_t offset, int whence)
{
	if (whence != SLUICE_SEEK_DATA && whence != SLUICE_SEEK_HOLE)
		return -EINVAL;
	return file_seek(f->file, offset,
			 whence == SLUICE_SEEK_DATA ? FILE_SEEK_DATA : FILE_SEEK_HOLE);
}

int sluice_fsync(struct sluice_file *f)
{
	return file_fsync(f->file, false);
}

int sluice_fdatasync(struct sluice_file *f)
{
	return file_fsync(f->file, true);
}

int sluice_sync_file_range(struct sluice_file *f, uint64_t offset, uint64_t length, unsigned flags)
{
	return file_sync_range(f->file, offset, length, flags);
}

int sluice_advise(struct sluice_file *f, uint64_t offset, uint64_t length, int advice)
{
	static const enum file_advice ours[] = {
		[SLUICE_NORMAL] = FILE_ADV_NORMAL,         [SLUICE_RANDOM] = FILE_ADV_RANDOM,
		[SLUICE_SEQUENTIAL] = FILE_ADV_SEQUENTIAL, [SLUICE_WILLNEED] = FILE_ADV_WILLNEED,
		[SLUICE_DONTNEED] = FILE_ADV_DONTNEED,     [SLUICE_NOREUSE] = FILE_ADV_NOREUSE,
	};

	if (advice < 0 || (size_t)advice >= ARRAY_SIZE(ours))
		return -EINVAL;
	return file_advise(f->file, offset, length, ours[advice]);
}
