/* SPDX-License-Identifier: MIT */
/* The last waits of writers, with what each was decided from. */
#ifndef SLUICE_WRITEBACK_WAITS_H
#define SLUICE_WRITEBACK_WAITS_H

#include "base/types.h"

#define WAITS_KEPT 16

enum wait_why {
	WAIT_PACED,   /* he may go on, but not as fast as he did */
	WAIT_LIMIT,   /* nobody may dirty more until less is dirty */
	WAIT_IN_LINE, /* others were before him at the limit */
};

struct wait {
	u64 when_ns, wait_ns; /* when it began, in world time */
	enum wait_why why;
	u32 who;                             /* as waits_act_for() was told, or 0 */
	u64 tenant;                          /* for whom it wrote: tenant_word() */
	bool by_tenant;                      /* its limits counted, not the cache's */
	u64 dirty, freerun, setpoint, limit; /* pages, dirty and in flight as the policy counts */
	u64 bandwidth, allowed;              /* pages a second: of the device, and to the writer */
};

/* Part of struct writeback; under its lock. */
struct waits {
	struct wait wait[WAITS_KEPT];
	u64 count; /* ever */
};

/*
 * Enters one. If it goes on from the last one of the same task it becomes part of that: who stands
 * first in line looks a hundred times a second.
 */
void waits_note(struct waits *w, const struct wait *wait);
/* The newest first; returns how many. */
u32 waits_copy(const struct waits *w, struct wait out[WAITS_KEPT]);

/* For whom the calling thread writes from now on: a process number, say. */
void waits_act_for(u32 who);
u32 waits_who(void);

#endif
