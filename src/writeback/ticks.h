/* SPDX-License-Identifier: MIT */
/* In what the pauses of writers are counted: see ticks.c. */
#ifndef SLUICE_WRITEBACK_TICKS_H
#define SLUICE_WRITEBACK_TICKS_H

#include "base/types.h"
#include "ledger/bandwidth.h"
#include "writeback/position.h"

#define TICK_PARTS 16 /* of a jiffy, in which a task's words keep its times */

struct ticks {
	u32 hz;
	u64 parts;   /* of a jiffy, in each: TICK_PARTS or 1 */
	u64 now;     /* in ticks */
	u64 longest; /* no pause is longer; ~0: it is as the law says */
};

/* For a writer that finds `at`, in jiffy `now`; with `fine` they may be parts of a jiffy. */
struct ticks ticks_for(const struct position *at, const struct bandwidth *bw, u64 now, bool fine);
void ticks_sleep(const struct ticks *t, u64 n);

#endif
