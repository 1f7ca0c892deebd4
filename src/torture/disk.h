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

/* What is under a file. */
enum disk_kind {
	DISK_BLOCKS, /* as simulated stores are: it takes whole blocks */
	DISK_FILE,   /* as files are: it ends at any byte */
	DISK_CUSTOM, /* as a caller's own: it knows no holes, and may refuse a new size */
	DISK_BARE,   /* likewise, but it cannot become shorter nor be asked for room */
	DISK_KINDS
};

struct disk {
	struct device *device;
	/* asked before a call that is no I/O: an error to refuse it with, or 0. NULL: none is */
	int (*refuses)(void *ctx, struct disk *d);
	void *ctx;
	bool cuts;  /* transfers may be short */
	int breaks; /* the I/O at hand ends with this error after some transfers; 0: it does not */
	u32 breaks_in;              /* ... so many */
	u64 room_pages, used_pages; /* room 0: as much as anybody wants */
	u64 sequence;               /* of the last write that was done */
	struct list_node stores;
	struct rng rng;
	enum torture_sabotage sabotage;
	u64 overruns; /* writes that found no space, though it should have been asked for */
	u32 flights;
	struct disk_flight flight[DISK_IN_FLIGHT_MAX];
};

#define DISK_BYTES_MAX   (256u << 10) /* of a store */
#define DISK_CHANGES_MAX 512

/* A change that a power loss may undo. */
struct disk_change {
	u64 from, to;
	u64 at; /* where its bytes are */
	bool zeros;
};

/* A store after the end of the process, for the next one. */
struct disk_saved {
	u64 size;
	u32 changes;
	struct disk_change change[DISK_CHANGES_MAX];
	u8 now[DISK_BYTES_MAX], media[DISK_BYTES_MAX];
	u8 written[DISK_BYTES_MAX >> PAGE_SHIFT], room[DISK_BYTES_MAX >> PAGE_SHIFT];
};

/* A store that is to be `bytes` long at most. */
int disk_store_create(struct disk *d, enum disk_kind kind, u64 bytes, struct store **out);
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
/* What is on the media for certain, and each change since, oldest first; `bytes` NULL: zeros. */
void disk_past(struct store *s, u8 *media,
	       void (*change)(void *ctx, u64 from, u64 to, const u8 *bytes), void *ctx);
/*
 * Saves a store: as `image`, for the power went; or with NULL as a process leaves it that is killed
 * now, with any sectors of its writes in flight. The bytes of changes go into `bytes`, from *used
 * on.
 */
void disk_save(struct store *s, const u8 *image, struct disk_saved *to, u8 *bytes, u64 *used,
	       u64 room);
/* As who recovers a file writes to it, and makes it safe: at once. `bytes` NULL: zeros. */
void disk_recover(struct store *s, u64 from, u64 to, const u8 *bytes);
void disk_recover_size(struct store *s, u64 size);
void disk_flush(struct disk *d);
/* Makes a new store what an old one was. */
void disk_restore(struct store *s, const struct disk_saved *from, const u8 *bytes);

#endif
