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
 */
#include "torture/disk.h"
#include "base/bits.h"
#include "device/store.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512u

/* Bytes [from, to) that were written, or with no bytes zeroed. */
struct logged {
	struct list_node link;
	u64 sequence, from, to;
	u8 *bytes;
};

struct disk_store {
	struct store store;
	struct disk *disk;
	struct list_node link;
	u64 size, bytes, pages;
	u8 *now, *media;
	u8 *written, *room; /* a byte for each page */
	struct list_node log;
};

static struct disk_store *of(struct store *s)
{
	return container_of(s, struct disk_store, store);
}

static void forget_logged(struct logged *l)
{
	list_del(&l->link);
	free(l->bytes);
	free(l);
}

/* Takes part of a change over, or all of it. */
static void apply(u8 *to, const struct logged *l, u64 from, u64 end)
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
static void enter(struct disk_store *s, u64 from, u64 to, u8 *bytes)
{
	struct logged *l = malloc(sizeof(*l));

	if (!l)
		abort();
	*l = (struct logged){
		.sequence = ++s->disk->sequence, .from = from, .to = to, .bytes = bytes
	};
	list_add_tail(&s->log, &l->link);
	apply(s->now, l, from, to);
}

static void give_room(struct disk_store *s, u64 first, u64 end, bool wanted)
{
	for (u64 i = first; i < min_u64(end, s->pages); i++) {
		if (s->room[i] && !wanted)
			s->disk->used_pages--;
		if (!s->room[i] && wanted)
			s->disk->used_pages++;
		s->room[i] = wanted;
		s->written[i] = s->written[i] && wanted;
	}
}

static u64 room_missing(const struct disk_store *s, u64 from, u64 to)
{
	u64 missing = 0, end = min_u64(div_roundup(to, PAGE_SIZE), s->pages);

	for (u64 i = from >> PAGE_SHIFT; i < end; i++)
		missing += !s->room[i];
	return missing;
}

static void store_end(struct store *store)
{
	struct disk_store *s = of(store);

	while (!list_empty(&s->log))
		forget_logged(list_entry(s->log.next, struct logged, link));
	give_room(s, 0, s->pages, false);
	list_del(&s->link);
	free(s->now);
	free(s->media);
	free(s->written);
	free(s->room);
	free(s);
}

static u64 size(struct store *store)
{
	return of(store)->size;
}

static int set_size(struct store *store, u64 bytes)
{
	struct disk_store *s = of(store);

	if (bytes > s->bytes)
		return -EFBIG;
	if (bytes < s->size) {
		enter(s, bytes, s->bytes, NULL);
		give_room(s, div_roundup(bytes, PAGE_SIZE), s->pages, false);
	}
	s->size = bytes;
	return 0;
}

static u64 next(struct store *store, u64 page, u64 end, bool written)
{
	struct disk_store *s = of(store);

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
	struct disk_store *s = of(store);

	return !s->disk->room_pages || !room_missing(s, from, to);
}

static int reserve(struct store *store, u64 from, u64 to)
{
	struct disk_store *s = of(store);

	if (s->disk->used_pages + room_missing(s, from, to) > s->disk->room_pages)
		return -ENOSPC;
	give_room(s, from >> PAGE_SHIFT, div_roundup(to, PAGE_SIZE), true);
	return 0;
}

static bool may_be_full(struct store *store)
{
	return of(store)->disk->room_pages;
}

static int lay_out(struct store *store, u64 bytes)
{
	struct disk_store *s = of(store);

	if (bytes > s->bytes)
		return -EFBIG;
	if (s->disk->room_pages && reserve(store, 0, bytes))
		return -ENOSPC;
	give_room(s, 0, div_roundup(bytes, PAGE_SIZE), true);
	memset(s->written, 1, div_roundup(bytes, PAGE_SIZE));
	s->size = max_u64(s->size, bytes);
	return 0;
}

static int punch(struct store *store, u64 page, u64 n)
{
	struct disk_store *s = of(store);
	u64 end = min_u64(page + n, s->pages);

	if (page >= end)
		return 0;
	enter(s, page << PAGE_SHIFT, end << PAGE_SHIFT, NULL);
	give_room(s, page, end, false);
	return 0;
}

/* The bytes of an I/O in one piece. */
static u8 *gather(const struct io *io)
{
	u8 *bytes = malloc(io->length_bytes);
	u64 done = 0;

	if (!bytes)
		abort();
	for (u32 i = 0; done < io->length_bytes; i++) {
		u64 n = min_u64(io->vec[i].iov_len, io->length_bytes - done);

		memcpy(bytes + done, io->vec[i].iov_base, n);
		done += n;
	}
	return bytes;
}

static int write_bytes(struct disk_store *s, const struct io *io)
{
	u64 end = io->offset_bytes + io->length_bytes;

	if (end > s->bytes)
		return -EFBIG;
	if (s->disk->room_pages &&
	    s->disk->used_pages + room_missing(s, io->offset_bytes, end) > s->disk->room_pages) {
		s->disk->overruns += io->writeback;
		return -ENOSPC;
	}
	give_room(s, io->offset_bytes >> PAGE_SHIFT, div_roundup(end, PAGE_SIZE), true);
	s->size = max_u64(s->size, end);
	for (u64 i = io->offset_bytes >> PAGE_SHIFT; i < div_roundup(end, PAGE_SIZE); i++)
		s->written[i] = 1;
	if (s->disk->sabotage == SABOTAGE_WRITE && rng_below(&s->disk->rng, 4) == 0)
		return 0;
	enter(s, io->offset_bytes, end, gather(io));
	return 0;
}

static void read_bytes(const struct disk_store *s, const struct io *io)
{
	u64 done = 0;

	for (u32 i = 0; done < io->length_bytes; i++) {
		u64 n = min_u64(io->vec[i].iov_len, io->length_bytes - done);
		u64 at = io->offset_bytes + done, here = at < s->bytes ? s->bytes - at : 0;

		here = min_u64(here, n);
		memcpy(io->vec[i].iov_base, s->now + min_u64(at, s->bytes), here);
		memset((u8 *)io->vec[i].iov_base + here, 0, n - here);
		done += n;
	}
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
			struct logged *l = list_entry(n, struct logged, link);

			if (l->sequence > sequence)
				break;
			if (d->sabotage != SABOTAGE_FLUSH || rng_below(&d->rng, 4))
				apply(s->media, l, l->from, l->to);
			forget_logged(l);
		}
	}
}

static int execute(struct store *store, struct io *io)
{
	struct disk_store *s = of(store);
	int rc = 0;

	if (io->op == IO_WRITE)
		rc = write_bytes(s, io);
	else if (io->op == IO_READ)
		read_bytes(s, io);
	else
		flush(s->disk, sent_at(s->disk, io));
	disk_over(s->disk, io);
	return rc;
}

static const struct store_ops disk_store_ops = {
	.destroy = store_end,
	.size = size,
	.truncate = set_size,
	.any_written = any_written,
	.next = next,
	.lay_out = lay_out,
	.has_room = has_room,
	.reserve = reserve,
	.may_be_full = may_be_full,
	.punch = punch,
	.execute = execute,
};

void disk_init(struct disk *d, struct device *device, u64 seed)
{
	*d = (struct disk){ .device = device };
	list_init(&d->stores);
	rng_init(&d->rng, seed);
}

int disk_store_create(struct disk *d, u64 bytes, struct store **out)
{
	struct disk_store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->disk = d;
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
	store_init(&s->store, d->device, &disk_store_ops);
	*out = &s->store;
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

/* Takes over some of the sectors of a change. */
static void tear(u8 *to, const struct logged *l, struct rng *rng)
{
	u64 kind = rng_below(rng, 3);

	for (u64 at = round_down(l->from, SECTOR); at < l->to; at += SECTOR)
		if (kind == 0 || (kind == 1 && rng_below(rng, 2)))
			apply(to, l, at, at + SECTOR);
}

void disk_tear(struct disk *d, const struct io *io)
{
	struct disk_store *s = of(io->store);
	u64 end = io->offset_bytes + io->length_bytes;
	u8 *bytes;

	if (end > s->bytes || room_missing(s, io->offset_bytes, end))
		return;
	bytes = gather(io);
	for (u64 at = io->offset_bytes; at < end; at += SECTOR) {
		u64 n = min_u64(SECTOR, end - at);
		u8 *sector;

		if (rng_below(&d->rng, 2) || at + n > s->size || !s->written[at >> PAGE_SHIFT])
			continue;
		sector = malloc(n);
		if (!sector)
			abort();
		memcpy(sector, bytes + (at - io->offset_bytes), n);
		enter(s, at, at + n, sector);
	}
	free(bytes);
}

void disk_image(struct store *store, struct rng *rng, bool killed, u8 *image, u64 bytes)
{
	struct disk_store *s = of(store);
	struct list_node *n;

	assert(bytes <= s->bytes);
	memcpy(image, killed ? s->now : s->media, bytes);
	if (!killed)
		list_for_each (n, &s->log) {
			struct logged l = *list_entry(n, struct logged, link);

			if (l.from >= bytes)
				continue;
			l.to = min_u64(l.to, bytes);
			tear(image, &l, rng);
		}
	for (u32 i = 0; i < s->disk->flights; i++) {
		const struct io *io = s->disk->flight[i].io;
		struct logged l = { .from = io->offset_bytes };

		if (io->store != store || io->op != IO_WRITE || l.from >= bytes)
			continue;
		l.to = min_u64(l.from + io->length_bytes, bytes);
		l.bytes = gather(io);
		tear(image, &l, rng);
		free(l.bytes);
	}
}
