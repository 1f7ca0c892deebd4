// SPDX-License-Identifier: MIT
/*
 * The flags of chattr(1), and what file systems have of XFS's like: the source's, by its own calls.
 * The kernel has checked who may set them. An immutable file takes no more data even from who
 * has it open, so what it has taken is written before it becomes immutable.
 */
#include "mount/mount_inner.h"
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* How many bytes go in and out; -1: not for us. */
static int size_of(unsigned command)
{
	switch (command) {
	case FS_IOC_GETFLAGS:
	case FS_IOC_SETFLAGS:
		return sizeof(unsigned); /* whatever the number says */
	case FS_IOC_FSGETXATTR:
	case FS_IOC_FSSETXATTR:
		return sizeof(struct fsxattr);
	default:
		return -1;
	}
}

static bool sets(unsigned command)
{
	return command == FS_IOC_SETFLAGS || command == FS_IOC_FSSETXATTR;
}

static bool freezes(unsigned command, const void *value)
{
	if (command == FS_IOC_SETFLAGS)
		return *(const unsigned *)value & FS_IMMUTABLE_FL;
	return ((const struct fsxattr *)value)->fsx_xflags & FS_XFLAG_IMMUTABLE;
}

/* The call on a node that is neither read nor written; 0 or a negative errno. */
static int call(struct mount *m, struct node *n, unsigned command, void *value)
{
	bool frozen = sets(command) && freezes(command, value);
	char path[PROC_PATH_MAX];
	struct stat before;
	int fd, rc;

	if (!S_ISREG(n->kind) && !S_ISDIR(n->kind))
		return -ENOTTY;
	if (frozen)
		file_write_out(m, n, true);
	fd = open(proc_path(path, n->fd), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	change_begin(n, &before);
	rc = result(ioctl(fd, command, value));
	close(fd);
	change_end(m, n, &before);
	if (!rc && sets(command))
		atomic_store(&n->frozen, frozen);
	return rc;
}

void node_ioctl(fuse_req_t req, fuse_ino_t number, unsigned command, void *arg,
		struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
		size_t out_size)
{
	int size = size_of(command), rc = -ENOTTY;
	union {
		unsigned flags;
		struct fsxattr more;
	} value = { 0 };

	(void)arg;
	(void)fi;
	(void)flags;
	if (size >= 0 && (sets(command) ? in_size : out_size) >= (size_t)size) {
		if (sets(command))
			memcpy(&value, in, (size_t)size);
		rc = call(mount_of(req), node_of(req, number), command, &value);
	}
	if (rc)
		reply_result(req, rc);
	else
		fuse_reply_ioctl(req, 0, &value, sets(command) ? 0 : (size_t)size);
}
