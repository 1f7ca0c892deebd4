// SPDX-License-Identifier: MIT
/*
 * Memory that outlives the process (persist=PATH, cache/persist.h). Of a run that has it, recovery
 * looks at the records whenever the disks are looked at, and each store to a record is a moment at
 * which that may be or at which the process is killed. What the disks have then, with what recovery
 * would add, has to be what a read at that moment might have given: all that was accepted, and of
 * calls under way any part.
 *
 * A process that is killed leaves its arena to the next life, which recovers from it before it has
 * an engine; that may be killed as well, any number of times, and is begun again. In the end the
 * files have to be what the first look at the arena has said.
 */
#include "cache/owed.h"
#include "file/recover.h"
#include "torture/child.h"
#include "torture/inner.h"
#include "writeback/wb.h"
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES (24u << 20) /* of the largest, as far as it is used */

/* What a life leaves. */
struct legacy {
	bool left;  /* there is one */
	bool lossy; /* data that a disk refused counted as clean: bytes may be anything */
	u32 number[FILES_MAX];
	u64 size[FILES_MAX];                     /* as it has to be when it is recovered */
	u8 recovered[FILES_MAX][DISK_BYTES_MAX]; /* likewise */
	u8 arena[ARENA_BYTES];
};

struct legacy *outlive_share(void)
{
	struct legacy *l = child_share(sizeof(*l));

	if (!l)
		abort();
	return l;
}

void outlive_unshare(struct legacy *l)
{
	child_unshare(l, sizeof(*l));
}

/* What is being cut off is neither here nor there for a moment: that is looked at often. */
static void stepped(void *ctx)
{
	struct torture *t = ctx;

	faults_step(t);
	for (u32 i = 0; i < t->files; i++) {
		if (!(t->file[i].cuts & 1) || !draw_one_in(&t->fault_rng, 4))
			continue;
		faults_look(t, &t->file[i], true);
		outlive_look(t, &t->file[i]);
	}
}

void outlive_begin(struct torture *t)
{
	struct engine_config *e = &t->engine_config;
	u64 frames = max_u64(e->memory_bytes, e->max_memory_bytes) / PAGE_SIZE;

	if (!t->persists)
		return;
	if (persist_create(NULL, (u32)frames, &t->persist, NULL))
		torture_fail(t, "an arena that outlives the process cannot be made");
	e->persist = t->persist;
	t->persist->stepped = stepped;
	t->persist->ctx = t;
}

void outlive_enter(struct torture *t, struct tfile *f)
{
	if (t->persists && inode_survive_as_store(f->inode))
		torture_fail(t, "a file has no place in the arena's table");
}

static struct recover_plan plan_of(struct torture *t, void *image, u64 bytes)
{
	struct err e = { "" };
	struct recover_plan plan;
	struct persist *p;

	t->looking = true;
	if (persist_open_image(image, bytes, &p, &e))
		torture_fail(t, "the arena of a process killed here is refused: it %s", e.text);
	if (recover_plan(p, &plan))
		abort();
	return plan;
}

static void end_plan(struct torture *t, struct recover_plan *plan)
{
	recover_plan_finish(plan);
	persist_close(plan->p, false);
	t->looking = false;
}

/* None of the targets here ever refuses anything. */
static void recover_to(struct torture *t, const struct recover_plan *plan, u32 number,
		       struct recover_target *target)
{
	u64 bytes;

	if (recover_file(plan, number, target, &bytes))
		torture_fail(t, "recovery fails, and nothing was in its way");
}

/* --- a look */

/* What a file would be: t->image, which has what its disk has. */
struct into_image {
	struct recover_target target;
	struct torture *t;
	u64 size;
};

static struct into_image *image_of(struct recover_target *target)
{
	return container_of(target, struct into_image, target);
}

static int image_zero(struct recover_target *target, u64 from, u64 to)
{
	struct torture *t = image_of(target)->t;

	to = min_u64(to, t->capacity);
	if (from < to)
		memset(t->image + from, 0, to - from);
	return 0;
}

static int image_shrink(struct recover_target *target, u64 size)
{
	struct into_image *to = image_of(target);

	image_zero(target, size, to->t->capacity);
	to->size = min_u64(to->size, size);
	return 0;
}

static int image_lengthen(struct recover_target *target, u64 size)
{
	struct into_image *to = image_of(target);

	to->size = max_u64(to->size, size);
	return 0;
}

static int image_write(struct recover_target *target, u64 offset, const void *data, u64 length)
{
	struct into_image *to = image_of(target);

	if (offset + length > to->t->capacity)
		torture_fail(to->t, "bytes up to %llu are owed to a file of %llu at most",
			     (unsigned long long)(offset + length),
			     (unsigned long long)to->t->capacity);
	if (to->t->config->sabotage == SABOTAGE_OWED && draw_one_in(&to->t->fault_rng, 4))
		return 0;
	memcpy(to->t->image + offset, data, length);
	return image_lengthen(target, offset + length);
}

static void check_recovered(struct torture *t, struct tfile *f, u64 size)
{
	u64 start = model_tick(&f->model), n = f->appends ? min_u64(f->append_base, size) : size;
	u64 good;

	if (size < f->model.size_least || size > f->model.size_most)
		torture_fail(t, "killed here, file %u is %llu bytes long, not from %llu to %llu",
			     f->number, (unsigned long long)size,
			     (unsigned long long)f->model.size_least,
			     (unsigned long long)f->model.size_most);
	good = model_allows(&f->model, 0, t->image, n, start, false);
	if (good == n)
		good = model_allows_sectors(&f->model, 0, t->image, n, start);
	if (good < n)
		torture_fail(t, "killed here, byte %llu of file %u is %02x when it is recovered",
			     (unsigned long long)good, f->number, t->image[good]);
}

u64 outlive_look(struct torture *t, struct tfile *f)
{
	struct recover_plan plan = plan_of(t, t->persist->map, t->persist->map_bytes);
	u32 number = f->inode->m.persist_file;
	const struct persist_file *entry = &plan.p->files[number];
	bool shrinks = atomic_load(&entry->op) == PERSIST_SHRINK;
	struct into_image to = { .target = { image_shrink, image_zero, image_write,
					     image_lengthen },
				 .t = t,
				 .size = store_size(inode_store(f->inode)) };
	u64 size = atomic_load(&entry->size);

	if (shrinks)
		size = min_u64(size, atomic_load(&entry->op_from));
	recover_to(t, &plan, number, &to.target);
	end_plan(t, &plan);
	/* of what is given up the data go first, and the size after them */
	if (t->lossy || f->forgets)
		return min_u64(size, to.size);
	if (to.size < size || (to.size > size && shrinks))
		torture_fail(t, "killed here, file %u would be recovered up to %llu, not %llu",
			     f->number, (unsigned long long)to.size, (unsigned long long)size);
	check_recovered(t, f, size);
	return size;
}

/* --- to the next life */

/* What recovery reads of the arena. */
static void copy_arena(const struct persist *p, u8 *to)
{
	const struct persist_header *h = p->header;

	memcpy(to, p->map, h->owed_from + (u64)h->frames * h->owed_bytes);
	for (u32 i = 0; i < h->frames; i++)
		if (atomic_load(&p->owed[i].blocks) & OWED_BLOCKS)
			memcpy(to + h->arena_at + (u64)i * PAGE_SIZE, p->arena + (u64)i * PAGE_SIZE,
			       PAGE_SIZE);
	memcpy(to + h->files_at, p->files, (u64)atomic_load(&h->files) * h->file_bytes);
}

void outlive_leave(struct torture *t, struct legacy *l, const struct disk_saved *disk)
{
	const struct persist_header *h = t->persist->header;

	assert(h->files_at + (u64)atomic_load(&h->files) * h->file_bytes <= ARENA_BYTES);
	copy_arena(t->persist, l->arena);
	for (u32 i = 0; i < t->files; i++) {
		struct tfile *f = &t->file[i];

		memcpy(t->image, disk[i].now, t->capacity);
		l->size[i] = outlive_look(t, f);
		l->number[i] = f->inode->m.persist_file;
		memcpy(l->recovered[i], t->image, t->capacity);
	}
	l->left = true;
	l->lossy = t->lossy;
}

void outlive_lose(struct legacy *l)
{
	l->left = false;
}

/* What recovery does to a disk; `killed_in` calls from now it is killed, if that is not 0. */
struct into_disk {
	struct recover_target target;
	struct torture *t;
	struct store *store;
	u64 *killed_in;
};

static struct into_disk *next_step(struct recover_target *target)
{
	struct into_disk *to = container_of(target, struct into_disk, target);

	if (*to->killed_in && !--*to->killed_in)
		life_end_unborn(to->t);
	return to;
}

static int disk_shrinks(struct recover_target *target, u64 size)
{
	struct into_disk *to = next_step(target);

	if (size < store_size(to->store))
		disk_recover_size(to->store, size);
	return 0;
}

static int disk_zeroes(struct recover_target *target, u64 from, u64 end)
{
	struct into_disk *to = next_step(target);

	disk_recover(to->store, from, min_u64(end, store_size(to->store)), NULL);
	return 0;
}

static int disk_writes(struct recover_target *target, u64 offset, const void *data, u64 length)
{
	disk_recover(next_step(target)->store, offset, offset + length, data);
	return 0;
}

static int disk_lengthens(struct recover_target *target, u64 size)
{
	struct into_disk *to = next_step(target);

	if (size > store_size(to->store))
		disk_recover_size(to->store, size);
	return 0;
}

static void check_disk(struct torture *t, const struct legacy *l, u32 i)
{
	struct store *store = t->file[i].store;
	u64 size = l->size[i];

	if (store_size(store) < size)
		torture_fail(t, "file %u was recovered up to %llu, not %llu", i,
			     (unsigned long long)store_size(store), (unsigned long long)size);
	disk_image(store, &t->fault_rng, true, t->image, t->capacity);
	for (u64 at = 0; at < size; at++)
		if (t->image[at] != l->recovered[i][at])
			torture_fail(t, "byte %llu of file %u was recovered as %02x, not %02x",
				     (unsigned long long)at, i, t->image[at], l->recovered[i][at]);
}

void outlive_recover(struct torture *t, struct legacy *l)
{
	u64 killed_in = draw_one_in(&t->fault_rng, 4) ? draw_scaled(&t->fault_rng, 1, 64) : 0;
	struct recover_plan plan;

	if (!l->left)
		return;
	plan = plan_of(t, l->arena, ARENA_BYTES);
	for (u32 i = 0; i < t->files; i++) {
		struct into_disk to = { .target = { disk_shrinks, disk_zeroes, disk_writes,
						    disk_lengthens },
					.t = t,
					.store = t->file[i].store,
					.killed_in = &killed_in };

		if (recover_is_due(&plan, l->number[i]))
			recover_to(t, &plan, l->number[i], &to.target);
	}
	end_plan(t, &plan);
	for (u32 i = 0; i < t->devices; i++)
		disk_flush(&t->disk[i]);
	for (u32 i = 0; i < t->files && !l->lossy; i++)
		check_disk(t, l, i);
	l->left = false;
}

void outlive_end(struct torture *t, bool written)
{
	struct recover_plan plan;

	if (!t->persist)
		return;
	plan = plan_of(t, t->persist->map, t->persist->map_bytes);
	if (written && plan.count)
		torture_fail(t, "all is written, but %llu pages are owed still",
			     (unsigned long long)plan.count);
	end_plan(t, &plan);
	persist_close(t->persist, true);
	t->persist = NULL;
}
