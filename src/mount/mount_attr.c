// SPDX-License-Identifier: MIT
/*
 * Attributes are the source's, but for the size and the times of files that are cached. The kernel
 * has checked the caller's rights (default_permissions), so what arrives is done. Calls that
 * want a path get the descriptor's name in /proc, which leads to the file itself, even if that is
 * a symbolic link.
 *
 * Two names on the root are the mount's control. They are asked for by getxattr, since that needs
 * no open file, no lock of the kernel's on the root while it is answered, and no program of ours:
 * getfattr(1) will do.
 */
#include "mount/mount_inner.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static void reply_attr(fuse_req_t req, struct node *n)
{
	struct stat st;
	int rc = node_stat(mount_of(req), n, &st);

	if (rc)
		reply_result(req, rc);
	else
		fuse_reply_attr(req, &st, TIMEOUT_S);
}

void attr_get(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	(void)fi;
	reply_attr(req, node_of(req, number));
}

/*
 * A write takes set-user-id and set-group-id away unless root writes, and capabilities always. One
 * look is enough until somebody sets them.
 */
void attr_drop_privileges(fuse_req_t req, struct node *n)
{
	bool root = !fuse_req_ctx(req)->uid;
	struct mount *m = mount_of(req);
	char path[PROC_PATH_MAX];
	struct stat before;
	mode_t drop;

	if (!m->drops_privileges || atomic_load(&n->plain))
		return;
	atomic_store(&n->plain, true);
	change_begin(n, &before);
	drop = before.st_mode & (S_ISUID | (before.st_mode & S_IXGRP ? S_ISGID : 0));
	proc_path(path, n->fd);
	if (drop && root)
		atomic_store(&n->plain, false); /* others may write, too */
	else if (drop)
		chmod(path, before.st_mode & 07777 & ~drop);
	removexattr(path, "security.capability");
	change_end(m, n, &before);
}

static int set_owner(struct node *n, const struct stat *attr, int to_set)
{
	uid_t uid = to_set & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1;
	gid_t gid = to_set & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1;

	return result(fchownat(n->fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW));
}

static struct timespec time_to_set(const struct timespec *t, int to_set, int given, int now)
{
	if (to_set & now)
		return (struct timespec){ .tv_nsec = UTIME_NOW };
	return to_set & given ? *t : (struct timespec){ .tv_nsec = UTIME_OMIT };
}

static int set_times(struct node *n, const struct stat *attr, int to_set)
{
	struct timespec times[2] = {
		time_to_set(&attr->st_atim, to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW),
		time_to_set(&attr->st_mtim, to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW),
	};

	if (utimensat(n->fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		node_modified(n);
	else if (to_set & FUSE_SET_ATTR_MTIME)
		node_set_mtime(n, &attr->st_mtim);
	return 0;
}

#define SETS_OWNER (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)
#define SETS_TIMES                                                             \
	(FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME | \
	 FUSE_SET_ATTR_MTIME_NOW)

static int set_attr(fuse_req_t req, struct node *n, const struct stat *attr, int to_set,
		    struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct handle *h = fi ? (struct handle *)(uintptr_t)fi->fh : NULL;
	char path[PROC_PATH_MAX];
	struct stat before;
	int rc = 0;

	if (to_set & FUSE_SET_ATTR_SIZE) {
		attr_drop_privileges(req, n);
		rc = file_set_size(m, n, h, (u64)attr->st_size);
		if (!rc)
			node_modified(n);
	}
	change_begin(n, &before);
	if (!rc && to_set & SETS_OWNER)
		rc = set_owner(n, attr, to_set);
	/* after the owner, which takes set-user-id away */
	if (!rc && to_set & FUSE_SET_ATTR_MODE)
		rc = result(chmod(proc_path(path, n->fd), attr->st_mode & 07777));
	if (!rc && to_set & (SETS_OWNER | FUSE_SET_ATTR_MODE))
		atomic_store(&n->plain, false);
	if (!rc && to_set & SETS_TIMES)
		rc = set_times(n, attr, to_set);
	change_end(m, n, &before);
	return rc;
}

void attr_set(fuse_req_t req, fuse_ino_t number, struct stat *attr, int to_set,
	      struct fuse_file_info *fi)
{
	struct node *n = node_of(req, number);
	int rc = set_attr(req, n, attr, to_set, fi);

	if (rc)
		reply_result(req, rc);
	else
		reply_attr(req, n);
}

void attr_statfs(fuse_req_t req, fuse_ino_t number)
{
	struct statvfs s;

	if (fstatvfs(node_of(req, number)->fd, &s))
		fuse_reply_err(req, errno);
	else
		fuse_reply_statfs(req, &s);
}

/* --- extended attributes */

/* An answer of which the caller wants the size (`size` 0), or all. */
static void reply_value(fuse_req_t req, const char *value, size_t length, size_t size)
{
	if (!size)
		fuse_reply_xattr(req, length);
	else if (length > size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, value, length);
}

static void reply_stats(fuse_req_t req, size_t size)
{
	char *text = mount_stats_json(mount_of(req));

	if (text)
		reply_value(req, text, strlen(text), size);
	else
		fuse_reply_err(req, ENOMEM);
	free(text);
}

static bool is_control(fuse_ino_t number, const char *name, const char *control)
{
	return number == FUSE_ROOT_ID && !strcmp(name, control);
}

void attr_getxattr(fuse_req_t req, fuse_ino_t number, const char *name, size_t size)
{
	char path[PROC_PATH_MAX], *value;
	ssize_t n;

	if (is_control(number, name, MOUNT_STATS_NAME)) {
		reply_stats(req, size);
		return;
	}
	if (is_control(number, name, MOUNT_SYNC_NAME)) {
		int rc = mount_sync(mount_of(req));

		if (rc)
			reply_result(req, rc);
		else
			reply_value(req, "", 0, size);
		return;
	}
	value = size ? malloc(size) : NULL;
	if (size && !value) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	n = getxattr(proc_path(path, node_of(req, number)->fd), name, value, size);
	if (n < 0)
		fuse_reply_err(req, errno);
	else
		reply_value(req, value, (size_t)n, size);
	free(value);
}

void attr_listxattr(fuse_req_t req, fuse_ino_t number, size_t size)
{
	char path[PROC_PATH_MAX], *names = size ? malloc(size) : NULL;
	ssize_t n;

	if (size && !names) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	n = listxattr(proc_path(path, node_of(req, number)->fd), names, size);
	if (n < 0)
		fuse_reply_err(req, errno);
	else
		reply_value(req, names, (size_t)n, size);
	free(names);
}

void attr_setxattr(fuse_req_t req, fuse_ino_t number, const char *name, const char *value,
		   size_t size, int flags)
{
	struct node *n = node_of(req, number);
	char path[PROC_PATH_MAX];
	struct stat before;
	int rc;

	change_begin(n, &before);
	rc = result(setxattr(proc_path(path, n->fd), name, value, size, flags));
	atomic_store(&n->plain, false);
	change_end(mount_of(req), n, &before);
	reply_result(req, rc);
}

void attr_removexattr(fuse_req_t req, fuse_ino_t number, const char *name)
{
	struct node *n = node_of(req, number);
	char path[PROC_PATH_MAX];
	struct stat before;
	int rc;

	change_begin(n, &before);
	rc = result(removexattr(proc_path(path, n->fd), name));
	change_end(mount_of(req), n, &before);
	reply_result(req, rc);
}
