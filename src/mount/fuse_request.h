/* SPDX-License-Identifier: MIT */
/* How requests are read. Inside src/mount/ only. */
#ifndef SLUICE_MOUNT_FUSE_REQUEST_H
#define SLUICE_MOUNT_FUSE_REQUEST_H

#include <stddef.h>
#include <sys/types.h>

/* As read(2) of /dev/fuse; ENODEV whenever the connection has ended, by whatever means. */
ssize_t fuse_request_read(int fd, void *request, size_t length);

#endif
