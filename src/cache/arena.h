/* SPDX-License-Identifier: MIT */
/*
 * The arena: the memory of a cache, handed out in naturally aligned power-of-two
 * runs of page frames, order 0..9. See arena.c for how it keeps count.
 */
#ifndef SLUICE_CACHE_ARENA_H
#define SLUICE_CACHE_ARENA_H

#include "base/types.h"
#include "world/lock.h"

#define ARENA_MAX_ORDER 9
#define ARENA_ORDERS    (ARENA_MAX_ORDER + 1)
#define ARENA_NONE      (~0u)
#define ARENA_LEVELS    6 /* 64^6 bits: more frames than a u32 can name */

/* A set of numbers in which the lowest member is found in a few steps. */
struct frameset {
	u64 *level
		[ARENA_LEVELS]; /* level[0]: the members; level[i + 1]: nonzero words of level[i] */
	u32 levels;
};

struct arena {
	struct spinlock lock; /* protects everything below; a leaf lock */
	u32 frames;
	u32 free_frames;
	u32 orders_free; /* bit o: some run of order o is free */
	u32 free_runs[ARENA_ORDERS];
	struct frameset runs[ARENA_ORDERS]; /* by frame >> order */
	void *memory;                       /* NULL without contents; immutable */
};

/* 0 or -ENOMEM. frames < 2^32 - 1. `contents`: back the frames with real memory. */
int arena_init(struct arena *a, u32 frames, bool contents);
void arena_finish(struct arena *a);

/* The first frame of a free run, or ARENA_NONE when there is none so long. */
u32 arena_alloc(struct arena *a, unsigned order);
void arena_free(struct arena *a, u32 frame, unsigned order);

static inline u32 arena_free_frames(const struct arena *a)
{
	return *(const volatile u32 *)&a->free_frames;
}

/* The bytes of a frame; only with contents. */
static inline void *arena_bytes(const struct arena *a, u32 frame)
{
	assert(a->memory && frame < a->frames);
	return (char *)a->memory + ((size_t)frame << PAGE_SHIFT);
}

/* Recounts free frames from the run sets and checks that no run overlaps another. */
bool arena_is_valid(struct arena *a);

#endif
