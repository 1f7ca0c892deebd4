/* SPDX-License-Identifier: MIT */
/* The slow disk without the file system around it. Inside src/mount/ only. */
#ifndef SLUICE_MOUNT_SLOW_DISK_SERVICE_H
#define SLUICE_MOUNT_SLOW_DISK_SERVICE_H

#include "device/rate.h"
#include "mount/backing.h"
#include "mount/slow_disk.h"
#include "world/lock.h"

struct slow_disk_service {
	struct slow_disk_config config;
	struct backing backing;
	struct spinlock lock; /* protects all below; nothing is taken under it */
	struct rate rate;
	struct slow_disk_stats stats;
	u64 busy_since_ns; /* while something is in flight */
};

int service_open(struct slow_disk_service *s, const struct slow_disk_config *c, struct err *e);
void service_close(struct slow_disk_service *s);

/*
 * Each blocks until the disk would have answered, and is counted. 0 or a negative errno.
 * Buffers begin at a multiple of 4096. They may be called by many threads at once.
 */
int service_read(struct slow_disk_service *s, void *buf, size_t length, u64 offset);
int service_write(struct slow_disk_service *s, const void *buf, size_t length, u64 offset);
int service_flush(struct slow_disk_service *s);
int service_discard(struct slow_disk_service *s, u64 offset, u64 length);

void service_stats(struct slow_disk_service *s, struct slow_disk_stats *out);
/* The counters and the speed as JSON, to be freed; NULL without memory. */
char *service_stats_json(struct slow_disk_service *s);

#endif
