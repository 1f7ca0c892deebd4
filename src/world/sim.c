/* SPDX-License-Identifier: MIT */
/*
 * The simulated world. One OS thread, a virtual clock, an event queue (heap.c), tasks
 * that are fibers (fiber.c), and N simulated CPUs.
 *
 * A task runs until it parks, sleeps, breathes or ends; no other task or event runs
 * meanwhile, and the clock stands still. What the task spends is only added up, in
 * `ahead`: it lives that much after the clock. When it gives up its CPU the debt is
 * settled: the CPU is busy until clock + ahead, and the task cannot run before that.
 * Then whoever gives up picks who is next and switches to it directly, without a
 * scheduler's fiber in between:
 *
 *	a task at the head of the run queue, if a CPU is free	-> run it
 *	else the first event of the queue			-> advance the clock, call it
 *	else, if tasks wait for a busy CPU			-> advance to when it is free
 *	else nothing can ever happen again			-> back to sim_run()
 *
 * Every task carries one event. Sleeping, timing out, being on the way from woken
 * to running, and paying off spent CPU time are all that event, which puts the task at
 * the end of the run queue; so a sleep costs one event however much was spent before.
 *
 * CPUs are not scheduled, they are only found free (free_at <= clock): a task prefers the
 * one it last ran on, else takes the lowest-numbered; when all are busy, the first moment
 * at which one can be free is remembered, so that nobody looks again before it.
 *
 * A task that only pays off what it spent goes on before those who wait for a CPU, until it
 * has had a slice since it last waited. That is as long as Linux gives: 0.7 ms for one CPU, and as
 * much again for each doubling up to eight, looked at once a tick.
 */
#include "world/sim.h"
#include "base/bits.h"
#include "base/rng.h"
#include "world/fiber.h"
#include "world/heap.h"
#include "world/parking.h"
#include "world/task.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define STACK_BYTES (256ul << 10)
#define NO_CPU      (~0u)

#define BASE_SLICE_NS 700000ull

struct sim_task {
	struct task task;
	struct fiber *fiber;
	struct sim_event due; /* puts it on the run queue */
	struct parked parked;
	struct sim_task *next_run; /* on the run queue, or among the records to use again */
	struct list_node all;      /* in sim.tasks while it lives */
	struct list_node record;   /* in sim.records always */
	u64 settled_ns;            /* it cannot run before: what it spent is paid off then */
	u64 slice_ns;              /* CPU time since it last waited for something or somebody */
	bool keeps_cpu;            /* it only pays off: nobody takes its CPU meanwhile */
	u32 cpu;                   /* it runs on, or last ran on */
	int result;                /* of the park it returns from */
	const char *what;          /* it waits for, if that is known */
};

struct sim {
	struct world world;
	struct heap events;
	struct parking parking;
	struct sim_task *running;              /* NULL in event callbacks */
	struct sim_task *run_first, *run_last; /* runnable tasks, first come first served */
	u64 *cpu_free_ns;                      /* when each CPU is free, or was */
	u64 slice_ns;                          /* so long a task keeps its CPU from others */
	u64 any_cpu_free_ns;                   /* no CPU is free before, all were busy at a look */
	struct fiber *thread;                  /* of sim_run() */
	struct fiber *ended;                   /* fiber to free once off its stack */
	struct list_node tasks;                /* that live, by id */
	struct list_node records;              /* all ever made */
	struct sim_task *spare;                /* records of joined tasks */
	u64 tasks_now, last_id;
	struct task events_task; /* what world_self() is in event callbacks */
	struct rng rng;
	struct sim_stats stats;
};

static inline struct sim *sim_of(struct world *w)
{
	assert(w && w->kind == WORLD_SIM);
	return container_of(w, struct sim, world);
}

static inline u64 sim_now(const struct sim *s)
{
	return s->world.clock_ns + s->world.ahead_ns;
}

/* --- the run queue and the CPUs --- */

static void run_queue_add(struct sim *s, struct sim_task *t)
{
	t->next_run = NULL;
	if (s->run_first)
		s->run_last->next_run = t;
	else
		s->run_first = t;
	s->run_last = t;
}

static void run_queue_add_first(struct sim *s, struct sim_task *t)
{
	t->next_run = s->run_first;
	if (!s->run_first)
		s->run_last = t;
	s->run_first = t;
}

/* The lowest-numbered free CPU, or NO_CPU. */
static u32 find_cpu(struct sim *s)
{
	u64 first = WORLD_NEVER, now = s->world.clock_ns;

	if (now < s->any_cpu_free_ns)
		return NO_CPU;
	for (u32 i = 0; i < s->world.cpus; i++) {
		if (s->cpu_free_ns[i] <= now)
			return i;
		first = min_u64(first, s->cpu_free_ns[i]);
	}
	s->any_cpu_free_ns = first;
	return NO_CPU;
}

/* Takes the head of the run queue if there is a CPU for it. */
static struct sim_task *dispatch(struct sim *s)
{
	struct sim_task *t = s->run_first;
	u32 cpu;

	if (!t)
		return NULL;
	cpu = t->cpu;
	if (cpu == NO_CPU || s->cpu_free_ns[cpu] > s->world.clock_ns)
		cpu = find_cpu(s);
	if (cpu == NO_CPU)
		return NULL;
	t->cpu = cpu;
	s->run_first = t->next_run;
	return t;
}

/* Makes t run at `when`, or as soon after as a CPU is free. */
static void make_due(struct sim *s, struct sim_task *t, u64 when)
{
	when = max_u64(when, t->settled_ns);
	if (when > s->world.clock_ns) {
		heap_set(&s->events, &t->due, when);
		return;
	}
	if (sim_event_pending(&t->due))
		heap_remove(&s->events, &t->due);
	run_queue_add(s, t);
}

static void task_due(struct sim_event *e)
{
	struct sim_task *t = container_of(e, struct sim_task, due);
	struct sim *s = sim_of(world_current);

	if (t->parked.queue) {
		parking_remove(&s->parking, &t->parked);
		t->result = -ETIMEDOUT;
	}
	if (t->keeps_cpu)
		run_queue_add_first(s, t);
	else
		run_queue_add(s, t);
	t->keeps_cpu = false;
}

/* --- who is next --- */

/* Advances the world until a task can run; NULL if none ever will. */
static struct sim_task *pick_next(struct sim *s)
{
	struct sim_task *t;
	struct sim_event *e;

	assert(!s->world.ahead_ns);
	s->running = NULL;
	while (!(t = dispatch(s))) {
		if (s->run_first && s->any_cpu_free_ns < heap_first_when(&s->events)) {
			s->world.clock_ns = s->any_cpu_free_ns;
			continue;
		}
		e = heap_pop(&s->events);
		if (!e)
			break;
		assert(e->when >= s->world.clock_ns);
		s->world.clock_ns = e->when;
		s->stats.events++;
		e->fn(e);
		s->world.ahead_ns = 0;
	}
	s->running = t;
	return t;
}

/* What must be done on arrival from another fiber. */
static void landed(struct sim *s)
{
	fiber_destroy(s->ended);
	s->ended = NULL;
}

/* The running task's spent time becomes its CPU's. */
static void settle(struct sim *s)
{
	struct sim_task *me = s->running;

	assert(me); /* event callbacks must not wait */
	me->settled_ns = sim_now(s);
	s->cpu_free_ns[me->cpu] = me->settled_ns;
	s->stats.cpu_busy_ns += s->world.ahead_ns;
	me->slice_ns += s->world.ahead_ns;
	s->world.ahead_ns = 0;
}

/* Lets others run until the running, settled task is due. */
static void give_up_cpu(struct sim *s)
{
	struct sim_task *me = s->running;
	struct sim_task *next = pick_next(s);

	if (next == me)
		return;
	s->stats.switches++;
	fiber_switch(me->fiber, next ? next->fiber : s->thread);
	landed(s);
	assert(s->running == me);
}

static u64 slice_ns(unsigned cpus, unsigned hz)
{
	return max_u64(BASE_SLICE_NS * (1 + ilog2(min_u64(cpus, 8))), NSEC_PER_SEC / hz);
}

/* --- tasks --- */

static void task_main(void *arg)
{
	struct sim_task *me = arg, *next;
	struct sim *s = sim_of(world_current);

	landed(s);
	me->task.fn(me->task.arg);
	assert(s->running == me);
#ifdef SLUICE_CHECKS
	assert(!me->task.held_count); /* it ends with a lock held */
#endif
	atomic_store(&me->task.done, 1);
	sim_unpark(&s->world, &me->task.done, ~0u);
	settle(s);
	list_del(&me->all);
	s->tasks_now--;
	s->ended = me->fiber;
	me->fiber = NULL;
	next = s->tasks_now ? pick_next(s) : NULL;
	s->stats.switches++;
	fiber_exit(s->ended, next ? next->fiber : s->thread);
}

static struct sim_task *record_get(struct sim *s)
{
	struct sim_task *t = s->spare;

	if (t) {
		s->spare = t->next_run;
		return t;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	/* memory may be short now, but never once the task runs */
	if (!heap_promise(&s->events) || !parking_enter(&s->parking, &t->parked)) {
		free(t);
		return NULL;
	}
	list_add_tail(&s->records, &t->record);
	return t;
}

static void record_put(struct sim *s, struct sim_task *t)
{
	t->next_run = s->spare;
	s->spare = t;
}

struct task *sim_spawn(struct world *w, const char *name, void (*fn)(void *arg), void *arg)
{
	struct sim *s = sim_of(w);
	struct sim_task *t = record_get(s);

	if (!t)
		return NULL;
	t->fiber = fiber_create(STACK_BYTES, task_main, t);
	if (!t->fiber) {
		record_put(s, t);
		return NULL;
	}
	task_init(&t->task, ++s->last_id, name, fn, arg);
	sim_event_init(&t->due, task_due);
	t->settled_ns = 0;
	t->slice_ns = 0;
	t->keeps_cpu = false;
	t->cpu = NO_CPU;
	t->what = NULL;
	list_add_tail(&s->tasks, &t->all);
	s->tasks_now++;
	s->stats.tasks_peak = max_u64(s->stats.tasks_peak, s->tasks_now);
	make_due(s, t, sim_now(s));
	return &t->task;
}

void sim_join(struct world *w, struct task *t)
{
	while (!atomic_load(&t->done))
		sim_park(w, &t->done, 0, WORLD_NEVER, NULL);
	record_put(sim_of(w), container_of(t, struct sim_task, task));
}

int sim_park(struct world *w, const _Atomic u32 *word, u32 value, u64 deadline, const char *what)
{
	struct sim *s = sim_of(w);
	struct sim_task *me = s->running;

	assert(me);
	if (atomic_load(word) != value)
		return -EAGAIN;
	if (deadline <= sim_now(s)) {
		sim_sleep_until(w, deadline);
		return -ETIMEDOUT;
	}
	s->stats.parks++;
	settle(s);
	parking_add(&s->parking, &me->parked, word);
	me->what = what;
	me->slice_ns = 0;
	if (deadline != WORLD_NEVER)
		heap_set(&s->events, &me->due, deadline);
	give_up_cpu(s);
	me->what = NULL;
	return me->result;
}

unsigned sim_unpark(struct world *w, const _Atomic u32 *word, unsigned n)
{
	struct sim *s = sim_of(w);
	struct parked *p;
	struct sim_task *t;
	unsigned woken = 0;

	while (woken < n && (p = parking_first(&s->parking, word))) {
		t = container_of(p, struct sim_task, parked);
		parking_remove(&s->parking, p);
		t->result = 0;
		make_due(s, t, sim_now(s) + w->cost_ns[COST_WAKE]);
		woken++;
	}
	return woken;
}

void sim_sleep_until(struct world *w, u64 deadline)
{
	struct sim *s = sim_of(w);

	assert(deadline != WORLD_NEVER);
	settle(s);
	if (deadline <= s->running->settled_ns && s->running->settled_ns > s->world.clock_ns &&
	    s->running->slice_ns < s->slice_ns)
		s->running->keeps_cpu = true;
	else
		s->running->slice_ns = 0;
	make_due(s, s->running, deadline);
	give_up_cpu(s);
}

struct task *sim_self(struct world *w)
{
	struct sim *s = sim_of(w);

	return s->running ? &s->running->task : &s->events_task;
}

unsigned sim_cpu(struct world *w)
{
	struct sim *s = sim_of(w);

	return s->running ? s->running->cpu : 0;
}

u64 sim_random(struct world *w)
{
	return rng_u64(&sim_of(w)->rng);
}

/* --- events --- */

void sim_event_init(struct sim_event *e, void (*fn)(struct sim_event *e))
{
	assert(fn);
	*e = (struct sim_event){ .fn = fn };
}

void sim_event_at(struct sim_event *e, u64 when)
{
	struct sim *s = sim_of(world_current);

	assert(when >= s->world.clock_ns);
	heap_set(&s->events, e, when);
}

bool sim_event_cancel(struct sim_event *e)
{
	if (!sim_event_pending(e))
		return false;
	heap_remove(&sim_of(world_current)->events, e);
	return true;
}

/* --- worlds --- */

void sim_config_init(struct sim_config *c)
{
	*c = (struct sim_config){ .cpus = 1, .hz = 250, .seed = 1 };
#define COST_DEFAULT(name, key, ns, text) c->cost_ns[COST_##name] = (ns);
	COSTS(COST_DEFAULT)
#undef COST_DEFAULT
}

struct world *sim_create(const struct sim_config *c)
{
	struct sim *s = calloc(1, sizeof(*s));

	assert(c->cpus >= 1 && c->cpus <= 1024);
	assert(c->hz == 100 || c->hz == 250 || c->hz == 1000);
	if (!s)
		return NULL;
	s->world.kind = WORLD_SIM;
	s->world.models_calls = true;
	s->world.hz = c->hz;
	s->world.cpus = c->cpus;
	s->world.shake = c->shake_seed;
	s->slice_ns = slice_ns(c->cpus, c->hz);
	for (unsigned i = 0; i < COST_MAX; i++)
		s->world.cost_ns[i] = c->cost_ns[i];
	list_init(&s->tasks);
	list_init(&s->records);
	task_init(&s->events_task, 0, "event", NULL, NULL);
	rng_init(&s->rng, c->seed);
	s->cpu_free_ns = calloc(c->cpus, sizeof(*s->cpu_free_ns));
	if (!heap_init(&s->events) || !parking_init(&s->parking) || !s->cpu_free_ns) {
		sim_destroy(&s->world);
		return NULL;
	}
	return &s->world;
}

void sim_destroy(struct world *w)
{
	struct sim *s;
	struct list_node *n, *tmp;

	if (!w)
		return;
	s = sim_of(w);
	assert(!s->thread); /* not while it runs */
	heap_finish(&s->events);
	parking_finish(&s->parking);
	list_for_each_safe (n, tmp, &s->records) {
		struct sim_task *t = list_entry(n, struct sim_task, record);

		fiber_destroy(t->fiber);
		free(t);
	}
	free(s->cpu_free_ns);
	free(s);
}

/* The task whose end `t` waits for, or NULL. */
static const struct task *joins(const struct sim *s, const struct sim_task *t)
{
	const struct list_node *n;

	list_for_each (n, &s->tasks) {
		const struct sim_task *other = list_entry(n, struct sim_task, all);

		if (t->parked.queue && t->parked.queue->word == &other->task.done)
			return &other->task;
	}
	return NULL;
}

/* Describes the tasks that nothing will wake. */
static void describe_stuck(const struct sim *s, char *why, size_t why_size)
{
	const struct list_node *n;
	int used;

	if (!why || !why_size)
		return;
	used = snprintf(why, why_size, "%" PRIu64 " task%s stuck at %.6f s", s->tasks_now,
			s->tasks_now == 1 ? " is" : "s are", (double)s->world.clock_ns / 1e9);
	list_for_each (n, &s->tasks) {
		const struct sim_task *t = list_entry(n, struct sim_task, all);
		const struct task *end_of = joins(s, t);

		if ((size_t)used >= why_size)
			return;
		used += snprintf(why + used, why_size - (size_t)used,
				 "%s '%s' (task %" PRIu64 ") waits for %s%s since %.6f s",
				 n->prev == &s->tasks ? ":" : ";", t->task.name, t->task.id,
				 end_of ? "the end of " : (t->what ? t->what : "a word"),
				 end_of ? end_of->name : "", (double)t->settled_ns / 1e9);
	}
}

int sim_run(struct world *w, void (*fn)(void *arg), void *arg, char *why, size_t why_size)
{
	struct sim *s = sim_of(w);
	struct world *bound_before = world_current;
	struct sim_task *first;
	struct task *t;
	int result = -ENOMEM;

	assert(!s->thread && list_empty(&s->tasks));
	s->thread = fiber_adopt_thread();
	if (!s->thread)
		return -ENOMEM;
	world_bind(w);
	t = sim_spawn(w, "main", fn, arg);
	if (t) {
		first = pick_next(s);
		assert(first == container_of(t, struct sim_task, task));
		s->stats.switches++;
		fiber_switch(s->thread, first->fiber);
		landed(s);
		result = s->tasks_now ? -EDEADLK : 0;
		if (result)
			describe_stuck(s, why, why_size);
		else
			record_put(s, first);
	}
	heap_clear(&s->events);
	s->running = NULL;
	fiber_destroy(s->thread);
	s->thread = NULL;
	world_bind(bound_before);
	return result;
}

void sim_stats(const struct world *w, struct sim_stats *out)
{
	*out = container_of(w, const struct sim, world)->stats;
}
