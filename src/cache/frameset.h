/* SPDX-License-Identifier: MIT */
/* A set of numbers in which the lowest member is found in a few steps. */
#ifndef SLUICE_CACHE_FRAMESET_H
#define SLUICE_CACHE_FRAMESET_H

#include "base/types.h"

#define FRAMESET_LEVELS 6 /* 64^6 bits: more members than a u32 can name */

struct frameset {
	/* level[0]: the members; level[i + 1]: nonzero words of level[i] */
	u64 *level[FRAMESET_LEVELS];
	u32 levels;
};

/* An empty set of numbers below `size`: 0 or -ENOMEM. Finish it in both cases. */
int frameset_init(struct frameset *s, u64 size);
void frameset_finish(struct frameset *s);

static inline bool frameset_has(const struct frameset *s, u32 member)
{
	return s->level[0][member / 64] >> (member % 64) & 1;
}

void frameset_add(struct frameset *s, u32 member);
void frameset_del(struct frameset *s, u32 member); /* it is one */
u32 frameset_lowest(const struct frameset *s);     /* there is one */

#endif
