// SPDX-License-Identifier: MIT
/*
 * The flags of open(2). Some are the system's business, which opens the file first; some are ours,
 * for it is our cache that appends, cuts off and writes through. What the system opens for writing
 * it opens for reading, too, since parts of blocks are read before they are written.
 */
#include "file/path_flags.h"
#include "file/file.h"
#include <errno.h>
#include <fcntl.h>

#define FLAGS_TO_SYSTEM (O_CREAT | O_EXCL | O_NOFOLLOW | O_NOATIME | O_NOCTTY | O_LARGEFILE)
#define FLAGS_OURS      (O_ACCMODE | O_TRUNC | O_APPEND | O_DIRECT | O_SYNC | O_DSYNC)
#define FLAGS_KNOWN     (FLAGS_TO_SYSTEM | FLAGS_OURS | O_CLOEXEC | O_NONBLOCK)

bool path_writes(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY;
}

bool path_flags_known(int flags)
{
	return !(flags & ~FLAGS_KNOWN) && (flags & O_ACCMODE) != O_ACCMODE &&
	       !(flags & O_TRUNC && !path_writes(flags));
}

int path_open_by_system(const char *path, int flags, mode_t mode)
{
	int wanted = (flags & FLAGS_TO_SYSTEM) | O_CLOEXEC | O_NONBLOCK, fd;

	do
		fd = open(path, wanted | (path_writes(flags) ? O_RDWR : O_RDONLY), mode);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int path_check_kind(int fd, struct stat *st)
{
	if (fstat(fd, st))
		return -errno;
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	return S_ISREG(st->st_mode) || S_ISBLK(st->st_mode) ? 0 : -EINVAL;
}

unsigned path_file_flags(int flags)
{
	int access = flags & O_ACCMODE;

	return (access == O_RDONLY ? FILE_NO_WRITE : 0) | (access == O_WRONLY ? FILE_NO_READ : 0) |
	       (flags & O_APPEND ? FILE_APPEND : 0) | (flags & O_DIRECT ? FILE_DIRECT : 0) |
	       (flags & (O_SYNC | O_DSYNC) ? FILE_SYNC : 0);
}
