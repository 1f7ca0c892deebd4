// SPDX-License-Identifier: MIT
/*
 * What a file and a caller's own store have in common: they move as many bytes as they like.
 * real_store_execute() turns that into whole I/Os, in the thread that calls it: it goes on
 * after short transfers and interruptions, cuts the vector where the last one ended, and fills
 * what is past the end with zeros. An I/O that io_uring did in part is finished here too; how
 * far it has come stands in io->done_bytes.
 *
 * The cache works in blocks, files end anywhere. Writes are therefore cut at `end`, which the
 * file layer keeps where the file ends for its users, so that nobody who looks at the file ever
 * sees it longer than that. Reads are not cut (O_DIRECT reads blocks only) but what they
 * find past the end is overwritten with zeros.
 *
 * A flush that failed is remembered, and all later ones fail as it did: the kernel says once
 * that it lost what it had accepted, marks those pages clean, and would let the next
 * fdatasync succeed (Rebello et al., "Can applications recover from fsync failures?", 2020).
 */
#include "device/real_store.h"
#include "base/bits.h"
#include "world/world.h"
#include <errno.h>
#include <string.h>

#define SLICE_SEGMENTS 256
#define EAGAIN_TRIES   100 /* of 1 ms each without any progress */
#define ZERO_BYTES     65536

void real_store_init(struct real_store *r, struct device *d, const struct store_ops *ops,
		     const struct real_ops *real, u64 size)
{
	store_init(&r->store, d, ops);
	r->real = real;
	r->max_move_bytes = 1u << 30;
	atomic_init(&r->size, size);
	atomic_init(&r->end, END_UNKNOWN);
	atomic_init(&r->poisoned, 0);
}

u64 real_store_size(struct store *s)
{
	return atomic_load(&real_store_of(s)->size);
}

void real_store_set_end(struct store *s, u64 size_bytes)
{
	assert(size_bytes <= STORE_SIZE_MAX);
	atomic_store(&real_store_of(s)->end, size_bytes);
}

bool real_store_any_written(struct store *s, u64 page, u64 n)
{
	return n && page < div_roundup(real_store_size(s), PAGE_SIZE);
}

/* Without knowing of holes: all that there is was written. */
u64 real_store_next(struct store *s, u64 page, u64 end, bool written)
{
	u64 pages = div_roundup(real_store_size(s), PAGE_SIZE);

	if (written)
		return page < pages ? page : end;
	return min_u64(max_u64(page, pages), end);
}

void real_store_resized(struct real_store *r, u64 size_bytes)
{
	atomic_store(&r->size, size_bytes);
	if (atomic_load(&r->end) != END_UNKNOWN)
		atomic_store(&r->end, size_bytes);
}

void real_store_grown(struct real_store *r, u64 end_bytes)
{
	u64 size = atomic_load(&r->size);

	while (size < end_bytes && !atomic_compare_exchange_weak(&r->size, &size, end_bytes))
		;
}

void real_store_laid_out(struct real_store *r, u64 size_bytes)
{
	u64 end = atomic_load(&r->end);

	real_store_grown(r, size_bytes);
	while (end < size_bytes && !atomic_compare_exchange_weak(&r->end, &end, size_bytes))
		;
}

u64 real_store_write_bytes(const struct real_store *r, const struct io *io)
{
	u64 end = atomic_load(&r->end);

	return end <= io->offset_bytes ? 0 : min_u64(io->length_bytes, end - io->offset_bytes);
}

/* Makes io's bytes from `from` on zero. */
static void io_zero(const struct io *io, u64 from)
{
	u64 at = 0;

	for (u32 i = 0; i < io->vec_count && at < io->length_bytes; i++) {
		const struct iovec *v = &io->vec[i];
		u64 n = min_u64(v->iov_len, io->length_bytes - at);

		if (at + n > from) {
			u64 skip = from > at ? from - at : 0;

			memset((u8 *)v->iov_base + skip, 0, n - skip);
		}
		at += n;
	}
}

/* io's bytes [from, to), or as many of them as fit: their vector, and how many they are. */
static size_t io_slice(const struct io *io, u64 from, u64 to, struct iovec *vec, unsigned *count)
{
	size_t length = 0;
	u64 at = 0;

	*count = 0;
	for (u32 i = 0; i < io->vec_count && at < to && *count < SLICE_SEGMENTS; i++) {
		const struct iovec *v = &io->vec[i];
		u64 skip = from > at ? min_u64(from - at, v->iov_len) : 0;
		u64 n = min_u64(v->iov_len, to - at);

		at += v->iov_len;
		if (n <= skip)
			continue;
		vec[(*count)++] = (struct iovec){ (u8 *)v->iov_base + skip, n - skip };
		length += n - skip;
	}
	assert(length);
	return length;
}

/* Moves io's bytes from done_bytes up to `limit`. */
static int move_all(struct real_store *r, struct io *io, u64 limit)
{
	unsigned tries = 0;

	while (io->done_bytes < limit) {
		struct iovec vec[SLICE_SEGMENTS];
		unsigned count;
		u64 to = min_u64(limit, (u64)io->done_bytes + r->max_move_bytes);
		size_t length = io_slice(io, io->done_bytes, to, vec, &count);
		u64 offset = io->offset_bytes + io->done_bytes;
		ssize_t moved = r->real->move(r, io->op, vec, count, length, offset);

		if (moved == -EINTR)
			continue;
		if (moved == -EAGAIN && ++tries < EAGAIN_TRIES) {
			world_sleep_until(world_now() + NSEC_PER_MSEC);
			continue;
		}
		if (moved < 0)
			return (int)moved;
		if ((size_t)moved > length)
			return -EIO;
		if (!moved && io->op == IO_READ)
			return 0;
		if (!moved)
			return -EIO;
		tries = 0;
		io->done_bytes += (u32)moved;
		if (io->op == IO_WRITE)
			real_store_grown(r, offset + (size_t)moved);
	}
	return 0;
}

/* io has read all there was: what is past the end becomes zeros. */
static void read_is_over(const struct real_store *r, const struct io *io)
{
	u64 end = atomic_load(&r->end), got = io->done_bytes;

	if (end < io->offset_bytes + got)
		got = end > io->offset_bytes ? end - io->offset_bytes : 0;
	if (got < io->length_bytes)
		io_zero(io, got);
}

static int flush(struct real_store *r)
{
	int error = atomic_load(&r->poisoned);

	if (error || !r->real->flush)
		return error;
	do
		error = r->real->flush(r);
	while (error == -EINTR);
	if (error)
		atomic_store(&r->poisoned, error);
	return error;
}

void real_store_forgive(struct store *s)
{
	atomic_store(&real_store_of(s)->poisoned, 0);
}

int real_store_execute(struct store *s, struct io *io)
{
	struct real_store *r = real_store_of(s);
	int error;

	if (io->op == IO_FLUSH)
		return flush(r);
	if (io->offset_bytes > STORE_SIZE_MAX ||
	    (io->op == IO_WRITE && io->offset_bytes + io->length_bytes > STORE_SIZE_MAX))
		return -EFBIG;
	assert(io->vec);
	if (io->op == IO_WRITE)
		return move_all(r, io, real_store_write_bytes(r, io));
	if (atomic_load(&r->end) <= io->offset_bytes) {
		io_zero(io, 0);
		return 0;
	}
	error = move_all(r, io, io->length_bytes);
	if (!error)
		read_is_over(r, io);
	return error;
}

bool real_store_landed(struct store *s, struct io *io, s64 result, int *error)
{
	struct real_store *r = real_store_of(s);

	assert(io->op != IO_FLUSH);
	*error = 0;
	if (result < 0) { /* what may be otherwise when done again, or through the page cache */
		*error = (int)result;
		return result != -EINTR && result != -EAGAIN && result != -EINVAL &&
		       result != -EOPNOTSUPP;
	}
	assert((u64)result <= io->length_bytes);
	io->done_bytes = (u32)result;
	if (io->op == IO_WRITE) {
		real_store_grown(r, io->offset_bytes + io->done_bytes);
		return io->done_bytes == io->length_bytes;
	}
	if (io->done_bytes < io->length_bytes &&
	    io->offset_bytes + io->done_bytes < atomic_load(&r->end))
		return false;
	read_is_over(r, io);
	return true;
}

int real_store_zero(struct real_store *r, u64 from, u64 to)
{
	static u8 zeros[ZERO_BYTES] __attribute__((aligned(PAGE_SIZE)));

	to = min_u64(to, real_store_size(&r->store));
	while (from < to) {
		struct iovec vec = { zeros, min_u64(sizeof(zeros), to - from) };
		struct io io = { .store = &r->store,
				 .op = IO_WRITE,
				 .offset_bytes = from,
				 .length_bytes = (u32)vec.iov_len,
				 .vec = &vec,
				 .vec_count = 1 };
		int error = move_all(r, &io, io.length_bytes);

		if (error)
			return error;
		from += io.length_bytes;
	}
	return 0;
}
