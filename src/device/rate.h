/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of model "rate": when a request is answered by a device of known speed. The
 * simulated device and the one that `sluice device` puts under a real file system share it.
 */
#ifndef SLUICE_DEVICE_RATE_H
#define SLUICE_DEVICE_RATE_H

#include "device/server.h"

struct rate {
	struct server server;
	fine_ns per_io, per_byte;
	u64 latency_ns;
};

/* I/Os and bytes a second are between 1 and 1e12. */
void rate_init(struct rate *r, double iops, double bytes_per_s, u64 latency_ns);

/*
 * Serves a request of that many bytes that arrives at `now`: when it is answered. Requests
 * are served in the order of the calls.
 */
u64 rate_serve(struct rate *r, u64 now, u32 bytes);

#endif
