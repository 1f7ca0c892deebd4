// SPDX-License-Identifier: MIT
/*
 * What is told of data that is given up or could not be written, and structs of programs of another
 * age.
 */
#include "lib/inner.h"
#include <errno.h>
#include <string.h>

struct telling {
	const struct lib_losing *to;
	struct sluice_loss loss;
};

static void tell(void *ctx, u64 offset, const void *data, u64 length)
{
	struct telling *t = ctx;

	t->loss.offset = offset;
	t->loss.length = length;
	t->loss.data = data;
	t->to->lost(t->to->ctx, &t->loss);
}

static struct telling begin(const struct lib_losing *to, struct inode *inode, int error)
{
	return (struct telling){ .to = to,
				 .loss = { .size = sizeof(struct sluice_loss),
					   .path = to->store ? NULL : path_of_inode(inode),
					   .store_ctx = to->store ? to->store->ctx : NULL,
					   .error = error } };
}

void lib_tell_losses(const struct lib_losing *to, struct inode *inode, int error)
{
	struct telling t = begin(to, inode, error);

	if (to->lost)
		inode_show_unwritten(inode, tell, &t);
}

int lib_forget(const struct lib_losing *to, struct inode *inode)
{
	struct telling t = begin(to, inode, inode_error(inode));

	return inode_forget_telling(inode, to->lost ? tell : NULL, &t);
}

struct showing {
	struct sluice *cache;
	void (*show)(void *ctx, const struct sluice_unsafe *what);
	void *ctx;
};

static void show_unsafe(void *ctx, struct inode *inode, u64 offset, u64 length, int error)
{
	const struct showing *s = ctx;
	const struct lib_store *store = lib_store_of(s->cache, inode);
	const struct sluice_unsafe what = { .size = sizeof(what),
					    .path = store ? NULL : path_of_inode(inode),
					    .store_ctx = store ? store->ctx : NULL,
					    .ino = inode->ino,
					    .offset = offset,
					    .length = length,
					    .error = error };

	s->show(s->ctx, &what);
}

int sluice_show_unsafe(struct sluice *c, void (*show)(void *ctx, const struct sluice_unsafe *what),
		       void *ctx)
{
	struct showing s = { .cache = c, .show = show, .ctx = ctx };

	/* a store's last close waits, with this lock held, for those who look at its file */
	mutex_lock(&c->stores_lock);
	engine_show_unsafe(c->engine, show_unsafe, &s);
	mutex_unlock(&c->stores_lock);
	return 0;
}

int lib_copy_struct(void *to, size_t to_size, const void *from, u64 size, u64 size_min)
{
	const char *bytes = from;

	if (size < size_min || size % sizeof(u64))
		return -EINVAL;
	for (u64 i = to_size; i < size; i++)
		if (bytes[i])
			return -EINVAL; /* it asks for what this library does not know */
	memset(to, 0, to_size);
	memcpy(to, from, min_u64(size, to_size));
	return 0;
}
