// SPDX-License-Identifier: MIT
/*
 * A simulated store is a size and a map of the pages that were written (map.c), with their
 * bytes if it keeps contents. An I/O touches its store only when it completes without error: a
 * write that fails leaves no trace. Bytes past the size are zero in the map's pages, always, so
 * lengthening a store needs no work.
 *
 * A store without contents gives zeros to readers that bring a buffer; a write that brings
 * none to a store with contents marks its pages written and leaves their bytes.
 */
#include "base/bits.h"
#include "device/map.h"
#include "device/store.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct map_store {
	struct store store;
	bool contents;
	struct spinlock lock; /* protects all below; nothing is taken under it */
	u64 size_bytes;
	struct map map;
};

static_assert(STORE_SIZE_MAX >> PAGE_SHIFT == MAP_PAGES_MAX, "the map covers the largest store");

static struct map_store *map_store_of(struct store *s)
{
	return container_of(s, struct map_store, store);
}

static void map_store_destroy(struct store *store)
{
	struct map_store *s = map_store_of(store);

	map_clear(&s->map, 0, MAP_PAGES_MAX);
	free(s);
}

static u64 map_store_size(struct store *store)
{
	struct map_store *s = map_store_of(store);
	u64 size;

	spin_lock(&s->lock);
	size = s->size_bytes;
	spin_unlock(&s->lock);
	return size;
}

static int map_store_truncate(struct store *store, u64 size_bytes)
{
	struct map_store *s = map_store_of(store);
	u64 keep = div_roundup(size_bytes, PAGE_SIZE);
	u8 *last;

	spin_lock(&s->lock);
	if (size_bytes < s->size_bytes) {
		map_clear(&s->map, keep, MAP_PAGES_MAX - keep);
		last = size_bytes % PAGE_SIZE ? map_bytes(&s->map, keep - 1) : NULL;
		if (last)
			memset(last + size_bytes % PAGE_SIZE, 0,
			       PAGE_SIZE - size_bytes % PAGE_SIZE);
	}
	s->size_bytes = size_bytes;
	spin_unlock(&s->lock);
	return 0;
}

static u64 map_store_next(struct store *store, u64 page, u64 end, bool written)
{
	struct map_store *s = map_store_of(store);

	spin_lock(&s->lock);
	page = map_next(&s->map, page, end, written);
	spin_unlock(&s->lock);
	return page;
}

static int map_store_lay_out(struct store *store, u64 size_bytes)
{
	struct map_store *s = map_store_of(store);
	u64 pages = div_roundup(size_bytes, PAGE_SIZE);
	int error = 0;

	if (!pages)
		return 0;
	spin_lock(&s->lock);
	error = map_reserve(&s->map, 0, pages, false);
	if (!error) {
		map_set(&s->map, 0, pages);
		s->size_bytes = max_u64(s->size_bytes, size_bytes);
	}
	spin_unlock(&s->lock);
	return error;
}

static bool map_store_any_written(struct store *store, u64 page, u64 n)
{
	struct map_store *s = map_store_of(store);
	bool any;

	spin_lock(&s->lock);
	any = map_any(&s->map, page, n);
	spin_unlock(&s->lock);
	return any;
}

static int map_store_punch(struct store *store, u64 page, u64 n)
{
	struct map_store *s = map_store_of(store);

	spin_lock(&s->lock);
	map_clear(&s->map, page, n);
	spin_unlock(&s->lock);
	return 0;
}

static void copy_out(const struct map_store *s, u64 offset, void *buf, size_t length)
{
	for (u8 *to = buf; length;) {
		size_t here = min_u64(length, PAGE_SIZE - offset % PAGE_SIZE);
		const u8 *page = map_bytes(&s->map, offset >> PAGE_SHIFT);

		if (page)
			memcpy(to, page + offset % PAGE_SIZE, here);
		else
			memset(to, 0, here);
		to += here;
		offset += here;
		length -= here;
	}
}

static void copy_in(struct map_store *s, u64 offset, const void *buf, size_t length)
{
	for (const u8 *from = buf; length;) {
		size_t here = min_u64(length, PAGE_SIZE - offset % PAGE_SIZE);
		u8 *page = map_bytes(&s->map, offset >> PAGE_SHIFT);

		assert(page);
		memcpy(page + offset % PAGE_SIZE, from, here);
		from += here;
		offset += here;
		length -= here;
	}
}

/* Copies between io's vector and its store, whose lock is held; writes are reserved. */
static void map_store_copy(struct map_store *s, const struct io *io)
{
	u64 done = 0;

	assert(spin_is_held(&s->lock));
	for (u32 i = 0; io->vec && i < io->vec_count; i++) {
		const struct iovec *v = &io->vec[i];
		size_t n = min_u64(v->iov_len, io->length_bytes - done);

		if (io->op == IO_READ)
			copy_out(s, io->offset_bytes + done, v->iov_base, n);
		else if (s->contents)
			copy_in(s, io->offset_bytes + done, v->iov_base, n);
		done += n;
	}
	assert(!io->vec || done == io->length_bytes);
}

static int map_store_write(struct map_store *s, const struct io *io)
{
	u64 end = io->offset_bytes + io->length_bytes;
	u64 first = io->offset_bytes >> PAGE_SHIFT;
	u64 n = div_roundup(end, PAGE_SIZE) - first;
	int error;

	if (io->offset_bytes > STORE_SIZE_MAX || end > STORE_SIZE_MAX)
		return -EFBIG;
	spin_lock(&s->lock);
	error = map_reserve(&s->map, first, n, s->contents && io->vec);
	if (!error) {
		map_set(&s->map, first, n);
		map_store_copy(s, io);
		s->size_bytes = max_u64(s->size_bytes, end);
	}
	spin_unlock(&s->lock);
	return error;
}

static int map_store_execute(struct store *store, struct io *io)
{
	struct map_store *s = map_store_of(store);

	switch (io->op) {
	case IO_WRITE:
		return map_store_write(s, io);
	case IO_READ:
		spin_lock(&s->lock);
		map_store_copy(s, io);
		spin_unlock(&s->lock);
		return 0;
	case IO_FLUSH:
	case IO_ASK:
		return 0;
	}
	return -EINVAL;
}

static const struct store_ops map_store_ops = {
	.destroy = map_store_destroy,
	.size = map_store_size,
	.truncate = map_store_truncate,
	.any_written = map_store_any_written,
	.next = map_store_next,
	.lay_out = map_store_lay_out,
	.punch = map_store_punch,
	.execute = map_store_execute,
};

int store_create(struct device *d, bool contents, struct store **out)
{
	struct map_store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->contents = contents;
	spin_init(&s->lock, RANK_DEVICE);
	store_init(&s->store, d, &map_store_ops);
	*out = &s->store;
	return 0;
}
