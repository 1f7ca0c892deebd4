/* SPDX-License-Identifier: MIT */
/* Threads that execute I/Os. See io_pool.c. */
#ifndef SLUICE_DEVICE_IO_POOL_H
#define SLUICE_DEVICE_IO_POOL_H

#include "base/list.h"
#include "world/lock.h"

struct io;
struct device;

struct io_pool {
	struct device *device;
	struct mutex lock;        /* protects all below; nothing is taken under it */
	struct cond work;         /* `queue` or `stopping` has changed */
	struct list_node queue;   /* I/Os to be executed, oldest first */
	u32 queued, idle;         /* I/Os; threads that wait for one */
	u32 threads, max;         /* that run; that may */
	struct list_node ended;   /* threads that have ended and are to be joined */
	struct list_node running; /* all others */
	bool stopping;
};

/* Starts the first thread: 0 or -EAGAIN. */
int io_pool_init(struct io_pool *p, struct device *d, u32 max_threads);
/* Nothing is queued or executed. */
void io_pool_finish(struct io_pool *p);
/* A thread of the pool executes io, or what is left of it, and calls device_done(). */
void io_pool_submit(struct io_pool *p, struct io *io);

#endif
