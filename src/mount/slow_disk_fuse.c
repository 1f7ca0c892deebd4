// SPDX-License-Identifier: MIT
/*
 * The file system around a slow disk: a folder with the files `disk` and `stats`, served by
 * libfuse's low-level interface with as many threads as requests are under way.
 *
 * The kernel is to keep nothing of `disk`: it is opened for direct I/O, so each I/O of the
 * loop device above becomes a request here, and with parallel direct writes, so that they
 * do not queue up for the inode's lock on their way. The second flag is younger than
 * libfuse 3.14's struct, so the reply to an open is composed by hand (linux/fuse.h, struct
 * fuse_open_out).
 *
 * The process is part of the way from a file system to its disk. If it had to write out
 * dirty pages of that file system to get memory, both would wait for ever; PR_SET_IO_FLUSHER
 * tells the kernel so (prctl(2)).
 */
#define FUSE_USE_VERSION 312
#include "mount/fuse_request.h"
#include "mount/fuse_said.h"
#include "mount/slow_disk_service.h"
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { INODE_ROOT = FUSE_ROOT_ID, INODE_DISK, INODE_STATS };

#define FOREVER     1e6 /* seconds that the kernel may keep what it knows of files */
#define REQUEST_MAX (1u << 20)
#define THREADS     256
#define BUFFER_UNIT 4096

#ifndef FOPEN_PARALLEL_DIRECT_WRITES
#define FOPEN_PARALLEL_DIRECT_WRITES (1 << 6)
#endif

struct slow_disk {
	struct slow_disk_service service;
	struct fuse_session *session;
};

static const struct entry {
	const char *name;
	fuse_ino_t inode;
	mode_t mode;
} entries[] = {
	{ "disk", INODE_DISK, S_IFREG | 0600 },
	{ "stats", INODE_STATS, S_IFREG | 0444 },
};

static struct slow_disk_service *service_of(fuse_req_t req)
{
	return &((struct slow_disk *)fuse_req_userdata(req))->service;
}

static void describe(fuse_req_t req, fuse_ino_t inode, struct stat *s)
{
	*s = (struct stat){ .st_ino = inode, .st_nlink = 1, .st_mode = S_IFDIR | 0755 };
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
		if (entries[i].inode == inode)
			s->st_mode = entries[i].mode;
	if (inode == INODE_DISK)
		s->st_size = (off_t)service_of(req)->backing.size_bytes;
	s->st_blksize = BUFFER_UNIT;
	s->st_blocks = s->st_size / 512;
	s->st_uid = geteuid();
	s->st_gid = getegid();
}

static void on_init(void *disk, struct fuse_conn_info *conn)
{
	(void)disk;
	conn->max_write = REQUEST_MAX;
	conn->max_background = THREADS;
	conn->congestion_threshold = THREADS;
	/* else the kernel believes that O_TRUNC has made the disk empty */
	conn->want &= ~(unsigned)FUSE_CAP_ATOMIC_O_TRUNC;
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param p = { .attr_timeout = FOREVER, .entry_timeout = FOREVER };

	for (size_t i = 0; i < ARRAY_SIZE(entries) && parent == INODE_ROOT; i++)
		if (!strcmp(entries[i].name, name))
			p.ino = entries[i].inode;
	if (!p.ino) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	describe(req, p.ino, &p.attr);
	fuse_reply_entry(req, &p);
}

static void on_getattr(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *fi)
{
	struct stat s;

	(void)fi;
	describe(req, inode, &s);
	fuse_reply_attr(req, &s, FOREVER);
}

/* A disk has the size it has; times may be set and are forgotten. */
static void on_setattr(fuse_req_t req, fuse_ino_t inode, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	if ((to_set & FUSE_SET_ATTR_SIZE) &&
	    (inode != INODE_DISK || (u64)attr->st_size != service_of(req)->backing.size_bytes))
		fuse_reply_err(req, EINVAL);
	else if (to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		fuse_reply_err(req, EPERM);
	else
		on_getattr(req, inode, fi);
}

static void open_stats(fuse_req_t req, struct fuse_file_info *fi)
{
	char *text = service_stats_json(service_of(req));

	if (!text) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fi->fh = (uintptr_t)text;
	fi->direct_io = 1;
	if (fuse_reply_open(req, fi))
		free(text);
}

static void on_open(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *fi)
{
	struct fuse_open_out reply = { .open_flags =
					       FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES };
	struct iovec v = { &reply, sizeof(reply) };

	if (inode == INODE_DISK)
		fuse_reply_iov(req, &v, 1);
	else if ((fi->flags & O_ACCMODE) != O_RDONLY)
		fuse_reply_err(req, EACCES);
	else
		open_stats(req, fi);
}

static void on_release(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *fi)
{
	if (inode == INODE_STATS)
		free((void *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

/*
 * What of `text` lies in the part asked for. From a copy: as soon as the answer is there, somebody
 * may close the file.
 */
static void reply_part(fuse_req_t req, const char *text, size_t length, u64 offset)
{
	size_t total = strlen(text), from = min_u64(offset, total);
	char part[1024];

	length = min_u64(min_u64(length, total - from), sizeof(part));
	memcpy(part, text + from, length);
	fuse_reply_buf(req, part, length);
}

static void read_disk(fuse_req_t req, size_t length, u64 offset)
{
	struct slow_disk_service *s = service_of(req);
	u64 left = offset < s->backing.size_bytes ? s->backing.size_bytes - offset : 0;
	void *buf;
	int error;

	length = min_u64(length, left);
	if (!length) {
		fuse_reply_buf(req, NULL, 0);
		return;
	}
	buf = aligned_alloc(BUFFER_UNIT, (length + BUFFER_UNIT - 1) / BUFFER_UNIT * BUFFER_UNIT);
	error = buf ? service_read(s, buf, length, offset) : -ENOMEM;
	if (error)
		fuse_reply_err(req, -error);
	else
		fuse_reply_buf(req, buf, length);
	free(buf);
}

static void on_read(fuse_req_t req, fuse_ino_t inode, size_t length, off_t offset,
		    struct fuse_file_info *fi)
{
	const char *text = (const char *)(uintptr_t)fi->fh;

	if (inode == INODE_DISK)
		read_disk(req, length, (u64)offset);
	else
		reply_part(req, text, length, (u64)offset);
}

static void on_write(fuse_req_t req, fuse_ino_t inode, const char *data, size_t length,
		     off_t offset, struct fuse_file_info *fi)
{
	void *buf =
		aligned_alloc(BUFFER_UNIT, (length + BUFFER_UNIT - 1) / BUFFER_UNIT * BUFFER_UNIT);
	int error = -ENOMEM;

	(void)fi;
	assert(inode == INODE_DISK); /* `stats` cannot be opened for it */
	if (buf) {
		/* behind its header, the data is not where O_DIRECT could take it from */
		memcpy(buf, data, length);
		error = service_write(service_of(req), buf, length, (u64)offset);
	}
	if (error)
		fuse_reply_err(req, -error);
	else
		fuse_reply_write(req, length);
	free(buf);
}

/* close(2) leaves nothing behind that would have to be written. */
static void on_flush(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *fi)
{
	(void)inode;
	(void)fi;
	fuse_reply_err(req, 0);
}

static void on_fsync(fuse_req_t req, fuse_ino_t inode, int data_only, struct fuse_file_info *fi)
{
	(void)data_only;
	(void)fi;
	fuse_reply_err(req, inode == INODE_DISK ? -service_flush(service_of(req)) : 0);
}

/* A discarded part reads as zeros, so making zeros is the same. */
static void on_fallocate(fuse_req_t req, fuse_ino_t inode, int mode, off_t offset, off_t length,
			 struct fuse_file_info *fi)
{
	int how = mode & ~FALLOC_FL_KEEP_SIZE;

	(void)fi;
	if (inode != INODE_DISK || (how != FALLOC_FL_PUNCH_HOLE && how != FALLOC_FL_ZERO_RANGE))
		fuse_reply_err(req, EOPNOTSUPP);
	else
		fuse_reply_err(req, -service_discard(service_of(req), (u64)offset, (u64)length));
}

static void on_readdir(fuse_req_t req, fuse_ino_t inode, size_t length, off_t offset,
		       struct fuse_file_info *fi)
{
	struct stat root = { .st_ino = INODE_ROOT, .st_mode = S_IFDIR };
	char buf[512];
	size_t used = 0;

	(void)fi;
	if (inode != INODE_ROOT) {
		fuse_reply_err(req, ENOTDIR);
		return;
	}
	used += fuse_add_direntry(req, buf, sizeof(buf), ".", &root, (off_t)1);
	used += fuse_add_direntry(req, buf + used, sizeof(buf) - used, "..", &root, (off_t)2);
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		struct stat s;

		describe(req, entries[i].inode, &s);
		used += fuse_add_direntry(req, buf + used, sizeof(buf) - used, entries[i].name, &s,
					  (off_t)(3 + i));
	}
	assert(used <= sizeof(buf));
	/* all of it fits into one answer; a second call finds the end */
	if (offset || length < used)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_buf(req, buf, used);
}

static const struct fuse_lowlevel_ops operations = {
	.init = on_init,
	.lookup = on_lookup,
	.getattr = on_getattr,
	.setattr = on_setattr,
	.open = on_open,
	.release = on_release,
	.read = on_read,
	.write = on_write,
	.flush = on_flush,
	.fsync = on_fsync,
	.fallocate = on_fallocate,
	.readdir = on_readdir,
};

static ssize_t take_request(int fd, void *buf, size_t length, void *disk)
{
	(void)disk;
	return fuse_request_read(fd, buf, length);
}

static ssize_t give_reply(int fd, struct iovec *iov, int count, void *disk)
{
	(void)disk;
	return writev(fd, iov, count);
}

static const struct fuse_custom_io custom_io = { .writev = give_reply, .read = take_request };

static int mount_it(struct slow_disk *d, const char *mountpoint, struct err *e)
{
	char all[] = "allow_other,default_permissions,fsname=sluice,subtype=sluice-device";
	/* others than root may not say allow_other, unless fuse.conf allows it */
	char *options = geteuid() ? strchr(all, ',') + 1 : all;
	char *words[] = { (char *)"sluice", (char *)"-o", options, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, words);
	struct stat s;
	int error = stat(mountpoint, &s) ? errno : S_ISDIR(s.st_mode) ? 0 : ENOTDIR;

	if (error) {
		err_set(e, mountpoint, 0, "%s", strerror(error));
		return -error;
	}
	fuse_said_listen();
	d->session = fuse_session_new(&args, &operations, sizeof(operations), d);
	fuse_opt_free_args(&args); /* libfuse adds to them */
	/* a signal from now on is to unmount what is mounted */
	if (d->session && !fuse_set_signal_handlers(d->session) &&
	    !fuse_session_mount(d->session, mountpoint) &&
	    !fuse_session_custom_io(d->session, &custom_io, fuse_session_fd(d->session)))
		return 0;
	err_set(e, mountpoint, 0, "cannot be mounted on: %s", fuse_said_why());
	return -EIO;
}

int slow_disk_open(const struct slow_disk_config *c, struct slow_disk **out, struct err *e)
{
	struct slow_disk *d = calloc(1, sizeof(*d));
	int rc;

	if (!d) {
		err_set(e, NULL, 0, "not enough memory");
		return -ENOMEM;
	}
	rc = service_open(&d->service, c, e);
	if (rc) {
		free(d);
		return rc;
	}
	rc = mount_it(d, c->mountpoint, e);
	if (rc) {
		if (d->service.backing.made)
			unlink(c->backing);
		slow_disk_close(d);
		return rc;
	}
	*out = d;
	return 0;
}

int slow_disk_detach(struct slow_disk *d)
{
	(void)d;
	return fuse_daemonize(0) ? -EAGAIN : 0;
}

int slow_disk_serve(struct slow_disk *d)
{
	struct fuse_loop_config *loop = fuse_loop_cfg_create();
	int rc;

	if (!loop)
		return -ENOMEM;
	fuse_loop_cfg_set_max_threads(loop, THREADS);
	fuse_loop_cfg_set_idle_threads(loop, THREADS);
	/* Threads inherit both. Not allowed to everybody; then the disk is as good without. */
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	rc = fuse_session_loop_mt(d->session, loop);
	fuse_loop_cfg_destroy(loop);
	return rc < 0 ? rc : 0; /* above 0: the signal that ended it */
}

void slow_disk_stats(struct slow_disk *d, struct slow_disk_stats *out)
{
	service_stats(&d->service, out);
}

u64 slow_disk_size(const struct slow_disk *d)
{
	return d->service.backing.size_bytes;
}

void slow_disk_close(struct slow_disk *d)
{
	if (d->session) {
		fuse_session_unmount(d->session);
		fuse_remove_signal_handlers(d->session);
		fuse_session_destroy(d->session);
	}
	service_close(&d->service);
	free(d);
}
