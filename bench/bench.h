/* SPDX-License-Identifier: MIT */
/*
 * Measures what an operation costs. The work is given as a function that does it n
 * times; n is raised until a run takes long enough for the clock, then a number of
 * runs is timed. The middle one is the figure; the fastest and slowest tell how far
 * to trust it.
 */
#ifndef SLUICE_BENCH_BENCH_H
#define SLUICE_BENCH_BENCH_H

#include "base/types.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BENCH_RUNS   9
#define BENCH_RUN_NS (50 * NSEC_PER_MSEC)

/* Makes the compiler believe that somebody looks at x. */
#define bench_keep(x) __asm__ volatile("" : : "g"(x) : "memory")

static inline u64 bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

/* CPU time of the thread: what others do on the machine is not in it. */
static inline u64 bench_cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

static inline u64 bench_time(void (*work)(void *arg, u64 n), void *arg, u64 n)
{
	u64 start = bench_cpu_now();

	work(arg, n);
	return bench_cpu_now() - start;
}

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Prints "NAME  ns per operation: MIDDLE (FASTEST to SLOWEST)"; returns the middle. */
static inline double bench_op(const char *name, void (*work)(void *arg, u64 n), void *arg)
{
	double ns[BENCH_RUNS];
	u64 n = 1;

	while (bench_time(work, arg, n) < BENCH_RUN_NS && n < 1ull << 40)
		n *= 2;
	for (int i = 0; i < BENCH_RUNS; i++)
		ns[i] = (double)bench_time(work, arg, n) / (double)n;
	qsort(ns, BENCH_RUNS, sizeof(ns[0]), bench_compare);
	printf("%-32s %10.2f ns (%.2f to %.2f)\n", name, ns[BENCH_RUNS / 2], ns[0],
	       ns[BENCH_RUNS - 1]);
	fflush(stdout);
	return ns[BENCH_RUNS / 2];
}

#endif
