/* SPDX-License-Identifier: MIT */
/*
 * The arena: the memory of a cache, handed out in naturally aligned power-of-two
 * runs of page frames, order 0..9. It can grow and shrink while in use. See arena.c for how
 * it keeps count.
 */
#ifndef SLUICE_CACHE_ARENA_H
#define SLUICE_CACHE_ARENA_H

#include "base/types.h"
#include "cache/frameset.h"
#include "cache/memory.h"
#include "world/lock.h"

#define ARENA_MAX_ORDER 9
#define ARENA_ORDERS    (ARENA_MAX_ORDER + 1)
#define ARENA_NONE      (~0u)

struct arena_config {
	u32 frames;     /* < 2^32 - 1 */
	u32 max_frames; /* to which it may grow; 0: `frames` */
	u32 ready;      /* of the free frames, so many are at hand at most; 0: all */
	bool contents;  /* back the frames with real memory */
	enum huge_pages huge;
	char *memory; /* for max_frames, on a 2 MiB border, that is there already; or NULL */
};

struct arena {
	struct spinlock lock; /* protects everything below; a leaf lock */
	u32 max_frames;       /* immutable */
	_Atomic u32 frames;   /* those that are handed out lie below */
	_Atomic u32 free_frames;
	u32 orders_free; /* bit o: some run of order o is free */
	u32 free_runs[ARENA_ORDERS];
	struct frameset runs[ARENA_ORDERS]; /* by frame >> order */
	struct frameset stuck;              /* frames past the end that are still used */
	_Atomic u32 stuck_frames;
	u32 ready_max, ready; /* arena_fetched() */
	struct memory ram;
	char *memory; /* where it begins, NULL without contents; immutable */
};

/* 0 or -ENOMEM. */
int arena_init(struct arena *a, const struct arena_config *config);
void arena_finish(struct arena *a);

/* The first frame of a free run, or ARENA_NONE when there is none so long. */
u32 arena_alloc(struct arena *a, unsigned order);
void arena_free(struct arena *a, u32 frame, unsigned order);

/*
 * How many frames of a run just handed out had to be fetched from the host of a virtual machine,
 * which takes back what is free but for `ready` frames: those freed last, which go out first.
 */
u32 arena_fetched(struct arena *a, unsigned order);

/*
 * Changes the number of frames, at most max_frames; one caller at a time. Frames past the end are
 * handed out no more. Those in use stay usable, and their memory goes when they are freed:
 * arena_stuck() says how many are left. 0 or -ENOMEM, which changed nothing.
 */
int arena_resize(struct arena *a, u32 frames);

static inline u32 arena_frames(const struct arena *a)
{
	return atomic_load_explicit(&a->frames, memory_order_relaxed);
}

static inline u32 arena_free_frames(const struct arena *a)
{
	return atomic_load_explicit(&a->free_frames, memory_order_relaxed);
}

static inline u32 arena_stuck(const struct arena *a)
{
	return atomic_load_explicit(&a->stuck_frames, memory_order_relaxed);
}

/* The bytes of a frame; only with contents. */
static inline void *arena_bytes(const struct arena *a, u32 frame)
{
	assert(a->memory && frame < a->max_frames);
	return (char *)a->memory + ((size_t)frame << PAGE_SHIFT);
}

/* Recounts free frames from the run sets and checks that no run overlaps another. */
bool arena_is_valid(struct arena *a);

#endif
