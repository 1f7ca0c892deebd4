/* SPDX-License-Identifier: MIT */
/*
 * The workers of one rank: OS threads that each run one point at a time, handed out
 * and collected by one other thread, their owner.
 */
#ifndef SLUICE_LAB_SWEEP_POOL_H
#define SLUICE_LAB_SWEEP_POOL_H

#include "lab/sweep.h"

struct slot {
	struct pool *pool;
	_Atomic u32 state;        /* enum slot_state in sweep_pool.c */
	size_t point;             /* the owner's but while the slot runs */
	struct lab_result result; /* likewise */
	struct task *task;
};

struct pool {
	const struct sweep *sweep;
	_Atomic u32 events; /* points that ended */
	struct slot *slots;
	unsigned count;
};

/* Starts workers, as many as there is memory for. 0, or -ENOMEM if that is none. */
int pool_start(struct pool *p, const struct sweep *s, unsigned count);
/* Waits for what is running, and ends the workers. */
void pool_finish(struct pool *p);
/* How many workers have nothing to do. */
unsigned pool_free(const struct pool *p);
/* Runs a point; there is a free worker. */
void pool_run(struct pool *p, size_t point);
/* Takes one that ended, its result copied out. False: none has. */
bool pool_take(struct pool *p, size_t *point, struct lab_result *result);
/* Waits for a point to end, or until the deadline. */
void pool_wait(struct pool *p, u32 seen_events, u64 deadline_ns);

#endif
