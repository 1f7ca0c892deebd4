/* SPDX-License-Identifier: MIT */
/*
 * A radix tree of fan-out 64, six bits of the page number a level:
 *
 *	inner node	64 children; per tag one summary word: bit i says that child i
 *			has the tag somewhere below it
 *	leaf		64 pages (256 KiB of the file): per tag one word, bit p for page
 *			p, and 64 folio ids
 *
 * State lives here and not in folios, so counting what an operation newly dirtied
 * is one or and one population count, the next dirty page is a count of trailing
 * zeros, a dirty run crosses folio borders for free, and splitting a folio moves no
 * state at all.
 *
 * The tree grows a level at the root when a page does not fit and never shrinks in
 * height until it is empty. Summaries are exact: a bit is set if and only if the
 * child has the tag; so setting a bit walks up only when a word was 0 before, and
 * clearing one only when it becomes 0.
 *
 * Readers without the lock walk down from `top`, which holds root and height in one word
 * (nodes are aligned, so the lowest bits are free). What they pass may be leaving the tree: it is
 * retired, not freed, and its slots are empty by then; or the tree may be growing above them,
 * which moves nothing.
 */
#include "cache/index.h"
#include "base/alloc.h"
#include "world/world.h"

void index_init(struct index *ix, u32 block_shift)
{
	assert(block_shift <= 3);
	*ix = (struct index){ .block_shift = block_shift };
}

static void set_root(struct index *ix, void *root, u32 height)
{
	assert(!((uintptr_t)root & TOP_HEIGHT) && height <= TOP_HEIGHT);
	ix->root = root;
	ix->height = height;
	index_store(&ix->top, (uintptr_t)root | height);
}

static void free_node(struct world_retired *r)
{
	free(container_of(r, struct index_node, retired));
}

static void free_leaf(struct world_retired *r)
{
	free(container_of(r, struct leaf, retired));
}

static size_t leaf_bytes(const struct index *ix)
{
	size_t blocks = ix->block_shift ? (size_t)BLOCK_STATES << ix->block_shift : 0;

	return sizeof(struct leaf) + blocks * sizeof(u64);
}

static void free_level(void *node, u32 height)
{
	if (height) {
		struct index_node *n = node;

		for (unsigned i = 0; i < 64; i++)
			if (n->child[i])
				free_level(n->child[i], height - 1);
	} else {
		free(((struct leaf *)node)->owners);
	}
	free(node);
}

void index_discard(struct index *ix)
{
	if (ix->root)
		free_level(ix->root, ix->height);
	index_init(ix, ix->block_shift);
}

void index_finish(struct index *ix)
{
	assert(!index_tagged(ix, TAG_PRESENT));
	index_discard(ix);
}

/* index_leaf() past the leaf found last. */
struct leaf *index_walk(struct index *ix, u64 page)
{
	void *at = ix->root;

	if (!at || page >= index_span(ix->height))
		return NULL;
	for (u32 h = ix->height; h > 0 && at; h--)
		at = ((struct index_node *)at)->child[index_slot(page, h)];
	if (at)
		ix->recent = at;
	return at;
}

static struct index_node *node_create(struct index *ix)
{
	struct index_node *n = alloc_zeroed(1, sizeof(*n));

	if (n) {
		ix->nodes++;
		ix->memory_bytes += sizeof(*n);
	}
	return n;
}

static struct leaf *leaf_create(struct index *ix, u64 page)
{
	/* borders cost the allocator time, and the simulated world has nothing of them */
	struct leaf *leaf = world_is_sim() ? alloc_zeroed(1, leaf_bytes(ix))
					   : alloc_zeroed_lines(leaf_bytes(ix));

	if (leaf) {
		leaf->number = (u32)(page / LEAF_PAGES);
		ix->leaves++;
		ix->memory_bytes += leaf_bytes(ix);
	}
	return leaf;
}

/* Puts a new root above the present one. */
static bool grow(struct index *ix)
{
	struct index_node *top = node_create(ix);

	if (!top)
		return false;
	top->child[0] = ix->root;
	top->count = 1;
	if (ix->height) {
		struct index_node *old = ix->root;

		old->parent = top;
		for (unsigned t = 0; t < TAG_MAX; t++)
			top->tag[t] = old->tag[t] != 0;
	} else {
		struct leaf *old = ix->root;

		old->parent = top;
		for (unsigned t = 0; t < TAG_MAX; t++)
			top->tag[t] = old->tag[t] != 0;
	}
	set_root(ix, top, ix->height + 1);
	return true;
}

/* Frees inner nodes from n up that have no children; the tree may become empty. */
static void prune(struct index *ix, struct index_node *n)
{
	while (n && !n->count) {
		struct index_node *parent = n->parent;

		if (parent) {
			index_store(&parent->child[n->slot], NULL);
			parent->count--;
		} else {
			set_root(ix, NULL, 0);
		}
		ix->nodes--;
		ix->memory_bytes -= sizeof(*n);
		world_retire(&n->retired, free_node);
		n = parent;
	}
}

/* Walks to the lowest inner node above `page`, making what is missing. */
static struct index_node *descend(struct index *ix, u64 page)
{
	struct index_node *n = ix->root;

	for (u32 h = ix->height; h > 1; h--) {
		unsigned slot = index_slot(page, h);

		if (!n->child[slot]) {
			struct index_node *child = node_create(ix);

			if (!child) {
				prune(ix, n);
				return NULL;
			}
			child->parent = n;
			child->slot = slot;
			index_store(&n->child[slot], child);
			n->count++;
		}
		n = n->child[slot];
	}
	return n;
}

struct leaf *index_leaf_create(struct index *ix, u64 page)
{
	struct leaf *leaf = index_leaf(ix, page);
	struct index_node *n;

	assert(page < INDEX_MAX_PAGES);
	if (leaf)
		return leaf;
	if (!ix->root) { /* the first leaf: as low a tree as reaches it */
		u32 height = 1;

		if (page < LEAF_PAGES) {
			set_root(ix, leaf_create(ix, page), 0);
			return ix->root;
		}
		n = node_create(ix);
		if (!n)
			return NULL;
		/* an empty node may be the root: growing only moves it down */
		while (page >= index_span(height))
			height++;
		set_root(ix, n, height);
	}
	while (page >= index_span(ix->height))
		if (!grow(ix))
			return NULL;
	n = descend(ix, page);
	if (!n)
		return NULL;
	leaf = leaf_create(ix, page);
	if (!leaf) {
		prune(ix, n);
		return NULL;
	}
	leaf->parent = n;
	index_store(&n->child[index_slot(page, 1)], leaf);
	n->count++;
	return leaf;
}

void index_leaf_release(struct index *ix, struct leaf *leaf)
{
	struct index_node *n = leaf->parent;

	for (unsigned t = 0; t < TAG_MAX; t++)
		assert(!leaf->tag[t]);
	if (ix->recent == leaf)
		ix->recent = NULL;
	if (n) {
		index_store(&n->child[leaf->number % 64], NULL);
		n->count--;
	} else {
		set_root(ix, NULL, 0);
	}
	ix->leaves--;
	ix->memory_bytes -= leaf_bytes(ix);
	world_retire(&leaf->retired, free_leaf);
	prune(ix, n);
}

void index_tag_set(struct leaf *leaf, enum index_tag tag, u64 mask)
{
	u64 before = leaf->tag[tag];
	struct index_node *n = leaf->parent;
	unsigned slot = leaf->number % 64;

	index_store(&leaf->tag[tag], before | mask);
	if (before || !mask)
		return;
	for (; n; slot = n->slot, n = n->parent) {
		before = n->tag[tag];
		n->tag[tag] = before | 1ull << slot;
		if (before)
			break;
	}
}

void index_tag_clear(struct leaf *leaf, enum index_tag tag, u64 mask)
{
	struct index_node *n = leaf->parent;
	unsigned slot = leaf->number % 64;

	if (!(leaf->tag[tag] & mask))
		return;
	index_store(&leaf->tag[tag], leaf->tag[tag] & ~mask);
	if (leaf->tag[tag])
		return;
	for (; n; slot = n->slot, n = n->parent) {
		n->tag[tag] &= ~(1ull << slot);
		if (n->tag[tag])
			break;
	}
}

/*
 * Goes down while the summaries promise a page at or after `from`, and up when the
 * rest of a node is empty. Each node is visited at most twice.
 */
bool index_next(struct index *ix, enum index_tag tag, u64 from, u64 *page)
{
	u32 h = ix->height;
	void *at = ix->root;
	u64 base = 0; /* first page of `at` */

	if (!at || from >= index_span(h))
		return false;
	for (;;) {
		unsigned skip = from > base ? (from - base) >> (6 * h) : 0;
		u64 word;

		if (h == 0)
			word = ((struct leaf *)at)->tag[tag];
		else
			word = ((struct index_node *)at)->tag[tag];
		word = skip < 64 ? word & (~0ull << skip) : 0;
		if (word && h == 0) {
			*page = base + bits_first(word);
			return true;
		}
		if (word) {
			unsigned slot = bits_first(word);

			at = ((struct index_node *)at)->child[slot];
			h--;
			base += (u64)slot << (6 * (h + 1));
			from = max_u64(from, base);
			continue;
		}
		/* nothing left below: go on after this node */
		at = h ? ((struct index_node *)at)->parent : ((struct leaf *)at)->parent;
		if (!at)
			return false;
		from = base + index_span(h);
		h++;
		base = round_down(base, index_span(h));
	}
}

bool index_tagged(const struct index *ix, enum index_tag tag)
{
	if (!ix->root)
		return false;
	return ix->height ? ((struct index_node *)ix->root)->tag[tag] != 0
			  : ((struct leaf *)ix->root)->tag[tag] != 0;
}
