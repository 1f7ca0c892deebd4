/* SPDX-License-Identifier: MIT */
/*
 * A connection to the kernel ends when it is unmounted, or when somebody aborts it (umount -f, or
 * /sys/fs/fuse/connections). Kernels tell the two apart by different errors of the read of
 * /dev/fuse. libfuse takes one of them for the end of a session, and the other for a failure, which
 * it prints. To who serves both are the end: he writes what he has, and says nothing.
 */
#include "mount/fuse_request.h"
#include <errno.h>
#include <unistd.h>

ssize_t fuse_request_read(int fd, void *request, size_t length)
{
	ssize_t n = read(fd, request, length);

	if (n < 0 && errno == ECONNABORTED)
		errno = ENODEV;
	return n;
}
