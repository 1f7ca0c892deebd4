/* SPDX-License-Identifier: MIT */
/*
 * Cold memory that is given up although nobody needs it, as a virtual machine's kernel does that
 * shall leave its host what it does not use (Linux: DAMON with the action "pageout").
 *
 * It goes over memory, not over files, a part at a time, and in no order that files know of. Of so
 * many pages of memory looked at, the share that the cache has of all memory is cached. A folio is
 * met once, however large, with all of its pages: so folios are drawn at random from the table of
 * descriptors, each as likely as any other, until those pages are met. One that is dirty, in
 * flight or held stays.
 */
#include "cache/cache.h"

#define LOOKS_MAX 1000000 /* in a table of which next to nothing is in use */

static bool give_up(struct cache *c, struct folio *f)
{
	bool gone;

	folio_pin(f);
	gone = folio_trylock(f);
	if (gone) {
		gone = mapping_evict(f, 1);
		folio_unlock(f);
	}
	folio_unpin_looked(c, f);
	if (gone)
		world_spend(COST_EVICT, 1);
	return gone;
}

u64 cache_page_out(struct cache *c, u64 pages)
{
	u64 cached = cache_pages(c), looked = 0, gone = 0;
	u64 share = (u64)((double)pages * (double)cached / (double)cache_size(c));

	assert(world_is_sim()); /* nobody else looks at the table meanwhile */
	for (u64 i = 0; i < LOOKS_MAX && looked < share; i++) {
		struct folio *f = &c->folios[1 + world_random() % max_u64(c->table_used, 1)];
		u32 size = folio_pages(f);

		if (!f->mapping)
			continue;
		looked += size;
		if (give_up(c, f))
			gone += size;
	}
	return gone;
}
