/* SPDX-License-Identifier: MIT */
/*
 * Fences in pairs, of which one costs nothing. Where one side acts often and the other one seldom
 * (a lock is given up; somebody lies down to wait for it), each stores a word, fences, and
 * looks at the other's: at least one of them sees what the other stored. The frequent side only
 * keeps the compiler from moving things; the rare one makes all running threads of the process
 * pass a real fence, by membarrier(2). Where the system has no such call, and under the thread
 * sanitizer, both sides fence themselves.
 */
#ifndef SLUICE_WORLD_FENCE_H
#define SLUICE_WORLD_FENCE_H

#include "base/types.h"
#include <stdatomic.h>

#if defined(__SANITIZE_THREAD__)
#define WORLD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WORLD_TSAN 1
#endif
#endif

/* Set once the process has membarrier(2). Until then frequent sides fence themselves. */
extern _Atomic bool world_fences_light;

/* Finds out what the system can do; called by any first user, any number of times. */
void world_fence_init(void);
/* The rare side. */
void world_fence_heavy(void);

/* The frequent side. */
static inline void world_fence_light(void)
{
#ifndef WORLD_TSAN /* it knows no fences: accesses on both sides are ordered themselves */
	if (likely(atomic_load_explicit(&world_fences_light, memory_order_relaxed)))
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
