/* SPDX-License-Identifier: MIT */
/*
 * Random blocks of one file. Without norandommap, and for evenly spread offsets, a
 * pass visits every block once, in the order of a permutation; each pass has another.
 * Otherwise every draw stands alone and there is no end. A file whose reads and
 * writes have blocks of different sizes has two of these.
 *
 * I/Os whose size varies visit several blocks of the smallest size. As in fio, such an I/O begins
 * at a block drawn among all, or at the next one that is free, and ends before the next that is
 * not: so many are cut, and they are smaller on average than what the job asks for.
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

int blocks_remember(struct blocks *b, const struct job_options *o, enum job_dir dir)
{
	u64 low = o->bs_bytes[dir];

	if (!b->once || !b->count || low == o->bs_max_bytes[dir] || low != o->ba_bytes[dir] ||
	    o->zonemode != ZONE_NONE)
		return 0;
	b->unit_bytes = low;
	return visited_init(&b->visited, b->count);
}

void blocks_finish(struct blocks *b)
{
	if (b->unit_bytes)
		visited_finish(&b->visited);
}

u64 blocks_visit(struct blocks *b, u64 position, u64 length)
{
	u64 unit = b->unit_bytes;

	if (!unit)
		return length;
	return min_u64(length, unit * visited_take(&b->visited, position / unit,
						   div_roundup(length, unit)));
}

void blocks_restart(struct blocks *b)
{
	if (!b->once || !b->count)
		return;
	if (b->unit_bytes) {
		visited_clear(&b->visited);
		return;
	}
	permute_init(&b->order, b->count, b->seed);
	b->seed = seed_mix(b->seed, 3);
}

int blocks_next(struct blocks *b, u64 *block)
{
	if (!b->count)
		return -ENODATA;
	if (b->unit_bytes) {
		if (!b->visited.left)
			return -ENODATA;
		*block = visited_next_free(&b->visited, rng_below(&b->rng, b->count));
		return 0;
	}
	if (b->once)
		return permute_next(&b->order, block) ? 0 : -ENODATA;
	*block = distribution_next(&b->skew, &b->rng);
	return 0;
}
