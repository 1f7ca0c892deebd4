/* SPDX-License-Identifier: MIT */
/*
 * Random blocks of one file. Without norandommap, and for evenly spread offsets, a
 * pass visits every block once, in the order of a permutation; each pass has another.
 * Otherwise every draw stands alone and there is no end. A file whose reads and
 * writes have blocks of different sizes has two of these.
 */
#include "job/clone.h"
#include <errno.h>

void blocks_init(struct blocks *b, const struct job_options *o, enum job_dir dir, u64 count,
		 u64 seed)
{
	*b = (struct blocks){ .count = count, .seed = seed };
	b->once = o->spread.kind == SPREAD_UNIFORM && !o->norandommap;
	if (!count)
		return;
	rng_init(&b->rng, seed_mix(seed, 1));
	if (!b->once)
		distribution_init(&b->skew, &o->spread, dir, count, o->ba_bytes[dir],
				  seed_mix(seed, 2));
	blocks_restart(b);
}

void blocks_restart(struct blocks *b)
{
	if (!b->once || !b->count)
		return;
	permute_init(&b->order, b->count, b->seed);
	b->seed = seed_mix(b->seed, 3);
}

int blocks_next(struct blocks *b, u64 *block)
{
	if (!b->count)
		return -ENODATA;
	if (b->once)
		return permute_next(&b->order, block) ? 0 : -ENODATA;
	*block = distribution_next(&b->skew, &b->rng);
	return 0;
}
