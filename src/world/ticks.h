/* SPDX-License-Identifier: MIT */
/*
 * A clock that is cheaper to read than world_now(): in the simulated world that itself, in the
 * real one the processor's counter (9 ns where clock_gettime takes 26), in a unit of its own. Two
 * readings of both clocks, before and after, say what a tick in between was in nanoseconds.
 * The counter runs steadily and alike on all processors where the processor says so
 * (world_has_ticks()); elsewhere world_ticks() is world_now().
 */
#ifndef SLUICE_WORLD_TICKS_H
#define SLUICE_WORLD_TICKS_H

#include "world/world.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Whether the processor's counter is a clock. */
static inline bool world_has_ticks(void)
{
#if defined(__x86_64__)
	u32 a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && d >> 8 & 1; /* invariant TSC */
#elif defined(__aarch64__)
	return true;
#else
	return false;
#endif
}

/* `has` is world_has_ticks(), which takes long to ask. */
static inline u64 world_ticks(bool has)
{
	if (!has || world_is_sim())
		return world_now();
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	u64 ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return world_now();
#endif
}

#endif
