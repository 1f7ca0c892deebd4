/* SPDX-License-Identifier: MIT */
/*
 * The simulated world's own interface, for those who build machines in it: the
 * lab, device models and tests. The engine proper only includes world.h.
 */
#ifndef SLUICE_WORLD_SIM_H
#define SLUICE_WORLD_SIM_H

#include "world/world.h"

struct sim_config {
	unsigned cpus; /* 1..1024 */
	unsigned hz;   /* 100, 250 or 1000 */
	u64 seed;
	u64 cost_ns[COST_MAX]; /* filled with the defaults by sim_config_init() */
	u64 shake_seed;        /* 0: none; else world_shake() sleeps now and then, by this seed */
};

void sim_config_init(struct sim_config *c);

/* A new simulated world at time 0, bound to nothing. NULL when memory is short. */
struct world *sim_create(const struct sim_config *c);
/* Frees the world, tasks that were never joined, and after -EDEADLK those that are stuck. */
void sim_destroy(struct world *w);

/*
 * Binds w, runs fn(arg) as its first task and everything that follows from it
 * until fn has returned and all other tasks have too, and binds again what was bound
 * before. Events still scheduled then are cancelled. 0, -ENOMEM, or -EDEADLK if tasks
 * remain that nothing will ever wake (described in `why`, if not NULL: their names and
 * what they wait for). After 0 the world can run again, and time goes on; after
 * -EDEADLK it can only be destroyed.
 */
int sim_run(struct world *w, void (*fn)(void *arg), void *arg, char *why, size_t why_size);

/*
 * Events: fn is called at time `when` from the scheduler, between tasks. It must
 * not park; it may spawn, unpark, complete, and schedule further events; what it
 * spends is charged to nobody. Events of one instant run in the order they were
 * scheduled. Memory is the caller's, and stays where it is while scheduled.
 */
struct sim_event {
	void (*fn)(struct sim_event *e);
	u64 when;
	u64 sequence; /* private */
	u32 slot;     /* private: place in the heap, 0 when not scheduled */
};

void sim_event_init(struct sim_event *e, void (*fn)(struct sim_event *e));
/* In the bound world; moves it if already scheduled. `when` is not before the clock. */
void sim_event_at(struct sim_event *e, u64 when);
bool sim_event_cancel(struct sim_event *e); /* true if it was scheduled */
static inline bool sim_event_pending(const struct sim_event *e)
{
	return e->slot != 0;
}

/* Counters for benchmarks and reports. */
struct sim_stats {
	u64 switches, events, parks, tasks_peak;
	u64 cpu_busy_ns; /* summed over all CPUs */
};
void sim_stats(const struct world *w, struct sim_stats *out);

#endif
