// SPDX-License-Identifier: MIT
/*
 * Which blocks of a file a random job has visited, where its I/Os are not all of one size. A
 * permutation (permute.h) cannot tell that: an I/O of sixteen blocks visits all of them, and
 * one that would run into a block visited before ends there. So here is a bit for each block,
 * and above each 64 words of bits a word that says which of them are full, and so on up to one
 * word: the next free block is found in a step up and down for each level.
 */
#include "job/visited.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(VISITED_LEVELS * 6 >= 64, "there is a level too few for the largest u64");

int visited_init(struct visited *v, u64 count)
{
	u64 size[VISITED_LEVELS], words = count;

	assert(count);
	*v = (struct visited){ .count = count, .left = count };
	do {
		words = div_roundup(words, 64);
		size[v->levels++] = words;
		v->words += words;
	} while (words > 1);
	v->level[0] = calloc(v->words, sizeof(u64));
	if (!v->level[0])
		return -ENOMEM;
	for (unsigned i = 1; i < v->levels; i++)
		v->level[i] = v->level[i - 1] + size[i - 1];
	return 0;
}

void visited_finish(struct visited *v)
{
	free(v->level[0]);
	*v = (struct visited){ 0 };
}

void visited_clear(struct visited *v)
{
	memset(v->level[0], 0, v->words * sizeof(u64));
	v->left = v->count;
}

/* The first free block at or below bit `from` of a level; count if there is none from there on. */
static u64 first_free(const struct visited *v, unsigned level, u64 from)
{
	u64 bits = v->count, free;

	for (unsigned i = 0; i < level; i++)
		bits = div_roundup(bits, 64);
	if (from >= bits)
		return v->count;
	free = ~v->level[level][from / 64] >> from % 64;
	if (!free)
		return level + 1 < v->levels ? first_free(v, level + 1, from / 64 + 1) : v->count;
	from += bits_first(free);
	if (from >= bits)
		return v->count;
	return level ? first_free(v, level - 1, from * 64) : from;
}

u64 visited_next_free(const struct visited *v, u64 from)
{
	u64 found = first_free(v, 0, from);

	assert(v->left && from < v->count);
	return found < v->count ? found : first_free(v, 0, 0);
}

static void mark(struct visited *v, u64 block, u64 mask)
{
	for (unsigned i = 0;; i++) {
		u64 *word = &v->level[i][block / 64];

		*word |= mask;
		if (~*word || i + 1 == v->levels)
			return;
		block /= 64;
		mask = 1ull << block % 64;
	}
}

u64 visited_take(struct visited *v, u64 at, u64 most)
{
	u64 taken = 0, run;

	most = min_u64(most, v->count - at);
	do {
		u64 block = at + taken;
		unsigned first = block % 64;

		run = min_u64(bits_run(~v->level[0][block / 64], first), most - taken);
		if (run)
			mark(v, block, bits_mask(first, (unsigned)run));
		taken += run;
	} while (run && taken < most);
	v->left -= taken;
	return taken;
}
