/* SPDX-License-Identifier: MIT */
/* Inside the device: stores that are files. store_fd.c and store_fd_io.c. */
#ifndef SLUICE_DEVICE_STORE_FD_H
#define SLUICE_DEVICE_STORE_FD_H

#include "device/real_store.h"
#include "device/room.h"

struct fd_store {
	struct real_store real;
	int fd; /* through the page cache */
	/* Known once `probed`, which the first transfer sees to; under room.lock until then. */
	_Atomic bool probed;
	int direct;       /* past the page cache, or -1 */
	u32 align;        /* of offsets of direct I/O and lengths of its vectors' pieces */
	u32 memory_align; /* of the addresses in its vectors */
	bool block_device;
	struct room room;
	bool skipped;    /* pages, when it grew; under room.lock, as is the next */
	u64 reserved_to; /* room was made up to here, perhaps past the end */
};

static inline struct fd_store *fd_store_of(struct real_store *r)
{
	return container_of(r, struct fd_store, real);
}

/* Puts another description of the file, open for writing, behind both descriptors. */
int fd_store_replace(struct fd_store *f, int fd);
ssize_t fd_store_move(struct real_store *r, enum io_op op, struct iovec *vec, unsigned count,
		      size_t length, u64 offset);
bool fd_store_is_direct(struct store *s, const struct io *io, int *fd);

#endif
