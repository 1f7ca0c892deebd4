/* SPDX-License-Identifier: MIT */
/*
 * Where the bytes of a slow disk lie: a file whose writes never become dirty pages of this
 * machine, or a block device.
 */
#ifndef SLUICE_MOUNT_BACKING_H
#define SLUICE_MOUNT_BACKING_H

#include "base/err.h"
#include <sys/types.h>

struct backing {
	int fd;
	u64 size_bytes;
	u32 sector_bytes; /* offsets and lengths are multiples of it */
	bool made;        /* by the open: it was not there */
};

/*
 * Opens `path`. With a size, a file is made or lengthened to it; 0: it stays as it is. 0, or a
 * negative errno with `e` naming the file: -EBUSY, it is another disk's already.
 */
int backing_open(struct backing *b, const char *path, u64 size_bytes, struct err *e);
void backing_close(struct backing *b);
/* Closes it, and removes the file if the open made it: nothing came of it. */
void backing_undo(struct backing *b, const char *path);

/* All of it, or a negative errno: -EINVAL if it is not whole sectors within the disk. The
 * buffer begins at a multiple of 4096. */
int backing_read(const struct backing *b, void *buf, size_t length, u64 offset);
int backing_write(const struct backing *b, const void *buf, size_t length, u64 offset);
int backing_sync(const struct backing *b);
/* Forgets what is there: it reads as zeros, and its space is free again. */
int backing_punch(const struct backing *b, u64 offset, u64 length);

#endif
