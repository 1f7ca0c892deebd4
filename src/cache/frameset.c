/* SPDX-License-Identifier: MIT */
/*
 * A bitmap with summaries. Bit j of level k + 1 says that word j of level k is not zero, so
 * that finding the lowest member, adding one and removing one each touch at most one word a
 * level, whatever the size. The bitmaps come zeroed from the system: where no member ever
 * was, they take no memory.
 */
#include "cache/frameset.h"
#include "base/bits.h"
#include <errno.h>
#include <stdlib.h>

int frameset_init(struct frameset *s, u64 size)
{
	u64 words = size ? size : 1;

	s->levels = 0;
	do {
		words = div_roundup(words, 64);
		assert(s->levels < FRAMESET_LEVELS);
		s->level[s->levels] = calloc(words, sizeof(u64));
		if (!s->level[s->levels++])
			return -ENOMEM;
	} while (words > 1);
	return 0;
}

void frameset_finish(struct frameset *s)
{
	for (u32 i = 0; i < s->levels; i++)
		free(s->level[i]);
	s->levels = 0;
}

void frameset_add(struct frameset *s, u32 member)
{
	for (u32 i = 0; i < s->levels; i++, member /= 64) {
		u64 *word = &s->level[i][member / 64];
		bool summarised = *word != 0;

		*word |= 1ull << (member % 64);
		if (summarised)
			break;
	}
}

void frameset_del(struct frameset *s, u32 member)
{
	assert(frameset_has(s, member));
	for (u32 i = 0; i < s->levels; i++, member /= 64) {
		u64 *word = &s->level[i][member / 64];

		*word &= ~(1ull << (member % 64));
		if (*word)
			break;
	}
}

u32 frameset_lowest(const struct frameset *s)
{
	u32 member = 0;

	for (u32 i = s->levels; i-- > 0;)
		member = member * 64 + bits_first(s->level[i][member]);
	return member;
}
