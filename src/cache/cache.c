/* SPDX-License-Identifier: MIT */
/* A cache's own life: memory, lists and ledger from nothing and back to it. */
#include "cache/cache.h"
#include <errno.h>
#include <sys/mman.h>

static size_t table_bytes(const struct cache *c)
{
	return (c->config.memory_pages + 1) * sizeof(struct folio);
}

int cache_init(struct cache *c, const struct cache_config *config)
{
	void *table;

	assert(config->memory_pages > config->reserve_pages);
	if (config->memory_pages >= ARENA_NONE)
		return -EINVAL;
	*c = (struct cache){ .config = *config };
	spin_init(&c->lru_lock, RANK_LRU);
	spin_init(&c->table_lock, RANK_ARENA);
	ledger_init(&c->ledger);
	/* Address space only: pages of the table get memory when descriptors in them are used. */
	table = mmap(NULL, table_bytes(c), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table == MAP_FAILED)
		return -ENOMEM;
	c->folios = table;
	if (arena_init(&c->arena, (u32)config->memory_pages, config->contents)) {
		munmap(table, table_bytes(c));
		return -ENOMEM;
	}
	return 0;
}

void cache_finish(struct cache *c)
{
	assert(!c->lru[LRU_INACTIVE].folios && !c->lru[LRU_ACTIVE].folios);
	assert(c->arena.free_frames == c->arena.frames);
	for (unsigned i = 0; i < LEVEL_MAX; i++)
		assert(!ledger_level(&c->ledger, i));
	cache_discard(c);
}

void cache_discard(struct cache *c)
{
	arena_finish(&c->arena);
	munmap(c->folios, table_bytes(c));
}

u64 cache_pages(const struct cache *c)
{
	return c->lru[LRU_INACTIVE].pages + c->lru[LRU_ACTIVE].pages;
}

u64 cache_dirtyable_pages(const struct cache *c)
{
	u64 free_pages = arena_free_frames(&c->arena), reserve = c->config.reserve_pages;

	return (free_pages > reserve ? free_pages - reserve : 0) + cache_pages(c) + 1;
}
