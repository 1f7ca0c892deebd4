/* SPDX-License-Identifier: MIT */
/* Inside the device: what stores outside the process have in common. See real_store.c. */
#ifndef SLUICE_DEVICE_REAL_STORE_H
#define SLUICE_DEVICE_REAL_STORE_H

#include "device/store.h"
#include <sys/types.h>

#define END_UNKNOWN (~0ull)

struct real_store;

struct real_ops {
	/*
	 * Moves bytes as preadv and pwritev do, `length` of them in all, or fewer: how many, or
	 * a negative errno.
	 */
	ssize_t (*move)(struct real_store *r, enum io_op op, struct iovec *vec, unsigned count,
			size_t length, u64 offset_bytes);
	int (*flush)(struct real_store *r);
};

struct real_store {
	struct store store;
	const struct real_ops *real;
	u32 max_move_bytes;   /* of one move() */
	_Atomic u64 size;     /* bytes on the device, as far as we know */
	_Atomic u64 end;      /* where the file ends, or END_UNKNOWN */
	_Atomic int poisoned; /* the error of the first flush that failed */
};

void real_store_init(struct real_store *r, struct device *d, const struct store_ops *ops,
		     const struct real_ops *real, u64 size);
static inline struct real_store *real_store_of(struct store *s)
{
	return container_of(s, struct real_store, store);
}

/* Of struct store_ops: */
u64 real_store_size(struct store *s);
void real_store_set_end(struct store *s, u64 size_bytes);
bool real_store_any_written(struct store *s, u64 page, u64 n);
int real_store_execute(struct store *s, struct io *io);
bool real_store_landed(struct store *s, struct io *io, s64 result, int *error);

/* The size has been set to this. */
void real_store_resized(struct real_store *r, u64 size_bytes);
/* Bytes up to here exist now. */
void real_store_grown(struct real_store *r, u64 end_bytes);
/* Writes zeros into [from, to), cut at the size: for what cannot punch holes. */
int real_store_zero(struct real_store *r, u64 from, u64 to);
/* How many of the bytes io writes are before the file's end. */
u64 real_store_write_bytes(const struct real_store *r, const struct io *io);

#endif
