/* SPDX-License-Identifier: MIT */
/*
 * Writeback throttling of the block layer (Linux's blk-wbt): how many requests of
 * write-out may be in a device's queue, so that readers and the device's own cache do not
 * suffer. See wbt.c for the rules.
 */
#ifndef SLUICE_DEVICE_WBT_H
#define SLUICE_DEVICE_WBT_H

#include "base/list.h"
#include "base/types.h"

struct io;

/* Protected by the device's lock. */
struct wbt {
	u64 latency_ns;              /* what reads may take (wbt_lat_usec); 0: off */
	u32 nr_requests;             /* of the queue */
	bool write_cache;            /* the device says that it has one */
	s32 step;                    /* > 0: held back, < 0: let run */
	bool scaled_max;             /* as far up as it goes */
	u32 max, normal, background; /* requests in flight, by urgency */
	u32 in_flight;               /* requests of write-out */
	struct list_node waiting;    /* I/Os whose submitters are parked, first come first */
	/* the window: */
	u64 window_end_ns; /* 0: none is open */
	u32 reads, writes; /* completed in it */
	u64 read_min_ns;
	u32 quiet_windows; /* in a row without reads or writes */
	u64 throttled_ns;  /* when a writer was last put to sleep for this device */
};

void wbt_init(struct wbt *w, u64 latency_ns, u32 nr_requests, bool write_cache);
/* Other settings, from now on; what it has learned stays. */
void wbt_configure(struct wbt *w, u64 latency_ns, u32 nr_requests, bool write_cache);
static inline bool wbt_is_on(const struct wbt *w)
{
	return w->latency_ns != 0;
}

/* Requests that io may find in flight and still go. */
u32 wbt_limit(const struct wbt *w, const struct io *io, u64 now);
/* Whether those who wait are to be looked at, now that in_flight has gone down. */
bool wbt_wakes(const struct wbt *w, u64 now);
/* A request completed after so long; closes the window if it is over. True: limits were raised. */
bool wbt_note(struct wbt *w, bool read, u64 latency_ns, u64 now);

#endif
