// SPDX-License-Identifier: MIT
/*
 * Folders are read through a stream of the C library, whose positions go to the kernel as they
 * are. With readdirplus each entry comes with its attributes, and counts as looked up; an
 * entry that no longer fits into the answer is kept for the next one.
 */
#include "mount/mount_inner.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct dir {
	DIR *stream;
	struct dirent *entry; /* read, but not yet given; NULL: none */
	off_t offset;         /* where that was read from, or the next one will be */
};

static struct dir *dir_of(struct fuse_file_info *fi)
{
	return (struct dir *)(uintptr_t)fi->fh;
}

/* NULL with errno. */
static struct dir *open_stream(struct node *n)
{
	struct dir *d = calloc(1, sizeof(*d));
	int fd = d ? openat(n->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		d->stream = fdopendir(fd);
	if (d && d->stream)
		return d;
	if (fd >= 0)
		close(fd);
	free(d);
	return NULL;
}

void dir_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct dir *d = open_stream(node_of(req, number));

	if (!d) {
		fuse_reply_err(req, errno);
		return;
	}
	fi->fh = (uintptr_t)d;
	if (fuse_reply_open(req, fi)) {
		closedir(d->stream);
		free(d);
	}
}

void dir_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct dir *d = dir_of(fi);

	(void)number;
	closedir(d->stream);
	free(d);
	fuse_reply_err(req, 0);
}

void dir_fsync(fuse_req_t req, fuse_ino_t number, int data_only, struct fuse_file_info *fi)
{
	int fd = dirfd(dir_of(fi)->stream);

	(void)number;
	reply_result(req, result(data_only ? fdatasync(fd) : fsync(fd)));
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
	char *buf = malloc(size);
	size_t used = 0;
	int rc = buf ? 0 : -ENOMEM;

	if (offset != d->offset) {
		seekdir(d->stream, offset);
		d->entry = NULL;
		d->offset = offset;
	}
	while (!rc && next_entry(d, &rc)) {
		size_t taken =
			put(req, node_of(req, number), d->entry, buf + used, size - used, plus);

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
