/* SPDX-License-Identifier: MIT */
/*
 * What the two worlds and the locks share of a task. Private to src/world.
 */
#ifndef SLUICE_WORLD_TASK_H
#define SLUICE_WORLD_TASK_H

#include "world/world.h"

#define TASK_NAME_MAX 32
#define TASK_HELD_MAX 24 /* locks a task may hold at once, where that is checked */

struct held_lock {
	const void *lock;
	u32 rank;
	bool spin;
};

struct task {
	u64 id; /* 1, 2, ... in the order of spawning; 0: events of the simulated world */
	char name[TASK_NAME_MAX];
	void (*fn)(void *arg);
	void *arg;
	_Atomic u32 done; /* 1 once fn has returned; joiners park on it */
	u64 locals[WORLD_LOCALS];
#ifdef SLUICE_CHECKS
	/* the task's own: what it holds, in the order it was taken */
	struct held_lock held[TASK_HELD_MAX];
	u32 held_count;
	u32 held_spins; /* how many of them are spinlocks */
#endif
};

/* The running task; in an event callback, the record that stands for events. */
struct task *world_self(void);
void task_init(struct task *t, u64 id, const char *name, void (*fn)(void *arg), void *arg);

int real_park(const _Atomic u32 *word, u32 value, u64 deadline);
unsigned real_unpark(const _Atomic u32 *word, unsigned n);
void real_sleep_until(u64 deadline);
struct task *real_spawn(const char *name, void (*fn)(void *arg), void *arg);
void real_join(struct task *t);
struct task *real_self(void);
unsigned real_cpu(void);
unsigned real_cpus(void);
u64 real_random(void);

int sim_park(struct world *w, const _Atomic u32 *word, u32 value, u64 deadline, const char *what);
unsigned sim_unpark(struct world *w, const _Atomic u32 *word, unsigned n);
void sim_sleep_until(struct world *w, u64 deadline);
struct task *sim_spawn(struct world *w, const char *name, void (*fn)(void *arg), void *arg);
void sim_join(struct world *w, struct task *t);
struct task *sim_self(struct world *w);
unsigned sim_cpu(struct world *w);
u64 sim_random(struct world *w);

#endif
