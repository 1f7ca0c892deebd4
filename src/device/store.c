// SPDX-License-Identifier: MIT
/*
 * A store is a size and a map of the pages that were written (map.c), with their bytes if
 * it keeps contents. An I/O touches its store only when it completes without error: a
 * write that fails leaves no trace. Bytes past the size are zero in the map's pages, always, so
 * lengthening a store needs no work.
 *
 * A store without contents gives zeros to readers that bring a buffer; a write that brings
 * none to a store with contents marks its pages written and leaves their bytes.
 */
#include "base/bits.h"
#include "device/map.h"
#include "device/model.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct store {
	struct device *device;
	bool contents;
	struct spinlock lock; /* protects all below; nothing is taken under it */
	u64 size_bytes;
	struct map map;
};

static_assert(STORE_SIZE_MAX >> PAGE_SHIFT == MAP_PAGES_MAX, "the map covers the largest store");

int store_create(struct device *d, bool contents, struct store **out)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->device = d;
	s->contents = contents;
	spin_init(&s->lock, RANK_DEVICE);
	spin_lock(&d->lock);
	d->stores++;
	spin_unlock(&d->lock);
	*out = s;
	return 0;
}

void store_destroy(struct store *s)
{
	struct device *d = s->device;

	map_clear(&s->map, 0, MAP_PAGES_MAX);
	free(s);
	spin_lock(&d->lock);
	assert(d->stores);
	d->stores--;
	spin_unlock(&d->lock);
}

struct device *store_device(const struct store *s)
{
	return s->device;
}

/* The lock of a store that the caller only looks at. */
static struct spinlock *store_lock(const struct store *s)
{
	return (struct spinlock *)&s->lock;
}

u64 store_size(const struct store *s)
{
	u64 size;

	spin_lock(store_lock(s));
	size = s->size_bytes;
	spin_unlock(store_lock(s));
	return size;
}

int store_truncate(struct store *s, u64 size_bytes)
{
	u64 keep = div_roundup(size_bytes, PAGE_SIZE);
	u8 *last;

	assert(size_bytes <= STORE_SIZE_MAX);
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

void store_set_end(struct store *s, u64 size_bytes)
{
	/* a simulated store takes whole blocks: what lies past the end of the file is zeros */
	(void)s;
	(void)size_bytes;
}

int store_reserve(struct store *s, u64 offset_bytes, u64 length_bytes)
{
	/* simulated devices are never full */
	(void)s;
	(void)offset_bytes;
	(void)length_bytes;
	return 0;
}

int store_lay_out(struct store *s, u64 size_bytes)
{
	u64 pages = div_roundup(size_bytes, PAGE_SIZE);
	int error = 0;

	if (size_bytes > STORE_SIZE_MAX)
		return -EFBIG;
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

bool store_any_written(const struct store *s, u64 page, u64 n)
{
	bool any;

	spin_lock(store_lock(s));
	any = map_any(&s->map, page, n);
	spin_unlock(store_lock(s));
	return any;
}

u64 store_next(const struct store *s, u64 page, u64 end, bool written)
{
	spin_lock(store_lock(s));
	page = map_next(&s->map, page, end, written);
	spin_unlock(store_lock(s));
	return page;
}

int store_punch(struct store *s, u64 page, u64 n)
{
	spin_lock(&s->lock);
	map_clear(&s->map, page, n);
	spin_unlock(&s->lock);
	return 0;
}

static void copy_out(const struct store *s, u64 offset, void *buf, size_t length)
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

static void copy_in(struct store *s, u64 offset, const void *buf, size_t length)
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

void store_peek(const struct store *s, u64 offset_bytes, void *buf, size_t length_bytes)
{
	spin_lock(store_lock(s));
	copy_out(s, offset_bytes, buf, length_bytes);
	spin_unlock(store_lock(s));
}

/* Copies between io's vector and its store, whose lock is held; writes are reserved. */
static void store_copy(struct store *s, const struct io *io)
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

static int store_write(struct store *s, const struct io *io)
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
		store_copy(s, io);
		s->size_bytes = max_u64(s->size_bytes, end);
	}
	spin_unlock(&s->lock);
	return error;
}

int store_apply(const struct io *io)
{
	struct store *s = io->store;

	switch (io->op) {
	case IO_WRITE:
		return store_write(s, io);
	case IO_READ:
		spin_lock(&s->lock);
		store_copy(s, io);
		spin_unlock(&s->lock);
		return 0;
	case IO_FLUSH:
		return 0;
	}
	return -EINVAL;
}
