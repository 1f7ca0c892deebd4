/* SPDX-License-Identifier: MIT */
/* A server that works on all its requests at once: see share.c. Simulated world only. */
#ifndef SLUICE_DEVICE_SHARE_H
#define SLUICE_DEVICE_SHARE_H

#include "base/list.h"
#include "device/server.h"
#include "world/sim.h"

struct device_request;

struct share {
	fine_ns done;           /* of work, by each request that has been there all the time */
	u64 at_ns;              /* when that was so */
	u32 requests;           /* being worked on */
	struct list_node first; /* of them, in the order they will end */
	struct sim_event event; /* when the first of them ends */
	void (*end)(struct share *s, struct device_request *r, u64 now); /* r has left */
};

/* A request's part in it. */
struct share_part {
	fine_ns ends_at; /* when so much has been done by each */
	struct list_node link;
};

void share_init(struct share *s, void (*end)(struct share *s, struct device_request *r, u64 now));
/* r arrives at `now`, with so much work: the time it takes alone. */
void share_add(struct share *s, struct device_request *r, fine_ns work, u64 now);

#endif
