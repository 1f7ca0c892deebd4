/* SPDX-License-Identifier: MIT */
/*
 * malloc() and calloc() for what the engine allocates while it works: descriptors of I/Os, nodes of
 * indexes, files. Whoever wants to know what becomes of an engine that gets no memory has some of
 * these calls refused. What they give goes back by free().
 */
#ifndef SLUICE_BASE_ALLOC_H
#define SLUICE_BASE_ALLOC_H

#include "base/types.h"
#include <stdlib.h>
#include <string.h>

/* Asked before each call of this thread if it is set: true refuses it. */
extern _Thread_local bool (*alloc_refuses)(void);

/* The same for frames of the arena, and descriptors of folios. */
extern _Thread_local bool (*alloc_refuses_frames)(void);

static inline bool alloc_frames_refused(void)
{
	return unlikely(alloc_refuses_frames != NULL) && alloc_refuses_frames();
}

static inline bool alloc_refused(void)
{
	return unlikely(alloc_refuses != NULL) && alloc_refuses();
}

static inline void *alloc_bytes(size_t size)
{
	return alloc_refused() ? NULL : malloc(size);
}

static inline void *alloc_zeroed(size_t n, size_t size)
{
	return alloc_refused() ? NULL : calloc(n, size);
}

/* The same on a border of the lines of the processor's cache. */
static inline void *alloc_zeroed_lines(size_t size)
{
	void *at;

	size = (size + 63) / 64 * 64;
	at = alloc_refused() ? NULL : aligned_alloc(64, size);
	return at ? memset(at, 0, size) : NULL;
}

#endif
