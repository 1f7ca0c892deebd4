/* SPDX-License-Identifier: MIT */
/* What disk.c and disk_power.c know of a store. */
#ifndef SLUICE_TORTURE_DISK_STORE_H
#define SLUICE_TORTURE_DISK_STORE_H

#include "device/real_store.h"
#include "torture/disk.h"

#define DISK_SECTOR 512u

/* Bytes [from, to) that were written, or with no bytes zeroed. */
struct disk_logged {
	struct list_node link;
	u64 sequence, from, to;
	u8 *bytes;
};

struct disk_store {
	struct real_store real;
	struct disk *disk;
	struct list_node link;
	bool roomy; /* it counts no space */
	u64 bytes, pages;
	u8 *now, *media;
	u8 *written, *room; /* a byte for each page */
	struct list_node log;
};

static inline struct disk_store *disk_store_of(struct store *s)
{
	return container_of(real_store_of(s), struct disk_store, real);
}

/* Takes part of a change over, or all of it. */
void disk_apply(u8 *to, const struct disk_logged *l, u64 from, u64 end);
/* A change becomes visible, and is in danger until the next flush. Takes the bytes. */
void disk_enter(struct disk_store *s, u64 from, u64 to, u8 *bytes);
void disk_give_room(struct disk_store *s, u64 first, u64 end, bool wanted);
u64 disk_room_missing(const struct disk_store *s, u64 from, u64 to);
/* The first n bytes of vectors in one piece. */
u8 *disk_gather(const struct iovec *vec, u64 n);

#endif
