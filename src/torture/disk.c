// SPDX-License-Identifier: MIT
/*
 * A disk with a volatile cache. Each store has its bytes twice: `now`, what reads are answered
 * from, and `media`, what is there after a power loss. A write that is done goes into `now` and
 * into a log; a flush moves to the media what was in the log when it was sent. So at any instant
 * the media and any subset of the log, cut at sectors, are what a power loss may leave
 * (Pillai and others, "All File Systems Are Not Created Equal", OSDI 2014, call these the states
 * of the block device). Writes in flight may leave sectors, too.
 *
 * Space is counted in pages over all stores of a disk, for those that are to run out of it: a
 * page costs when room is made for it, and a write that finds none made and none left is what
 * the engine has promised never to happen, so it is counted.
 *
 * Bytes move by real_store.c, as those of files and of a caller's own stores do: in pieces, if the
 * disk is told to move some only, and up to the end of the file, except in stores that are as
 * simulated ones are and take whole blocks. What else tells kinds of stores apart is in `kinds`.
 */
#include "base/bits.h"
#include "torture/disk_store.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void forget_logged(struct disk_logged *l)
{
	list_del(&l->link);
	free(l->bytes);
	free(l);
}

/* Takes part of a change over, or all of it. */
void disk_apply(u8 *to, const struct disk_logged *l, u64 from, u64 end)
{
	from = max_u64(from, l->from);
	end = min_u64(end, l->to);
	if (from >= end)
		return;
	if (l->bytes)
		memcpy(to + from, l->bytes + (from - l->from), end - from);
	else
		memset(to + from, 0, end - from);
}

/* A change becomes visible, and is in danger until the next flush. Takes the bytes. */
void disk_enter(struct disk_store *s, u64 from, u64 to, u8 *bytes)
{
	struct disk_logged *l = malloc(sizeof(*l));

	if (!l)
		abort();
	*l = (struct disk_logged){
		.sequence = ++s->disk->sequence, .from = from, .to = to, .bytes = bytes
	};
	list_add_tail(&s->log, &l->link);
	disk_apply(s->now, l, from, to);
}

void disk_give_room(struct disk_store *s, u64 first, u64 end, bool wanted)
{
	for (u64 i = first; i < min_u64(end, s->pages); i++) {
		if (!s->roomy)
			s->disk->used_pages += (u64)wanted - s->room[i];
		s->room[i] = wanted;
		s->written[i] = s->written[i] && wanted;
	}
}

u64 disk_room_missing(const struct disk_store *s, u64 from, u64 to)
{
	u64 missing = 0, end = min_u64(div_roundup(to, PAGE_SIZE), s->pages);

	if (s->roomy)
		return 0;
	for (u64 i = from >> PAGE_SHIFT; i < end; i++)
		missing += !s->room[i];
	return missing;
}

static void store_end(struct store *store)
{
	struct disk_store *s = disk_store_of(store);

	while (!list_empty(&s->log))
		forget_logged(list_entry(s->log.next, struct disk_logged, link));
	disk_give_room(s, 0, s->pages, false);
	list_del(&s->link);
	free(s->now);
	free(s->media);
	free(s->written);
	free(s->room);
	free(s);
}

/* Whether a call that is no I/O is refused: an error, or 0. */
static int refuses(const struct disk_store *s)
{
	return s->disk->refuses ? s->disk->refuses(s->disk->ctx, s->disk) : 0;
}

static int set_size(struct store *store, u64 bytes)
{
	struct disk_store *s = disk_store_of(store);
	u64 old = real_store_size(store);

	if (bytes > s->bytes)
		return -EFBIG;
	if (bytes < old) {
		disk_enter(s, bytes, s->bytes, NULL);
		disk_give_room(s, div_roundup(bytes, PAGE_SIZE), s->pages, false);
	}
	real_store_resized(&s->real, bytes);
	return 0;
}

static int set_size_maybe(struct store *store, u64 bytes)
{
	int rc = refuses(disk_store_of(store));

	return rc ? rc : set_size(store, bytes);
}

static bool can_not(struct store *store)
{
	(void)store;
	return false;
}

static int lengthen_only(struct store *store, u64 bytes)
{
	return bytes < real_store_size(store) ? -EOPNOTSUPP : set_size(store, bytes);
}

static u64 next(struct store *store, u64 page, u64 end, bool written)
{
	struct disk_store *s = disk_store_of(store);

	while (page < end && (page < s->pages && s->written[page]) != written)
		page++;
	return page;
}

static bool any_written(struct store *store, u64 page, u64 n)
{
	return next(store, page, page + n, true) < page + n;
}

static bool has_room(struct store *store, u64 from, u64 to)
{
	struct disk_store *s = disk_store_of(store);

	return !s->disk->room_pages || !disk_room_missing(s, from, to);
}

static int reserve(struct store *store, u64 from, u64 to)
{
	struct disk_store *s = disk_store_of(store);

	int rc = refuses(s);

	if (rc)
		return rc;
	if (s->disk->used_pages + disk_room_missing(s, from, to) > s->disk->room_pages)
		return -ENOSPC;
	disk_give_room(s, from >> PAGE_SHIFT, div_roundup(to, PAGE_SIZE), true);
	return 0;
}

static bool may_be_full(struct store *store)
{
	return disk_store_of(store)->disk->room_pages;
}

static int lay_out(struct store *store, u64 bytes)
{
	struct disk_store *s = disk_store_of(store);

	if (bytes > s->bytes)
		return -EFBIG;
	if (s->disk->room_pages && reserve(store, 0, bytes))
		return -ENOSPC;
	disk_give_room(s, 0, div_roundup(bytes, PAGE_SIZE), true);
	memset(s->written, 1, div_roundup(bytes, PAGE_SIZE));
	real_store_laid_out(&s->real, bytes);
	return 0;
}

static int punch(struct store *store, u64 page, u64 n)
{
	struct disk_store *s = disk_store_of(store);
	u64 end = min_u64(page + n, s->pages);
	int rc = refuses(s);

	if (rc || page >= end)
		return rc;
	disk_enter(s, page << PAGE_SHIFT, end << PAGE_SHIFT, NULL);
	disk_give_room(s, page, end, false);
	return 0;
}

/* For a store that knows no holes. */
static int write_zeros(struct store *store, u64 page, u64 n)
{
	struct disk_store *s = disk_store_of(store);
	u64 from = page << PAGE_SHIFT;
	u64 to = min_u64((page + n) << PAGE_SHIFT, real_store_size(store));
	int rc = refuses(s);

	if (!rc && from < to)
		disk_enter(s, from, to, NULL);
	return rc;
}

/* --- bytes */

/* Copies between vectors and bytes that lie in one piece. */
static void copy_vec(const struct iovec *vec, u8 *bytes, u64 n, bool gather)
{
	u64 done = 0;

	for (u32 i = 0; done < n; i++) {
		u64 here = min_u64(vec[i].iov_len, n - done);

		if (gather)
			memcpy(bytes + done, vec[i].iov_base, here);
		else
			memcpy(vec[i].iov_base, bytes + done, here);
		done += here;
	}
}

u8 *disk_gather(const struct iovec *vec, u64 n)
{
	u8 *bytes = malloc(n);

	if (!bytes)
		abort();
	copy_vec(vec, bytes, n, true);
	return bytes;
}

/*
 * How many of so many bytes are moved at once; or a negative errno. They end with a sector, since a
 * sector is written or is not.
 */
static ssize_t to_move(struct disk *d, u64 offset, u64 length)
{
	u64 n;

	if (d->breaks && d->breaks_in-- == 0)
		return d->breaks;
	if (!d->breaks && !(d->cuts && rng_below(&d->rng, 4) == 0))
		return (ssize_t)length;
	if (rng_below(&d->rng, 8) == 0)
		return -EINTR;
	n = 1 + rng_below(&d->rng, length);
	return (ssize_t)min_u64(round_up(offset + n, DISK_SECTOR) - offset, length);
}

/* What is written at the end of a file takes the rest of its sector along, as in file systems. */
static void enter_written(struct disk_store *s, u64 offset, u64 end, const struct iovec *vec)
{
	u64 whole = end < real_store_size(&s->real.store) ? end : round_up(end, DISK_SECTOR);
	u8 *bytes = calloc(1, whole - offset);

	if (!bytes)
		abort();
	copy_vec(vec, bytes, end - offset, true);
	disk_enter(s, offset, whole, bytes);
}

static ssize_t move(struct real_store *r, enum io_op op, struct iovec *vec, unsigned count,
		    size_t length, u64 offset)
{
	struct disk_store *s = container_of(r, struct disk_store, real);
	ssize_t n = to_move(s->disk, offset, length);
	u64 end = offset + (u64)n;

	(void)count;
	if (n < 0)
		return n;
	if (op == IO_READ) {
		u64 here = offset < s->bytes ? min_u64((u64)n, s->bytes - offset) : 0;

		copy_vec(vec, s->now + min_u64(offset, s->bytes), here, false);
		return (ssize_t)here;
	}
	if (end > s->bytes)
		return -EFBIG;
	disk_give_room(s, offset >> PAGE_SHIFT, div_roundup(end, PAGE_SIZE), true);
	memset(s->written + (offset >> PAGE_SHIFT), 1,
	       div_roundup(end, PAGE_SIZE) - (offset >> PAGE_SHIFT));
	enter_written(s, offset, end, vec);
	return n;
}

static u64 sent_at(const struct disk *d, const struct io *io)
{
	for (u32 i = 0; i < d->flights; i++)
		if (d->flight[i].io == io)
			return d->flight[i].sequence;
	return d->sequence; /* an immediate device */
}

static void flush(struct disk *d, u64 sequence)
{
	struct list_node *i, *n, *after;

	list_for_each (i, &d->stores) {
		struct disk_store *s = list_entry(i, struct disk_store, link);

		list_for_each_safe (n, after, &s->log) {
			struct disk_logged *l = list_entry(n, struct disk_logged, link);

			if (l->sequence > sequence)
				break;
			if (d->sabotage != SABOTAGE_FLUSH || rng_below(&d->rng, 4))
				disk_apply(s->media, l, l->from, l->to);
			forget_logged(l);
		}
	}
}

void disk_flush(struct disk *d)
{
	flush(d, d->sequence);
}

static int write_bytes(struct disk_store *s, struct io *io)
{
	u64 end = io->offset_bytes + real_store_write_bytes(&s->real, io);
	u64 missing = disk_room_missing(s, io->offset_bytes, end);

	/*
	 * After a power loss there may be more than is allowed: that may be written over. One's own
	 * store is cut off before the pages of the cache are, and may be written to meanwhile.
	 */
	if (s->disk->room_pages && missing && !store_may_refuse(&s->real.store) &&
	    s->disk->used_pages + missing > s->disk->room_pages) {
		s->disk->overruns += io->writeback;
		return -ENOSPC;
	}
	if (s->disk->sabotage == SABOTAGE_WRITE && rng_below(&s->disk->rng, 4) == 0)
		return 0;
	return real_store_execute(&s->real.store, io);
}

static int execute(struct store *store, struct io *io)
{
	struct disk_store *s = disk_store_of(store);
	int rc = 0;

	if (io->op == IO_WRITE)
		rc = write_bytes(s, io);
	else if (io->op == IO_READ)
		rc = real_store_execute(store, io);
	else
		flush(s->disk, sent_at(s->disk, io));
	s->disk->breaks = 0;
	disk_over(s->disk, io);
	return rc;
}

static const struct real_ops real_ops = { .move = move };

#define COMMON .destroy = store_end, .size = real_store_size, .lay_out = lay_out, .execute = execute
#define ROOM   .has_room = has_room, .reserve = reserve, .may_be_full = may_be_full
#define HOLES  .any_written = any_written, .next = next, .punch = punch
#define SOLID  .any_written = real_store_any_written, .next = real_store_next, .punch = write_zeros

static const struct store_ops kinds[] = {
	[DISK_BLOCKS] = { COMMON, ROOM, HOLES, .truncate = set_size },
	[DISK_FILE] = { COMMON, ROOM, HOLES, .truncate = set_size, .set_end = real_store_set_end },
	[DISK_CUSTOM] = { COMMON, ROOM, SOLID, .truncate = set_size_maybe, .may_refuse = true,
			  .set_end = real_store_set_end },
	[DISK_BARE] = { COMMON, SOLID, .truncate = lengthen_only, .can_shorten = can_not,
			.may_refuse = true, .set_end = real_store_set_end },
};

static_assert(ARRAY_SIZE(kinds) == DISK_KINDS, "a table for each kind");

void disk_init(struct disk *d, struct device *device, u64 seed)
{
	*d = (struct disk){ .device = device };
	list_init(&d->stores);
	rng_init(&d->rng, seed);
}

int disk_store_create(struct disk *d, enum disk_kind kind, u64 bytes, struct store **out)
{
	struct disk_store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->disk = d;
	s->roomy = kind == DISK_BARE;
	s->bytes = round_up(bytes, PAGE_SIZE);
	s->pages = s->bytes >> PAGE_SHIFT;
	s->now = calloc(1, s->bytes);
	s->media = calloc(1, s->bytes);
	s->written = calloc(1, s->pages);
	s->room = calloc(1, s->pages);
	if (!s->now || !s->media || !s->written || !s->room)
		abort();
	list_init(&s->log);
	list_add_tail(&d->stores, &s->link);
	real_store_init(&s->real, d->device, &kinds[kind], &real_ops, 0);
	s->real.max_move_bytes = 1u << 20;
	*out = &s->real.store;
	return 0;
}

void disk_sent(struct disk *d, const struct io *io)
{
	for (u32 i = 0; i < d->flights; i++)
		if (d->flight[i].io == io)
			return; /* another request of it */
	assert(d->flights < DISK_IN_FLIGHT_MAX);
	d->flight[d->flights++] = (struct disk_flight){ io, d->sequence };
}

void disk_over(struct disk *d, const struct io *io)
{
	for (u32 i = 0; i < d->flights; i++)
		if (d->flight[i].io == io) {
			d->flight[i] = d->flight[--d->flights];
			return;
		}
}
