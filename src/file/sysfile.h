/* SPDX-License-Identifier: MIT */
/* What the table of paths asks of the system: open(2) and its flags. */
#ifndef SLUICE_FILE_SYSFILE_H
#define SLUICE_FILE_SYSFILE_H

#include "base/types.h"
#include <fcntl.h>
#include <sys/stat.h>

static inline bool sysfile_writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY;
}

/* Whether path_open() knows what to do with each of open(2)'s flags. */
bool sysfile_flags_are_known(int flags);
/* The same as enum file_flags. */
unsigned sysfile_file_flags(int flags);
/* Opens without waiting for anybody (a FIFO would) and without changing what is there. */
int sysfile_open(const char *path, int flags, mode_t mode);
/* 0 if it is a regular file or a block device, and what fstat(2) says. */
int sysfile_check(int fd, struct stat *st);

#endif
