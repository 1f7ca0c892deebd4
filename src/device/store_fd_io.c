// SPDX-License-Identifier: MIT
/*
 * How bytes get into files and out of them. Each file is open twice: once with O_DIRECT, which
 * moves whole blocks between the device and our memory, and once without. A transfer goes
 * direct as far as it can: from an offset that is a multiple of the block, whole blocks, to
 * and from memory that is aligned. What is left, the last bytes of a file whose size is no
 * multiple of the block, goes through the page cache, byte for byte: padding it to a block and
 * cutting the file afterwards would show others a wrong size in between. The kernel keeps the
 * two ways coherent (O_DIRECT writes out and drops cached pages in its way), and fdatasync covers
 * both. Only when a page is written both ways at once does it give up, and reports EIO at the next
 * fdatasync; so writes go direct in whole pages, even where smaller blocks could.
 *
 * Where the file system refuses O_DIRECT everything goes through the page cache, and is dropped
 * from it at once, so that memory holds no second copy: writes are written out and waited for
 * (sync_file_range), then the pages are given back (POSIX_FADV_DONTNEED).
 *
 * What direct I/O is aligned to is asked (statx, STATX_DIOALIGN: Linux 6.1) or, where nobody says,
 * found by reading: 512 if that works and 4096 if not. A wrong guess costs speed only: a transfer
 * that is refused with EINVAL is done through the page cache.
 */
#include "base/bits.h"
#include "device/file.h"
#include "device/store_fd.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static ssize_t move_by(int fd, enum io_op op, const struct iovec *vec, unsigned count, u64 offset)
{
	ssize_t moved = op == IO_READ ? preadv(fd, vec, (int)count, (off_t)offset)
				      : pwritev(fd, vec, (int)count, (off_t)offset);

	return moved < 0 ? -errno : moved;
}

/* Makes the kernel forget the pages of [offset, offset + length), written out. */
static int drop_behind(int fd, enum io_op op, u64 offset, u64 length)
{
	u64 from = offset / PAGE_SIZE * PAGE_SIZE;
	u64 to = div_roundup(offset + length, PAGE_SIZE) * PAGE_SIZE;
	int error = 0;

	if (op == IO_WRITE && sync_file_range(fd, (off_t)offset, (off_t)length,
					      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
						      SYNC_FILE_RANGE_WAIT_AFTER))
		error = -errno;
	if (error == -ESPIPE || error == -EINVAL || error == -ENOSYS)
		error = 0; /* not to be had here: it is written out in its time */
	posix_fadvise(fd, (off_t)from, (off_t)(to - from), POSIX_FADV_DONTNEED);
	return error;
}

/* True if all pieces of the vector are as O_DIRECT needs them. */
static bool memory_is_aligned(const struct fd_store *f, const struct iovec *vec, unsigned count)
{
	u64 bases = 0, lengths = 0;

	for (unsigned i = 0; i < count; i++) {
		bases |= (uintptr_t)vec[i].iov_base;
		lengths |= vec[i].iov_len;
	}
	return !(bases % f->memory_align) && !(lengths % f->align);
}

/* Shortens the vector to so many bytes: how many of it are left. */
static unsigned cut(struct iovec *vec, unsigned count, size_t length)
{
	for (unsigned i = 0; i < count; i++) {
		if (vec[i].iov_len >= length) {
			vec[i].iov_len = length;
			return i + 1;
		}
		length -= vec[i].iov_len;
	}
	return count;
}

/* What the file system says about the alignment of direct I/O: true if it says anything. */
static bool ask_alignment(struct fd_store *f, bool *possible)
{
	struct statx sx;

	if (statx(f->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) || !(sx.stx_mask & STATX_DIOALIGN))
		return false;
	*possible = sx.stx_dio_offset_align && sx.stx_dio_offset_align <= PAGE_SIZE &&
		    sx.stx_dio_mem_align && sx.stx_dio_mem_align <= PAGE_SIZE;
	f->align = sx.stx_dio_offset_align;
	f->memory_align = sx.stx_dio_mem_align;
	return true;
}

/* Finds the alignment by reading the first bytes of the file. */
static void try_alignment(struct fd_store *f)
{
	void *buf = NULL;

	f->align = PAGE_SIZE;
	if (!posix_memalign(&buf, PAGE_SIZE, PAGE_SIZE) && pread(f->direct, buf, 512, 0) == 512)
		f->align = 512;
	f->memory_align = f->align;
	free(buf);
}

/*
 * The file once more, by its own description, so that flags of one are not those of the other; but
 * whose reads shall not move the file's atime, that holds for both.
 */
static int reopen(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | (fcntl(fd, F_GETFL) & O_NOATIME) | O_CLOEXEC);
}

static void probe(struct fd_store *f)
{
	struct file_device *d = file_device_of(f->real.store.device);
	int flags = fcntl(f->fd, F_GETFL) & O_ACCMODE;
	bool possible = true, known = ask_alignment(f, &possible);

	f->direct = f->real.store.device->config.direct && possible
			    ? reopen(f->fd, flags | O_DIRECT)
			    : -1;
	if (f->direct < 0) {
		f->align = PAGE_SIZE;
		f->memory_align = 1;
		/* the cache above reads ahead by itself */
		posix_fadvise(f->fd, 0, 0, POSIX_FADV_RANDOM);
	} else if (!known) {
		try_alignment(f);
	}
	atomic_fetch_add(f->direct >= 0 ? &d->direct : &d->buffered, 1);
}

/* Finds out how the file can be read and written, before the first transfer: many have none. */
static void be_probed(struct fd_store *f)
{
	if (atomic_load_explicit(&f->probed, memory_order_acquire))
		return;
	mutex_lock(&f->room.lock);
	if (!atomic_load(&f->probed)) {
		probe(f);
		atomic_store_explicit(&f->probed, true, memory_order_release);
	}
	mutex_unlock(&f->room.lock);
}

/* What direct I/O starts and ends at multiples of. */
static u32 direct_unit(const struct fd_store *f, enum io_op op)
{
	return op == IO_WRITE ? (u32)max_u64(f->align, PAGE_SIZE) : f->align;
}

ssize_t fd_store_move(struct real_store *r, enum io_op op, struct iovec *vec, unsigned count,
		      size_t length, u64 offset)
{
	struct fd_store *f = fd_store_of(r);
	ssize_t moved = -EINVAL;
	size_t into, blocks;
	int error;
	u32 unit;

	be_probed(f);
	unit = direct_unit(f, op);
	into = offset % unit;
	blocks = length / unit * unit;
	if (f->direct >= 0 && into && into + length > unit) { /* up to the next block */
		length = unit - into;
		count = cut(vec, count, length);
	} else if (f->direct >= 0 && !into && blocks) {
		length = blocks;
		count = cut(vec, count, length);
		if (memory_is_aligned(f, vec, count))
			moved = move_by(f->direct, op, vec, count, offset);
		if (moved != -EINVAL)
			return moved;
	}
	moved = move_by(f->fd, op, vec, count, offset);
	if (moved <= 0 || (f->direct >= 0 && (size_t)moved < PAGE_SIZE))
		return moved;
	error = drop_behind(f->fd, op, offset, (u64)moved);
	return error ? error : moved;
}

bool fd_store_is_direct(struct store *s, const struct io *io, int *fd)
{
	struct fd_store *f = fd_store_of(real_store_of(s));
	u64 last = io->offset_bytes + io->length_bytes;
	u64 total = 0;

	be_probed(f);
	if (f->direct < 0 || io->op == IO_FLUSH ||
	    (io->offset_bytes | last) % direct_unit(f, io->op) || last > STORE_SIZE_MAX ||
	    io->vec_count > IOV_MAX || !memory_is_aligned(f, io->vec, io->vec_count))
		return false;
	if (io->op == IO_WRITE && real_store_write_bytes(&f->real, io) < io->length_bytes)
		return false;
	for (u32 i = 0; i < io->vec_count; i++)
		total += io->vec[i].iov_len;
	*fd = f->direct;
	return total == io->length_bytes;
}

/* dup3() swaps the description in one step; I/O that is under way keeps the old one. */
int fd_store_replace(struct fd_store *f, int fd)
{
	int direct = -1, rc = 0;
	bool probed, has_direct;

	mutex_lock(&f->room.lock);
	probed = atomic_load(&f->probed);
	has_direct = probed && f->direct >= 0;
	if (has_direct)
		direct = reopen(fd, O_RDWR | O_DIRECT);
	if (has_direct && (direct < 0 || dup3(direct, f->direct, O_CLOEXEC) < 0))
		rc = -errno;
	if (!rc && dup3(fd, f->fd, O_CLOEXEC) < 0)
		rc = -errno;
	if (probed && !has_direct)
		posix_fadvise(f->fd, 0, 0, POSIX_FADV_RANDOM);
	if (direct >= 0)
		close(direct);
	mutex_unlock(&f->room.lock);
	return rc;
}
