/* SPDX-License-Identifier: MIT */
/*
 * A buddy allocator (Knowlton, "A fast storage allocator", CACM 1965) whose free
 * lists are sets of bits. For each order there is one set, in which bit i says that
 * the run of frames [i << order, (i + 1) << order) is free as one piece. There are no list
 * pointers in free memory, so an arena without contents costs an eighth of a byte a frame.
 *
 * The lowest free run is taken first, so a run of calls always gives the same
 * frames, and memory fills from the bottom.
 *
 * Invariants: a frame is in at most one free run; two buddies are never both free
 * at an order below the largest (they would have been joined).
 *
 * Shrinking takes the free runs past the new end out of the sets, and what is not in one is
 * *stuck*: in use, and noted in a set of its own. A stuck frame goes back to the system when
 * it is freed, or is an ordinary one again when the arena grows past it first.
 */
#include "cache/arena.h"
#include "base/alloc.h"
#include "base/bits.h"
#include <errno.h>

/* Counts have one writer at a time, and readers without the lock. */
static void add(_Atomic u32 *count, s32 n)
{
	u32 now = atomic_load_explicit(count, memory_order_relaxed);

	atomic_store_explicit(count, now + (u32)n, memory_order_relaxed);
}

static void put_run(struct arena *a, u32 run, unsigned order)
{
	frameset_add(&a->runs[order], run);
	a->free_runs[order]++;
	a->orders_free |= 1u << order;
}

static void take_run(struct arena *a, u32 run, unsigned order)
{
	frameset_del(&a->runs[order], run);
	if (!--a->free_runs[order])
		a->orders_free &= ~(1u << order);
}

/* Enters a free run, joined with its buddies. */
static void join(struct arena *a, u32 frame, unsigned order)
{
	u32 run = frame >> order;

	assert(!frameset_has(&a->runs[order], run));
	add(&a->free_frames, 1 << order);
	assert(a->free_frames <= a->frames);
	/* The buddy of a run at the end of memory may lie past it: its bit is then never set. */
	while (order < ARENA_MAX_ORDER && (u64)((run ^ 1) + 1) << order <= a->frames &&
	       frameset_has(&a->runs[order], run ^ 1)) {
		take_run(a, run ^ 1, order);
		run /= 2;
		order++;
	}
	put_run(a, run, order);
}

/* The largest order of an aligned run at `frame` that ends by `end`. */
static unsigned largest_order(u32 frame, u32 end)
{
	unsigned order = frame ? bits_first(frame) : ARENA_MAX_ORDER;

	order = order < ARENA_MAX_ORDER ? order : ARENA_MAX_ORDER;
	while (1u << order > end - frame)
		order--;
	return order;
}

/* Enters all of [frame, end) as free. */
static void join_range(struct arena *a, u32 frame, u32 end)
{
	while (frame < end) {
		unsigned order = largest_order(frame, end);

		join(a, frame, order);
		frame += 1u << order;
	}
}

int arena_init(struct arena *a, const struct arena_config *config)
{
	u32 frames = config->frames, max = config->max_frames ? config->max_frames : frames;

	assert(frames && frames <= max && max < ARENA_NONE);
	*a = (struct arena){ .frames = frames, .max_frames = max };
	a->ready = a->ready_max = config->ready;
	spin_init(&a->lock, RANK_ARENA);
	for (unsigned o = 0; o < ARENA_ORDERS; o++)
		if (frameset_init(&a->runs[o], div_roundup(max, 1u << o)))
			goto no_memory;
	if (frameset_init(&a->stuck, max))
		goto no_memory;
	if (config->memory)
		memory_adopt(&a->ram, config->memory, (u64)frames << PAGE_SHIFT,
			     (u64)max << PAGE_SHIFT, config->huge);
	else if (config->contents && memory_init(&a->ram, (u64)frames << PAGE_SHIFT,
						 (u64)max << PAGE_SHIFT, config->huge))
		goto no_memory;
	a->memory = a->ram.base;
	join_range(a, 0, frames);
	return 0;
no_memory:
	arena_finish(a);
	return -ENOMEM;
}

void arena_finish(struct arena *a)
{
	for (unsigned o = 0; o < ARENA_ORDERS; o++)
		frameset_finish(&a->runs[o]);
	frameset_finish(&a->stuck);
	memory_finish(&a->ram);
}

u32 arena_alloc(struct arena *a, unsigned order)
{
	u32 run, usable;
	unsigned from;

	assert(order <= ARENA_MAX_ORDER);
	if (alloc_frames_refused())
		return ARENA_NONE;
	spin_lock(&a->lock);
	usable = a->orders_free >> order << order;
	if (!usable) {
		spin_unlock(&a->lock);
		return ARENA_NONE;
	}
	from = bits_first(usable);
	run = frameset_lowest(&a->runs[from]);
	take_run(a, run, from);
	while (from > order) { /* keep the lower half, give the upper one back */
		from--;
		run *= 2;
		put_run(a, run + 1, from);
	}
	assert(a->free_frames >= 1u << order);
	add(&a->free_frames, -(1 << order));
	spin_unlock(&a->lock);
	return run << order;
}

u32 arena_fetched(struct arena *a, unsigned order)
{
	u32 frames = 1u << order, ready;

	if (!a->ready_max)
		return 0;
	spin_lock(&a->lock);
	ready = (u32)min_u64(a->ready, frames);
	a->ready -= ready;
	spin_unlock(&a->lock);
	return frames - ready;
}

static void discard(struct arena *a, u32 frame, u32 end)
{
	if (a->memory && frame < end)
		memory_discard(&a->ram, (u64)frame << PAGE_SHIFT, (u64)(end - frame) << PAGE_SHIFT);
}

/* Frees frames that lie past the end. */
static void free_stuck(struct arena *a, u32 frame, u32 end)
{
	for (u32 f = frame; f < end; f++)
		frameset_del(&a->stuck, f);
	add(&a->stuck_frames, -(s32)(end - frame));
	discard(a, frame, end);
	/* of a huge page that was set aside no part can go before the last */
	if (!a->stuck_frames && a->ram.set_aside_end)
		discard(a, a->frames, a->max_frames);
}

void arena_free(struct arena *a, u32 frame, unsigned order)
{
	u32 end = frame + (1u << order);

	assert(order <= ARENA_MAX_ORDER && !(frame & ((1u << order) - 1)));
	assert(frame < a->max_frames && a->max_frames - frame >= 1u << order);
	spin_lock(&a->lock);
	if (a->ready_max)
		a->ready = (u32)min_u64(a->ready + (1ull << order), a->ready_max);
	if (likely(end <= a->frames)) {
		join(a, frame, order);
	} else {
		u32 cut = frame < a->frames ? a->frames : frame;

		join_range(a, frame, cut);
		free_stuck(a, cut, end);
	}
	spin_unlock(&a->lock);
}

static void grow_to(struct arena *a, u32 end)
{
	u32 from = a->frames;

	a->frames = end;
	for (u32 f = from; f < end && a->stuck_frames; f++) {
		if (!frameset_has(&a->stuck, f))
			continue;
		frameset_del(&a->stuck, f);
		add(&a->stuck_frames, -1);
		join_range(a, from, f);
		from = f + 1;
	}
	join_range(a, from, end);
}

/* The order of the free run that begins at a frame, or -1. */
static int free_run_at(const struct arena *a, u32 frame)
{
	for (unsigned o = 0; o < ARENA_ORDERS && !(frame & ((1u << o) - 1)); o++)
		if (frameset_has(&a->runs[o], frame >> o))
			return (int)o;
	return -1;
}

/* A free run across the new end gives its upper part up. */
static void cut_run_across(struct arena *a, u32 end)
{
	for (unsigned o = 1; o < ARENA_ORDERS; o++) {
		u32 run = end >> o, first = run << o;

		if (first == end || !frameset_has(&a->runs[o], run))
			continue;
		take_run(a, run, o);
		add(&a->free_frames, -(1 << o));
		join_range(a, first, end);
		for (u32 f = end, order; f < first + (1u << o); f += 1u << order) {
			order = largest_order(f, first + (1u << o));
			put_run(a, f >> order, order); /* not joined: they are about to go */
			add(&a->free_frames, 1 << order);
		}
		break;
	}
}

static void shrink_to(struct arena *a, u32 end)
{
	u32 old = a->frames, gone = end;

	cut_run_across(a, end);
	for (u32 f = end; f < old;) {
		int order = free_run_at(a, f);

		if (order < 0) {
			frameset_add(&a->stuck, f);
			add(&a->stuck_frames, 1);
			discard(a, gone, f);
			gone = ++f;
		} else {
			take_run(a, f >> order, (unsigned)order);
			add(&a->free_frames, -(1 << order));
			f += 1u << order;
		}
	}
	discard(a, gone, old);
	a->frames = end;
}

int arena_resize(struct arena *a, u32 frames)
{
	const u32 step = 1u << ARENA_MAX_ORDER; /* so that nobody waits long for the lock */
	u32 at = arena_frames(a);
	int rc = 0;

	assert(frames && frames <= a->max_frames);
	spin_lock(&a->lock);
	if (a->memory && frames > at)
		rc = memory_grow(&a->ram, (u64)frames << PAGE_SHIFT);
	else if (a->memory)
		memory_shrink(&a->ram, (u64)frames << PAGE_SHIFT);
	spin_unlock(&a->lock);
	if (rc)
		return rc;
	while (at < frames) {
		at = frames - at > step ? (at / step + 1) * step : frames;
		spin_lock(&a->lock);
		grow_to(a, at);
		spin_unlock(&a->lock);
	}
	while (at > frames) {
		at = at - frames > step ? (at - 1) / step * step : frames;
		spin_lock(&a->lock);
		shrink_to(a, at);
		spin_unlock(&a->lock);
	}
	return 0;
}

bool arena_is_valid(struct arena *a)
{
	u64 frames = 0;
	bool valid = true;

	spin_lock(&a->lock);
	for (unsigned o = 0; o < ARENA_ORDERS && valid; o++) {
		u32 runs = 0, size = a->frames >> o;

		for (u32 i = 0; i < size; i++) {
			if (!frameset_has(&a->runs[o], i))
				continue;
			runs++;
			if (o < ARENA_MAX_ORDER && (i ^ 1) < size &&
			    frameset_has(&a->runs[o], i ^ 1))
				valid = false; /* buddies must have been joined */
			for (unsigned up = o + 1; up < ARENA_ORDERS; up++)
				if (i >> (up - o) < a->frames >> up &&
				    frameset_has(&a->runs[up], i >> (up - o)))
					valid = false; /* inside a larger free run */
		}
		frames += (u64)runs << o;
		valid = valid && runs == a->free_runs[o] &&
			!!(a->orders_free >> o & 1) == (runs != 0);
	}
	valid = valid && frames == a->free_frames;
	spin_unlock(&a->lock);
	return valid;
}
