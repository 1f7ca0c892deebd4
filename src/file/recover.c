// SPDX-License-Identifier: MIT
/*
 * Recovery reads an arena that has no process any more and writes what is owed to its files:
 *
 *	for each file of which something is owed or promised:
 *		find it, by handle or by path, and make sure that it is the same one
 *		keep its promise: cut it off, or zero what was being punched
 *		write the blocks that are owed, in the order of the file, cut at its size
 *		fsync
 *	then remove the arena
 *
 * The arena is only read until all is safe, so recovery can end anywhere, killed or with an error,
 * and the next one does the same again. Of two records for a page (it was being moved) either has
 * the same bytes; the younger one is taken.
 *
 * Nothing is guessed. A file that is gone, or another one of the same name or number, gets nothing:
 * its bytes are set aside, with a list of where they belong. A file that is there and cannot be
 * written (a disk that fails or is full, a file system that is not mounted) ends the recovery, and
 * the arena stays, unless the caller wants such bytes set aside, too.
 */
#include "file/recover.h"
#include "base/alloc.h"
#include "cache/owed.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- the plan */

static const struct owed *record_at(const struct recover_plan *plan, u64 i)
{
	return &plan->p->owed[plan->frames[i]];
}

static u32 number_at(const struct recover_plan *plan, u64 i)
{
	return (u32)(atomic_load(&record_at(plan, i)->page) >> 32);
}

static int by_page(const void *a, const void *b, void *persist)
{
	const struct persist *p = persist;
	const struct owed *x = &p->owed[*(const u32 *)a], *y = &p->owed[*(const u32 *)b];
	u64 page_x = atomic_load(&x->page), page_y = atomic_load(&y->page);
	u64 order_x = atomic_load(&x->blocks), order_y = atomic_load(&y->blocks);

	if (page_x != page_y)
		return page_x < page_y ? -1 : 1;
	return order_x > order_y ? -1 : order_x < order_y;
}

static bool is_owed(const struct persist *p, u32 frame)
{
	return atomic_load(&p->owed[frame].blocks) & OWED_BLOCKS;
}

int recover_plan(struct persist *p, struct recover_plan *out)
{
	u64 count = 0, at = 0;

	for (u32 i = 0; i < p->header->frames; i++)
		count += is_owed(p, i);
	*out = (struct recover_plan){ .p = p, .frames = alloc_bytes((count + 1) * sizeof(u32)) };
	if (!out->frames)
		return -ENOMEM;
	for (u32 i = 0; i < p->header->frames; i++)
		if (is_owed(p, i))
			out->frames[at++] = i;
	qsort_r(out->frames, count, sizeof(u32), by_page, p);
	/* a page that is there twice */
	for (u64 i = 0; i < count; i++)
		if (!i || atomic_load(&p->owed[out->frames[i]].page) !=
				  atomic_load(&record_at(out, out->count - 1)->page))
			out->frames[out->count++] = out->frames[i];
	return 0;
}

void recover_plan_finish(struct recover_plan *plan)
{
	free(plan->frames);
}

/* The first place in the plan that is of this file, or of a later one. */
static u64 first_of(const struct recover_plan *plan, u32 number)
{
	u64 low = 0, high = plan->count;

	while (low < high) {
		u64 middle = (low + high) / 2;

		if (number_at(plan, middle) < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool recover_is_due(const struct recover_plan *plan, u32 number)
{
	const struct persist_file *f = &plan->p->files[number];
	u64 first = first_of(plan, number);

	if (atomic_load(&f->kind) == PERSIST_FREE)
		return false;
	return atomic_load(&f->op) != PERSIST_IDLE ||
	       (first < plan->count && number_at(plan, first) == number);
}

/* Writes the owed blocks of a page that are below the size, run by run. */
static int write_page(const struct recover_plan *plan, u64 i, u32 block_bytes, u64 size,
		      struct recover_target *t, u64 *bytes)
{
	const struct owed *o = record_at(plan, i);
	const char *data = plan->p->arena + (u64)plan->frames[i] * PAGE_SIZE;
	u64 blocks = atomic_load(&o->blocks) & OWED_BLOCKS;
	u64 page = (u32)atomic_load(&o->page);
	int rc = 0;

	while (blocks && !rc) {
		u32 first = bits_first(blocks), count = bits_run(blocks, first);
		u64 in_page = (u64)first * block_bytes, from = page * PAGE_SIZE + in_page;
		u64 to = min_u64(from + (u64)count * block_bytes, size);

		blocks &= ~bits_mask(first, count);
		if (from >= to)
			break;
		rc = t->write(t, from, data + in_page, to - from);
		*bytes += rc ? 0 : to - from;
	}
	return rc;
}

int recover_file(const struct recover_plan *plan, u32 number, struct recover_target *t, u64 *bytes)
{
	const struct persist_file *f = &plan->p->files[number];
	u64 size = atomic_load(&f->size), from = atomic_load(&f->op_from);
	u32 op = atomic_load(&f->op);
	int rc = 0;

	*bytes = 0;
	if (op == PERSIST_SHRINK) {
		size = min_u64(size, from);
		rc = t->shrink(t, from);
	} else if (op == PERSIST_ZERO) {
		rc = t->zero(t, from, atomic_load(&f->op_to));
	}
	for (u64 i = first_of(plan, number); !rc && i < plan->count; i++) {
		if (number_at(plan, i) != number)
			break;
		rc = write_page(plan, i, f->name.block_bytes, size, t, bytes);
	}
	if (!rc && op != PERSIST_IDLE) /* what made it so long may have been cancelled */
		rc = t->lengthen(t, size);
	return rc;
}

/* --- all of it */

struct recovering {
	struct recover_plan plan;
	const struct recover_config *c;
	struct recovery *out;
	struct err *e;
	const char *path, *folder;
};

static void tell(struct recovering *r, const struct recovered *done)
{
	r->out->files[done->how]++;
	r->out->bytes[done->how] += done->bytes;
	if (r->c->told)
		r->c->told(r->c->ctx, done);
}

static const char *path_of(const struct persist_file *f)
{
	return f->name.kind == PERSIST_STORE ? "a store of the program's own" : f->name.path;
}

static int set_aside(struct recovering *r, u32 number, const char *why)
{
	const struct persist_file *f = &r->plan.p->files[number];
	struct recovered done = { .how = RECOVERED_ASIDE, .path = path_of(f), .why = why };
	u64 first = first_of(&r->plan, number);
	struct recover_aside aside;
	int rc, closed;

	if (first == r->plan.count || number_at(&r->plan, first) != number)
		return 0; /* only a promise, and nobody to keep it to */
	rc = recover_aside_open(&aside, r->plan.p, number, r->folder, why);
	if (!rc) {
		rc = recover_file(&r->plan, number, &aside.target, &done.bytes);
		closed = recover_aside_close(&aside);
		rc = rc ? rc : closed;
	}
	if (rc) {
		err_set(r->e, NULL, 0, "persist=%s: setting bytes of %s aside in %s: %s", r->path,
			done.path, r->folder, strerror(-rc));
		return rc;
	}
	done.where = aside.path;
	tell(r, &done);
	return 0;
}

static int write_to(struct recovering *r, u32 number, int fd)
{
	struct recovered done = { .how = RECOVERED_WRITTEN,
				  .path = path_of(&r->plan.p->files[number]) };
	struct recover_to_file t;
	int rc;

	recover_to_file(&t, fd);
	rc = recover_file(&r->plan, number, &t.target, &done.bytes);
	if (!rc && fsync(fd))
		rc = -errno;
	close(fd);
	if (!rc)
		tell(r, &done);
	return rc;
}

/* How many bytes are owed of a file. */
static int count_write(struct recover_target *t, u64 offset, const void *data, u64 length)
{
	(void)t;
	(void)offset;
	(void)data;
	(void)length;
	return 0;
}

static int count_size(struct recover_target *t, u64 size)
{
	return count_write(t, size, NULL, 0);
}

static int count_zero(struct recover_target *t, u64 from, u64 to)
{
	return count_write(t, from, NULL, to);
}

static int drop(struct recovering *r, u32 number)
{
	struct recover_target count = { count_size, count_zero, count_write, count_size };
	struct recovered done = { .how = RECOVERED_DROPPED,
				  .path = path_of(&r->plan.p->files[number]),
				  .why = "it was removed" };

	recover_file(&r->plan, number, &count, &done.bytes);
	tell(r, &done);
	return 0;
}

static int recover_one(struct recovering *r, u32 number)
{
	const struct persist_file *f = &r->plan.p->files[number];
	const char *why = NULL;
	int fd, rc = recover_find(&f->name, &fd, &why);

	if (rc == -ENOENT)
		return atomic_load(&f->unlinked) ? drop(r, number) : set_aside(r, number, why);
	if (!rc)
		rc = write_to(r, number, fd);
	if (rc && r->c->set_aside_failed)
		return set_aside(r, number, strerror(-rc));
	if (rc)
		err_set(r->e, NULL, 0,
			"persist=%s: %s: %s; what is owed to it stays there: try again, or with "
			"recovery=set_aside",
			r->path, path_of(f), why ? why : strerror(-rc));
	return rc;
}

int recover(const char *path, const struct recover_config *c, struct recovery *out, struct err *e)
{
	char folder[PATH_MAX + 16];
	struct recovering r = { .c = c, .out = out, .e = e, .path = path, .folder = c->folder };
	struct persist *p;
	int rc = persist_open(path, &p, e);

	*out = (struct recovery){ { 0 }, { 0 } };
	if (rc == -ENOENT)
		return 0;
	if (rc)
		return rc;
	if (!*c->folder) {
		snprintf(folder, sizeof(folder), "%s.recovered", path);
		r.folder = folder;
	}
	rc = recover_plan(p, &r.plan);
	for (u32 i = 1; !rc && i < atomic_load(&p->header->files); i++)
		if (recover_is_due(&r.plan, i))
			rc = recover_one(&r, i);
	recover_plan_finish(&r.plan);
	persist_close(p, !rc);
	return rc;
}
