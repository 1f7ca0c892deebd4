// SPDX-License-Identifier: MIT
/*
 * A store is one file's place on a device. Who uses it does not know of which kind it is:
 * pages in a map of ours (store_map.c), a file of the system's (store_fd.c) or whatever a
 * caller's own functions reach (store_custom.c); each is a table of functions, and this is
 * the front before them. It holds what is the same for all: the largest size, and that a
 * device knows how many stores it has.
 */
#include "device/store.h"
#include "device/model.h"
#include <errno.h>

void store_init(struct store *s, struct device *d, const struct store_ops *ops)
{
	s->device = d;
	s->ops = ops;
	spin_lock(&d->lock);
	d->stores++;
	spin_unlock(&d->lock);
}

void store_destroy(struct store *s)
{
	struct device *d = s->device;

	s->ops->destroy(s);
	spin_lock(&d->lock);
	assert(d->stores);
	d->stores--;
	spin_unlock(&d->lock);
}

struct device *store_device(const struct store *s)
{
	return s->device;
}

/* Functions that only look take their store as one that may be locked. */
static struct store *looked_at(const struct store *s)
{
	return (struct store *)s;
}

u64 store_size(const struct store *s)
{
	return s->ops->size(looked_at(s));
}

int store_truncate(struct store *s, u64 size_bytes)
{
	return size_bytes > STORE_SIZE_MAX ? -EFBIG : s->ops->truncate(s, size_bytes);
}

bool store_can_shorten(const struct store *s)
{
	return !s->ops->can_shorten || s->ops->can_shorten(looked_at(s));
}

u64 store_limit(const struct store *s)
{
	return s->ops->limit ? s->ops->limit(looked_at(s)) : STORE_SIZE_MAX;
}

bool store_may_refuse(const struct store *s)
{
	return s->ops->may_refuse;
}

void store_set_end(struct store *s, u64 size_bytes)
{
	if (s->ops->set_end)
		s->ops->set_end(s, size_bytes);
}

bool store_any_written(const struct store *s, u64 page, u64 n)
{
	return s->ops->any_written(looked_at(s), page, n);
}

u64 store_next(const struct store *s, u64 page, u64 end, bool written)
{
	return page < end ? s->ops->next(looked_at(s), page, end, written) : end;
}

int store_lay_out(struct store *s, u64 size_bytes)
{
	return size_bytes > STORE_SIZE_MAX ? -EFBIG : s->ops->lay_out(s, size_bytes);
}

bool store_has_room(const struct store *s, u64 offset_bytes, u64 length_bytes)
{
	return !s->ops->has_room ||
	       s->ops->has_room(looked_at(s), offset_bytes, offset_bytes + length_bytes);
}

bool store_may_be_full(const struct store *s)
{
	return s->ops->may_be_full ? s->ops->may_be_full(looked_at(s)) : s->ops->reserve != NULL;
}

int store_reserve(struct store *s, u64 offset_bytes, u64 length_bytes)
{
	if (offset_bytes > STORE_SIZE_MAX || length_bytes > STORE_SIZE_MAX - offset_bytes)
		return -EFBIG;
	if (!length_bytes || store_has_room(s, offset_bytes, length_bytes))
		return 0;
	return s->ops->reserve(s, offset_bytes, offset_bytes + length_bytes);
}

void store_keep_room(struct store *s)
{
	atomic_store(&s->keeps_room, true);
}

bool store_keeps_room(const struct store *s)
{
	return atomic_load(&s->keeps_room);
}

void store_forgive(struct store *s)
{
	if (s->ops->forgive)
		s->ops->forgive(s);
}

int store_punch(struct store *s, u64 page, u64 n)
{
	return s->ops->punch(s, page, n);
}

void store_peek(const struct store *s, u64 offset_bytes, void *buf, size_t length_bytes)
{
	while (length_bytes) {
		u32 here = (u32)min_u64(length_bytes, 1u << 30);
		struct iovec vec = { buf, here };
		struct io io = { .store = looked_at(s),
				 .op = IO_READ,
				 .offset_bytes = offset_bytes,
				 .length_bytes = here,
				 .vec = &vec,
				 .vec_count = 1 };
		int error = store_execute(&io);

		assert(!error);
		(void)error;
		buf = (char *)buf + here;
		offset_bytes += here;
		length_bytes -= here;
	}
}
