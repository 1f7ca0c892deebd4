/* SPDX-License-Identifier: MIT */
/* Inside the device: what the kinds of stores have in common. */
#ifndef SLUICE_DEVICE_STORE_H
#define SLUICE_DEVICE_STORE_H

#include "device/device.h"

/* What a kind of store does: store_map.c, store_fd.c, store_custom.c. See device.h for each. */
struct store_ops {
	void (*destroy)(struct store *s); /* frees it */
	u64 (*size)(struct store *s);
	int (*truncate)(struct store *s, u64 size_bytes);
	bool (*can_shorten)(struct store *s);             /* NULL: yes */
	u64 (*limit)(struct store *s);                    /* see device.h. NULL: none */
	bool may_refuse;                                  /* truncate() fails as it likes */
	void (*set_end)(struct store *s, u64 size_bytes); /* NULL: it writes whole blocks */
	bool (*any_written)(struct store *s, u64 page, u64 n);
	u64 (*next)(struct store *s, u64 page, u64 end, bool written);
	int (*lay_out)(struct store *s, u64 size_bytes);
	bool (*has_room)(struct store *s, u64 from, u64 to); /* bytes. NULL: always */
	int (*reserve)(struct store *s, u64 from, u64 to);   /* what has_room() denies */
	bool (*may_be_full)(struct store *s);                /* NULL: if there is reserve */
	int (*punch)(struct store *s, u64 page, u64 n);
	void (*forgive)(struct store *s); /* NULL: it bears no grudge */
	/* What io, or all of it past io->done_bytes, does to the store: 0 or a negative errno. */
	int (*execute)(struct store *s, struct io *io);
	/*
	 * True if io can be done by a single readv or writev of all its bytes on *fd, which never
	 * goes through the page cache. NULL: never.
	 */
	bool (*is_direct)(struct store *s, const struct io *io, int *fd);
	/* Such a call had this result. True: io is over, with *error; false: execute() the rest. */
	bool (*landed)(struct store *s, struct io *io, s64 result, int *error);
};

/* The common part, first in every kind. */
struct store {
	struct device *device;
	const struct store_ops *ops;
	_Atomic bool keeps_room; /* see store_keep_room() */
};

/* Enters a new store into its device. */
void store_init(struct store *s, struct device *d, const struct store_ops *ops);

static inline int store_execute(struct io *io)
{
	return io->store->ops->execute(io->store, io);
}

#endif
