/* SPDX-License-Identifier: MIT */
/*
 * The cache: memory (arena, folio descriptors), the lists by which it is reclaimed,
 * the ledger of everything in it, and the mappings that use it.
 *
 * Lock order: mapping.tree_lock, then cache.lru_lock, then arena.lock; see
 * world/lock.h.
 */
#ifndef SLUICE_CACHE_CACHE_H
#define SLUICE_CACHE_CACHE_H

#include "cache/arena.h"
#include "cache/error_seq.h"
#include "cache/folio.h"
#include "cache/index.h"
#include "cache/reclaim.h"
#include "device/device.h"
#include "ledger/tenant.h"

enum lru_list { LRU_INACTIVE, LRU_ACTIVE, LRU_LISTS };

/* A list of folios by id, most recent first. */
struct lru {
	u32 first, last; /* 0: empty */
	_Atomic u64 folios, pages;
};

struct cache_config {
	u64 memory_pages;     /* at first; cache_resize() changes it */
	u64 max_memory_pages; /* to which it may grow; 0: memory_pages */
	u64 reserve_pages;    /* not counted as dirtyable */
	u64 ready_pages;      /* of what is free, in a virtual machine's hands; 0: all */
	bool contents;
	enum huge_pages huge_pages; /* for contents */
	enum reclaim reclaim;
	bool shed;               /* reclaim may split dirty folios to free their clean pages */
	bool forgets;            /* data that could not be written counts as clean: Linux's way */
	struct persist *persist; /* where the arena is, to outlive us, and its records; or NULL */
};

struct cache_stats {
	u64 folios_split, folios_evicted, folios_reclaimed, pages_reclaimed;
	u64 folios_shed; /* of those split: to let go of clean pages */
	u64 reclaim_waits;
};

struct cache {
	struct cache_config config; /* immutable */
	struct arena arena;

	struct folio *folios;       /* the table of descriptors; [0] is no folio; immutable */
	struct folio_links *links;  /* of the descriptor with the same id; the same */
	struct memory table;        /* the memory of both, links first */
	struct spinlock table_lock; /* protects the next four */
	u32 table_used;             /* the last id taken from the table */
	struct frameset table_free; /* ids up to that that are free */
	u32 table_free_count;       /* of them */
	u32 table_seq;              /* where a descriptor's seq starts in its first life */
	struct mutex resize_lock;   /* held for the whole of a cache_resize() */

	struct spinlock lru_lock; /* protects the lists, the folios' links and the counts */
	struct lru lru[LRU_LISTS];
	u32 hand;                          /* RECLAIM_SIEVE: looked at next; 0: the oldest */
	struct ghost ghost;                /* RECLAIM_S3FIFO */
	u64 folios_of_order[ARENA_ORDERS]; /* on the lists */

	struct spinlock books_lock; /* for all posts to the next, and to the devices' books */
	struct ledger ledger;
	struct cache_stats stats; /* lru_lock */

	/* Reclaim found only dirty folios; set once before use, may be NULL. */
	void (*need_writeback)(struct cache *c);
	/* Asked by who waits for memory: true if that may have no end. Likewise. */
	bool (*waits_in_vain)(struct cache *c);
	void *owner;          /* of the hooks */
	_Atomic u32 progress; /* bumped when pages become reclaimable; waiters park on it */
	_Atomic u32 waiters;
	_Atomic u64 failures;            /* writes to devices that failed, ever, of all mappings */
	_Atomic u32 ios;                 /* under way that nobody waits for; see fill.c */
	_Atomic u64 mappings;            /* ever made */
	_Atomic u64 read_misses;         /* pages that reads found neither cached nor valid */
	struct tenants *_Atomic tenants; /* NULL until there is one */
};

/* What the layer above wants to know of a mapping; called with its tree_lock held. */
struct mapping_ops {
	/* The first page of the mapping took flight. */
	void (*launched)(struct mapping *m);
	/* Pages landed: e is what that entered; `last`: none is in flight any more. */
	void (*landed)(struct mapping *m, const struct ledger_entry *e, bool last);
	/* ... what of them was a tenant's own, and is not in that e: ownership by page. */
	void (*tenant_landed)(struct mapping *m, struct tenant *t, const struct ledger_entry *e);
};

#define MAPPING_BOOKS 3

struct page_map;

struct mapping {
	struct cache *cache; /* immutable, as are id, store, ops, block_shift */
	u64 id;              /* 1, 2, ... in the order they were made */
	struct store *store;
	const struct mapping_ops *ops; /* NULL: nobody wants to know */
	u32 block_shift;               /* log2 of blocks per page, 0..3 */
	u32 max_order;                 /* largest folio, 0..9 */
	u32 device;                    /* its number, of the books that tenants have there */
	u32 persist_file; /* its number in cache.config.persist; set before anything is dirty */

	struct spinlock tree_lock; /* protects everything below and all page states */
	struct index index;
	/* As leaf.frames, for the whole file: page p in frames + p, of folio ids + (p >> order). */
	u32 frames, ids, order;
	u32 trust;    /* in the last two: by how many folios lately more agree than do not */
	u64 pages;    /* cached */
	u64 accepted; /* pages that came to be owed, ever: see owed.h */
	_Atomic u64 write_cursor; /* where the next cyclic write-out starts (writeback_index) */
	u64 in_flight;            /* pages; 0: no page has the writeback tag */
	u64 failures;             /* writes to the device that failed, ever */
	_Atomic u32 error_seq;    /* what failed, in a cache that forgets; see error_seq.h */
	int error; /* of the first write-out that failed; 0: no page has the failed tag */
	/* where folios are that should have gone when they landed; end 0: nowhere */
	u64 missed_first, missed_end;
	struct page_map *maps; /* of those who have the file mapped; see page_map.h */
	struct ledger ledger;
	struct ledger *books[MAPPING_BOOKS]; /* the mapping's own, its device's, the cache's */
};

int cache_init(struct cache *c, const struct cache_config *config);
void cache_finish(struct cache *c); /* no mapping is left */
/* The same with mappings left that were discarded: frees everything without a look. */
void cache_discard(struct cache *c);

/* Its size now, in pages. */
static inline u64 cache_size(const struct cache *c)
{
	return arena_frames(&c->arena);
}

static inline u32 folio_id(const struct cache *c, const struct folio *f)
{
	return (u32)(f - c->folios);
}

static inline struct folio_links *folio_links(const struct cache *c, const struct folio *f)
{
	return &c->links[folio_id(c, f)];
}

/*
 * resize.c: makes the cache so large, while it is in use. It takes its new size at once; pages
 * past a smaller end are moved or evicted, written first where need be. -EAGAIN if some are
 * still in use after `timeout_ns`: *left says how many; they go when they are let go of.
 * -EINVAL: not more than the reserve, or more than max_memory_pages; -ENOMEM: as before.
 */
int cache_resize(struct cache *c, u64 pages, u64 timeout_ns, u64 *left);

/*
 * Notes that bytes of a folio from `page` on were used; `first` is its first page. Outside of
 * lru2 a large folio is used when its first page is, for else a scan in small steps would
 * look like many uses of one folio: so what counts is the use of a page on average.
 */
static inline bool folio_use_counts(const struct cache *c, u64 page, u64 first)
{
	return (c->config.reclaim == RECLAIM_LRU2) | (page == first);
}

static inline void folio_note_use(const struct cache *c, struct folio *f, u64 page, u64 first)
{
	folio_mark_if(f, folio_use_counts(c, page, first));
}

/* Pages the dirty limits are a share of: free beyond the reserve, and cached (reference 4.1). */
u64 cache_dirtyable_pages(const struct cache *c);
u64 cache_pages(const struct cache *c);

/* Puts a new folio at the head of the inactive list, or takes one off its list. lru.c */
void lru_add(struct cache *c, struct folio *f);
void lru_del(struct cache *c, struct folio *f);
/*
 * Halves the order of `at`, and puts the piece that is split off it behind it; or, if reclaim
 * has met `at` dirty, to where it is looked at next.
 */
void lru_halve(struct cache *c, struct folio *at, struct folio *f);
/* Takes the oldest folio of a list to its front and returns it pinned; NULL: empty. */
struct folio *lru_rotate(struct cache *c, enum lru_list list);
/* The folio at the hand, pinned; the hand goes on to the next younger one. NULL: empty. */
struct folio *lru_advance(struct cache *c);
/* Puts a folio that is on a list to where it is looked at next of that list. */
void lru_deactivate(struct cache *c, struct folio *f);
/* Moves a pinned folio to the front of the other list, if it is still on one. */
void lru_move(struct cache *c, struct folio *f, enum lru_list to);

/* reclaim.c: frees at least `want` pages if it can; returns how many. */
u64 cache_reclaim(struct cache *c, u64 want);
/*
 * Waiting for memory: announce it, try to reclaim, and if nothing could be, wait for pages that
 * become reclaimable since; else forgo. The wait ends at the deadline, or after 100 ms if something
 * is dirty or in flight, and after a second if not.
 */
u32 cache_expect_progress(struct cache *c);
void cache_wait_progress(struct cache *c, u32 seen, u64 deadline);
void cache_forgo_progress(struct cache *c);
void cache_note_progress(struct cache *c);
/* Drops every clean folio that nobody holds; returns the pages freed. */
u64 cache_drop_clean(struct cache *c);
/* page_out.c: looks at so many pages of memory and drops what is clean there; those that went. */
u64 cache_page_out(struct cache *c, u64 pages);

/* fill.c: around an I/O that ends by itself; cache_io_end() is its last touch of the cache. */
void cache_io_begin(struct cache *c);
void cache_io_end(struct cache *c);
/* Waits until none is under way; nobody begins one any more. */
void cache_io_wait(struct cache *c);

/* mapping.c. books[0] becomes the mapping's own ledger; `device_book` may be NULL. */
void mapping_init(struct mapping *m, struct cache *c, struct store *store, u32 block_shift,
		  u32 max_order, struct ledger *device_book);
/* No folio is left in it. */
void mapping_finish(struct mapping *m);
/* Frees the index as it is; the cache can only be discarded after that. */
void mapping_discard(struct mapping *m);

/* The folio that holds `page`, pinned, or NULL. */
struct folio *mapping_find(struct mapping *m, u64 page);
/* The same from `page` on: the first folio that ends after it. */
struct folio *mapping_find_from(struct mapping *m, u64 page);
/*
 * Adds a new folio at `index` (a multiple of its size): 0, -EEXIST if one of its pages is
 * cached already, -ENOMEM. The mapping takes a pin.
 */
int mapping_add(struct mapping *m, struct folio *f, u64 index);
/* Takes a locked folio out, whatever its state; what was dirty in it is cancelled. */
void mapping_remove(struct mapping *m, struct folio *f);
/*
 * Takes a folio out if it is clean, not in flight and only the cache and `pins` others hold
 * it; the caller has it locked. True if it went.
 */
bool mapping_evict(struct folio *f, unsigned pins);
/* Takes out a pinned folio that was made to be dropped, if it can go now. */
void mapping_drop(struct folio *f);
/*
 * The same for a folio whose last page in flight has just landed: it goes if it is clean and nobody
 * has locked it or holds it. With the tree_lock held.
 */
bool mapping_drop_landed(struct mapping *m, struct folio *f);
/* Notes one that could not go, with the tree_lock held; takes those that can go now out. */
void mapping_note_missed(struct mapping *m, const struct folio *f);
void mapping_drop_missed(struct mapping *m);
/*
 * Takes out all folios that lie in [first, end) pages as a whole, are clean and not in
 * flight, and that nobody has locked or holds. Returns the pages that went; *folios how many.
 */
u64 mapping_evict_range(struct mapping *m, u64 first, u64 end, u64 *folios);
/*
 * Ends the filling of new folios that cover [first, first + pages) and that the caller has
 * locked and pinned: valid or not, they are unlocked and unpinned. Callable from events.
 */
void mapping_filled(struct mapping *m, u64 first, u32 pages, bool valid);
/* The first page >= from that is not cached, at most `limit`. */
u64 mapping_next_hole(struct mapping *m, u64 from, u64 limit);
/* How many pages right before `page` are cached, counted up to `max`. */
u64 mapping_cached_before(struct mapping *m, u64 page, u64 max);

/*
 * split.c: splits a locked folio that nobody else holds (the cache and the caller do) and
 * that is not in flight, buddy style around `page`, down to `order`; the caller's pin and lock
 * end on the piece that holds the page, which is returned. NULL when it cannot be
 * done now. Dirty folios only with `dirty_too`; their state stays where it is.
 */
struct folio *folio_split(struct folio *f, u64 page, unsigned order, bool dirty_too);
/*
 * Splits a locked, dirty folio so that no clean run of it shares a folio with a dirty page;
 * returns the piece that holds `page`, locked and pinned, or the folio itself when nothing
 * could be done.
 */
struct folio *folio_shed(struct folio *f, u64 page);

/*
 * move.c: moves a locked folio to other frames, if there are free ones, only the cache and the
 * caller hold it and it is not in flight.
 */
bool folio_move(struct folio *f);
/*
 * Of what a locked folio was split into, up to page `end`, moves the small dirty pieces elsewhere,
 * for the rest is about to go.
 */
void folio_move_strays(struct folio *f, u64 end);

/* audit.c: recomputes the mapping's ledger from its state words; false and a text. */
bool mapping_audit(struct mapping *m, struct ledger *sum, char *why, size_t why_size);
/* The same for the cache, given the sum over all its mappings. */
bool cache_audit(struct cache *c, const struct ledger *sum, u64 cached_pages, char *why,
		 size_t why_size);

#endif
