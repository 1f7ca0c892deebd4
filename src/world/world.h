/* SPDX-License-Identifier: MIT */
/*
 * The world is what the engine has instead of an operating system: time,
 * blocking, tasks, CPU cost and randomness. There are two.
 *
 * The real world: CLOCK_MONOTONIC, futexes, pthreads; spending CPU is a no-op
 * because the CPU time is really spent.
 *
 * The simulated world: one OS thread runs every task as a fiber, in virtual
 * time, to completion between parks. CPU time is charged with world_spend() to
 * one of N simulated CPUs. A running fiber may be a little ahead of the global
 * virtual clock, by what it has spent since it was last switched to; world_now()
 * includes that, and the debt is settled when the fiber parks or breathes. Same
 * seed, same history, to the last digit, on any machine.
 *
 * A world is bound to an OS thread (world_bind); every call below acts on the
 * world of the calling thread. A thread that never bound one is in the real
 * world with the default HZ.
 */
#ifndef SLUICE_WORLD_WORLD_H
#define SLUICE_WORLD_WORLD_H

#include "base/types.h"
#include "world/cost.h"
#include <stdatomic.h>

#define WORLD_NEVER  (~0ull)
#define WORLD_LOCALS 5 /* slots of task-local storage */

enum world_kind { WORLD_REAL, WORLD_SIM };

/*
 * What the inline fast paths need of a world; the rest is private to sim.c and
 * real.c. Immutable after creation, except the simulated clock.
 */
struct world {
	enum world_kind kind;
	unsigned hz;   /* timer ticks a second: 100, 250 or 1000 */
	unsigned cpus; /* simulated CPUs; in the real world, those online */
	bool models_calls;
	/* simulated world only */
	u64 clock_ns; /* the global virtual clock */
	u64 ahead_ns; /* what the running fiber has spent since it was switched to */
	u64 cost_ns[COST_MAX];
	u64 shake; /* state of the shaker; 0: it does nothing */
};

struct task; /* a fiber or a thread */

/* NULL: the default real world. In the executable's own block of thread-local storage. */
extern _Thread_local struct world *world_current TLS_DIRECT;

void world_bind(struct world *w); /* NULL unbinds */
/* Makes w a real world with a HZ of its own, to bind. What a task spawns inherits its world. */
void world_init_real(struct world *w, unsigned hz);
u64 world_now_real(void);
/* The time of day as file systems stamp it, since 1970. It may jump; real world only. */
u64 world_wall_ns(void);
u64 world_file_ns(void); /* the same, as the system's file systems take it: some ms behind */

static inline bool world_is_sim(void)
{
	return world_current && world_current->kind == WORLD_SIM;
}

/*
 * What the world is for. True: to say what Linux's calls come to. Each call does then what it does
 * in Linux, also where nothing but time and the next readahead could show it. False: to be quick.
 * There are short ways then, which leave that out.
 */
static inline bool world_models_calls(void)
{
	return world_current && world_current->models_calls;
}

/* What one of a cost takes in this world: 0 where the CPU time is really spent. */
static inline u64 world_cost_ns(enum cost cost)
{
	return world_is_sim() ? world_current->cost_ns[cost] : 0;
}

/* Nanoseconds since the world began; never goes back for one task. */
static inline u64 world_now(void)
{
	return world_is_sim() ? world_current->clock_ns + world_current->ahead_ns
			      : world_now_real();
}

/* Charges n units of `cost` to the CPU the task runs on. Never switches tasks. */
static inline void world_spend(enum cost cost, u64 n)
{
	if (world_is_sim())
		world_current->ahead_ns += world_current->cost_ns[cost] * n;
}

/*
 * Sleeps until world_now() >= deadline. With a deadline that has passed, settles spent
 * CPU time and lets others run that are ready.
 */
void world_sleep_until(u64 deadline);

#define WORLD_QUANTUM (50 * NSEC_PER_USEC) /* spent CPU time that world_breathe() settles */

/* What the running task has spent since it was last settled: nothing in the real world. */
static inline u64 world_ahead(void)
{
	return world_is_sim() ? world_current->ahead_ns : 0;
}

/*
 * A point where another thread might get ahead in the real world: before a lock is taken, and the
 * like. In builds with SLUICE_CHECKS a simulated world that shakes sleeps here now and then for a
 * few microseconds, so that tests see orders of events that run to completion hides.
 */
#ifdef SLUICE_CHECKS
void world_shake_now(void);
static inline void world_shake(void)
{
	if (unlikely(world_current && world_current->shake))
		world_shake_now();
}
#else
static inline void world_shake(void)
{
}
#endif

/*
 * A point where a long computation may be interrupted: settles spent CPU time
 * when it exceeds a quantum and lets others run. No spinlock may be held.
 */
static inline void world_breathe(void)
{
	if (world_is_sim() && world_current->ahead_ns > WORLD_QUANTUM)
		world_sleep_until(0);
	world_shake();
}

/*
 * Blocks while *word == value, until unparked or `deadline` (world_now() time;
 * WORLD_NEVER for none). 0 when unparked (perhaps spuriously), -EAGAIN when *word
 * differed at once, -ETIMEDOUT. No spinlock may be held.
 */
int world_park(const _Atomic u32 *word, u32 value, u64 deadline);
/* The same; `what` (a string that stays) says in reports of deadlocks what is waited for. */
int world_park_for(const _Atomic u32 *word, u32 value, u64 deadline, const char *what);

/* Wakes at most n tasks parked on word, first come first served; returns how many. */
unsigned world_unpark(const _Atomic u32 *word, unsigned n);

/*
 * Timer ticks, as Linux counts: jiffies start at 300 * HZ (where Linux starts 300 s
 * before its counter would wrap), so that they are never 0, and grow by 1 every 1/HZ s.
 */
unsigned world_hz(void);
u64 world_jiffies(void);
/* World time at which a tick begins; no tick before the world's first. */
u64 world_jiffies_ns(u64 jiffies);
/*
 * The tick in which a timer of n >= 1 ticks fires that is set now, as Linux's do since 4.8: its
 * timer wheel fires at the first tick after now + n, never before n whole periods have passed, so
 * after between n and n + 1 of them. From 63 ticks on the wheel's next level rounds that up to
 * a multiple of 8 ticks, from 504 on to one of 64, and so on by eights.
 */
u64 world_timer_jiffies(u64 n);
/* Sleeps until such a timer fires, as Linux's schedule_timeout(n). */
void world_sleep_jiffies(u64 n);

/* A new task, runnable at once. `name` is copied. NULL when memory is short. */
struct task *world_spawn(const char *name, void (*fn)(void *arg), void *arg);
/* The same in another real world, which outlives that of the caller. */
struct task *world_spawn_in(struct world *w, const char *name, void (*fn)(void *arg), void *arg);
/* Waits for a task to return and frees it. Every task is joined exactly once. */
void world_join(struct task *t);

/* 1, 2, ... in the order of spawning: of the running task; 0 in an event callback. */
u64 world_task_id(void);
const char *world_task_name(void);

/*
 * Real world: fn is called in each task that ends from now on, whoever made its thread, if it ever
 * was in the world (asked for its id, waited, or had its words of storage). For what a module keeps
 * for each thread. The same fn is entered once. 0, or -ENOSPC after 8 of them.
 */
int world_at_task_end(void (*fn)(void));

/* WORLD_LOCALS 64-bit words of task-local storage, zero in a new task. */
u64 *world_locals(void);
static inline u64 *world_local(unsigned slot)
{
	assert(slot < WORLD_LOCALS);
	return world_locals() + slot;
}

/* The simulated CPU the task is on; in the real world sched_getcpu(). */
unsigned world_cpu(void);
unsigned world_cpus(void); /* how many there are; a CPU's number may be larger in the real world */

/* Random bits: of the seed in the simulated world, of the system in the real one. */
u64 world_random(void);

#endif
