// SPDX-License-Identifier: MIT
/*
 * open(2) for the table of paths. Of the flags some go to the system, some are ours to see to
 * (where to append, what to sync, what to cut off only once it is known to be cached), and whatever
 * is not known is refused.
 */
#include "file/sysfile.h"
#include "file/file.h"
#include <errno.h>

#define FLAGS_TO_SYSTEM (O_CREAT | O_EXCL | O_NOFOLLOW | O_NOATIME | O_NOCTTY | O_LARGEFILE)
#define FLAGS_OURS      (O_ACCMODE | O_TRUNC | O_APPEND | O_DIRECT | O_SYNC | O_DSYNC)
#define FLAGS_KNOWN     (FLAGS_TO_SYSTEM | FLAGS_OURS | O_CLOEXEC | O_NONBLOCK)

bool sysfile_flags_are_known(int flags)
{
	return !(flags & ~FLAGS_KNOWN) && (flags & O_ACCMODE) != O_ACCMODE &&
	       !(flags & O_TRUNC && !sysfile_writes(flags));
}

int sysfile_open(const char *path, int flags, mode_t mode)
{
	int wanted = (flags & FLAGS_TO_SYSTEM) | O_CLOEXEC | O_NONBLOCK, fd;

	do
		fd = open(path, wanted | (sysfile_writes(flags) ? O_RDWR : O_RDONLY), mode);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int sysfile_check(int fd, struct stat *st)
{
	if (fstat(fd, st))
		return -errno;
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	return S_ISREG(st->st_mode) || S_ISBLK(st->st_mode) ? 0 : -EINVAL;
}

unsigned sysfile_file_flags(int flags)
{
	int access = flags & O_ACCMODE;

	return (access == O_RDONLY ? FILE_NO_WRITE : 0) | (access == O_WRONLY ? FILE_NO_READ : 0) |
	       (flags & O_APPEND ? FILE_APPEND : 0) | (flags & O_DIRECT ? FILE_DIRECT : 0) |
	       (flags & (O_SYNC | O_DSYNC) ? FILE_SYNC : 0);
}
