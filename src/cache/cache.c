/* SPDX-License-Identifier: MIT */
/* A cache's own life: memory, lists and ledger from nothing and back to it. */
#include "cache/cache.h"
#include "cache/persist.h"
#include <errno.h>

/* From here on the table, too, is worth huge pages. */
#define HUGE_TABLE_BYTES (4 * HUGE_PAGE_BYTES)

/* Of the links, which come first in the table; and of all. */
static u64 links_bytes(u64 pages)
{
	return round_up((pages + 1) * sizeof(struct folio_links), PAGE_SIZE);
}

static u64 table_bytes(u64 pages)
{
	return links_bytes(pages) + (pages + 1) * sizeof(struct folio);
}

/* Memory comes as descriptors are used. */
static int make_table(struct cache *c, u64 pages)
{
	enum huge_pages huge = HUGE_NEVER;

	if (c->config.huge_pages != HUGE_NEVER &&
	    table_bytes(c->config.memory_pages) >= HUGE_TABLE_BYTES)
		huge = HUGE_AUTO;
	if (frameset_init(&c->table_free, pages + 1) ||
	    memory_init(&c->table, table_bytes(pages), table_bytes(pages), huge))
		return -ENOMEM;
	c->links = (struct folio_links *)c->table.base;
	c->folios = (struct folio *)(c->table.base + links_bytes(pages));
	return 0;
}

int cache_init(struct cache *c, const struct cache_config *config)
{
	u64 max = max_u64(config->memory_pages, config->max_memory_pages);
	struct arena_config arena = { .frames = (u32)config->memory_pages,
				      .max_frames = (u32)max,
				      .contents = config->contents,
				      .huge = config->huge_pages,
				      .memory = config->persist ? config->persist->arena : NULL };

	assert(config->memory_pages > config->reserve_pages);
	if (max >= ARENA_NONE)
		return -EINVAL;
	*c = (struct cache){ .config = *config, .table_seq = 1 };
	spin_init(&c->lru_lock, RANK_LRU);
	spin_init(&c->books_lock, RANK_BOOKS);
	spin_init(&c->table_lock, RANK_ARENA);
	mutex_init(&c->resize_lock, RANK_RESIZE);
	ledger_init(&c->ledger);
	if (make_table(c, max) || arena_init(&c->arena, &arena) ||
	    (config->reclaim == RECLAIM_S3FIFO && ghost_init(&c->ghost, max))) {
		cache_discard(c);
		return -ENOMEM;
	}
	return 0;
}

void cache_finish(struct cache *c)
{
	assert(!c->lru[LRU_INACTIVE].folios && !c->lru[LRU_ACTIVE].folios);
	assert(c->arena.free_frames == c->arena.frames && !c->arena.stuck_frames);
	for (unsigned i = 0; i < LEVEL_MAX; i++)
		assert(!ledger_level(&c->ledger, i));
	cache_discard(c);
}

void cache_discard(struct cache *c)
{
	arena_finish(&c->arena);
	ghost_finish(&c->ghost);
	frameset_finish(&c->table_free);
	memory_finish(&c->table);
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
