/* SPDX-License-Identifier: MIT */
/* Inside the device: what device.c, its models and its stores share. */
#ifndef SLUICE_DEVICE_MODEL_H
#define SLUICE_DEVICE_MODEL_H

#include "device/device.h"
#include "device/share.h"
#include "device/wbt.h"

struct device_request;

/* How a model serves: rate.c, ebs.c, nvme.c, memory.c, fuse.c, file.c. */
struct device_ops {
	const char *name;
	bool immediate;    /* answers within device_submit(), in any world */
	bool real;         /* has start() instead of serve(), and is of the real world */
	size_t state_size; /* of what device.state points to, zeroed before init() */
	int (*init)(struct device *d);
	/*
	 * When a request of io, of so many bytes, would be answered if it arrived at `now`
	 * (world time, never before that of the call before). Called once per request.
	 */
	u64 (*serve)(struct device *d, const struct io *io, u32 bytes, u64 now);
	/*
	 * Instead of serve(), for who cannot know in advance: takes the request, and schedules its
	 * event for when it is answered, or calls device_request_done() then. May be absent;
	 * false: serve() is to be asked.
	 */
	bool (*begin)(struct device *d, struct device_request *r, u32 bytes, u64 now);
	/* fuse: is called after begin(), without the lock. */
	void (*wake)(struct device *d);
	/* Whether work that nobody waits for is better left for later. May be absent: never. */
	bool (*congested)(const struct device *d);
	/*
	 * Executes io and then calls device_done(). Unless the submitter waits for it, in which
	 * case it is executed at once, that comes from a thread of the model's. An I/O that has an
	 * error already only gets device_done().
	 */
	void (*start)(struct device *d, struct io *io, bool waited);
	void (*describe)(const struct device *d, char *text, size_t size);
	void (*finish)(struct device *d);
};

extern const struct device_ops rate_ops, ebs_ops, nvme_ops, memory_ops, fuse_ops, file_ops;

/* A part of an I/O in flight at a simulated device, or free. */
struct device_request {
	struct sim_event event;
	struct io *io;
	u64 submit_ns; /* when it got into the queue */
	bool begun;    /* the model schedules its event */
	u64 after_ns;  /* nvme, shared: how long its answer takes once it is done */
	struct share_part share;
	struct device_request *next;
	/* fuse: what it is about, and where it waits */
	u64 offset_bytes;
	u32 bytes;
	bool background;
	struct list_node link;
};

struct device {
	struct device_config config; /* changes only while idle */
	const struct device_ops *ops;
	void *state; /* the model's */
	/*
	 * Protects all below and *state. Innermost; nothing is taken under it. Matters only
	 * in the real world: in the simulated one tasks run to completion.
	 */
	struct spinlock lock;
	int (*fault)(void *ctx, const struct io *io);
	void *fault_ctx;
	u64 (*delay)(void *ctx, const struct io *io);
	void *delay_ctx;
	struct device_request *requests; /* [queue_depth], of the models that queue */
	struct device_request *free_request;
	struct list_node waiting; /* I/Os whose submitters are parked, first come first */
	struct device_stats stats;
	struct wbt wbt;
	u64 arrival_ns;            /* of the newest I/O */
	u64 busy_from, busy_until; /* the stretch of busy time that is not in stats.busy_ns */
	u64 active;                /* what was started, and is to be told when it is done */
	u64 stores;
};

const struct device_ops *device_find_ops(const char *model);
/* Length of part i of io; the device splits at max_io_bytes. */
u32 device_part_bytes(const struct device *d, const struct io *io, u32 i);

/* True if every value the model reads is within its range. */
bool device_config_valid(const struct device_config *c);

/* A request that the model has begun, and schedules no event for, has been answered. */
void device_request_done(struct device *d, struct device_request *r, int error);
/* io, which the model was told to start, has ended. */
void device_done(struct device *d, struct io *io, int error);

#endif
