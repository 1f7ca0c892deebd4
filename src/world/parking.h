/* SPDX-License-Identifier: MIT */
/* Who is parked on which word of a simulated world: see parking.c. Private to src/world. */
#ifndef SLUICE_WORLD_PARKING_H
#define SLUICE_WORLD_PARKING_H

#include "base/list.h"

/* Those who wait on one word, first come first. Exists while somebody does. */
struct park_queue {
	const void *word;
	struct list_node waiting;
	struct park_queue *next; /* of its bucket, or spare */
};

/* A task's place in a queue, and the queue it brings along. */
struct parked {
	struct list_node link;
	struct park_queue *queue; /* NULL while not parked */
	struct park_queue brought;
};

struct parking {
	struct park_queue **buckets; /* by hash of the word's address */
	u32 bucket_bits;
	u32 tasks;                /* at most so many can be parked */
	struct park_queue *spare; /* one for each task that is not first on a word */
};

bool parking_init(struct parking *p);
void parking_finish(struct parking *p);
/* Enters a task, and its queue, for as long as the parking lives. False: no memory. */
bool parking_enter(struct parking *p, struct parked *t);
void parking_add(struct parking *p, struct parked *t, const void *word);
void parking_remove(struct parking *p, struct parked *t);
/* The one who has waited longest on the word; NULL if nobody does. */
struct parked *parking_first(struct parking *p, const void *word);

#endif
