/* SPDX-License-Identifier: MIT */
/*
 * Page tables, as far as write-back has to do with them. Each process that maps a file has two bits
 * for each page of it; a store finds the second, or faults. The file knows all who map it, so that
 * write-out can take the second bits away (then the next store faults, and is charged again:
 * Linux writeback reference, 3.1), and who drops a page both.
 */
#include "cache/page_map.h"
#include <errno.h>
#include <stdlib.h>

int page_map_join(struct page_map *p, struct mapping *m, u64 first, u64 end)
{
	size_t words = div_roundup(end - first, 64);

	assert(first < end && world_is_sim());
	*p = (struct page_map){ .first = first, .end = end };
	p->mapped = calloc(words, sizeof(u64));
	p->writable = calloc(words, sizeof(u64));
	if (!p->mapped || !p->writable) {
		free(p->mapped);
		free(p->writable);
		return -ENOMEM;
	}
	spin_lock(&m->tree_lock);
	p->next = m->maps;
	m->maps = p;
	spin_unlock(&m->tree_lock);
	return 0;
}

void page_map_leave(struct page_map *p, struct mapping *m)
{
	struct page_map **at = &m->maps;

	spin_lock(&m->tree_lock);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	spin_unlock(&m->tree_lock);
	free(p->mapped);
	free(p->writable);
}

bool page_map_has(const struct page_map *p, u64 page, bool writable)
{
	const u64 *bits = writable ? p->writable : p->mapped;

	assert(page >= p->first && page < p->end);
	page -= p->first;
	return bits[page / 64] >> page % 64 & 1;
}

void page_map_enter(struct page_map *p, struct mapping *m, u64 page, bool writable)
{
	assert(page >= p->first && page < p->end);
	page -= p->first;
	spin_lock(&m->tree_lock);
	p->mapped[page / 64] |= 1ull << page % 64;
	if (writable)
		p->writable[page / 64] |= 1ull << page % 64;
	spin_unlock(&m->tree_lock);
}

/* Clears the bits of [first, end); true if one was set. */
static bool clear(u64 *bits, u64 first, u64 end)
{
	u64 found = 0;

	for (u64 page = first; page < end; page = round_down(page, 64) + 64) {
		u64 mask = bits_mask(page % 64, (u32)min_u64(64 - page % 64, end - page));

		found |= bits[page / 64] & mask;
		bits[page / 64] &= ~mask;
	}
	return found != 0;
}

/* Clears, of all who map it, what they may store to, or with `loads` load from, too. */
static bool take_away(struct mapping *m, u64 first, u64 end, bool loads)
{
	bool found = false;

	for (struct page_map *p = m->maps; p; p = p->next) {
		u64 from = max_u64(first, p->first), to = min_u64(end, p->end);

		if (from >= to)
			continue;
		found |= clear(p->writable, from - p->first, to - p->first);
		if (loads)
			clear(p->mapped, from - p->first, to - p->first);
	}
	return found;
}

bool mapping_write_protect(struct mapping *m, u64 first, u64 end)
{
	bool found;

	spin_lock(&m->tree_lock);
	found = take_away(m, first, end, false);
	spin_unlock(&m->tree_lock);
	return found;
}

void mapping_unmap(struct mapping *m, u64 first, u64 end)
{
	take_away(m, first, end, true);
}
