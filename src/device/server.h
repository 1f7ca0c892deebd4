/* SPDX-License-Identifier: MIT */
/*
 * One server: takes requests in the order they come, one at a time. Its clock counts
 * fractions of a nanosecond, so that 3,000 requests of 1/3000 s take one second, also
 * after a month.
 */
#ifndef SLUICE_DEVICE_SERVER_H
#define SLUICE_DEVICE_SERVER_H

#include "base/types.h"

#define FINE_BITS 50
typedef unsigned __int128 fine_ns; /* time in units of 2^-FINE_BITS ns */

struct server {
	fine_ns free_at; /* when it ends its last request */
};

/* 1/per_second; per_second is between 1 and 1e12. */
fine_ns fine_period(double per_second);

/* Serves a request that arrives at `now` and takes `cost`: when it ends, whole ns. */
u64 server_take(struct server *s, u64 now, fine_ns cost);

#endif
