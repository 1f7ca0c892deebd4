// SPDX-License-Identifier: MIT
/*
 * Names: each call is the system's call of the same name with a folder's descriptor in place of a
 * path, so one component at a time is resolved, by the kernel for the mount and by us for the
 * source, and no symbolic link is ever followed on the source.
 *
 * What a caller creates is to be his. A thread takes on his ids for file systems, keeps its own
 * capabilities (the kernel has checked his rights against the same attributes), and his umask,
 * which counts only where the folder has no default ACL: so the source has to apply it.
 */
#include "mount/mount_inner.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROUPS_LOOKED_AT 1024

/* --- acting for a caller */

/* All that is permitted takes effect again: a change of ids has taken some of it away. */
static void raise_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, sets))
		return;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		sets[i].effective = sets[i].permitted;
	syscall(SYS_capset, &head, sets);
}

bool caller_in_group(fuse_req_t req, gid_t gid)
{
	gid_t groups[GROUPS_LOOKED_AT];
	int count = 0;

	if (fuse_req_ctx(req)->gid == gid)
		return true;
	count = fuse_req_getgroups(req, GROUPS_LOOKED_AT, groups);
	for (int i = 0; i < count && i < GROUPS_LOOKED_AT; i++)
		if (groups[i] == gid)
			return true;
	return false;
}

/* What the calling thread has taken on. */
static _Thread_local bool own_umask, acts_for_caller;

void caller_begin(fuse_req_t req)
{
	const struct fuse_ctx *caller = fuse_req_ctx(req);
	static _Thread_local mode_t current;

	/* the umask belongs to what threads share, until they do not */
	if (!own_umask) {
		own_umask = !unshare(CLONE_FS);
		umask(0);
		current = 0;
	}
	if (own_umask && current != caller->umask)
		umask(current = caller->umask);
	if (!mount_of(req)->root_user || (!caller->uid && !caller->gid))
		return;
	acts_for_caller = true;
	setfsgid(caller->gid);
	setfsuid(caller->uid);
	raise_capabilities();
}

void caller_end(fuse_req_t req)
{
	int error = errno;

	(void)req;
	if (acts_for_caller) {
		setfsuid(0);
		setfsgid(0);
		acts_for_caller = false;
	}
	errno = error;
}

/* --- changes of attributes */

void change_begin(struct node *n, struct stat *before)
{
	if (!S_ISREG(n->kind) || fstatat(n->fd, "", before, AT_EMPTY_PATH))
		*before = (struct stat){ 0 };
}

void change_end(struct mount *m, struct node *n, const struct stat *before)
{
	struct stat after;

	if (before->st_mode && !fstatat(n->fd, "", &after, AT_EMPTY_PATH) &&
	    (after.st_ctim.tv_sec != before->st_ctim.tv_sec ||
	     after.st_ctim.tv_nsec != before->st_ctim.tv_nsec)) {
		node_changed(m, n, &after);
		path_touched(m->cache->paths, before, &after);
	}
}

/* The node a name leads to, with a lookup to be given back; NULL: none. */
static struct node *named(struct mount *m, struct node *parent, const char *name)
{
	int fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct node *n;
	struct stat st;

	return fd >= 0 && !node_get(m, fd, &n, &st) ? n : NULL;
}

/* After a name of it went. */
static void gone(struct mount *m, struct node *n, const struct stat *before)
{
	change_end(m, n, before);
	if (before->st_mode)
		path_unlinked(m->cache->paths, before);
}

/* --- lookups */

int name_lookup(struct mount *m, struct node *parent, const char *name,
		struct fuse_entry_param *out)
{
	struct node *n;
	int fd, rc;

	*out = (struct fuse_entry_param){ .attr_timeout = TIMEOUT_S, .entry_timeout = TIMEOUT_S };
	if (!strcmp(name, ".") || !strcmp(name, "..") || strchr(name, '/'))
		return -EINVAL; /* names that the kernel resolves itself */
	if (fstatat(parent->fd, name, &out->attr, AT_SYMLINK_NOFOLLOW))
		return -errno;
	n = node_find(m, &out->attr);
	if (n) {
		rc = node_stat(m, n, &out->attr);
		if (rc)
			node_forget(m, n, 1);
	} else {
		fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		rc = node_get(m, fd, &n, &out->attr);
	}
	if (rc)
		return rc;
	out->ino = (fuse_ino_t)n;
	out->generation = n->generation;
	return 0;
}

static void reply_lookup(fuse_req_t req, struct node *parent, const char *name, bool absence)
{
	struct fuse_entry_param e;
	int rc = name_lookup(mount_of(req), parent, name, &e);

	if (rc == -ENOENT && absence) /* which the kernel may keep for a while, too */
		fuse_reply_entry(req, &e);
	else if (rc)
		reply_result(req, rc);
	else if (fuse_reply_entry(req, &e))
		node_forget(mount_of(req), (struct node *)e.ino, 1);
}

void name_lookup_op(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_lookup(req, node_of(req, parent), name, true);
}

void name_forget(fuse_req_t req, fuse_ino_t number, uint64_t lookups)
{
	node_forget(mount_of(req), node_of(req, number), lookups);
	fuse_reply_none(req);
}

void name_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *all)
{
	for (size_t i = 0; i < count; i++)
		node_forget(mount_of(req), node_of(req, all[i].ino), all[i].nlookup);
	fuse_reply_none(req);
}

void name_readlink(fuse_req_t req, fuse_ino_t number)
{
	char text[PATH_MAX + 1];
	ssize_t n = readlinkat(node_of(req, number)->fd, "", text, sizeof(text) - 1);

	if (n < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	text[n] = 0;
	fuse_reply_readlink(req, text);
}

/* --- making */

static void reply_made(fuse_req_t req, struct node *parent, const char *name, int rc)
{
	caller_end(req);
	if (rc)
		fuse_reply_err(req, errno);
	else
		reply_lookup(req, parent, name, false);
}

void name_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct node *p = node_of(req, parent);

	caller_begin(req);
	reply_made(req, p, name, mknodat(p->fd, name, mode, rdev));
}

void name_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct node *p = node_of(req, parent);

	caller_begin(req);
	reply_made(req, p, name, mkdirat(p->fd, name, mode));
}

void name_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	struct node *p = node_of(req, parent);

	caller_begin(req);
	reply_made(req, p, name, symlinkat(link, p->fd, name));
}

void name_link(fuse_req_t req, fuse_ino_t number, fuse_ino_t parent, const char *name)
{
	struct node *n = node_of(req, number), *p = node_of(req, parent);
	char from[PROC_PATH_MAX];
	struct stat before;

	change_begin(n, &before);
	if (linkat(AT_FDCWD, proc_path(from, n->fd), p->fd, name, AT_SYMLINK_FOLLOW)) {
		fuse_reply_err(req, errno);
		return;
	}
	change_end(mount_of(req), n, &before);
	reply_lookup(req, p, name, false);
}

/* --- removing and moving */

/* The last name of a file, of which nothing has to be known but who has it open. */
static void reply_last_unlinked(fuse_req_t req, struct node *p, const char *name,
				const struct stat *st)
{
	struct mount *m = mount_of(req);
	int rc = result(unlinkat(p->fd, name, 0));
	struct node *n = rc ? NULL : node_find(m, st);

	if (n) {
		node_changed(m, n, NULL);
		node_forget(m, n, 1);
	}
	if (!rc && S_ISREG(st->st_mode))
		path_unlinked(m->cache->paths, st);
	reply_result(req, rc);
}

static void reply_unlinked(fuse_req_t req, fuse_ino_t parent, const char *name, int flags)
{
	struct mount *m = mount_of(req);
	struct node *p = node_of(req, parent), *n;
	struct stat before;
	int rc;

	if (!flags && !fstatat(p->fd, name, &before, AT_SYMLINK_NOFOLLOW) && before.st_nlink == 1) {
		reply_last_unlinked(req, p, name, &before);
		return;
	}
	n = flags ? NULL : named(m, p, name);
	if (n)
		change_begin(n, &before);
	rc = result(unlinkat(p->fd, name, flags));
	if (n && !rc)
		gone(m, n, &before);
	if (n)
		node_forget(m, n, 1);
	reply_result(req, rc);
}

void name_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_unlinked(req, parent, name, 0);
}

void name_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	reply_unlinked(req, parent, name, AT_REMOVEDIR);
}

void name_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
		 const char *new_name, unsigned flags)
{
	struct mount *m = mount_of(req);
	struct node *p = node_of(req, parent), *new_p = node_of(req, new_parent);
	struct node *moved = named(m, p, name), *over = named(m, new_p, new_name);
	struct stat moved_before, over_before;
	int rc;

	/* so that after a crash of ours there is one or the other */
	if (moved && over && !(flags & RENAME_NOREPLACE) && !m->lazy_replace)
		file_write_out(m, moved, true);
	if (moved)
		change_begin(moved, &moved_before);
	if (over)
		change_begin(over, &over_before);
	if (flags & RENAME_WHITEOUT) /* which is the caller's */
		caller_begin(req);
	rc = result(renameat2(p->fd, name, new_p->fd, new_name, flags));
	if (flags & RENAME_WHITEOUT)
		caller_end(req);
	if (moved && !rc)
		change_end(m, moved, &moved_before);
	if (over && !rc)
		gone(m, over, &over_before);
	if (moved)
		node_forget(m, moved, 1);
	if (over)
		node_forget(m, over, 1);
	reply_result(req, rc);
}
