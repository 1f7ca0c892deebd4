/* SPDX-License-Identifier: MIT */
/*
 * The calls of world.h that are too long to be inline: each goes to the world the
 * calling OS thread is bound to.
 */
#include "world/world.h"
#include "world/epoch.h"
#include "world/task.h"
#include <stdio.h>
#include <string.h>

#define HZ_DEFAULT 250

_Thread_local struct world *world_current;

void world_bind(struct world *w)
{
	world_current = w;
}

void task_init(struct task *t, u64 id, const char *name, void (*fn)(void *arg), void *arg)
{
	memset(t, 0, sizeof(*t));
	t->id = id;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->fn = fn;
	t->arg = arg;
}

struct task *world_self(void)
{
	return world_is_sim() ? sim_self(world_current) : real_self();
}

int world_park_for(const _Atomic u32 *word, u32 value, u64 deadline, const char *what)
{
#ifdef SLUICE_CHECKS
	assert(!world_self()->held_spins); /* nothing may wait under a spinlock */
	assert(!world_is_reading());       /* nor in a read section */
#endif
	return world_is_sim() ? sim_park(world_current, word, value, deadline, what)
			      : real_park(word, value, deadline);
}

int world_park(const _Atomic u32 *word, u32 value, u64 deadline)
{
	return world_park_for(word, value, deadline, NULL);
}

unsigned world_unpark(const _Atomic u32 *word, unsigned n)
{
	return world_is_sim() ? sim_unpark(world_current, word, n) : real_unpark(word, n);
}

void world_sleep_until(u64 deadline)
{
#ifdef SLUICE_CHECKS
	assert(!world_self()->held_spins);
	assert(!world_is_reading());
#endif
	if (world_is_sim())
		sim_sleep_until(world_current, deadline);
	else
		real_sleep_until(deadline);
}

#ifdef SLUICE_CHECKS

#define SHAKE_ONE_IN 16    /* points pass without a sleep but for one in so many */
#define SHAKE_MAX_NS 20000 /* of a sleep */

void world_shake_now(void)
{
	struct world *w = world_current;
	u64 x = w->shake;

	/* neither events nor those who must not wait */
	if (!world_task_id() || world_self()->held_spins || world_is_reading())
		return;
	x ^= x << 13; /* Marsaglia's xorshift: never 0 */
	x ^= x >> 7;
	x ^= x << 17;
	w->shake = x;
	if (x % SHAKE_ONE_IN == 0)
		world_sleep_until(world_now() + (x >> 32) % SHAKE_MAX_NS);
}

#endif

unsigned world_hz(void)
{
	return world_current ? world_current->hz : HZ_DEFAULT;
}

static u64 tick_ns(void)
{
	assert(NSEC_PER_SEC % world_hz() == 0);
	return NSEC_PER_SEC / world_hz();
}

static u64 jiffies_at_start(void)
{
	return 300ull * world_hz();
}

u64 world_jiffies(void)
{
	return jiffies_at_start() + world_now() / tick_ns();
}

u64 world_timer_jiffies(u64 n)
{
	unsigned shift = 0;

	assert(n >= 1);
	/* each level of the wheel is 8 times as coarse as the one below; none fires early */
	while (n >= 63ull << shift)
		shift += 3;
	return (((world_jiffies() + n) >> shift) + 1) << shift;
}

u64 world_jiffies_ns(u64 jiffies)
{
	assert(jiffies >= jiffies_at_start());
	return (jiffies - jiffies_at_start()) * tick_ns();
}

void world_sleep_jiffies(u64 n)
{
	world_sleep_until(world_jiffies_ns(world_timer_jiffies(n)));
}

struct task *world_spawn(const char *name, void (*fn)(void *arg), void *arg)
{
	return world_is_sim() ? sim_spawn(world_current, name, fn, arg) : real_spawn(name, fn, arg);
}

struct task *world_spawn_in(struct world *w, const char *name, void (*fn)(void *arg), void *arg)
{
	struct world *mine = world_current;
	struct task *t;

	world_bind(w);
	t = world_spawn(name, fn, arg);
	world_bind(mine);
	return t;
}

void world_join(struct task *t)
{
	if (world_is_sim())
		sim_join(world_current, t);
	else
		real_join(t);
}

u64 world_task_id(void)
{
	return world_self()->id;
}

const char *world_task_name(void)
{
	return world_self()->name;
}

u64 *world_locals(void)
{
	return world_self()->locals;
}

unsigned world_cpu(void)
{
	return world_is_sim() ? sim_cpu(world_current) : real_cpu();
}

unsigned world_cpus(void)
{
	return world_current ? world_current->cpus : real_cpus();
}

u64 world_random(void)
{
	return world_is_sim() ? sim_random(world_current) : real_random();
}
