// SPDX-License-Identifier: MIT
/*
 * Stores of a caller's own making: each operation is one of the caller's functions, or, where
 * that is absent, what device.h says it then is. An I/O reaches them in calls of at most the
 * device's max_io_bytes. What they return is taken for what it says it is only if it can be that:
 * a count of what was asked for, or a negative errno. Everything else is -EIO, for nobody
 * knows what then has happened.
 */
#include "base/bits.h"
#include "device/model.h"
#include "device/real_store.h"
#include "device/room.h"
#include <errno.h>
#include <stdlib.h>

struct custom_store {
	struct real_store real;
	struct store_backing backing;
	void *ctx;
	struct room room;
};

static struct custom_store *custom_of(struct real_store *r)
{
	return container_of(r, struct custom_store, real);
}

static struct custom_store *custom_of_store(struct store *s)
{
	return custom_of(real_store_of(s));
}

#define ERRNO_MAX 4095 /* what system calls can return */

/* A function's result; `most` is the largest count it can mean. */
static ssize_t checked(ssize_t result, size_t most)
{
	return result < -ERRNO_MAX || (result > 0 && (size_t)result > most) ? -EIO : result;
}

static ssize_t custom_move(struct real_store *r, enum io_op op, struct iovec *vec, unsigned count,
			   size_t length, u64 offset)
{
	struct custom_store *c = custom_of(r);

	if (op == IO_READ)
		return checked(c->backing.read(c->ctx, vec, count, offset), length);
	if (!c->backing.write)
		return -EROFS;
	return checked(c->backing.write(c->ctx, vec, count, offset), length);
}

static int custom_flush(struct real_store *r)
{
	struct custom_store *c = custom_of(r);

	return c->backing.flush ? (int)checked(c->backing.flush(c->ctx), 0) : 0;
}

static void custom_destroy(struct store *s)
{
	struct custom_store *c = custom_of_store(s);

	if (c->backing.close)
		c->backing.close(c->ctx);
	free(c);
}

static int custom_truncate(struct store *s, u64 size_bytes)
{
	struct custom_store *c = custom_of_store(s);
	int error = 0;

	if (c->backing.truncate)
		error = (int)checked(c->backing.truncate(c->ctx, size_bytes), 0);
	else if (size_bytes < real_store_size(s))
		error = -EOPNOTSUPP;
	if (error)
		return error;
	real_store_resized(&c->real, size_bytes);
	room_forget(&c->room, size_bytes, STORE_SIZE_MAX);
	return 0;
}

static bool custom_can_shorten(struct store *s)
{
	return custom_of_store(s)->backing.truncate != NULL;
}

static bool custom_may_be_full(struct store *s)
{
	return custom_of_store(s)->backing.reserve != NULL;
}

static bool custom_has_room(struct store *s, u64 from, u64 to)
{
	struct custom_store *c = custom_of_store(s);

	return !c->backing.reserve || room_covers(&c->room, from, to);
}

static int custom_reserve(struct store *s, u64 from, u64 to)
{
	struct custom_store *c = custom_of_store(s);
	int error = (int)checked(c->backing.reserve(c->ctx, from, to - from), 0);

	if (error)
		return error;
	mutex_lock(&c->room.lock);
	room_add(&c->room, from, to);
	mutex_unlock(&c->room.lock);
	return 0;
}

static int custom_lay_out(struct store *s, u64 size_bytes)
{
	struct custom_store *c = custom_of_store(s);
	int error = store_reserve(s, 0, size_bytes);

	if (!error && size_bytes > real_store_size(s) && c->backing.truncate)
		error = (int)checked(c->backing.truncate(c->ctx, size_bytes), 0);
	if (!error)
		real_store_laid_out(&c->real, size_bytes);
	return error;
}

static int custom_punch(struct store *s, u64 page, u64 n)
{
	return real_store_zero(real_store_of(s), page << PAGE_SHIFT, (page + n) << PAGE_SHIFT);
}

static const struct real_ops custom_real_ops = {
	.move = custom_move,
	.flush = custom_flush,
};

static const struct store_ops custom_ops = {
	.destroy = custom_destroy,
	.size = real_store_size,
	.truncate = custom_truncate,
	.can_shorten = custom_can_shorten,
	.may_refuse = true,
	.set_end = real_store_set_end,
	.any_written = real_store_any_written,
	.next = real_store_next,
	.lay_out = custom_lay_out,
	.has_room = custom_has_room,
	.reserve = custom_reserve,
	.may_be_full = custom_may_be_full,
	.punch = custom_punch,
	.forgive = real_store_forgive,
	.execute = real_store_execute,
};

int store_open_custom(struct device *d, const struct store_backing *ops, void *ctx,
		      struct store **out)
{
	struct custom_store *c;
	u64 size = 0;
	int error = 0;

	if (!d->ops->real || !ops->read)
		return -EINVAL;
	if (ops->size)
		error = ops->size(ctx, &size);
	if (!error && size > STORE_SIZE_MAX)
		error = -EFBIG;
	if (error)
		return error;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->backing = *ops;
	c->ctx = ctx;
	room_init(&c->room);
	real_store_init(&c->real, d, &custom_ops, &custom_real_ops, size);
	c->real.max_move_bytes = d->config.max_io_bytes;
	*out = &c->real.store;
	return 0;
}
