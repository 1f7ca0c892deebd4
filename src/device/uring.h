/* SPDX-License-Identifier: MIT */
/* Inside the device: I/O by io_uring. See uring.c. */
#ifndef SLUICE_DEVICE_URING_H
#define SLUICE_DEVICE_URING_H

#include "device/device.h"

struct uring;

/* For `depth` I/Os at a time. -ENOSYS, -EPERM, -EINVAL ...: the kernel has or allows none. */
int uring_create(struct device *d, u32 depth, struct uring **out);
void uring_destroy(struct uring *u); /* nothing is in flight */
/*
 * Executes io, of which its store said that it can be done in one go on io->fd, and calls
 * device_done(), or file_do_rest() if not all of it was done.
 */
void uring_submit(struct uring *u, struct io *io);
/* As device_register_memory(). */
int uring_register(struct uring *u, void *base, size_t bytes);
/* Bytes of memory that are registered. */
size_t uring_registered(const struct uring *u);

#endif
