/* SPDX-License-Identifier: MIT */
/*
 * Three rules for which folio goes. In all of them a use only counts in the folio, and only up
 * to two: the use for which it was brought in, and one after that, which makes it hot.
 *
 * lru2, Linux's classic design (reference 11.1). A folio enters the inactive list; if it is
 * hot by the time it reaches the end, it moves to the active one, else it goes. The active
 * list gives its oldest back while it is the longer one, so neither a long scan nor a large
 * working set takes all the memory.
 *
 * sieve (Zhang, Yang, Yue, Vigfusson, Rashmi, "SIEVE is simpler than LRU", NSDI 2024). One list
 * in the order of coming. A hand goes from the old end to the young one, takes the mark from
 * those that are hot, without moving them, and the first that is not goes. So what comes new is
 * judged soon after, while what is used stays behind the hand.
 *
 * s3fifo (Yang, Zhang, Qiu, Yue, Rashmi, "FIFO queues are all you need for cache eviction",
 * SOSP 2023). A small queue, a tenth of the cache, through which everything comes that is not
 * remembered; what was not used again while in it goes, and is remembered for as long as
 * nine tenths of the cache take to go by the same way (ghost.c). What was used, and what comes
 * back while remembered, enters the main queue, where use buys another round. Sizes
 * are pages, not folios. A dirty folio at the end of the small queue moves to the main one,
 * so that each is met once, however many there are.
 */
#include "cache/victim.h"

#define BATCH          32 /* folios looked at between checks of the active list */
#define SMALL_FRACTION 10 /* the small queue is one of so many parts of the cache */

/* Gives folios of the active list another life on the inactive one while it is shorter. */
static void balance_lists(struct cache *c)
{
	for (unsigned i = 0; i < BATCH; i++) {
		struct folio *f;

		if (c->lru[LRU_ACTIVE].pages <= c->lru[LRU_INACTIVE].pages)
			return;
		f = lru_rotate(c, LRU_ACTIVE);
		if (!f)
			return;
		if (!folio_take_hot(f, 0)) {
			atomic_store_explicit(&f->uses, 0, memory_order_relaxed);
			lru_move(c, f, LRU_INACTIVE);
		}
		folio_unpin_looked(c, f);
	}
}

static struct folio *next_of_lru2(struct cache *c, struct look *look, bool *spare)
{
	struct folio *f;

	if (look->looked % BATCH == 0)
		balance_lists(c);
	f = lru_rotate(c, LRU_INACTIVE);
	if (!f)
		return NULL;
	look->looked++;
	*spare = folio_take_hot(f, 1);
	if (*spare)
		lru_move(c, f, LRU_ACTIVE);
	return f;
}

static struct folio *next_of_sieve(struct cache *c, struct look *look, bool *spare)
{
	struct folio *f = lru_advance(c);

	if (!f)
		return NULL;
	*spare = folio_take_hot(f, 1);
	look->looked += !*spare;
	return f;
}

/* Which queue has to give: LRU_LISTS if neither can. */
static enum lru_list queue_to_cut(struct cache *c, const struct look *look)
{
	bool main = look->vain[LRU_ACTIVE] < 2 * c->lru[LRU_ACTIVE].folios;
	bool small = look->vain[LRU_INACTIVE] < c->lru[LRU_INACTIVE].folios;

	if (small && (!main || c->lru[LRU_INACTIVE].pages * SMALL_FRACTION >= cache_pages(c)))
		return LRU_INACTIVE;
	return main ? LRU_ACTIVE : LRU_LISTS;
}

static struct folio *next_of_s3fifo(struct cache *c, struct look *look, bool *spare)
{
	enum lru_list from = queue_to_cut(c, look);
	struct folio *f = from == LRU_LISTS ? NULL : lru_rotate(c, from);

	if (!f)
		return NULL;
	look->from = from;
	look->vain[from] += from == LRU_ACTIVE; /* of the small queue none comes twice */
	*spare = folio_take_hot(f, 1);
	look->looked += !*spare;
	if (*spare && from == LRU_INACTIVE)
		lru_move(c, f, LRU_ACTIVE);
	return f;
}

struct folio *victim_next(struct cache *c, struct look *look, bool *spare)
{
	switch (c->config.reclaim) {
	case RECLAIM_SIEVE:
		return next_of_sieve(c, look, spare);
	case RECLAIM_S3FIFO:
		return next_of_s3fifo(c, look, spare);
	default:
		return next_of_lru2(c, look, spare);
	}
}

void victim_is_dirty(struct cache *c, struct folio *f)
{
	if (c->config.reclaim == RECLAIM_S3FIFO)
		lru_move(c, f, LRU_ACTIVE);
}
