/* SPDX-License-Identifier: MIT */
/*
 * A buddy allocator (Knowlton, "A fast storage allocator", CACM 1965) whose free
 * lists are sets of bits. For each order there is one set, in which bit i says that
 * the run of frames [i << order, (i + 1) << order) is free as one piece. Over the
 * members lie summary levels: bit j of level k + 1 says that word j of level k is
 * not zero. Finding the lowest member, adding one and removing one each touch at
 * most one word a level, whatever the size of memory; there are no list pointers
 * in free memory, so an arena without contents costs an eighth of a byte a frame.
 *
 * The lowest free run is taken first, so a run of calls always gives the same
 * frames, and memory fills from the bottom.
 *
 * Invariants: a frame is in at most one free run; two buddies are never both free
 * at an order below the largest (they would have been joined).
 */
#include "cache/arena.h"
#include "base/bits.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

static int frameset_init(struct frameset *s, u64 size)
{
	u64 words = size ? size : 1;

	s->levels = 0;
	do {
		words = div_roundup(words, 64);
		assert(s->levels < ARENA_LEVELS);
		s->level[s->levels] = calloc(words, sizeof(u64));
		if (!s->level[s->levels++])
			return -ENOMEM;
	} while (words > 1);
	return 0;
}

static void frameset_finish(struct frameset *s)
{
	for (u32 i = 0; i < s->levels; i++)
		free(s->level[i]);
	s->levels = 0;
}

static bool frameset_has(const struct frameset *s, u32 member)
{
	return s->level[0][member / 64] >> (member % 64) & 1;
}

static void frameset_add(struct frameset *s, u32 member)
{
	for (u32 i = 0; i < s->levels; i++, member /= 64) {
		u64 *word = &s->level[i][member / 64];
		bool summarised = *word != 0;

		*word |= 1ull << (member % 64);
		if (summarised)
			break;
	}
}

static void frameset_del(struct frameset *s, u32 member)
{
	assert(frameset_has(s, member));
	for (u32 i = 0; i < s->levels; i++, member /= 64) {
		u64 *word = &s->level[i][member / 64];

		*word &= ~(1ull << (member % 64));
		if (*word)
			break;
	}
}

static u32 frameset_lowest(const struct frameset *s)
{
	u32 member = 0;

	for (u32 i = s->levels; i-- > 0;)
		member = member * 64 + bits_first(s->level[i][member]);
	return member;
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

int arena_init(struct arena *a, u32 frames, bool contents)
{
	u32 frame = 0;

	*a = (struct arena){ .frames = frames, .free_frames = frames };
	spin_init(&a->lock, RANK_ARENA);
	for (unsigned o = 0; o < ARENA_ORDERS; o++)
		if (frameset_init(&a->runs[o], div_roundup(frames, 1u << o)))
			goto no_memory;
	if (contents) {
		a->memory = mmap(NULL, (size_t)frames << PAGE_SHIFT, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (a->memory == MAP_FAILED) {
			a->memory = NULL;
			goto no_memory;
		}
	}
	for (unsigned o = ARENA_ORDERS; o-- > 0;)
		for (; frames - frame >= 1u << o; frame += 1u << o)
			put_run(a, frame >> o, o);
	assert(frame == frames);
	return 0;
no_memory:
	arena_finish(a);
	return -ENOMEM;
}

void arena_finish(struct arena *a)
{
	for (unsigned o = 0; o < ARENA_ORDERS; o++)
		frameset_finish(&a->runs[o]);
	if (a->memory)
		munmap(a->memory, (size_t)a->frames << PAGE_SHIFT);
	a->memory = NULL;
}

u32 arena_alloc(struct arena *a, unsigned order)
{
	u32 run, usable;
	unsigned from;

	assert(order <= ARENA_MAX_ORDER);
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
	a->free_frames -= 1u << order;
	spin_unlock(&a->lock);
	return run << order;
}

void arena_free(struct arena *a, u32 frame, unsigned order)
{
	u32 run = frame >> order;

	assert(order <= ARENA_MAX_ORDER && !(frame & ((1u << order) - 1)));
	assert(frame < a->frames && a->frames - frame >= 1u << order);
	spin_lock(&a->lock);
	assert(!frameset_has(&a->runs[order], run));
	a->free_frames += 1u << order;
	assert(a->free_frames <= a->frames);
	/* The buddy of a run at the end of memory may lie past it: its bit is then never set. */
	while (order < ARENA_MAX_ORDER && (u64)((run ^ 1) + 1) << order <= a->frames &&
	       frameset_has(&a->runs[order], run ^ 1)) {
		take_run(a, run ^ 1, order);
		run /= 2;
		order++;
	}
	put_run(a, run, order);
	spin_unlock(&a->lock);
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
