/* SPDX-License-Identifier: MIT */
/*
 * What can be said about a run before it is made: the bytes of its files (each path
 * once, at the largest size any clone needs), and how long it takes by its own word
 * (a stonewall begins after everything before it; a job without a runtime is open).
 */
#include "job/jobs.h"
#include <stdlib.h>
#include <string.h>

struct sized {
	char *path;
	u64 size;
};

struct sized_list {
	struct sized *item;
	size_t count, room;
};

static u64 size_unknown(void *ctx, const char *path)
{
	(void)ctx;
	(void)path;
	return 0;
}

static bool take(struct sized_list *l, struct file_plan *f)
{
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		struct sized *item = realloc(l->item, room * sizeof(*item));

		if (!item)
			return false;
		l->item = item;
		l->room = room;
	}
	l->item[l->count++] = (struct sized){ f->path, f->size };
	f->path = NULL;
	return true;
}

static int by_path(const void *a, const void *b)
{
	const struct sized *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (x->size > y->size) - (x->size < y->size);
}

static void take_clone(struct sized_list *l, const struct job *j, u32 clone)
{
	struct file_plans plans;
	bool more = !files_plan(&plans, j, clone, size_unknown, NULL, NULL);

	if (!more)
		return;
	for (u32 i = 0; i < plans.count && more; i++)
		more = take(l, &plans.plan[i]);
	files_plan_finish(&plans);
}

void jobs_each_file(const struct jobs *j, void (*each)(void *ctx, const char *path, u64 bytes),
		    void *ctx)
{
	struct sized_list l = { 0 };

	for (size_t i = 0; i < j->count; i++) {
		/* Clones that share named files all plan the same. */
		bool same = j->list[i].filenames.count && !j->list[i].o.offset_increment.bytes &&
			    !j->list[i].o.offset_increment.percent;
		u64 clones = same ? 1 : j->list[i].o.numjobs;

		for (u64 n = 0; n < clones; n++)
			take_clone(&l, &j->list[i], (u32)n);
	}
	if (l.count)
		qsort(l.item, l.count, sizeof(*l.item), by_path);
	for (size_t i = 0; i < l.count; i++)
		if (i + 1 == l.count || strcmp(l.item[i].path, l.item[i + 1].path) != 0)
			each(ctx, l.item[i].path, l.item[i].size);
	for (size_t i = 0; i < l.count; i++)
		free(l.item[i].path);
	free(l.item);
}

static void add_bytes(void *sum, const char *path, u64 bytes)
{
	(void)path;
	*(u64 *)sum += bytes;
}

u64 jobs_file_bytes(const struct jobs *j)
{
	u64 sum = 0;

	jobs_each_file(j, add_bytes, &sum);
	return sum;
}

u64 jobs_duration_ns(const struct jobs *j)
{
	u64 begin = 0, end = 0;

	for (size_t i = 0; i < j->count; i++) {
		const struct job_options *o = &j->list[i].o;

		if (!o->runtime_ns)
			return 0;
		if (o->stonewall)
			begin = end;
		end = max_u64(end, max_u64(begin, o->startdelay_max_ns) + o->ramp_time_ns +
					   o->runtime_ns);
	}
	return end;
}
