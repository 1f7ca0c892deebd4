/* SPDX-License-Identifier: MIT */
/*
 * The event queue is a heap of four children to a node (Johnson 1975; LaMarca and
 * Ladner, "The influence of caches on the performance of heaps", 1996): half as deep as
 * a binary one, and the four children compared at each level stand side by side. The
 * keys stand in the heap itself, so that sifting does not touch the events, except to
 * tell each where it now stands: event.slot is its place + 1, which makes cancelling and
 * moving an event O(log n).
 *
 * The key is (time, sequence). Sequence numbers never repeat, so the order is total and
 * does not depend on the shape of the heap. Which child is the least is anybody's guess, so keys
 * are compared as one number, without branches.
 *
 * What takes the first one's place was the last, and nearly always belongs to the bottom: so
 * the hole is let sink all the way, and what fills it rises from there (Wegener 1993).
 */
#include "world/heap.h"
#include <stdlib.h>

#define ARITY           4
#define ROOM_AT_START   256
#define ROOM_FOR_OTHERS 128 /* events that nobody was promised room for */

static inline unsigned __int128 key_of(const struct heap_entry *e)
{
	return (unsigned __int128)e->when << 64 | e->sequence;
}

static inline bool before(const struct heap_entry *a, const struct heap_entry *b)
{
	return key_of(a) < key_of(b);
}

static inline void put(struct heap *h, u32 at, struct heap_entry x)
{
	h->entries[at] = x;
	x.event->slot = at + 1;
}

static void sift_up(struct heap *h, u32 at, struct heap_entry x)
{
	while (at) {
		u32 parent = (at - 1) / ARITY;

		if (!before(&x, &h->entries[parent]))
			break;
		put(h, at, h->entries[parent]);
		at = parent;
	}
	put(h, at, x);
}

/* The least of the children from `child` on. */
static u32 least_of(const struct heap *h, u32 child)
{
	const struct heap_entry *e = h->entries;
	u32 least = child, other = child + 2;

	if (likely(child + ARITY <= h->count)) {
		least += before(&e[child + 1], &e[child]);
		other += before(&e[child + 3], &e[child + 2]);
		return before(&e[other], &e[least]) ? other : least;
	}
	while (++child < h->count)
		if (before(&e[child], &e[least]))
			least = child;
	return least;
}

static void sift_down(struct heap *h, u32 at, struct heap_entry x)
{
	for (u32 child; (child = at * ARITY + 1) < h->count;) {
		u32 least = least_of(h, child);

		put(h, at, h->entries[least]);
		at = least;
	}
	sift_up(h, at, x);
}

static_assert(ARITY == 4, "as least_of() has it");

/* Lets x find its place from `at`, where there is a hole. */
static void settle(struct heap *h, u32 at, struct heap_entry x)
{
	if (at && before(&x, &h->entries[(at - 1) / ARITY]))
		sift_up(h, at, x);
	else
		sift_down(h, at, x);
}

bool heap_init(struct heap *h)
{
	*h = (struct heap){ .room = ROOM_AT_START, .sequence = 1 };
	h->entries = malloc(h->room * sizeof(*h->entries));
	return h->entries;
}

void heap_clear(struct heap *h)
{
	for (u32 i = 0; i < h->count; i++)
		h->entries[i].event->slot = 0;
	h->count = 0;
}

void heap_finish(struct heap *h)
{
	heap_clear(h);
	free(h->entries);
	h->entries = NULL;
}

static bool grow(struct heap *h)
{
	struct heap_entry *more;

	assert(h->room < 1u << 30);
	more = realloc(h->entries, 2ull * h->room * sizeof(*more));
	if (!more)
		return false;
	h->entries = more;
	h->room *= 2;
	return true;
}

bool heap_promise(struct heap *h)
{
	if (h->promised + ROOM_FOR_OTHERS >= h->room && !grow(h))
		return false;
	h->promised++;
	return true;
}

void heap_set(struct heap *h, struct sim_event *e, u64 when)
{
	struct heap_entry x = { .when = when, .sequence = h->sequence++, .event = e };

	assert(when != WORLD_NEVER);
	e->when = when;
	e->sequence = x.sequence;
	if (e->slot) {
		assert(e->slot <= h->count && h->entries[e->slot - 1].event == e);
		settle(h, e->slot - 1, x);
		return;
	}
	/* scheduling cannot fail, and a world that has lost an event is worth nothing */
	if (h->count == h->room && !grow(h))
		abort();
	sift_up(h, h->count++, x);
}

void heap_remove(struct heap *h, struct sim_event *e)
{
	u32 at = e->slot - 1;

	assert(e->slot && e->slot <= h->count && h->entries[at].event == e);
	e->slot = 0;
	h->count--;
	if (at < h->count)
		settle(h, at, h->entries[h->count]);
}

struct sim_event *heap_pop(struct heap *h)
{
	struct sim_event *e;

	if (!h->count)
		return NULL;
	e = h->entries[0].event;
	assert(e->slot == 1);
	e->slot = 0;
	if (--h->count)
		sift_down(h, 0, h->entries[h->count]);
	return e;
}
