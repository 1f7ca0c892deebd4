// SPDX-License-Identifier: MIT
/*
 * Attributes are the source's, but for the size and the times of files that are cached. The kernel
 * has checked the caller's rights (default_permissions), so what arrives is done. Calls that
 * want a path get the descriptor's name in /proc, which leads to the file itself, even if that is
 * a symbolic link.
 *
 * Some names on the root are the mount's control. What it tells is asked for by getxattr, since
 * that needs no open file, no lock of the kernel's on the root while it is answered, and no program
 * of ours: getfattr(1) will do.
 */
#include "mount/mount_inner.h"
#include <fcntl.h>
#include <linux/limits.h>
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
 * look is enough until somebody sets them. Set-group-id of a file that the group may not execute
 * goes only if the caller is not in the group.
 */
void attr_drop_privileges(fuse_req_t req, struct node *n)
{
	struct mount *m = mount_of(req);
	char path[PROC_PATH_MAX];
	struct stat before;
	mode_t has, drop;

	if (!m->drops_privileges || atomic_load(&n->plain))
		return;
	change_begin(n, &before);
	has = drop = before.st_mode & (S_ISUID | S_ISGID);
	if (!fuse_req_ctx(req)->uid)
		drop = 0;
	else if (has & S_ISGID && !(before.st_mode & S_IXGRP) &&
		 caller_in_group(req, before.st_gid))
		drop &= ~(mode_t)S_ISGID;
	proc_path(path, n->fd);
	atomic_store(&n->plain, has == drop);
	if (drop)
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

/* Of all file systems; some have no times before 1970, or after 2038. */
static bool time_is_kept(const struct timespec *t)
{
	return t->tv_sec >= 0 && t->tv_sec <= INT32_MAX;
}

static int set_times(struct mount *m, struct node *n, const struct stat *attr, int to_set)
{
	struct timespec times[2] = {
		time_to_set(&attr->st_atim, to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW),
		time_to_set(&attr->st_mtim, to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW),
	};
	bool kept = time_is_kept(&attr->st_mtim), given = times[1].tv_nsec < UTIME_NOW;

	/* what the source makes of it is seen when no write-out moves it */
	if (given && !kept)
		file_write_out(m, n, true);
	if (utimensat(n->fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (times[0].tv_nsec != UTIME_OMIT)
		atomic_store(&n->atime_ns, TIME_OF_SOURCE);
	if (times[1].tv_nsec != UTIME_OMIT)
		node_mtime_set(n, given && kept ? &attr->st_mtim : NULL);
	return 0;
}

/*
 * A chown(2) to nobody and nothing, which takes set-user-id away if the caller may change the mode.
 * Before a write the kernel asks the same: by root only because of capabilities, which it has
 * removed just before, by others than the owner in vain, since the write takes them away by itself.
 */
static void set_nothing(fuse_req_t req, struct node *n)
{
	uid_t uid = fuse_req_ctx(req)->uid;
	char path[PROC_PATH_MAX];
	struct stat st;
	mode_t drop;

	if (fstatat(n->fd, "", &st, AT_EMPTY_PATH) || (uid && uid != st.st_uid))
		return;
	if (!uid && n->uncapped_by && atomic_exchange(&n->uncapped_by, 0) == fuse_req_ctx(req)->pid)
		return;
	drop = st.st_mode & (S_ISUID | S_ISGID);
	if (!(st.st_mode & S_IXGRP) && (!uid || caller_in_group(req, st.st_gid)))
		drop &= ~(mode_t)S_ISGID;
	if (drop)
		chmod(proc_path(path, n->fd), st.st_mode & 07777 & ~drop);
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
		acting_begin(req, n, h, false);
		rc = file_set_size(m, n, h, (u64)attr->st_size);
		acting_end(m);
		if (!rc)
			attr_drop_privileges(req, n);
		if (!rc)
			node_modified(m, n);
	}
	/* else the write-out of a daemon that is not root would take them away again */
	if (to_set & FUSE_SET_ATTR_MODE && attr->st_mode & (S_ISUID | S_ISGID) && !m->root_user)
		file_write_out(m, n, true);
	change_begin(n, &before);
	if (!rc && to_set & SETS_OWNER)
		rc = set_owner(n, attr, to_set);
	if (!rc && !to_set)
		set_nothing(req, n);
	/* after the owner, which takes set-user-id away */
	if (!rc && to_set & FUSE_SET_ATTR_MODE)
		rc = result(chmod(proc_path(path, n->fd), attr->st_mode & 07777));
	if (!rc && to_set & (SETS_OWNER | FUSE_SET_ATTR_MODE))
		atomic_store(&n->plain, false);
	if (!rc && to_set & SETS_TIMES)
		rc = set_times(m, n, attr, to_set);
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
	/* before the first write to a file the kernel asks whether it has some */
	if (!size && mount_of(req)->drops_privileges && !strcmp(name, "security.capability") &&
	    atomic_load(&node_of(req, number)->plain)) {
		fuse_reply_err(req, ENODATA);
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

/* Takes names out of the list that only root sees. Returns how long it is then. */
static size_t drop_trusted(char *names, size_t length)
{
	size_t kept = 0;

	for (size_t at = 0, size; at < length; at += size) {
		size = strlen(names + at) + 1;
		if (!strncmp(names + at, "trusted.", 8))
			continue;
		memmove(names + kept, names + at, size);
		kept += size;
	}
	return kept;
}

void attr_listxattr(fuse_req_t req, fuse_ino_t number, size_t size)
{
	char path[PROC_PATH_MAX], *names;
	bool root = !fuse_req_ctx(req)->uid;
	size_t room = size || root ? size : XATTR_LIST_MAX;
	ssize_t n;

	names = room ? malloc(room) : NULL;
	if (room && !names) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	n = listxattr(proc_path(path, node_of(req, number)->fd), names, room);
	if (n > 0 && names && !root)
		n = (ssize_t)drop_trusted(names, (size_t)n);
	if (n < 0)
		fuse_reply_err(req, errno);
	else
		reply_value(req, names, (size_t)n, size);
	free(names);
}

/* An ACL that was set by somebody outside of the file's group. */
static void drop_sgid(struct node *n)
{
	char path[PROC_PATH_MAX];
	struct stat st;

	if (!fstatat(n->fd, "", &st, AT_EMPTY_PATH) && st.st_mode & S_ISGID)
		chmod(proc_path(path, n->fd), st.st_mode & 07777 & ~(mode_t)S_ISGID);
}

void attr_setxattr(fuse_req_t req, fuse_ino_t number, const char *name, const char *value,
		   size_t size, int flags)
{
	struct node *n = node_of(req, number);
	char path[PROC_PATH_MAX];
	struct stat before;
	int rc;

	if (number == FUSE_ROOT_ID && acting_set(req, name, value, size, &rc)) {
		reply_result(req, rc);
		return;
	}
	if (!strcmp(name, "security.capability")) /* which writing takes away, ours too */
		file_write_out(mount_of(req), n, true);
	change_begin(n, &before);
	rc = result(setxattr(proc_path(path, n->fd), name, value, size, flags & ~XATTR_KILLS_SGID));
	if (!rc && flags & XATTR_KILLS_SGID)
		drop_sgid(n);
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
	if (!rc && !strcmp(name, "security.capability"))
		atomic_store(&n->uncapped_by, fuse_req_ctx(req)->pid);
	change_end(mount_of(req), n, &before);
	reply_result(req, rc);
}
