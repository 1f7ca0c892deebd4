/* SPDX-License-Identifier: MIT */
/*
 * Each worker has a slot with a state word that goes round:
 *
 *	FREE	-> RUN (owner) -> ENDED (worker) -> FREE (owner) ...
 *
 * The word says whose the rest of the slot is, so nothing needs a lock. A worker
 * parks on its word; the owner parks on a count of points that ended, which it read
 * before it looked at the slots, so it never misses one.
 */
#include "lab/sweep_pool.h"
#include <errno.h>
#include <stdlib.h>

enum slot_state { SLOT_FREE, SLOT_RUN, SLOT_ENDED, SLOT_QUIT };

/* Looking on is an event in the simulated world: the lab looks on, so this must too. */
static void look_on(void *ctx, u64 now_ns)
{
	(void)ctx;
	(void)now_ns;
}

static void work(void *arg)
{
	struct slot *s = arg;
	const struct sweep *sweep = s->pool->sweep;
	u32 state;

	while ((state = s->state) != SLOT_QUIT) {
		if (state != SLOT_RUN) {
			world_park(&s->state, state, WORLD_NEVER);
			continue;
		}
		run_case(sweep->x, &sweep->plan.cases[s->point], sweep->seed, look_on, NULL,
			 &s->result);
		s->state = SLOT_ENDED;
		s->pool->events++;
		world_unpark(&s->pool->events, 1);
	}
}

int pool_start(struct pool *p, const struct sweep *s, unsigned count)
{
	assert(!world_is_sim() && count);
	*p = (struct pool){ .sweep = s, .slots = calloc(count, sizeof(*p->slots)) };
	for (unsigned i = 0; p->slots && i < count; i++) {
		p->slots[i].pool = p;
		p->slots[i].task = world_spawn("sweep", work, &p->slots[i]);
		if (!p->slots[i].task)
			break;
		p->count++;
	}
	if (p->count)
		return 0;
	free(p->slots);
	return -ENOMEM;
}

static void set_state(struct slot *s, enum slot_state state)
{
	s->state = state;
	world_unpark(&s->state, 1);
}

void pool_finish(struct pool *p)
{
	for (unsigned i = 0; i < p->count; i++) {
		struct slot *s = &p->slots[i];
		u32 running = SLOT_RUN;

		while (s->state == running) {
			u32 seen = p->events;

			if (s->state == running)
				pool_wait(p, seen, WORLD_NEVER);
		}
		set_state(s, SLOT_QUIT);
		world_join(s->task);
	}
	free(p->slots);
}

unsigned pool_free(const struct pool *p)
{
	unsigned count = 0;

	for (unsigned i = 0; i < p->count; i++)
		count += p->slots[i].state == SLOT_FREE;
	return count;
}

void pool_run(struct pool *p, size_t point)
{
	for (unsigned i = 0; i < p->count; i++) {
		if (p->slots[i].state != SLOT_FREE)
			continue;
		p->slots[i].point = point;
		set_state(&p->slots[i], SLOT_RUN);
		return;
	}
	assert(!"a worker is free");
}

bool pool_take(struct pool *p, size_t *point, struct lab_result *result)
{
	for (unsigned i = 0; i < p->count; i++) {
		struct slot *s = &p->slots[i];

		if (s->state != SLOT_ENDED)
			continue;
		*point = s->point;
		*result = s->result;
		s->state = SLOT_FREE;
		return true;
	}
	return false;
}

void pool_wait(struct pool *p, u32 seen_events, u64 deadline_ns)
{
	world_park(&p->events, seen_events, deadline_ns);
}
