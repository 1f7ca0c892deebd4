/* SPDX-License-Identifier: MIT */
/* A set of the blocks of a file that were visited in this pass. Inside src/job/ only. */
#ifndef SLUICE_JOB_VISITED_H
#define SLUICE_JOB_VISITED_H

#include "base/bits.h"

#define VISITED_LEVELS 11 /* 64^11 is more than any count */

struct visited {
	u64 count, left;            /* blocks there are, and those not visited */
	u64 *level[VISITED_LEVELS]; /* all in one piece of memory, from level[0] on */
	unsigned levels;
	size_t words; /* of all levels */
};

/* 0 or -ENOMEM. count is not 0. */
int visited_init(struct visited *v, u64 count);
void visited_finish(struct visited *v);
void visited_clear(struct visited *v);
/* The first block from `from` on that was not visited, or else the first of all; some is left. */
u64 visited_next_free(const struct visited *v, u64 from);
/* Visits blocks from `at` on, as many as are free side by side and at most `most`: how many. */
u64 visited_take(struct visited *v, u64 at, u64 most);

#endif
