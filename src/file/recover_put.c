// SPDX-License-Identifier: MIT
/*
 * The two places recovered bytes go to: the file they belong to; or the recovery folder, as a file
 * that has them at their offsets, with holes between, and a list that says of what file they are
 * and where. Names in the folder are made of the arena's own number and the file's in it: the same
 * recovery, done again, writes the same names, and another one never does.
 */
#include "base/bits.h"
#include "device/device.h"
#include "file/recover.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ZERO_BYTES 65536

static int write_all(int fd, const char *data, u64 length, u64 offset)
{
	while (length) {
		ssize_t n = pwrite(fd, data, min_u64(length, 1u << 30), (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		offset += (u64)n;
		length -= (u64)n;
	}
	return 0;
}

/* Past the limit on the size of files a write is a signal. */
static bool is_past_limit(u64 end)
{
	struct rlimit l;

	return !getrlimit(RLIMIT_FSIZE, &l) && l.rlim_cur != RLIM_INFINITY && end > l.rlim_cur;
}

/* --- to the file */

static int fd_of(struct recover_target *t)
{
	return container_of(t, struct recover_to_file, target)->fd;
}

/* A block device has one size. */
static bool is_regular(struct recover_target *t)
{
	return container_of(t, struct recover_to_file, target)->regular;
}

static int file_shrink(struct recover_target *t, u64 size)
{
	struct stat st;

	if (fstat(fd_of(t), &st))
		return -errno;
	if (!is_regular(t) || (u64)st.st_size <= size)
		return 0;
	return ftruncate(fd_of(t), (off_t)size) ? -errno : 0;
}

static int file_lengthen(struct recover_target *t, u64 size)
{
	struct stat st;

	if (fstat(fd_of(t), &st))
		return -errno;
	if (!is_regular(t) || (u64)st.st_size >= size)
		return 0;
	if (is_past_limit(size))
		return -EFBIG;
	return ftruncate(fd_of(t), (off_t)size) ? -errno : 0;
}

static int file_write(struct recover_target *t, u64 offset, const void *data, u64 length)
{
	if (is_regular(t) && is_past_limit(offset + length))
		return -EFBIG;
	return write_all(fd_of(t), data, length, offset);
}

static int file_zero(struct recover_target *t, u64 from, u64 to)
{
	static const char zeros[ZERO_BYTES];
	struct stat st;
	int rc = 0;

	if (from >= to || !fallocate(fd_of(t), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     (off_t)from, (off_t)(min_u64(to, STORE_SIZE_MAX) - from)))
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	if (fstat(fd_of(t), &st))
		return -errno;
	for (to = min_u64(to, (u64)st.st_size); from < to && !rc; from += ZERO_BYTES)
		rc = file_write(t, from, zeros, min_u64(ZERO_BYTES, to - from));
	return rc;
}

void recover_to_file(struct recover_to_file *t, int fd)
{
	struct stat st;

	*t = (struct recover_to_file){ .target = { file_shrink, file_zero, file_write,
						   file_lengthen },
				       .fd = fd,
				       .regular = !fstat(fd, &st) && S_ISREG(st.st_mode) };
}

/* --- aside */

static struct recover_aside *aside_of(struct recover_target *t)
{
	return container_of(t, struct recover_aside, target);
}

static int aside_size(struct recover_target *t, u64 size)
{
	fprintf(aside_of(t)->list, "size %" PRIu64 "\n", size);
	return 0;
}

static int aside_zero(struct recover_target *t, u64 from, u64 to)
{
	if (from < to)
		fprintf(aside_of(t)->list, "zeros %" PRIu64 " %" PRIu64 "\n", from, to - from);
	return 0;
}

static int aside_write(struct recover_target *t, u64 offset, const void *data, u64 length)
{
	if (is_past_limit(offset + length))
		return -EFBIG;
	fprintf(aside_of(t)->list, "bytes %" PRIu64 " %" PRIu64 "\n", offset, length);
	return write_all(aside_of(t)->fd, data, length, offset);
}

static void describe(const struct persist_file *f, const char *why, FILE *list)
{
	const struct persist_name *n = &f->name;

	fprintf(list, "path %s\n", n->kind == PERSIST_STORE ? "-" : n->path);
	fprintf(list, "device %" PRIu64 "\ninode %" PRIu64 "\n", n->device, n->number);
	fprintf(list, "born %" PRId64 "\n", n->born_ns);
	fprintf(list, "why %s\n", why);
	fprintf(list, "length %" PRIu64 "\n", atomic_load(&f->size));
}

int recover_aside_open(struct recover_aside *t, const struct persist *p, u32 number,
		       const char *folder, const char *why)
{
	int rc = 0;

	*t = (struct recover_aside){ .target = { aside_size, aside_zero, aside_write, aside_size },
				     .fd = -1 };
	if (mkdir(folder, 0700) && errno != EEXIST)
		return -errno;
	snprintf(t->path, sizeof(t->path), "%s/%.8s-%" PRIu32 ".bytes", folder, p->header->uuid,
		 number);
	snprintf(t->list_path, sizeof(t->list_path), "%s/%.8s-%" PRIu32 ".list", folder,
		 p->header->uuid, number);
	t->fd = open(t->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (t->fd < 0)
		return -errno;
	t->list = fopen(t->list_path, "we");
	if (!t->list) {
		rc = -errno;
		close(t->fd);
		return rc;
	}
	describe(&p->files[number], why, t->list);
	return 0;
}

int recover_aside_close(struct recover_aside *t)
{
	FILE *list = t->list;
	int rc = 0;

	if (fsync(t->fd) || fflush(list) || ferror(list) || fsync(fileno(list)))
		rc = errno ? -errno : -EIO;
	if (fclose(list) && !rc)
		rc = -errno;
	close(t->fd);
	return rc;
}
