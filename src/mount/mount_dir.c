// SPDX-License-Identifier: MIT
/*
 * Folders are read through a stream of the C library, whose positions go to the kernel as they
 * are. With readdirplus each entry comes with its attributes, and counts as looked up; an
 * entry that no longer fits into the answer is kept for the next one.
 *
 * The kernel may keep a folder's names as long as it keeps what it knows of them, a second. Changes
 * that are made in the mount it sees itself; for others the folder's ctime is looked at when it is
 * opened, which is one request instead of four. What it keeps counts from when it asked for it, not
 * from when the folder was opened: until then it may still have what was there before.
 */
#include "mount/mount_inner.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct dir {
	DIR *stream;          /* NULL: nothing has been read */
	s64 ctime_ns;         /* when it was opened, or 0: see node_settled_ctime() */
	struct dirent *entry; /* read, but not yet given; NULL: none */
	off_t offset;         /* where that was read from, or the next one will be */
};

static struct dir *dir_of(struct fuse_file_info *fi)
{
	return (struct dir *)(uintptr_t)fi->fh;
}

/* Whether the names that the kernel has of a folder are what a read would give. */
static bool names_hold(const struct mount *m, struct node *n, s64 ctime)
{
	/* each read moves atime, so each is to be ours */
	return !m->strict_atime && ctime && ctime == atomic_load(&n->listed_ctime_ns) &&
	       world_now() - atomic_load(&n->listed_at_ns) < (u64)(TIMEOUT_S * NSEC_PER_SEC);
}

void dir_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct mount *m = mount_of(req);
	struct node *n = node_of(req, number);
	struct dir *d = calloc(1, sizeof(*d));
	struct stat st;

	if (!d || fstatat(n->fd, "", &st, AT_EMPTY_PATH)) {
		fuse_reply_err(req, d ? errno : ENOMEM);
		free(d);
		return;
	}
	d->ctime_ns = node_settled_ctime(&st);
	fi->fh = (uintptr_t)d;
	fi->cache_readdir = !m->strict_atime;
	fi->keep_cache = names_hold(m, n, d->ctime_ns);
	if (fuse_reply_open(req, fi))
		free(d);
}

/* 0 or a negative errno. */
static int open_stream(struct dir *d, const struct node *n)
{
	int fd = d->stream ? -1 : openat(n->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		d->stream = fdopendir(fd);
	if (d->stream)
		return 0;
	if (fd >= 0)
		close(fd);
	return -errno;
}

void dir_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct dir *d = dir_of(fi);

	(void)number;
	if (d->stream)
		closedir(d->stream);
	free(d);
	fuse_reply_err(req, 0);
}

void dir_fsync(fuse_req_t req, fuse_ino_t number, int data_only, struct fuse_file_info *fi)
{
	struct dir *d = dir_of(fi);
	int rc = open_stream(d, node_of(req, number));

	if (!rc)
		rc = result(data_only ? fdatasync(dirfd(d->stream)) : fsync(dirfd(d->stream)));
	reply_result(req, rc);
}

/* The next entry, or NULL with *rc 0 at the end. */
static struct dirent *next_entry(struct dir *d, int *rc)
{
	*rc = 0;
	if (d->entry)
		return d->entry;
	errno = 0;
	d->entry = readdir(d->stream);
	if (!d->entry)
		*rc = -errno;
	return d->entry;
}

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Puts an entry into the buffer; returns its size, which is above `left` if it did not fit. */
static size_t put(fuse_req_t req, struct node *n, const struct dirent *entry, char *buf,
		  size_t left, bool plus)
{
	struct mount *m = mount_of(req);
	struct stat st = { .st_ino = shown_number(m, n->dev, entry->d_ino),
			   .st_mode = DTTOIF(entry->d_type) };
	struct fuse_entry_param e = { .attr = st };
	size_t size;

	if (plus && nodes_crowded(m)) /* who wants more of it will ask */
		return fuse_add_direntry_plus(req, buf, left, entry->d_name, &e, entry->d_off);
	if (!plus)
		return fuse_add_direntry(req, buf, left, entry->d_name, &st, entry->d_off);
	if (!is_dots(entry->d_name) && name_lookup(m, n, entry->d_name, &e)) {
		e.ino = 0; /* who wants it will ask, and hear why not */
		e.attr = st;
	}
	size = fuse_add_direntry_plus(req, buf, left, entry->d_name, &e, entry->d_off);
	if (size > left && e.ino)
		node_forget(m, (struct node *)e.ino, 1);
	return size;
}

static void read_entries(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
			 struct fuse_file_info *fi, bool plus)
{
	struct dir *d = dir_of(fi);
	struct node *n = node_of(req, number);
	char *buf = malloc(size);
	size_t used = 0;
	int rc = buf ? open_stream(d, n) : -ENOMEM;

	if (!rc && !offset) {
		atomic_store(&n->listed_at_ns, world_now());
		atomic_store(&n->listed_ctime_ns, d->ctime_ns);
	}
	if (!rc && offset != d->offset) {
		seekdir(d->stream, offset);
		d->entry = NULL;
		d->offset = offset;
	}
	while (!rc && next_entry(d, &rc)) {
		size_t taken = put(req, n, d->entry, buf + used, size - used, plus);

		if (taken > size - used)
			break;
		used += taken;
		d->offset = d->entry->d_off;
		d->entry = NULL;
	}
	if (rc && !used) /* an error after entries comes again with the next call */
		reply_result(req, rc);
	else
		fuse_reply_buf(req, buf, used);
	free(buf);
}

void dir_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
	      struct fuse_file_info *fi)
{
	read_entries(req, number, size, offset, fi, false);
}

void dir_read_plus(fuse_req_t req, fuse_ino_t number, size_t size, off_t offset,
		   struct fuse_file_info *fi)
{
	read_entries(req, number, size, offset, fi, true);
}
