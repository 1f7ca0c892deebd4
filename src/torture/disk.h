/* SPDX-License-Identifier: MIT */
/* Disks that lose power: what lies under the files of a run. */
#ifndef SLUICE_TORTURE_DISK_H
#define SLUICE_TORTURE_DISK_H

#include "base/list.h"
#include "base/rng.h"
#include "device/device.h"
#include "torture/torture.h"

#define DISK_IN_FLIGHT_MAX 1024

/* An I/O on its way, and which writes were done when it was sent. */
struct disk_flight {
	const struct io *io;
	u64 sequence;
};

struct disk {
	struct device *device;
	u64 room_pages, used_pages; /* room 0: as much as anybody wants */
	u64 sequence;               /* of the last write that was done */
	struct list_node stores;
	struct rng rng;
	enum torture_sabotage sabotage;
	u64 overruns; /* writes that found no space, though it should have been asked for */
	u32 flights;
	struct disk_flight flight[DISK_IN_FLIGHT_MAX];
};

/* Of a store that is to be `bytes` long at most. */
int disk_store_create(struct disk *d, u64 bytes, struct store **out);
void disk_init(struct disk *d, struct device *device, u64 seed);
/* An I/O of the device, or a part of it, was sent; all of it is over. */
void disk_sent(struct disk *d, const struct io *io);
void disk_over(struct disk *d, const struct io *io);
/* Makes a failed write leave some of its sectors behind. */
void disk_tear(struct disk *d, const struct io *io);
/*
 * What the disk might hold if it lost power now: flushed writes, and of the others, those in
 * flight included, any sectors. With `killed` all that was done, for only a program ended.
 */
void disk_image(struct store *s, struct rng *rng, bool killed, u8 *image, u64 bytes);

#endif
