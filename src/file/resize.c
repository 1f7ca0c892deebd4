// SPDX-License-Identifier: MIT
/* The memory of an engine: how much it may have, and how much it has. */
#include "file/inner.h"

int engine_resize(struct engine *e, u64 memory_bytes, u64 timeout_ns)
{
	u64 left;

	if (memory_bytes % PAGE_SIZE)
		return -EINVAL;
	return cache_resize(&e->cache, memory_bytes / PAGE_SIZE, timeout_ns, &left);
}

void engine_memory(struct engine *e, struct engine_memory *out)
{
	struct memory_use arena = memory_use(&e->cache.arena.memory);
	struct memory_use table = memory_use(&e->cache.table);
	u64 leaves = 0;
	struct list_node *n;

	mutex_lock(&e->inodes_lock);
	list_for_each (n, &e->inodes) {
		struct inode *inode = list_entry(n, struct inode, all);

		spin_lock(&inode->m.tree_lock);
		leaves += inode->m.index.memory_bytes;
		spin_unlock(&inode->m.tree_lock);
	}
	mutex_unlock(&e->inodes_lock);
	*out = (struct engine_memory){
		.memory_bytes = cache_size(&e->cache) * PAGE_SIZE,
		.resident_bytes = arena.resident_bytes,
		.huge_bytes = arena.huge_bytes,
		.overhead_bytes = table.resident_bytes + leaves,
	};
}

struct writeback *engine_writeback(struct engine *e)
{
	return &e->all;
}
