/* SPDX-License-Identifier: MIT */
/*
 * A file mapped by a process of the simulated world, as mmap(2) with MAP_SHARED: loads and stores
 * that fault as they do there, and what that makes of what is dirty.
 */
#ifndef SLUICE_FILE_MAP_H
#define SLUICE_FILE_MAP_H

#include "file/file.h"

struct file_map;

/*
 * Maps [offset, offset + length) of an open file, in whole pages. One task at a time uses a map;
 * each has its own. -EINVAL: nothing, or past the end of the file; -ENOMEM; -EOPNOTSUPP: the
 * world is real, where it is the system's to do.
 */
int file_map(struct file *f, u64 offset, u64 length, struct file_map **out);
void file_unmap(struct file_map *m);
/*
 * Copies from and to the map; buf may be NULL in an engine without contents. The count, or an error
 * of the device or -ENOMEM. -EFAULT: it is not all mapped, or not all within the file any more.
 */
ssize_t file_map_load(struct file_map *m, void *buf, size_t length, u64 offset);
ssize_t file_map_store(struct file_map *m, const void *buf, size_t length, u64 offset);
/* As msync(2) with MS_SYNC; length 0: of all that is mapped. 0, or an error as of file_fsync(). */
int file_map_sync(struct file_map *m, u64 offset, u64 length);
/* As madvise(2): NORMAL, SEQUENTIAL or RANDOM. Else -EINVAL. */
int file_map_advise(struct file_map *m, enum file_advice advice);

#endif
