/* SPDX-License-Identifier: MIT */
/* Inside the device: the range of a store that is known to have room. See room.c. */
#ifndef SLUICE_DEVICE_ROOM_H
#define SLUICE_DEVICE_ROOM_H

#include "world/lock.h"

struct room {
	/* Serializes those who look for room and make it; nothing is taken under it. */
	struct mutex lock;
	_Atomic u32 sequence; /* odd while the range changes */
	_Atomic u64 from, to; /* bytes; changed with the lock held */
};

void room_init(struct room *r);
/* True if all of [from, to) is known to have room. Takes no lock. */
bool room_covers(const struct room *r, u64 from, u64 to);
/* [from, to) has room: joined with what was known if they touch, else instead of it. */
void room_add(struct room *r, u64 from, u64 to); /* locked */
/* [from, to) may have none any more. */
void room_forget(struct room *r, u64 from, u64 to);

#endif
