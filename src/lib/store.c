// SPDX-License-Identifier: MIT
/*
 * Stores of the program's own: an inode of the engine each, over a device store whose operations
 * are the program's functions. They are found by their `ctx`, in a list, since there are few. A
 * store lives from its first open to its last close; only data that nobody can write makes it
 * outlive that (see sluice_close()).
 */
#include "lib/inner.h"
#include <errno.h>
#include <stdlib.h>

static ssize_t backing_read(void *ctx, const struct iovec *vec, unsigned count, u64 offset)
{
	struct lib_store *s = ctx;

	return s->ops.read(s->ctx, vec, (int)count, offset);
}

static ssize_t backing_write(void *ctx, const struct iovec *vec, unsigned count, u64 offset)
{
	struct lib_store *s = ctx;

	return s->ops.write(s->ctx, vec, (int)count, offset);
}

static int backing_flush(void *ctx)
{
	struct lib_store *s = ctx;

	return s->ops.flush(s->ctx);
}

static int backing_truncate(void *ctx, u64 size_bytes)
{
	struct lib_store *s = ctx;

	return s->ops.truncate(s->ctx, size_bytes);
}

static int backing_reserve(void *ctx, u64 offset, u64 length)
{
	struct lib_store *s = ctx;

	return s->ops.reserve(s->ctx, offset, length);
}

static int backing_size(void *ctx, u64 *size_bytes)
{
	struct lib_store *s = ctx;

	*size_bytes = s->size_bytes;
	return 0;
}

static void backing_close(void *ctx)
{
	struct lib_store *s = ctx;

	if (atomic_load(&s->opened) && s->ops.release)
		s->ops.release(s->ctx);
}

static int open_backing(struct sluice *c, struct lib_store *s, struct store **out)
{
	const struct store_backing backing = {
		.read = backing_read,
		.write = s->ops.write ? backing_write : NULL,
		.flush = s->ops.flush ? backing_flush : NULL,
		.truncate = s->ops.truncate ? backing_truncate : NULL,
		.reserve = s->ops.reserve ? backing_reserve : NULL,
		.size = backing_size,
		.close = backing_close,
	};

	return store_open_custom(c->device, &backing, s, out);
}

static int make(struct sluice *c, struct lib_store *s)
{
	struct inode *inode;
	struct store *store;
	int rc = open_backing(c, s, &store);

	if (rc)
		return rc;
	rc = inode_create_on(c->engine, 0, c->config.block_bytes, store, &inode);
	if (rc) {
		store_destroy(store);
		return rc;
	}
	rc = s->ops.write ? inode_survive_as_store(inode) : 0;
	if (rc)
		inode_destroy(inode);
	else
		s->inode = inode;
	return rc;
}

static struct lib_store *find(struct sluice *c, const void *ctx)
{
	struct list_node *n;

	list_for_each (n, &c->stores) {
		struct lib_store *s = list_entry(n, struct lib_store, link);

		if (s->ctx == ctx)
			return s;
	}
	return NULL;
}

struct lib_store *lib_store_of(struct sluice *c, const struct inode *inode)
{
	struct list_node *n;

	list_for_each (n, &c->stores) {
		struct lib_store *s = list_entry(n, struct lib_store, link);

		if (s->inode == inode)
			return s;
	}
	return NULL;
}

static int add(struct sluice *c, const struct sluice_store *ops, void *ctx, u64 size_bytes,
	       struct lib_store **out)
{
	struct lib_store *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	s->ctx = ctx;
	s->size_bytes = size_bytes;
	rc = make(c, s);
	if (rc) {
		free(s);
		return rc;
	}
	list_add_tail(&c->stores, &s->link);
	*out = s;
	return 0;
}

/* An open of it is over; with the lock held. */
static void drop(struct lib_store *s)
{
	assert(s->opens > 0);
	if (--s->opens)
		return;
	list_del(&s->link);
	inode_destroy(s->inode);
	free(s);
}

int lib_store_get(struct sluice *c, const struct sluice_store *ops, void *ctx, u64 size_bytes,
		  bool to_write, struct lib_store **out)
{
	struct lib_store *s;
	int rc = 0;

	mutex_lock(&c->stores_lock);
	s = find(c, ctx);
	if (to_write && !(s ? &s->ops : ops)->write)
		rc = -EROFS;
	else if (!s)
		rc = add(c, ops, ctx, size_bytes, &s);
	if (!rc) {
		s->opens++;
		s->written_to = s->written_to || to_write;
		*out = s;
	}
	mutex_unlock(&c->stores_lock);
	return rc;
}

void lib_store_put(struct sluice *c, struct lib_store *s)
{
	mutex_lock(&c->stores_lock);
	drop(s);
	mutex_unlock(&c->stores_lock);
}

int lib_store_close(struct sluice_file *f)
{
	struct sluice *c = f->cache;
	struct lib_store *s = f->store;
	bool safe = false;

	for (;;) {
		bool last, done;
		int rc;

		mutex_lock(&c->stores_lock);
		last = s->opens == 1;
		/* others may have written since it was made safe, and closed */
		done = !last || (safe && !inode_unwritten_bytes(s->inode));
		if (done) {
			file_close(f->file);
			drop(s);
		}
		mutex_unlock(&c->stores_lock);
		if (done)
			return 0;
		rc = s->written_to ? file_fsync(f->file, false) : 0;
		if (rc)
			return rc;
		safe = true;
	}
}
