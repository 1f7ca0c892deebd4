/* SPDX-License-Identifier: MIT */
/*
 * Inodes and open files. An inode is one file: a store on a device and the pages
 * cached of it. A file is one open of it, with its readahead state. All calls block
 * the calling task, are safe from any task, take offsets and lengths in bytes, and
 * return 0 or a count or a negative errno.
 */
#ifndef SLUICE_FILE_FILE_H
#define SLUICE_FILE_FILE_H

#include "file/engine.h"
#include <sys/types.h>

struct inode;
struct file;

enum file_flags {
	FILE_DIRECT = 1, /* reads and writes go past the cache (written back and dropped first) */
	FILE_SYNC = 2,   /* each write is on the device when it returns */
};

enum file_range_flags { FILE_WAIT_BEFORE = 1, FILE_WRITE = 2, FILE_WAIT_AFTER = 4 };

enum file_advice {
	FILE_ADV_NORMAL,
	FILE_ADV_SEQUENTIAL,
	FILE_ADV_RANDOM,
	FILE_ADV_WILLNEED,
	FILE_ADV_DONTNEED,
	FILE_ADV_NOREUSE,
};

/* A new inode, empty, on device `device` (0: the first added), blocks of block_bytes. */
int inode_create(struct engine *e, unsigned device, u32 block_bytes, struct inode **out);
/* Drops it with all cached pages, dirty ones too (their debt is cancelled). No file is open. */
void inode_destroy(struct inode *inode);
u64 inode_size(struct inode *inode);
struct store *inode_store(struct inode *inode);
/* Sets the size; what is cut off is gone. */
int inode_truncate(struct inode *inode, u64 size_bytes);
/* Makes `size_bytes` exist and count as written on the device, without any I/O. */
int inode_lay_out(struct inode *inode, u64 size_bytes);

int file_open(struct inode *inode, unsigned flags, struct file **out);
void file_close(struct file *f);
/* buf may be NULL in an engine without contents. */
ssize_t file_pread(struct file *f, void *buf, size_t length, u64 offset);
ssize_t file_pwrite(struct file *f, const void *buf, size_t length, u64 offset);
int file_fsync(struct file *f, bool data_only);
/*
 * As sync_file_range(2): waits for pages of the range in flight, starts the write-out of dirty
 * ones, waits for it, as `flags` say. Length 0: to the end. The device is not flushed. 0, or,
 * if it both writes and waits, the error of data that could not be written.
 */
int file_sync_range(struct file *f, u64 offset, u64 length, unsigned flags);
int file_advise(struct file *f, u64 offset, u64 length, enum file_advice advice);

/* Each task that wrote calls this as it ends (it leaves unpaid dirtying to others). */
void engine_task_exit(struct engine *e);

#endif
