/* SPDX-License-Identifier: MIT */
/* The event queue of a simulated world: see heap.c. Private to src/world. */
#ifndef SLUICE_WORLD_HEAP_H
#define SLUICE_WORLD_HEAP_H

#include "world/sim.h"

struct heap_entry {
	u64 when;
	u64 sequence; /* of two events of one instant the one scheduled first comes first */
	struct sim_event *event;
};

struct heap {
	struct heap_entry *entries; /* entries[0] is the first due */
	u32 count, room, promised;
	u64 sequence; /* of the next event */
};

bool heap_init(struct heap *h);
bool heap_promise(struct heap *h); /* room for one more event, for ever; false: no memory */
void heap_finish(struct heap *h);  /* what is still scheduled is cancelled */
void heap_set(struct heap *h, struct sim_event *e, u64 when); /* adds or moves */
void heap_remove(struct heap *h, struct sim_event *e);
struct sim_event *heap_pop(struct heap *h); /* NULL when empty */
void heap_clear(struct heap *h);

static inline u64 heap_first_when(const struct heap *h)
{
	return h->count ? h->entries[0].when : WORLD_NEVER;
}

#endif
