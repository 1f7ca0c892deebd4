// SPDX-License-Identifier: MIT
/*
 * A store that is a file: its opening, its size and its room on the device. How its bytes move
 * stands in store_fd_io.c.
 *
 * Room: a write that the cache has accepted must not find the device full later, so room is made
 * before (fallocate, keeping the size). That costs a system call and often a transaction of the
 * file system, so what is known to have room is remembered (room.c), and more is made than asked
 * for: an eighth of the file, between 64 KiB and 16 MiB, but for the first time, since most files
 * are written by one call, and in holes only a quarter of what was filled in one go. A file that
 * was written from end to end is recognized (SEEK_HOLE) and then costs nothing more. What was made
 * past the end and not used, but for the rest of a page, is given back at the end, by setting the
 * size to what it is, unless somebody else has made some there, which would go with it. There is no
 * room past the limit on the size of files (RLIMIT_FSIZE), in whole pages, though some file systems
 * would make it: what is written there could never leave the cache.
 */
#include "device/store_fd.h"
#include "base/bits.h"
#include "device/file.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SECTOR   512ull
#define STEP_MIN (64ull << 10)
#define STEP_MAX (16ull << 20)

static struct fd_store *fd_store_of_store(struct store *s)
{
	return fd_store_of(real_store_of(s));
}

/*
 * Whether there can never be room for so much. File systems find that out by taking all there is
 * before they give it back, and meanwhile everybody else finds the disk full.
 */
static bool cannot_fit(const struct fd_store *f, u64 length)
{
	struct statvfs fs;
	struct stat file;

	if (length <= STEP_MAX || fstatvfs(f->fd, &fs) || fstat(f->fd, &file))
		return false;
	return length > (u64)fs.f_bfree * fs.f_frsize + (u64)file.st_blocks * 512;
}

static int call_fallocate(const struct fd_store *f, int mode, u64 offset, u64 length)
{
	int rc;

	if (!(mode & FALLOC_FL_PUNCH_HOLE) && cannot_fit(f, length))
		return -ENOSPC;
	do
		rc = fallocate(f->fd, mode, (off_t)offset, (off_t)length);
	while (rc && errno == EINTR);
	return rc ? -errno : 0;
}

static _Thread_local uid_t maker; /* see store_act_for() */

void store_act_for(uid_t uid)
{
	maker = uid;
}

/*
 * With the maker's rights: they go, and come back, with the user for file systems. Not on files
 * that were to keep set-group-id when they are written to, since that goes with the rights.
 */
static int call_reserve(const struct fd_store *f, u64 from, u64 to)
{
	struct stat st;
	bool as_maker = maker && !fstat(f->fd, &st) && !(st.st_mode & (S_ISUID | S_ISGID));
	int error;

	if (as_maker)
		setfsuid(maker);
	error = call_fallocate(f, FALLOC_FL_KEEP_SIZE, from, to - from);
	if (as_maker)
		setfsuid(0);
	return error;
}

#define CAPABILITY      "security.capability"
#define CAPABILITY_SIZE 64 /* 24 at most today */

/*
 * A file that keeps its size keeps its mtime, and its capabilities, which a truncation takes away:
 * only what was reserved past its end is given back.
 */
static int call_ftruncate(const struct fd_store *f, u64 size)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	char may[CAPABILITY_SIZE];
	ssize_t has = fgetxattr(f->fd, CAPABILITY, may, sizeof(may));
	struct stat st;
	bool keeps = !fstat(f->fd, &st) && (u64)st.st_size == size;
	int rc;

	do
		rc = ftruncate(f->fd, (off_t)size);
	while (rc && errno == EINTR);
	if (rc)
		return -errno;
	times[1] = st.st_mtim;
	if (keeps && has > 0)
		fsetxattr(f->fd, CAPABILITY, may, (size_t)has, 0);
	if (keeps)
		futimens(f->fd, times);
	return 0;
}

static int fd_flush(struct real_store *r)
{
	return fdatasync(fd_store_of(r)->fd) ? -errno : 0;
}

static void fd_destroy(struct store *s)
{
	struct fd_store *f = fd_store_of_store(s);
	struct file_device *d = file_device_of(s->device);
	struct stat st;

	if (!store_keeps_room(s) && !fstat(f->fd, &st) && st.st_nlink &&
	    f->reserved_to > round_up((u64)st.st_size, PAGE_SIZE))
		call_ftruncate(f, (u64)st.st_size);
	if (atomic_load(&f->probed)) {
		atomic_fetch_sub(f->direct >= 0 ? &d->direct : &d->buffered, 1);
		if (f->direct >= 0)
			close(f->direct);
	}
	close(f->fd);
	free(f);
}

/* The file has that size already, and no room past the page it ends in was made. */
static bool ends_there(struct fd_store *f, u64 size)
{
	struct stat st;
	bool there;

	mutex_lock(&f->room.lock);
	there = f->reserved_to && f->reserved_to <= round_up(size, PAGE_SIZE);
	mutex_unlock(&f->room.lock);
	return there && real_store_size(&f->real.store) == size && !fstat(f->fd, &st) &&
	       (u64)st.st_size == size;
}

static int fd_truncate(struct store *s, u64 size_bytes)
{
	struct fd_store *f = fd_store_of_store(s);
	bool shorter = size_bytes <= real_store_size(s);
	int error;

	if (ends_there(f, size_bytes))
		return 0;
	error = call_ftruncate(f, size_bytes);
	if (error)
		return error;
	real_store_resized(&f->real, size_bytes);
	if (!shorter)
		return 0;
	atomic_store(&s->keeps_room, false);
	room_forget(&f->room, size_bytes, STORE_SIZE_MAX);
	mutex_lock(&f->room.lock);
	f->reserved_to = min_u64(f->reserved_to, size_bytes);
	mutex_unlock(&f->room.lock);
	return 0;
}

static int fd_lay_out(struct store *s, u64 size_bytes)
{
	struct fd_store *f = fd_store_of_store(s);
	int error = 0;

	if (size_bytes && !f->block_device)
		error = call_fallocate(f, 0, 0, size_bytes);
	if (error == -EOPNOTSUPP) /* then at least the size */
		error = size_bytes > real_store_size(s) ? call_ftruncate(f, size_bytes) : 0;
	else if (f->block_device && size_bytes > real_store_size(s))
		error = -ENOSPC;
	if (!error)
		real_store_laid_out(&f->real, size_bytes);
	return error;
}

/* Whether [from, to) lies within what is written already. */
static bool is_written(struct fd_store *f, u64 from, u64 to)
{
	off_t data, hole;

	if (to > real_store_size(&f->real.store))
		return false;
	data = lseek(f->fd, (off_t)from, SEEK_DATA);
	if (data != (off_t)from)
		return false;
	hole = lseek(f->fd, (off_t)from, SEEK_HOLE);
	if (hole < (off_t)to)
		return false;
	room_add(&f->room, from, (u64)hole);
	return true;
}

/* Past this nobody in the process may write. */
static u64 size_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_FSIZE, &l) || l.rlim_cur == RLIM_INFINITY)
		return STORE_SIZE_MAX;
	return l.rlim_cur;
}

/*
 * Up to where room is made for [from, to), `known` bytes of which are in front of it. What is made
 * past the end is given back if it is not used, but not what becomes part of a hole when somebody
 * skips pages, nor what is in one already.
 */
static u64 with_ahead(struct fd_store *f, u64 from, u64 to, u64 known, u64 limit)
{
	u64 size = real_store_size(&f->real.store), end = max_u64(size, f->reserved_to);
	u64 step = min_u64(max_u64(size / 8, STEP_MIN), STEP_MAX);
	u64 quarter = min_u64(step, round_down(known / 4, PAGE_SIZE));

	f->skipped = f->skipped || from > round_up(end, PAGE_SIZE);
	if (!end || from > end)
		return to;
	if (to <= end)
		to = min_u64(to + quarter, end);
	else if (f->skipped)
		to += quarter;
	else
		to = div_roundup(to, step) * step;
	return min_u64(to, limit);
}

static int make_room(struct fd_store *f, u64 from, u64 to, u64 known, u64 limit)
{
	u64 more = with_ahead(f, from, to, known, limit);
	int error = call_reserve(f, from, more);

	if (error == -ENOSPC || error == -EDQUOT || error == -EFBIG) {
		more = to;
		error = call_reserve(f, from, more);
	}
	if (error == -EOPNOTSUPP || error == -ENOSYS) {
		room_add(&f->room, 0, STORE_SIZE_MAX); /* it can't be promised: don't ask again */
		return 0;
	}
	if (error)
		return error;
	room_add(&f->room, from, more);
	f->reserved_to = max_u64(f->reserved_to, more);
	return 0;
}

static bool fd_has_room(struct store *s, u64 from, u64 to)
{
	struct fd_store *f = fd_store_of_store(s);

	return f->block_device ? to <= real_store_size(s) : room_covers(&f->room, from, to);
}

static int fd_reserve(struct store *s, u64 from, u64 to)
{
	struct fd_store *f = fd_store_of_store(s);
	u64 known_from, known_to, known, limit = size_limit();
	int error = 0;

	if (f->block_device)
		return -ENOSPC;
	if (to > limit)
		return -EFBIG;
	mutex_lock(&f->room.lock);
	known_from = atomic_load(&f->room.from);
	known_to = atomic_load(&f->room.to);
	if (from >= known_from && from <= known_to) /* it continues what is known: only the rest */
		from = min_u64(known_to, to);
	known = from == known_to ? known_to - known_from : 0;
	if (from < to && !is_written(f, from, to))
		error = make_room(f, from, to, known, limit);
	mutex_unlock(&f->room.lock);
	return error;
}

/* A page with some data in it counts as written. */
static u64 fd_next(struct store *s, u64 page, u64 end, bool written)
{
	struct fd_store *f = fd_store_of_store(s);

	while (page < end) {
		off_t from = (off_t)(page << PAGE_SHIFT);
		off_t at = lseek(f->fd, from, written ? SEEK_DATA : SEEK_HOLE);

		if (at < 0 && errno != ENXIO) /* it knows no holes */
			return real_store_next(s, page, end, written);
		if (at < 0) /* past the end */
			return written ? end : page;
		if (written)
			return min_u64((u64)at >> PAGE_SHIFT, end);
		if (at == from)
			return page;
		page = div_roundup((u64)at, PAGE_SIZE);
	}
	return end;
}

static int fd_punch(struct store *s, u64 page, u64 n)
{
	struct fd_store *f = fd_store_of_store(s);
	u64 from = page << PAGE_SHIFT;
	u64 to = min_u64(page + n, STORE_SIZE_MAX >> PAGE_SHIFT) << PAGE_SHIFT;
	int error;

	if (from >= to)
		return 0;
	error = call_fallocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from);
	if (error == -EOPNOTSUPP || error == -ENOSYS)
		return real_store_zero(&f->real, from, to);
	if (error)
		return error;
	room_forget(&f->room, from, to);
	return 0;
}

static const struct real_ops fd_real_ops = {
	.move = fd_store_move,
	.flush = fd_flush,
};

static u64 fd_limit(struct store *s)
{
	(void)s;
	return size_limit();
}

static const struct store_ops fd_ops = {
	.limit = fd_limit,
	.destroy = fd_destroy,
	.size = real_store_size,
	.truncate = fd_truncate,
	.set_end = real_store_set_end,
	.any_written = real_store_any_written,
	.next = fd_next,
	.lay_out = fd_lay_out,
	.has_room = fd_has_room,
	.reserve = fd_reserve,
	.punch = fd_punch,
	.forgive = real_store_forgive,
	.execute = real_store_execute,
	.is_direct = fd_store_is_direct,
	.landed = real_store_landed,
};

/* Whether a file has room past its end. Only who has more blocks than his bytes need is asked. */
static bool has_room_past_end(int fd, const struct stat *st)
{
	struct fiemap map = { .fm_start = round_up((u64)st->st_size, PAGE_SIZE),
			      .fm_length = STORE_SIZE_MAX };

	if (!S_ISREG(st->st_mode) || (u64)st->st_blocks * SECTOR <= map.fm_start)
		return false;
	return ioctl(fd, FS_IOC_FIEMAP, &map) || map.fm_mapped_extents;
}

/* The size of what fd is open on, or a negative errno. */
static s64 size_of(int fd, const struct stat *st)
{
	off_t end;

	if (S_ISREG(st->st_mode))
		return st->st_size;
	if (!S_ISBLK(st->st_mode))
		return -EINVAL;
	end = lseek(fd, 0, SEEK_END);
	return end < 0 ? -errno : end;
}

int store_open_fd(struct device *d, int fd, struct store **out)
{
	struct fd_store *f = NULL;
	struct stat st;
	s64 size = d->ops != &file_ops ? -EINVAL : fstat(fd, &st) ? -errno : size_of(fd, &st);
	int flags = fcntl(fd, F_GETFL);

	if (size > (s64)STORE_SIZE_MAX)
		size = -EFBIG;
	if (size >= 0 && flags & O_APPEND && fcntl(fd, F_SETFL, flags & ~O_APPEND))
		size = -errno;
	if (size >= 0 && !(f = calloc(1, sizeof(*f))))
		size = -ENOMEM;
	if (!f) {
		if (fd >= 0)
			close(fd);
		return (int)size;
	}
	f->fd = fd;
	f->block_device = S_ISBLK(st.st_mode);
	room_init(&f->room);
	real_store_init(&f->real, d, &fd_ops, &fd_real_ops, (u64)size);
	if (has_room_past_end(fd, &st))
		store_keep_room(&f->real.store);
	*out = &f->real.store;
	return 0;
}

int store_reopen_fd(struct store *s, int fd)
{
	int rc = s->ops == &fd_ops ? fd_store_replace(fd_store_of_store(s), fd) : -EINVAL;

	close(fd);
	return rc;
}
