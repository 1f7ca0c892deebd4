/* SPDX-License-Identifier: MIT */
/*
 * Two threads at the same work, against one: how many times the work of one they do in a second of
 * CPU time each. Each has a CPU of its own, and they begin at the same time: left to the system,
 * two short turns easily come one after the other, on one CPU, and then nothing was compared.
 * What memory lets two bare copies do changes from minute to minute on a machine that is shared, so
 * a gain means something beside the gain of bare copies in the same rounds.
 */
#ifndef SLUICE_BENCH_TOGETHER_H
#define SLUICE_BENCH_TOGETHER_H

#include "bench.h"
#include "world/world.h"
#include <sched.h>

struct half {
	void (*work)(void *arg);
	void *arg;
	int cpu;            /* -1: any */
	_Atomic u32 *ready; /* halves that are; NULL: this one is alone */
	u64 ns;             /* CPU time */
	u64 begin, end;     /* by the clock */
};

struct gain {
	double alone_ns; /* what one took alone */
	double times;    /* its work */
	double beside;   /* the part of the time in which both were at work */
};

/* The thread runs on that CPU only. */
static inline void pin_to(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static inline void half_task(void *arg)
{
	struct half *h = arg;

	pin_to(h->cpu);
	if (h->ready) {
		atomic_fetch_add(h->ready, 1);
		while (atomic_load(h->ready) < 2)
			sched_yield();
	}
	h->begin = bench_now();
	h->ns = bench_cpu_now();
	h->work(h->arg);
	h->ns = bench_cpu_now() - h->ns;
	h->end = bench_now();
}

static inline double part_beside(const struct half *a, const struct half *b)
{
	u64 from = max_u64(a->begin, b->begin), to = min_u64(a->end, b->end);

	return to > from ? (double)(to - from) /
				   (double)(max_u64(a->end, b->end) - min_u64(a->begin, b->begin))
			 : 0;
}

/* One round: the first alone, then both. */
static inline struct gain gain_of_two(void (*work)(void *arg), void *first, void *second)
{
	_Atomic u32 ready = 0;
	struct half halves[2] = { { .work = work, .arg = first, .cpu = -1 },
				  { .work = work, .arg = second, .cpu = -1, .ready = &ready } };
	struct task *task;
	struct gain gain;
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all))
		abort();
	for (int cpu = 0, n = 0; cpu < CPU_SETSIZE && n < 2 && CPU_COUNT(&all) > 1; cpu++)
		if (CPU_ISSET(cpu, &all))
			halves[n++].cpu = cpu;
	half_task(&halves[0]);
	gain.alone_ns = (double)halves[0].ns;
	halves[0].ready = &ready;
	task = world_spawn("bench", half_task, &halves[1]);
	if (!task)
		abort();
	half_task(&halves[0]);
	world_join(task);
	sched_setaffinity(0, sizeof(all), &all);
	gain.times = gain.alone_ns / (double)halves[0].ns + gain.alone_ns / (double)halves[1].ns;
	gain.beside = part_beside(&halves[0], &halves[1]);
	return gain;
}

#endif
