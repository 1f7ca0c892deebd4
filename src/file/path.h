/* SPDX-License-Identifier: MIT */
/*
 * Files of the real world, opened by path: the table of those that are open, and of some that were
 * a moment ago, so that what is cached of them is found again.
 *
 * Files are told apart by device and inode number: all opens of one file, under whatever name,
 * share one inode of the engine. What was unlinked or renamed while open goes on as it is.
 *
 * When its last open goes, an inode stays, its dirty pages are written in their time, and the next
 * open finds its cache. Such idle inodes are bounded; the oldest is written and dropped first.
 * If others changed the file meanwhile (size, mtime or ctime are not what was seen at the last
 * close or write-out), its clean pages are dropped at the next open. While a file is open here,
 * changes by others are not looked for.
 *
 * Each inode, open or idle, holds one file descriptor of the process.
 */
#ifndef SLUICE_FILE_PATH_H
#define SLUICE_FILE_PATH_H

#include "file/file.h"
#include <sys/stat.h>

struct path_table;

struct path_config {
	unsigned device; /* of the engine, of model "file": where all stores of the table are */
	u32 block_bytes; /* 512..4096, a power of two; 0: 4096 */
	u32 idle_max;    /* inodes kept without an open; 0: none */
	u32 inodes_max;  /* open and idle together, each a file descriptor; 0: what
			   * RLIMIT_NOFILE leaves when a quarter of it is kept for others */
};
#define PATH_FDS_AN_INODE 2 /* at most: with and without O_DIRECT */

/* 0, -EINVAL or -ENOMEM. The engine outlives the table. */
int path_table_create(struct engine *e, const struct path_config *c, struct path_table **out);
/*
 * Writes back what is dirty and drops all inodes of the table. Every file of it is closed, every
 * loan given back. 0, or the first error of data that could not be written; `losses`, which may be
 * NULL, says of what.
 */
int path_table_destroy(struct path_table *t, struct engine_losses *losses);
/* From now on there may be fewer inodes; those that are there stay. */
void path_table_narrow(struct path_table *t, u64 inodes_max);

/*
 * Opens as open(2) does; `mode` counts when the file is made. Known flags: O_RDONLY, O_WRONLY,
 * O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECT (past this cache), O_SYNC, O_DSYNC,
 * O_NOFOLLOW, O_CLOEXEC (always so), O_LARGEFILE, O_NOATIME, O_NOCTTY; O_NONBLOCK is taken and
 * means nothing. O_WRONLY needs the right to read the file, too: parts of blocks are read before
 * they are written.
 *
 * -EINVAL: other flags, or neither a regular file nor a block device; -EISDIR: a directory;
 * -EMFILE: inodes_max are open; -EACCES, -ENOENT, -EEXIST, -ELOOP, -ENOSPC ... as open(2).
 *
 * The file is closed by path_close(), not file_close().
 */
int path_open(struct path_table *t, const char *path, int flags, mode_t mode, struct file **out);
void path_close(struct file *f);
/*
 * The same for what is open already: `fd`, O_RDWR if `flags` say that it is to be written to, and
 * the table's from now on, whatever comes of it. `path` is a name for messages, or NULL: it is
 * asked for when there is something to say. *kept: the table
 * knew the file and nobody changed it since, so what was read of it before still holds.
 */
int path_open_fd(struct path_table *t, int fd, const char *path, int flags, bool *kept,
		 struct file **out);
/*
 * As unlink(2). What of the file is idle here is dropped, dirty or not, if that was its last
 * name; what is open goes on until its last close. A file that somebody else unlinks while it is
 * idle here keeps its space until it is dropped.
 */
int path_unlink(struct path_table *t, const char *path);
/*
 * For who changes files by himself, by their descriptors. A name of what `st` was taken of is gone.
 */
void path_unlinked(struct path_table *t, const struct stat *st);
/* The times changed from `before` to `after`, and that was no change by others. */
void path_touched(struct path_table *t, const struct stat *before, const struct stat *after);
/*
 * If it is idle and written: gives back now what was reserved for it, which moves its ctime, and
 * would be given back in its time.
 */
void path_settle(struct path_table *t, const struct stat *st);
/*
 * True if the size is not the one the system says, but *size_bytes: while it is open here, or has
 * data that is not written.
 */
bool path_size(struct path_table *t, const struct stat *st, u64 *size_bytes);

/* The name an inode of a table was first opened by: for messages. */
const char *path_of_inode(struct inode *inode);

struct path_stats {
	u64 open_inodes, idle_inodes; /* now */
	u64 dropped;                  /* idle inodes given up to keep within the bounds, ever */
	u64 changed;                  /* opens that found the file changed by others, ever */
};
void path_stats(struct path_table *t, struct path_stats *out);

#endif
