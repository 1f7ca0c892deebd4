/* SPDX-License-Identifier: MIT */
/*
 * A disk of exactly known speed, as a file: a small FUSE file system with two files. `disk`
 * holds the bytes of a backing file and answers each request when model "rate" would; `stats`
 * holds the counters, as JSON. A loop device on `disk` makes a block device of it.
 */
#ifndef SLUICE_MOUNT_SLOW_DISK_H
#define SLUICE_MOUNT_SLOW_DISK_H

#include "base/err.h"

struct slow_disk_config {
	const char *backing;    /* a file or block device; docs/devices.md says which can be */
	const char *mountpoint; /* a folder */
	u64 size_bytes;         /* the backing is made or lengthened to that; 0: as it is */
	double iops, bytes_per_s;
	u64 latency_ns;
};

/* Counters since it was opened. A request is what the kernel sent as one. */
struct slow_disk_stats {
	u64 reads, writes, flushes, discards;
	u64 read_bytes, write_bytes, discard_bytes;
	u64 errors;                   /* of all these, those that failed */
	u64 busy_ns;                  /* with at least one request between arrival and answer */
	u64 in_flight, in_flight_max; /* reads and writes */
};

struct slow_disk;

/*
 * Opens the backing and mounts. 0, or a negative errno with `e` set: -ENOSYS if the program
 * was built without libfuse.
 */
int slow_disk_open(const struct slow_disk_config *c, struct slow_disk **out, struct err *e);
/* Goes on in a process of its own; the calling one ends, with status 0. Before serving. */
int slow_disk_detach(struct slow_disk *d);
/* Serves until it is unmounted, or SIGTERM, SIGINT or SIGHUP. 0 or a negative errno. */
int slow_disk_serve(struct slow_disk *d);
void slow_disk_stats(struct slow_disk *d, struct slow_disk_stats *out);
u64 slow_disk_size(const struct slow_disk *d);
/* Unmounts, if that was not done, and closes the backing. */
void slow_disk_close(struct slow_disk *d);

#endif
