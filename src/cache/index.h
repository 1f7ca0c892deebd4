/* SPDX-License-Identifier: MIT */
/*
 * The index of a mapping: from page numbers to folios, with one bit of state per
 * page in 64-bit words. See index.c for the structure.
 *
 * The mapping's tree_lock protects every call but index_find(), which needs only a read
 * section: for its sake words, slots and links are changed by index_store() and the like,
 * and looked at without the lock by index_load(). Under the lock plain loads will do.
 */
#ifndef SLUICE_CACHE_INDEX_H
#define SLUICE_CACHE_INDEX_H

#include "base/bits.h"
#include "world/epoch.h"

/* A word, slot or link that others look at without the lock: whole, what it stands for first. */
#define index_load(at)         __atomic_load_n((at), __ATOMIC_ACQUIRE)
#define index_store(at, value) __atomic_store_n((at), (value), __ATOMIC_RELEASE)

#define LEAF_PAGES      64
#define INDEX_MAX_PAGES (1ull << 32)

/* State words that are searched: inner nodes summarise them. */
enum index_tag {
	TAG_PRESENT,   /* a folio is there */
	TAG_DIRTY,     /* at least one block must be written */
	TAG_WRITEBACK, /* being written */
	TAG_TOWRITE,   /* was dirty when a sync began */
	TAG_FAILED,    /* its last write-out failed: it is dirty or in flight */
	TAG_DROP,      /* dirty, in a folio that goes once it is written */
	TAG_MAX
};

struct index_node {
	union {
		struct {
			struct index_node *parent; /* NULL: the root */
			u32 slot;                  /* in the parent */
			u32 count;                 /* children */
		};
		struct world_retired retired; /* once it is out of the tree */
	};
	u64 tag[TAG_MAX]; /* bit i: child i has the tag somewhere below it */
	void *child[64];  /* nodes, or leaves in the lowest inner level */
};

struct leaf_owners {
	u16 id[2][LEAF_PAGES]; /* [enum owner_of] */
};

/* On a line of the processor's cache (in the real world): all of the state; then four of slots. */
struct leaf {
	u64 uptodate; /* every block of the page is valid */
	union {
		u64 tag[TAG_MAX];
		struct {
			u64 looked_at[3];             /* by readers without the lock */
			struct world_retired retired; /* once it is out of the tree */
		};
	};
	/*
	 * A guess at where the bytes are: that of page p in frame `frames` + p % 64, true where the
	 * pages of the leaf lie side by side in memory. It spares a reader the wait for the
	 * slot and the descriptor before he can ask for the bytes.
	 */
	u32 frames;
	u32 number;            /* its first page / 64 */
	u32 folio[LEAF_PAGES]; /* folio ids, 0 where none; a folio fills all slots of its pages */
	struct index_node *parent;  /* NULL: the root */
	struct leaf_owners *owners; /* where they are several tenants': page by page; else NULL */
	u16 owner[2]; /* whose all pages are that are dirty, or in flight; see owner.h */
	/*
	 * With blocks smaller than a page, BLOCK_STATES arrays of blocks_per_page words:
	 * block b of page p is bit p * blocks_per_page + b of an array. Else absent, and
	 * the page words above are the block words.
	 */
	u64 block[];
};

static_assert(offsetof(struct leaf, folio) == 64, "what readers look at is one line");
static_assert(TAG_TOWRITE == 3, "readers without the lock do not look at what comes from there on");

/* States kept per block where blocks are smaller than pages. */
enum block_state { BLOCK_UPTODATE, BLOCK_DIRTY, BLOCK_WRITEBACK, BLOCK_STATES };

struct index {
	void *root;      /* a leaf when height is 0, else an inner node; NULL while empty */
	u32 height;      /* inner levels */
	u32 block_shift; /* log2 of blocks per page: 0..3 */
	uintptr_t top;   /* root | height: both in one word, for index_find() */
	u64 leaves, nodes;
	u64 memory_bytes;
	struct leaf *recent; /* the leaf found last under the lock */
};

void index_init(struct index *ix, u32 block_shift);
/* Frees all that is left. No folio is in it. */
void index_finish(struct index *ix);
void index_discard(struct index *ix); /* the same, with folios or without */

static inline u64 leaf_first(const struct leaf *leaf)
{
	return (u64)leaf->number * LEAF_PAGES;
}

#define TOP_HEIGHT 7 /* bits of index.top */

/* Pages below a tree of that many inner levels. */
static inline u64 index_span(u32 height)
{
	return 1ull << (6 * (height + 1));
}

static inline unsigned index_slot(u64 page, u32 height)
{
	return page >> (6 * height) & 63;
}

/* As index_leaf(), in a read section instead of under the lock: a leaf as it is or just was. */
static inline struct leaf *index_find(const struct index *ix, u64 page)
{
	uintptr_t top = index_load(&ix->top);
	void *at = (void *)(top & ~(uintptr_t)TOP_HEIGHT);
	u32 shift = 6 * (top & TOP_HEIGHT);

	assert(world_is_reading());
	if (page >> shift >= 64) /* as index_span() says */
		return NULL;
	for (; shift > 0 && at; shift -= 6)
		at = index_load(&((struct index_node *)at)->child[page >> shift & 63]);
	return at;
}

struct leaf *index_walk(struct index *ix, u64 page);

/* The leaf that covers a page, or NULL. */
static inline struct leaf *index_leaf(struct index *ix, u64 page)
{
	if (ix->recent && page / LEAF_PAGES == ix->recent->number)
		return ix->recent;
	return index_walk(ix, page);
}

/* The same, made if missing; NULL when memory is short. */
struct leaf *index_leaf_create(struct index *ix, u64 page);
/* Frees a leaf with no folio in it, and what above it is then empty. */
void index_leaf_release(struct index *ix, struct leaf *leaf);

/* Sets or clears bits of a tag, and the summaries above. */
void index_tag_set(struct leaf *leaf, enum index_tag tag, u64 mask);
void index_tag_clear(struct leaf *leaf, enum index_tag tag, u64 mask);
/* The first page >= from with the tag: true and *page. */
bool index_next(struct index *ix, enum index_tag tag, u64 from, u64 *page);
bool index_tagged(const struct index *ix, enum index_tag tag);

/* The words of a block state of a leaf: 1 << block_shift of them. */
static inline u64 *leaf_blocks(struct leaf *leaf, enum block_state state, u32 block_shift)
{
	if (block_shift)
		return leaf->block + ((size_t)state << block_shift);
	return state == BLOCK_UPTODATE ? &leaf->uptodate
	       : state == BLOCK_DIRTY  ? &leaf->tag[TAG_DIRTY]
				       : &leaf->tag[TAG_WRITEBACK];
}

#endif
