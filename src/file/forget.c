// SPDX-License-Identifier: MIT
/*
 * Giving up data: what a device would not take is shown, piece by piece, to whoever wants to keep
 * it elsewhere, and then taken out of the cache with its debt. A piece is a run of dirty blocks
 * that lie behind one another in the file and in memory.
 */
#include "cache/fill.h"
#include "file/inner.h"

struct piece {
	void (*fn)(void *ctx, u64 offset, const void *data, u64 length);
	void *ctx;
	u64 offset, length;
	const char *data;
};

static void show_piece(struct piece *p)
{
	if (p->length)
		p->fn(p->ctx, p->offset, p->data, p->length);
	p->length = 0;
}

static void add_piece(struct piece *p, u64 offset, const char *data, u64 length)
{
	if (p->length && offset == p->offset + p->length && data == p->data + p->length) {
		p->length += length;
		return;
	}
	show_piece(p);
	p->offset = offset;
	p->length = length;
	p->data = data;
}

/* Which blocks of a page are dirty, as bits. */
static u32 dirty_blocks(struct mapping *m, u64 page)
{
	u32 shift = m->block_shift, blocks = 0;
	struct leaf *leaf;

	spin_lock(&m->tree_lock);
	leaf = index_leaf(&m->index, page);
	for (u32 i = 0; leaf && i < 1u << shift; i++) {
		u64 block = ((page - leaf_first(leaf)) << shift) + i;

		if (leaf_blocks(leaf, BLOCK_DIRTY, shift)[block / 64] >> block % 64 & 1)
			blocks |= 1u << i;
	}
	spin_unlock(&m->tree_lock);
	return blocks;
}

static void add_page(struct inode *inode, struct piece *p, struct folio *f, u64 page)
{
	u64 size = size_now(inode);
	u32 blocks = dirty_blocks(&inode->m, page);

	for (u32 i = 0; blocks >> i; i++) {
		u64 offset = (page << PAGE_SHIFT) + (u64)i * inode->block_bytes;

		if (blocks >> i & 1 && offset < size)
			add_piece(p, offset, folio_address(f, offset),
				  min_u64(inode->block_bytes, size - offset));
	}
}

void inode_show_unwritten(struct inode *inode,
			  void (*fn)(void *ctx, u64 offset, const void *data, u64 length),
			  void *ctx)
{
	struct mapping *m = &inode->m;
	struct piece p = { .fn = fn, .ctx = ctx };
	u64 page = 0;

	for (;;) {
		struct folio *f;
		bool found;

		spin_lock(&m->tree_lock);
		found = index_next(&m->index, TAG_DIRTY, page, &page);
		spin_unlock(&m->tree_lock);
		if (!found)
			break;
		f = mapping_find(m, page);
		if (!f)
			continue; /* it went: look again */
		add_page(inode, &p, f, page++);
		show_piece(&p); /* while it is held */
		folio_unpin(m->cache, f);
	}
}

int inode_error(struct inode *inode)
{
	int error;

	spin_lock(&inode->m.tree_lock);
	error = inode->m.error;
	spin_unlock(&inode->m.tree_lock);
	return error;
}

int inode_forget_telling(struct inode *inode,
			 void (*fn)(void *ctx, u64 offset, const void *data, u64 length), void *ctx)
{
	struct mapping *m = &inode->m;
	struct piece p = { .fn = fn, .ctx = ctx };
	struct folio *f;

	rwsem_lock(&inode->lock);
	while ((f = lock_folio_from(m, 0, INDEX_MAX_PAGES))) {
		folio_wait_writeback(f);
		for (u64 page = f->index; fn && page < folio_end(f); page++)
			add_page(inode, &p, f, page);
		show_piece(&p);
		mapping_remove(m, f);
		put_locked(m->cache, f);
	}
	store_forgive(m->store);
	inode->reserved = store_size(m->store);
	inode->sparse = true;
	inode_set_size(inode, store_size(m->store));
	rwsem_unlock(&inode->lock);
	return 0;
}

int inode_forget(struct inode *inode)
{
	return inode_forget_telling(inode, NULL, NULL);
}

/* The next run of pages at or after `page` that failed; false: there is none. */
static bool next_failed(struct mapping *m, u64 *page, u64 *end, int *error)
{
	u64 next;
	bool found;

	spin_lock(&m->tree_lock);
	*error = m->error;
	found = index_next(&m->index, TAG_FAILED, *page, page);
	*end = *page + 1;
	while (found && index_next(&m->index, TAG_FAILED, *end, &next) && next == *end)
		++*end;
	spin_unlock(&m->tree_lock);
	return found && *error;
}

void engine_show_unsafe(struct engine *e,
			void (*fn)(void *ctx, struct inode *inode, u64 offset, u64 length,
				   int error),
			void *ctx)
{
	if (!atomic_load(&e->all.failing))
		return; /* as nearly always */
	for (struct inode *inode = NULL; (inode = next_inode(e, inode));) {
		u64 page = 0, end;
		int error;

		for (; next_failed(&inode->m, &page, &end, &error); page = end)
			fn(ctx, inode, page << PAGE_SHIFT, (end - page) << PAGE_SHIFT, error);
	}
}
