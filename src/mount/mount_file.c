// SPDX-License-Identifier: MIT
/*
 * The data of regular files. An open of the mount is one of the table of paths, so all opens of a
 * file share its pages. Each write arrives as a request, since the kernel is not asked to keep
 * dirty pages (only shared mappings have some): it is accepted, counted and paced here. The
 * kernel chooses the place of appends, since it knows the size as well as we do, and tells
 * with each write whether it has to be safe.
 *
 * What the kernel has kept of a file from earlier opens still holds when nobody changed the file
 * underneath, which the table of paths can tell.
 *
 * libfuse's struct for an open lacks a flag that is younger than it, so replies are composed by
 * hand (linux/fuse.h).
 */
#include "mount/mount_inner.h"
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef FOPEN_PARALLEL_DIRECT_WRITES
#define FOPEN_PARALLEL_DIRECT_WRITES (1 << 6)
#endif

#define READ_COPIED 16384 /* up to here a read is copied */
#define READ_PIECES 512

static struct handle *handle_of(const struct fuse_file_info *fi)
{
	return (struct handle *)(uintptr_t)fi->fh;
}

static bool writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY;
}

/* What the table of paths shall know of a caller's flags. */
static int flags_for_table(int flags)
{
	return flags & O_ACCMODE;
}

static int flags_for_system(int flags)
{
	return (writes(flags) ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
}

/* What a system call has just given: a descriptor, or else the negative errno. */
static int or_errno(int fd)
{
	return fd < 0 ? -errno : fd;
}

/*
 * openat(2), but what the cache reads is not what somebody reads: atime is left alone, if we may
 * ask for that, and moved by node_accessed(). The descriptor, or a negative errno.
 */
static int open_quietly(int folder, const char *name, int flags, mode_t mode)
{
	int fd = openat(folder, name, flags | O_NOATIME, mode);

	if (fd < 0 && errno == EPERM)
		fd = openat(folder, name, flags, mode);
	return or_errno(fd);
}

/* --- opening and closing */

/* Opens a node in the table; `fd` becomes the table's. */
static int open_in_table(struct mount *m, struct node *n, int fd, int flags, bool *kept,
			 struct file **out)
{
	int rc;

	node_settle(m, n);
	rc = path_open_fd(m->cache->paths, fd, NULL, flags_for_table(flags), kept, out);
	if (!rc && !*kept && inode_unwritten_bytes(file_inode(*out)) == 0) {
		/* new to the table, or changed by others: the times of the source hold */
		atomic_store(&n->mtime_ns, TIME_OF_SOURCE);
		atomic_store(&n->ctime_ns, TIME_OF_SOURCE);
	}
	return rc;
}

static int handle_open(struct mount *m, struct node *n, int fd, int flags, bool *kept,
		       struct handle **out)
{
	struct handle *h = calloc(1, sizeof(*h));
	int rc;

	if (!h) {
		close(fd);
		return -ENOMEM;
	}
	h->node = n;
	rc = open_in_table(m, n, fd, flags, kept, &h->file);
	if (rc) {
		free(h);
		return rc;
	}
	atomic_fetch_add(&m->cache->files_open, 1);
	mutex_lock(&m->lock);
	list_add_tail(&m->handles, &h->link);
	mutex_unlock(&m->lock);
	*out = h;
	return 0;
}

static void handle_close(struct mount *m, struct handle *h)
{
	mutex_lock(&m->lock);
	list_del(&h->link);
	mutex_unlock(&m->lock);
	path_close(h->file);
	atomic_fetch_sub(&m->cache->files_open, 1);
	free(h);
}

void handles_close(struct mount *m)
{
	while (!list_empty(&m->handles))
		handle_close(m, list_entry(m->handles.next, struct handle, link));
}

static u32 reply_flags(const struct mount *m, int flags, bool kept)
{
	if (m->direct)
		return FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES;
	if (flags & O_DIRECT)
		return FOPEN_KEEP_CACHE | FOPEN_PARALLEL_DIRECT_WRITES;
	return kept ? FOPEN_KEEP_CACHE : 0;
}

static int node_open(struct mount *m, struct node *n, int flags, bool *kept, struct handle **out)
{
	char path[PROC_PATH_MAX];
	int fd = open_quietly(AT_FDCWD, proc_path(path, n->fd), flags_for_system(flags), 0);

	return fd < 0 ? fd : handle_open(m, n, fd, flags, kept, out);
}

void file_op_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct fuse_open_out reply = { 0 };
	struct iovec v = { &reply, sizeof(reply) };
	struct handle *h;
	bool kept;
	int rc = node_open(m, node_of(req, number), fi->flags, &kept, &h);

	if (rc) {
		reply_result(req, rc);
		return;
	}
	if (writes(fi->flags))
		acting_opened(req, h);
	reply.fh = (uintptr_t)h;
	reply.open_flags = reply_flags(m, fi->flags, kept);
	if (reply.open_flags & FOPEN_KEEP_CACHE && !writes(fi->flags) && !(fi->flags & O_NOATIME))
		node_accessed(m, h->node, h); /* the kernel may have what will be read */
	if (fuse_reply_iov(req, &v, 1))
		handle_close(m, h);
}

/* As a lookup, of what was just made and is open. */
static int lookup_open(struct mount *m, int fd, struct node **out, struct stat *st)
{
	char path[PROC_PATH_MAX];
	int at = or_errno(open(proc_path(path, fd), O_PATH | O_CLOEXEC));

	return at < 0 ? at : node_get(m, at, out, st);
}

static void fill_attr(struct fuse_attr *a, const struct stat *st)
{
	*a = (struct fuse_attr){ .ino = st->st_ino,
				 .size = (u64)st->st_size,
				 .blocks = (u64)st->st_blocks,
				 .atime = (u64)st->st_atim.tv_sec,
				 .mtime = (u64)st->st_mtim.tv_sec,
				 .ctime = (u64)st->st_ctim.tv_sec,
				 .atimensec = (u32)st->st_atim.tv_nsec,
				 .mtimensec = (u32)st->st_mtim.tv_nsec,
				 .ctimensec = (u32)st->st_ctim.tv_nsec,
				 .mode = st->st_mode,
				 .nlink = (u32)st->st_nlink,
				 .uid = st->st_uid,
				 .gid = st->st_gid,
				 .rdev = (u32)st->st_rdev,
				 .blksize = (u32)st->st_blksize };
}

static void reply_created(fuse_req_t req, struct node *n, const struct stat *st, struct handle *h,
			  u32 flags)
{
	struct mount *m = mount_of(req);
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} reply = { .entry = { .nodeid = (uintptr_t)n,
			       .generation = n->generation,
			       .entry_valid = (u64)TIMEOUT_S,
			       .attr_valid = (u64)TIMEOUT_S },
		    .open = { .fh = (uintptr_t)h, .open_flags = flags } };
	struct iovec v = { &reply, sizeof(reply) };

	fill_attr(&reply.entry.attr, st);
	if (fuse_reply_iov(req, &v, 1)) {
		handle_close(m, h);
		node_forget(m, n, 1);
	}
}

/* *made: there was no such file, so what a file may have that others made this one has not. */
static int create(int folder, const char *name, int how, int flags, mode_t mode, bool *made)
{
	int alone = how & O_CREAT ? O_EXCL : 0;
	int fd = open_quietly(folder, name, how | alone, mode);

	*made = fd >= 0;
	if (fd == -EEXIST && alone && !(flags & O_EXCL))
		fd = open_quietly(folder, name, how, mode);
	return fd;
}

void file_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		    struct fuse_file_info *fi)
{
	bool nameless = (fi->flags & O_TMPFILE) == O_TMPFILE; /* see mount_young.c */
	int how = flags_for_system(fi->flags) |
		  (nameless ? O_TMPFILE | (fi->flags & O_EXCL) : O_CREAT | O_NOFOLLOW);
	struct mount *m = mount_of(req);
	struct handle *h;
	struct node *n;
	struct stat st;
	bool kept, made;
	int rc, fd;

	caller_begin(req);
	fd = create(node_of(req, parent)->fd, nameless ? "." : name, how, fi->flags, mode, &made);
	caller_end(req);
	if (fd < 0) {
		reply_result(req, fd);
		return;
	}
	rc = lookup_open(m, fd, &n, &st);
	if (rc) {
		close(fd);
		reply_result(req, rc);
		return;
	}
	if (made && !(st.st_mode & (S_ISUID | S_ISGID)))
		atomic_store(&n->plain, true);
	rc = handle_open(m, n, fd, fi->flags, &kept, &h);
	if (rc) {
		node_forget(m, n, 1);
		reply_result(req, rc);
		return;
	}
	if (writes(fi->flags))
		acting_opened(req, h);
	reply_created(req, n, &st, h, reply_flags(m, fi->flags, kept));
}

void file_op_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct handle *h = handle_of(fi);

	(void)number;
	if (writes(fi->flags) && atomic_exchange(&h->node->emptied, false) && !m->lazy_replace)
		file_sync_range(h->file, 0, 0, FILE_WRITE);
	handle_close(m, h);
	fuse_reply_err(req, 0);
}

/* --- data */

static void reply_copied(fuse_req_t req, struct file *f, size_t length, u64 offset)
{
	char small[READ_COPIED], *buf = length <= sizeof(small) ? small : malloc(length);
	ssize_t n = buf ? file_pread(f, buf, length, offset) : -ENOMEM;

	if (n < 0)
		reply_result(req, (int)n);
	else
		fuse_reply_buf(req, buf, (size_t)n);
	if (buf != small)
		free(buf);
}

/* Answers with the cache's own memory; false: not all that was asked for could be lent. */
static bool reply_lent(fuse_req_t req, struct file *f, size_t length, u64 offset)
{
	struct iovec pieces[READ_PIECES];
	struct file_loan *loan = NULL;
	u64 size = inode_size(file_inode(f));
	size_t wanted = min_u64(length, offset < size ? size - offset : 0);
	ssize_t n = file_borrow(f, offset, length, pieces, READ_PIECES, 0, &loan);
	bool whole = n > 0 && (size_t)n >= wanted;
	int count = 0;

	for (ssize_t left = n; whole && left > 0; count++)
		left -= (ssize_t)pieces[count].iov_len;
	if (whole)
		fuse_reply_iov(req, pieces, count);
	if (loan)
		file_give_back(loan);
	return whole;
}

void file_op_read(fuse_req_t req, fuse_ino_t number, size_t length, off_t offset,
		  struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req); /* the reply ends the request */
	struct handle *h = handle_of(fi);
	struct file *f = h->file;

	(void)number;
	if (!(fi->flags & O_NOATIME)) /* which fcntl(2) can change */
		node_accessed(m, h->node, h);
	acting_begin(req, h->node, h, false);
	if (length <= READ_COPIED || !reply_lent(req, f, length, (u64)offset))
		reply_copied(req, f, length, (u64)offset);
	acting_end(m);
}

void file_op_write(fuse_req_t req, fuse_ino_t number, const char *data, size_t length, off_t offset,
		   struct fuse_file_info *fi)
{
	const struct iovec v = { (void *)data, length };
	struct handle *h = handle_of(fi);
	bool safe = fi->flags & (O_DSYNC | O_SYNC);
	ssize_t n;

	(void)number;
	if (atomic_load(&h->node->frozen)) {
		fuse_reply_err(req, EPERM);
		return;
	}
	if (!fi->writepage) /* of a mapping: the kernel did it when it was written to */
		attr_drop_privileges(req, h->node);
	acting_begin(req, h->node, h, fi->writepage);
	n = safe ? file_pwritev(h->file, &v, 1, (u64)offset, FILE_IO_DSYNC)
		 : file_pwrite(h->file, data, length, (u64)offset);
	acting_end(mount_of(req));
	if (n > 0)
		node_modified(mount_of(req), h->node);
	if (n < 0)
		reply_result(req, (int)n);
	else
		fuse_reply_write(req, (size_t)n);
}

void file_op_fsync(fuse_req_t req, fuse_ino_t number, int data_only, struct fuse_file_info *fi)
{
	(void)number;
	reply_result(req, file_fsync(handle_of(fi)->file, data_only));
}

void file_write_out(struct mount *m, struct node *n, bool wait)
{
	struct stat key = { .st_dev = n->dev, .st_ino = n->ino, .st_mode = n->kind };
	struct handle *h;
	u64 size;
	bool kept;

	if (!S_ISREG(n->kind) || !path_size(m->cache->paths, &key, &size) ||
	    node_open(m, n, O_RDONLY, &kept, &h))
		return;
	file_sync_range(h->file, 0, 0, FILE_WRITE | (wait ? FILE_WAIT_AFTER : 0));
	handle_close(m, h);
}

int file_set_size(struct mount *m, struct node *n, struct handle *h, u64 size)
{
	bool kept;
	int rc;

	if (!size)
		atomic_store(&n->emptied, true);
	if (h)
		return file_truncate(h->file, size);
	if (!S_ISREG(n->kind))
		return S_ISDIR(n->kind) ? -EISDIR : -EINVAL;
	rc = node_open(m, n, O_WRONLY, &kept, &h);
	if (rc)
		return rc;
	rc = file_truncate(h->file, size);
	handle_close(m, h);
	return rc;
}

static unsigned allocate_flags(int mode)
{
	return (mode & FALLOC_FL_KEEP_SIZE ? FILE_KEEP_SIZE : 0) |
	       (mode & FALLOC_FL_PUNCH_HOLE ? FILE_PUNCH_HOLE : 0) |
	       (mode & FALLOC_FL_ZERO_RANGE ? FILE_ZERO_RANGE : 0);
}

void file_op_fallocate(fuse_req_t req, fuse_ino_t number, int mode, off_t offset, off_t length,
		       struct fuse_file_info *fi)
{
	int known = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
	struct handle *h = handle_of(fi);
	int rc = -EOPNOTSUPP;

	(void)number;
	attr_drop_privileges(req, h->node);
	if (!(mode & ~known)) {
		acting_begin(req, h->node, h, false);
		rc = file_fallocate(h->file, allocate_flags(mode), (u64)offset, (u64)length);
		acting_end(mount_of(req));
	}
	if (!rc)
		node_modified(mount_of(req), h->node);
	reply_result(req, rc);
}

void file_op_lseek(fuse_req_t req, fuse_ino_t number, off_t offset, int whence,
		   struct fuse_file_info *fi)
{
	enum file_seek_what what = whence == SEEK_DATA ? FILE_SEEK_DATA : FILE_SEEK_HOLE;
	s64 at = whence == SEEK_DATA || whence == SEEK_HOLE
			 ? file_seek(handle_of(fi)->file, (u64)offset, what)
			 : -EINVAL;

	(void)number;
	if (at < 0)
		reply_result(req, (int)at);
	else
		fuse_reply_lseek(req, at);
}
