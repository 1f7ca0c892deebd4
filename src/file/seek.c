// SPDX-License-Identifier: MIT
/*
 * Where data and holes are. A page is data if its store has it, or if the cache holds something
 * that the store is to have: dirty or in flight. What is merely cached over a hole is zeros and
 * says nothing.
 *
 * The cache is asked before the store, so that a page that lands in between is seen in one of
 * them.
 */
#include "file/inner.h"

/* The first page in [page, end) that is owed to the store; else end. */
static u64 next_owed(struct mapping *m, u64 page, u64 end)
{
	u64 found;

	spin_lock(&m->tree_lock);
	if (index_next(&m->index, TAG_DIRTY, page, &found))
		end = min_u64(end, found);
	if (index_next(&m->index, TAG_WRITEBACK, page, &found))
		end = min_u64(end, found);
	spin_unlock(&m->tree_lock);
	return end;
}

/* The first page in [page, end) that is not owed to the store; else end. */
static u64 next_settled(struct mapping *m, u64 page, u64 end)
{
	spin_lock(&m->tree_lock);
	while (page < end) {
		struct leaf *leaf = index_leaf(&m->index, page);
		u64 owed = leaf ? leaf->tag[TAG_DIRTY] | leaf->tag[TAG_WRITEBACK] : 0;
		u32 run = bits_run(owed, page % LEAF_PAGES);

		page += run;
		if (!run || page % LEAF_PAGES)
			break;
	}
	spin_unlock(&m->tree_lock);
	return min_u64(page, end);
}

static u64 next_data(struct inode *inode, u64 page, u64 end)
{
	u64 owed = next_owed(&inode->m, page, end);

	return min_u64(owed, store_next(inode->m.store, page, owed, true));
}

bool inode_has_data(struct inode *inode, u64 page)
{
	return next_data(inode, page, page + 1) == page;
}

static u64 next_hole(struct inode *inode, u64 page, u64 end)
{
	while (page < end) {
		u64 cached = next_settled(&inode->m, page, end);
		u64 stored = store_next(inode->m.store, cached, end, false);

		if (stored == cached)
			return cached;
		page = stored;
	}
	return end;
}

s64 file_seek(struct file *f, u64 offset, enum file_seek_what what)
{
	struct inode *inode = f->inode;
	u64 size = size_now(inode), page = offset >> PAGE_SHIFT, end = pages_of(size), found;

	if (what != FILE_SEEK_DATA && what != FILE_SEEK_HOLE)
		return -EINVAL;
	world_spend(COST_SYSCALL, 1);
	if (offset >= size)
		return -ENXIO;
	found = what == FILE_SEEK_DATA ? next_data(inode, page, end) : next_hole(inode, page, end);
	if (what == FILE_SEEK_DATA && found == end)
		return -ENXIO;
	return (s64)min_u64(size, max_u64(offset, found << PAGE_SHIFT));
}
