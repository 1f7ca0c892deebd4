// SPDX-License-Identifier: MIT
/*
 * A radix tree over page numbers. A leaf stands for 512 pages (2 MiB): one bit each, set
 * once the page was written, and, only where bytes are kept, a table of pages. Nodes above
 * have 64 children each; a subtree without a written page need not exist. The tree is as
 * high as its last page asks for, so a small file has a single leaf, and grows at the top: the
 * old root becomes the first child of a new one.
 *
 * A page with no bytes in the table is all zeros, whether it was written or not. Reserving
 * comes before writing, so that a write either finds all the memory it needs or changes
 * nothing; a leaf may therefore exist with no bit set.
 */
#include "device/map.h"
#include "base/bits.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAF_SHIFT 9
#define LEAF_PAGES (1u << LEAF_SHIFT)
#define NODE_SHIFT 6
#define NODE_SLOTS (1u << NODE_SHIFT)

struct leaf {
	u64 written[LEAF_PAGES / 64];
	u8 **bytes; /* LEAF_PAGES pointers, or NULL while no page has bytes */
};

struct node {
	void *child[NODE_SLOTS]; /* nodes, or leaves under a node of height 1 */
};

static unsigned height_shift(unsigned height)
{
	return LEAF_SHIFT + NODE_SHIFT * height;
}

/* Pages under a slot of this height: it holds a leaf at height 0, a node above. */
static u64 span(unsigned height)
{
	return 1ull << height_shift(height);
}

static int map_grow(struct map *m, u64 page)
{
	while (page >= span(m->height)) {
		if (m->root) {
			struct node *top = calloc(1, sizeof(*top));

			if (!top)
				return -ENOMEM;
			top->child[0] = m->root;
			m->root = top;
		}
		m->height++;
	}
	return 0;
}

static struct leaf *map_leaf(const struct map *m, u64 page)
{
	const void *slot = m->root;

	if (page >= span(m->height))
		return NULL;
	for (unsigned h = m->height; h > 0 && slot; h--) {
		const struct node *node = slot;

		slot = node->child[(page >> height_shift(h - 1)) % NODE_SLOTS];
	}
	return (struct leaf *)slot;
}

/* The leaf of a page, made if it is not there; NULL: no memory. The tree is high enough. */
static struct leaf *map_make_leaf(struct map *m, u64 page)
{
	void **slot = &m->root;

	for (unsigned h = m->height;; h--) {
		if (!*slot)
			*slot = calloc(1, h ? sizeof(struct node) : sizeof(struct leaf));
		if (!*slot || !h)
			return *slot;
		slot = &((struct node *)*slot)->child[(page >> height_shift(h - 1)) % NODE_SLOTS];
	}
}

static int leaf_reserve_bytes(struct leaf *leaf, unsigned first, unsigned n)
{
	if (!leaf->bytes)
		leaf->bytes = calloc(LEAF_PAGES, sizeof(*leaf->bytes));
	if (!leaf->bytes)
		return -ENOMEM;
	for (unsigned i = first; i < first + n; i++) {
		if (!leaf->bytes[i])
			leaf->bytes[i] = calloc(1, PAGE_SIZE);
		if (!leaf->bytes[i])
			return -ENOMEM;
	}
	return 0;
}

/* How many of the n pages from `page` on are in the leaf (or word) of `unit` pages it is in. */
static unsigned within(u64 page, u64 n, unsigned unit)
{
	return (unsigned)min_u64(n, unit - page % unit);
}

int map_reserve(struct map *m, u64 page, u64 n, bool bytes)
{
	assert(n && page < MAP_PAGES_MAX && n <= MAP_PAGES_MAX - page);
	if (map_grow(m, page + n - 1))
		return -ENOMEM;
	while (n) {
		unsigned here = within(page, n, LEAF_PAGES);
		struct leaf *leaf = map_make_leaf(m, page);

		if (!leaf)
			return -ENOMEM;
		if (bytes && leaf_reserve_bytes(leaf, page % LEAF_PAGES, here))
			return -ENOMEM;
		page += here;
		n -= here;
	}
	return 0;
}

void map_set(struct map *m, u64 page, u64 n)
{
	while (n) {
		struct leaf *leaf = map_leaf(m, page);

		assert(leaf);
		for (unsigned in_leaf = within(page, n, LEAF_PAGES); in_leaf;) {
			unsigned here = within(page, in_leaf, 64);

			leaf->written[page % LEAF_PAGES / 64] |= bits_mask(page % 64, here);
			page += here;
			n -= here;
			in_leaf -= here;
		}
	}
}

/* Clears pages of a leaf; true if none is left and it was freed. */
static bool leaf_clear(struct leaf *leaf, unsigned first, unsigned n)
{
	u64 left = 0;

	for (unsigned i = first; leaf->bytes && i < first + n; i++) {
		free(leaf->bytes[i]);
		leaf->bytes[i] = NULL;
	}
	while (n) {
		unsigned here = within(first, n, 64);

		leaf->written[first / 64] &= ~bits_mask(first % 64, here);
		first += here;
		n -= here;
	}
	for (unsigned w = 0; w < LEAF_PAGES / 64; w++)
		left |= leaf->written[w];
	if (left)
		return false;
	for (unsigned i = 0; leaf->bytes && i < LEAF_PAGES; i++)
		free(leaf->bytes[i]);
	free(leaf->bytes);
	free(leaf);
	return true;
}

/* The same for the subtree in *slot, whose first page has number 0; empties *slot if freed. */
static void slot_clear(void **slot, unsigned height, u64 first, u64 n)
{
	struct node *node = *slot;
	unsigned shift, used = 0;

	assert(n && first + n <= span(height));
	if (!*slot)
		return;
	if (!height) {
		if (leaf_clear(*slot, (unsigned)first, (unsigned)n))
			*slot = NULL;
		return;
	}
	shift = height_shift(height - 1);
	for (u64 end = first + n; first < end;) {
		u64 here = min_u64(end - first, span(height - 1) - first % span(height - 1));

		slot_clear(&node->child[first >> shift], height - 1, first % span(height - 1),
			   here);
		first += here;
	}
	for (unsigned i = 0; i < NODE_SLOTS; i++)
		used += node->child[i] != NULL;
	if (!used) {
		free(node);
		*slot = NULL;
	}
}

/* Cuts [page, page + n) to what the tree can hold: how many pages are left. */
static u64 map_reach(const struct map *m, u64 page, u64 n)
{
	return page >= span(m->height) ? 0 : min_u64(n, span(m->height) - page);
}

void map_clear(struct map *m, u64 page, u64 n)
{
	n = map_reach(m, page, n);
	if (n)
		slot_clear(&m->root, m->height, page, n);
	if (!m->root)
		m->height = 0;
}

static bool leaf_any(const struct leaf *leaf, unsigned first, unsigned n)
{
	while (n) {
		unsigned here = within(first, n, 64);

		if (leaf->written[first / 64] & bits_mask(first % 64, here))
			return true;
		first += here;
		n -= here;
	}
	return false;
}

static bool slot_any(const void *slot, unsigned height, u64 first, u64 n)
{
	const struct node *node = slot;

	assert(n && first + n <= span(height));
	if (!slot)
		return false;
	if (!height)
		return leaf_any(slot, (unsigned)first, (unsigned)n);
	for (u64 end = first + n; first < end;) {
		u64 child_span = span(height - 1), at = first % child_span;
		u64 here = min_u64(end - first, child_span - at);

		if (slot_any(node->child[first / child_span], height - 1, at, here))
			return true;
		first += here;
	}
	return false;
}

bool map_any(const struct map *m, u64 page, u64 n)
{
	n = map_reach(m, page, n);
	return n && slot_any(m->root, m->height, page, n);
}

static u64 leaf_next(const struct leaf *leaf, u64 page, u64 end, bool written)
{
	while (page < end) {
		u64 word = leaf->written[page / 64];

		word = (written ? word : ~word) & ~0ull << page % 64;
		if (word)
			return min_u64(end, round_down(page, 64) + bits_first(word));
		page = round_down(page, 64) + 64;
	}
	return end;
}

static u64 slot_next(const void *slot, unsigned height, u64 page, u64 end, bool written)
{
	const struct node *node = slot;

	if (!slot)
		return written ? end : page;
	if (!height)
		return leaf_next(slot, page, end, written);
	while (page < end) {
		u64 child_span = span(height - 1), base = round_down(page, child_span);
		u64 stop = min_u64(end, base + child_span);
		u64 found = base + slot_next(node->child[base / child_span], height - 1,
					     page - base, stop - base, written);

		if (found < stop)
			return found;
		page = stop;
	}
	return end;
}

u64 map_next(const struct map *m, u64 page, u64 end, bool written)
{
	u64 reach = min_u64(end, span(m->height));

	if (page < reach) {
		page = slot_next(m->root, m->height, page, reach, written);
		if (page < reach)
			return page;
	}
	return written ? end : min_u64(page, end);
}

u8 *map_bytes(const struct map *m, u64 page)
{
	const struct leaf *leaf = map_leaf(m, page);

	return leaf && leaf->bytes ? leaf->bytes[page % LEAF_PAGES] : NULL;
}
