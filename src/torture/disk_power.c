// SPDX-License-Identifier: MIT
/*
 * What is left of disks: after a power loss what was flushed, and of all else any sectors; after
 * the end of a process all that was done, and any sectors of what was in flight, of which a power
 * loss may take everything that is not flushed still.
 */
#include "base/bits.h"
#include "torture/disk_store.h"
#include <stdlib.h>
#include <string.h>

/* Takes over some of the sectors of a change. */
static void tear(u8 *to, const struct disk_logged *l, struct rng *rng)
{
	u64 kind = rng_below(rng, 3);

	for (u64 at = round_down(l->from, DISK_SECTOR); at < l->to; at += DISK_SECTOR)
		if (kind == 0 || (kind == 1 && rng_below(rng, 2)))
			disk_apply(to, l, at, at + DISK_SECTOR);
}

/* The bytes of a write that may be there if it was under way. */
static struct disk_logged flying(const struct disk_store *s, const struct io *io)
{
	u64 n = real_store_write_bytes(&s->real, io);

	return (struct disk_logged){ .from = io->offset_bytes,
				     .to = io->offset_bytes + n,
				     .bytes = n ? disk_gather(io->vec, n) : NULL };
}

/* Enters some sectors of a write that was not done. */
static void enter_torn(struct disk_store *s, const struct io *io, u64 one_in)
{
	struct disk_logged l = flying(s, io);

	if (l.to > s->bytes || disk_room_missing(s, l.from, l.to))
		l.to = l.from;
	for (u64 at = l.from; at < l.to; at = round_down(at, DISK_SECTOR) + DISK_SECTOR) {
		u64 n = min_u64(round_down(at, DISK_SECTOR) + DISK_SECTOR, l.to) - at;
		u8 *sector;

		if (rng_below(&s->disk->rng, 4) >= one_in ||
		    at + n > real_store_size(&s->real.store) || !s->written[at >> PAGE_SHIFT])
			continue;
		sector = malloc(n);
		if (!sector)
			abort();
		memcpy(sector, l.bytes + (at - l.from), n);
		disk_enter(s, at, at + n, sector);
	}
	free(l.bytes);
}

void disk_tear(struct disk *d, const struct io *io)
{
	(void)d;
	enter_torn(disk_store_of(io->store), io, 2);
}

void disk_image(struct store *store, struct rng *rng, bool killed, u8 *image, u64 bytes)
{
	struct disk_store *s = disk_store_of(store);
	struct list_node *n;

	assert(bytes <= s->bytes);
	memcpy(image, killed ? s->now : s->media, bytes);
	if (!killed)
		list_for_each (n, &s->log) {
			struct disk_logged l = *list_entry(n, struct disk_logged, link);

			if (l.from >= bytes)
				continue;
			l.to = min_u64(l.to, bytes);
			tear(image, &l, rng);
		}
	for (u32 i = 0; i < s->disk->flights; i++) {
		const struct io *io = s->disk->flight[i].io;
		struct disk_logged l;

		if (io->store != store || io->op != IO_WRITE || io->offset_bytes >= bytes)
			continue;
		l = flying(s, io);
		l.to = min_u64(l.to, bytes);
		if (l.bytes)
			tear(image, &l, rng);
		free(l.bytes);
	}
}

void disk_past(struct store *store, u8 *media,
	       void (*change)(void *ctx, u64 from, u64 to, const u8 *bytes), void *ctx)
{
	struct disk_store *s = disk_store_of(store);
	struct list_node *n;

	memcpy(media, s->media, s->bytes);
	list_for_each (n, &s->log) {
		const struct disk_logged *l = list_entry(n, struct disk_logged, link);

		change(ctx, l->from, l->to, l->bytes);
	}
}

/* --- what is left after the end of the engine */

/* The changes that the media do not have, as far as there is memory for them. */
static void save_log(struct disk_store *s, struct disk_saved *to, u8 *bytes, u64 *used, u64 room)
{
	struct list_node *n, *next;

	list_for_each_safe (n, next, &s->log) {
		struct disk_logged *l = list_entry(n, struct disk_logged, link);
		u64 length = l->bytes ? l->to - l->from : 0;

		if (to->changes == DISK_CHANGES_MAX || *used + length > room) {
			/* the media have all up to here: a disk may write what it likes */
			for (u32 i = 0; i < to->changes; i++) {
				struct disk_change *c = &to->change[i];
				struct disk_logged old = { .from = c->from,
							   .to = c->to,
							   .bytes = c->zeros ? NULL
									     : bytes + c->at };

				disk_apply(to->media, &old, 0, s->bytes);
			}
			disk_apply(to->media, l, 0, s->bytes);
			to->changes = 0;
			continue;
		}
		to->change[to->changes++] =
			(struct disk_change){ l->from, l->to, *used, !l->bytes };
		if (l->bytes)
			memcpy(bytes + *used, l->bytes, length);
		*used += length;
	}
}

void disk_save(struct store *store, const u8 *image, struct disk_saved *to, u8 *bytes, u64 *used,
	       u64 room)
{
	struct disk_store *s = disk_store_of(store);

	assert(s->bytes <= sizeof(to->now));
	to->size = real_store_size(store);
	to->changes = 0;
	if (image) {
		memcpy(to->now, image, s->bytes);
		memset(to->now + to->size, 0, s->bytes - to->size); /* as file systems do */
		memcpy(to->media, to->now, s->bytes);
	} else {
		for (u32 i = 0; i < s->disk->flights; i++) {
			const struct io *io = s->disk->flight[i].io;

			if (io->store == store && io->op == IO_WRITE)
				enter_torn(s, io, rng_below(&s->disk->rng, 5));
		}
		memcpy(to->now, s->now, s->bytes);
		memcpy(to->media, s->media, s->bytes);
		save_log(s, to, bytes, used, room);
	}
	memcpy(to->written, s->written, s->pages);
	memcpy(to->room, s->room, s->pages);
}

void disk_recover(struct store *store, u64 from, u64 to, const u8 *bytes)
{
	struct disk_store *s = disk_store_of(store);
	u8 *copy;

	to = min_u64(to, s->bytes);
	if (from >= to)
		return;
	copy = calloc(1, to - from);
	if (!copy)
		abort();
	if (bytes)
		memcpy(copy, bytes, to - from);
	disk_give_room(s, from >> PAGE_SHIFT, div_roundup(to, PAGE_SIZE), true);
	memset(s->written + (from >> PAGE_SHIFT), 1,
	       div_roundup(to, PAGE_SIZE) - (from >> PAGE_SHIFT));
	disk_enter(s, from, to, copy);
	real_store_resized(&s->real, max_u64(to, real_store_size(store)));
}

void disk_recover_size(struct store *store, u64 size)
{
	struct disk_store *s = disk_store_of(store);

	if (size < real_store_size(store)) {
		disk_enter(s, size, s->bytes, NULL);
		disk_give_room(s, div_roundup(size, PAGE_SIZE), s->pages, false);
	}
	real_store_resized(&s->real, size);
}

void disk_restore(struct store *store, const struct disk_saved *from, const u8 *bytes)
{
	struct disk_store *s = disk_store_of(store);

	memcpy(s->now, from->now, s->bytes);
	memcpy(s->media, from->media, s->bytes);
	for (u64 i = 0; i < s->pages; i++) {
		/* a hole that was lost has its bytes again */
		bool data = from->written[i];

		for (u64 at = i << PAGE_SHIFT; !data && at < (i + 1) << PAGE_SHIFT; at++)
			data = s->now[at];
		if (from->room[i] || data)
			disk_give_room(s, i, i + 1, true);
		s->written[i] = data;
	}
	for (u32 i = 0; i < from->changes; i++) {
		const struct disk_change *c = &from->change[i];
		u8 *copy = NULL;

		if (!c->zeros) {
			copy = malloc(c->to - c->from);
			if (!copy)
				abort();
			memcpy(copy, bytes + c->at, c->to - c->from);
		}
		disk_enter(s, c->from, c->to, copy);
	}
	assert(!memcmp(s->now, from->now, s->bytes));
	real_store_resized(&s->real, from->size);
}
