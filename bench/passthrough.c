// SPDX-License-Identifier: MIT
/*
 * What FUSE itself costs: a server with nothing behind it. One folder, in which every name is a
 * regular file that exists; what is written to it is acknowledged and dropped, and only the size
 * is remembered. It asks the kernel for what `sluice mount` asks for, so the difference
 * between the two is what a cache costs. bench/mount.py compares them.
 *
 *     bench_passthrough MOUNTPOINT        (in the foreground, until it is unmounted)
 */
#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES       64
#define REQUEST_MAX (1u << 20)
#define TIMEOUT_S   1.0

/* File i has the number i + 2; a name, once looked up, stays. */
static struct {
	char name[256];
	_Atomic off_t size;
} files[FILES];

static void on_init(void *unused, struct fuse_conn_info *conn)
{
	(void)unused;
	conn->max_write = REQUEST_MAX;
	conn->want &= ~(unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_WRITEBACK_CACHE |
				  FUSE_CAP_ATOMIC_O_TRUNC);
}

static struct stat attributes(fuse_ino_t number)
{
	struct stat st = { .st_ino = number, .st_nlink = 1, .st_mode = S_IFREG | 0666 };

	if (number == FUSE_ROOT_ID)
		st.st_mode = S_IFDIR | 0777;
	else
		st.st_size = atomic_load(&files[number - 2].size);
	return st;
}

/* One lookup at a time: the kernel holds its folder's lock. */
static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = { .attr_timeout = TIMEOUT_S, .entry_timeout = TIMEOUT_S };

	(void)parent;
	for (fuse_ino_t i = 0; i < FILES; i++) {
		if (!files[i].name[0])
			snprintf(files[i].name, sizeof(files[i].name), "%s", name);
		if (strcmp(files[i].name, name))
			continue;
		e.ino = i + 2;
		e.attr = attributes(e.ino);
		fuse_reply_entry(req, &e);
		return;
	}
	fuse_reply_err(req, ENOSPC);
}

static void on_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	struct stat st = attributes(number);

	(void)fi;
	fuse_reply_attr(req, &st, TIMEOUT_S);
}

static void on_setattr(fuse_req_t req, fuse_ino_t number, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	if (to_set & FUSE_SET_ATTR_SIZE && number != FUSE_ROOT_ID)
		atomic_store(&files[number - 2].size, attr->st_size);
	on_getattr(req, number, fi);
}

static void on_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	(void)number;
	fi->keep_cache = 1;
	fuse_reply_open(req, fi);
}

static void on_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
	(void)number;
	(void)fi;
	fuse_reply_err(req, 0);
}

static void on_read(fuse_req_t req, fuse_ino_t number, size_t length, off_t offset,
		    struct fuse_file_info *fi)
{
	static const char zeros[REQUEST_MAX];
	off_t left = atomic_load(&files[number - 2].size) - offset;

	(void)fi;
	if (left < (off_t)length)
		length = left > 0 ? (size_t)left : 0;
	fuse_reply_buf(req, zeros, length < sizeof(zeros) ? length : sizeof(zeros));
}

static void on_write(fuse_req_t req, fuse_ino_t number, const char *data, size_t length,
		     off_t offset, struct fuse_file_info *fi)
{
	_Atomic off_t *size = &files[number - 2].size;
	off_t end = offset + (off_t)length, before = atomic_load(size);

	(void)data;
	(void)fi;
	while (before < end && !atomic_compare_exchange_weak(size, &before, end))
		;
	fuse_reply_write(req, length);
}

static void on_fsync(fuse_req_t req, fuse_ino_t number, int data_only, struct fuse_file_info *fi)
{
	(void)number;
	(void)data_only;
	(void)fi;
	fuse_reply_err(req, 0);
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
	.fsync = on_fsync,
};

int main(int argc, char **argv)
{
	char *words[] = { argv[0], (char *)"-o", (char *)"fsname=bench_passthrough", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, words);
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	struct fuse_session *session =
		fuse_session_new(&args, &operations, sizeof(operations), NULL);
	int rc = 1;

	if (argc == 2 && config && session && !fuse_session_mount(session, argv[1])) {
		rc = fuse_session_loop_mt(session, config);
		fuse_session_unmount(session);
	}
	if (session)
		fuse_session_destroy(session);
	fuse_loop_cfg_destroy(config);
	fuse_opt_free_args(&args);
	return rc != 0;
}
