// SPDX-License-Identifier: MIT
/*
 * One range of a file that is known to have room on the device. A single one is enough: a file
 * that is written from front to back has it grow, and one that is full is recognized as such from
 * the place that is written first on, so that writes all over it soon have the range cover all.
 *
 * Every write into the cache asks, so asking takes no lock: both ends are read between two
 * looks at a sequence number that is odd while they change, and who is unlucky takes the
 * slow way, which is never wrong (a sequence lock).
 */
#include "device/room.h"

void room_init(struct room *r)
{
	mutex_init(&r->lock, RANK_DEVICE);
	atomic_init(&r->sequence, 0);
	atomic_init(&r->from, 0);
	atomic_init(&r->to, 0);
}

bool room_covers(const struct room *r, u64 from, u64 to)
{
	u32 sequence = atomic_load_explicit(&r->sequence, memory_order_acquire);
	u64 known_from = atomic_load_explicit(&r->from, memory_order_acquire);
	u64 known_to = atomic_load_explicit(&r->to, memory_order_acquire);

	return from >= known_from && to <= known_to && !(sequence & 1) &&
	       atomic_load_explicit(&r->sequence, memory_order_relaxed) == sequence;
}

static void room_set(struct room *r, u64 from, u64 to)
{
	assert(mutex_is_held(&r->lock));
	atomic_fetch_add(&r->sequence, 1);
	atomic_store(&r->from, from);
	atomic_store(&r->to, to);
	atomic_fetch_add(&r->sequence, 1);
}

void room_add(struct room *r, u64 from, u64 to)
{
	u64 known_from = atomic_load(&r->from), known_to = atomic_load(&r->to);

	if (from <= known_to && to >= known_from) {
		from = min_u64(from, known_from);
		to = max_u64(to, known_to);
	}
	room_set(r, from, to);
}

void room_forget(struct room *r, u64 from, u64 to)
{
	u64 known_from, known_to;

	mutex_lock(&r->lock);
	known_from = atomic_load(&r->from);
	known_to = atomic_load(&r->to);
	if (from < known_to && to > known_from) {
		if (from > known_from)
			room_set(r, known_from, from); /* the part before it */
		else
			room_set(r, min_u64(to, known_to), known_to);
	}
	mutex_unlock(&r->lock);
}
