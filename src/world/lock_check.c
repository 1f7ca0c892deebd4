/* SPDX-License-Identifier: MIT */
/*
 * What builds with SLUICE_CHECKS check of locks: every task keeps a short list of what it
 * holds. Deadlocks among locks need a cycle, and there is none if every task takes
 * them in rising rank, so one run of a path checks its order for all interleavings
 * (the idea of BSD's witness, and of jemalloc's after it). Lists are the task's own, so
 * nothing here needs a lock.
 */
#include "world/lock.h"
#include "world/task.h"

#ifdef SLUICE_CHECKS

void lock_check_order(const void *lock, u32 rank)
{
	const struct task *me = world_self();

	world_shake();
	for (u32 i = 0; i < me->held_count; i++) {
		assert(me->held[i].lock != lock); /* taken twice */
		assert(rank == RANK_NONE || me->held[i].rank < rank);
	}
}

void lock_check_taken(const void *lock, u32 rank, bool spin)
{
	struct task *me = world_self();

	assert(me->held_count < TASK_HELD_MAX);
	me->held[me->held_count++] = (struct held_lock){ lock, rank, spin };
	me->held_spins += spin;
}

void lock_check_given(const void *lock)
{
	struct task *me = world_self();
	u32 i = me->held_count;

	while (i && me->held[i - 1].lock != lock)
		i--;
	assert(i); /* given up by a task that does not hold it */
	me->held_spins -= me->held[i - 1].spin;
	me->held_count--;
	for (; i <= me->held_count; i++)
		me->held[i - 1] = me->held[i];
}

bool lock_check_mine(const void *lock)
{
	const struct task *me = world_self();

	for (u32 i = 0; i < me->held_count; i++)
		if (me->held[i].lock == lock)
			return true;
	return false;
}

#endif
