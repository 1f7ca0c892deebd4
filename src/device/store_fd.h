/* SPDX-License-Identifier: MIT */
/* Inside the device: stores that are files. store_fd.c and store_fd_io.c. */
#ifndef SLUICE_DEVICE_STORE_FD_H
#define SLUICE_DEVICE_STORE_FD_H

#include "device/real_store.h"
#include "world/lock.h"

struct fd_store {
	struct real_store real;
	int fd;          /* through the page cache */
	int direct;      /* past it, or -1 */
	u32 align;       /* what offsets and lengths of direct I/O are multiples of */
	u32 memory_mask; /* these bits are 0 in addresses and lengths of its vectors */
	bool block_device;
	/*
	 * Protects what follows: the range of bytes that is known to have room on the device.
	 * Nothing is taken under it.
	 */
	struct mutex lock;
	u64 roomy_from, roomy_to;
	u64 reserved_to; /* room was made up to here, perhaps past the end */
};

static inline struct fd_store *fd_store_of(struct real_store *r)
{
	return container_of(r, struct fd_store, real);
}

/* How the file can be read and written; fd_store.fd is open. */
void fd_store_probe(struct fd_store *f, bool want_direct);
ssize_t fd_store_move(struct real_store *r, enum io_op op, struct iovec *vec, unsigned count,
		      size_t length, u64 offset);
bool fd_store_is_direct(struct store *s, const struct io *io, int *fd);

#endif
