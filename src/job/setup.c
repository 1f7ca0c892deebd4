/* SPDX-License-Identifier: MIT */
/*
 * Files before and while a clone runs. As fio does, the files of all clones are
 * made before any clone starts, one clone after the other: a file that is smaller
 * than its clone needs is laid out (written) if the clone reads, overwrites or maps it, and
 * otherwise made anew without data, and as large as fallocate says. Files are opened at their first
 * I/O; then those of invalidate=1 are dropped from the cache, and fadvise_hint says
 * what is to come.
 */
#include "base/bits.h"
#include "job/clone.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LAY_OUT_STEP (256ull << 20)

u64 run_size_of(void *run, const char *path)
{
	struct job_engine *e = ((struct run *)run)->engine;
	struct job_file *f;
	u64 size;

	if (e->open(e, path, JOB_READ, &f))
		return 0;
	size = e->size(f);
	e->close(f);
	return size;
}

/*
 * A file without data; space for it is reserved as fallocate says, and it has its size from the
 * start unless that says `none` or `keep`: then it grows as it is written.
 */
static int make_fresh(struct job_engine *e, const char *path, u64 size, enum job_alloc alloc)
{
	struct job_file *f;
	int rc = e->open(e, path, JOB_READ | JOB_WRITE | JOB_CREATE | JOB_TRUNCATE, &f);

	if (rc)
		return rc;
	if (alloc == ALLOC_POSIX || alloc == ALLOC_KEEP)
		rc = e->allocate(f, 0, size, alloc == ALLOC_KEEP);
	else if (alloc == ALLOC_NATIVE && e->allocate)
		e->allocate(f, 0, size, false); /* a wish only */
	if (!rc && alloc != ALLOC_NONE && alloc != ALLOC_KEEP)
		rc = e->truncate(f, size);
	e->close(f);
	return rc;
}

static u64 size_of_nothing(void *ctx, const char *path)
{
	(void)ctx;
	(void)path;
	return 0;
}

/*
 * Where the world is real this takes its time, so a large file is laid out piece by piece, and
 * whoever wants to stop need not wait for all of it.
 */
static int lay_out(struct run *run, const char *path, u64 size)
{
	struct job_engine *e = run->engine;
	int rc = 0;

	if (!run->options || !run->options->stop)
		return e->lay_out(e, path, size);
	for (u64 at = 0; at < size && !rc && !run_is_stopped(run);) {
		at = min_u64(at + LAY_OUT_STEP, size);
		rc = e->lay_out(e, path, at);
	}
	return rc;
}

int clone_make_files(struct clone *c)
{
	const struct job_options *o = &c->job->o;
	struct job_engine *e = c->run->engine;
	bool null = o->ioengine == IO_NULL;
	struct err err = { 0 };
	int rc = files_plan(&c->plans, c->job, c->number, null ? size_of_nothing : run_size_of,
			    c->run, &err);

	if (rc == -ENOMEM)
		return rc;
	if (rc) {
		clone_fail(c, rc, "%s", err.text);
		return 0;
	}
	for (u32 i = 0; i < c->plans.count && !o->create_on_open && !null; i++) {
		struct file_plan *f = &c->plans.plan[i];

		if (!f->extend || run_is_stopped(c->run))
			continue;
		if ((o->rw & RW_READ) || o->overwrite || o->ioengine == IO_MMAP)
			rc = lay_out(c->run, f->path, f->size);
		else if (!o->fill_device)
			rc = make_fresh(e, f->path, f->size, (enum job_alloc)o->fallocate);
		if (rc) {
			clone_fail(c, rc, "make %s of %llu bytes: %s", f->path,
				   (unsigned long long)f->size, strerror(-rc));
			break;
		}
	}
	return 0;
}

void clone_drop_cached(struct clone *c, struct clone_file *f)
{
	c->run->engine->advise(f->handle, f->plan->start, f->plan->length, JOB_ADV_DONTNEED);
}

static unsigned open_flags(const struct job_options *o)
{
	unsigned flags = JOB_READ;

	if (o->rw & RW_WRITE)
		flags |= JOB_WRITE | JOB_CREATE;
	if (o->direct)
		flags |= JOB_DIRECT;
	if (o->uncached)
		flags |= JOB_DONTCACHE;
	if (o->sync != WRITE_SYNC_NONE)
		flags |= o->sync == WRITE_SYNC_DATA ? JOB_DSYNC : JOB_SYNC;
	return flags;
}

static void open_failed(struct clone *c, const char *path, int error)
{
	const struct origin_line *at = job_origin(c->run->jobs, c->job, "uncached");

	if (error == -EOPNOTSUPP && c->job->o.uncached)
		clone_fail(
			c, error,
			"%s:%d: uncached=1 is not possible for %s: its file system or the kernel "
			"has no DONTCACHE",
			at->file, at->line, path);
	else
		clone_fail(c, error, "open %s: %s", path, strerror(-error));
}

static int map_file(struct clone *c, struct clone_file *f)
{
	int rc = c->run->engine->map(f->handle, f->plan->start, f->plan->length);

	if (rc)
		clone_fail(c, rc, "mmap %s: %s", f->plan->path, strerror(-rc));
	return rc;
}

int clone_open_file(struct clone *c, struct clone_file *f)
{
	const struct job_options *o = &c->job->o;
	struct job_engine *e = c->run->engine;
	enum job_advice advice;
	int rc;

	if (o->ioengine == IO_NULL)
		return 0;
	rc = e->open(e, f->plan->path, open_flags(o), &f->handle);
	if (rc) {
		f->handle = NULL;
		open_failed(c, f->plan->path, rc);
		return rc;
	}
	c->open_files++;
	if (o->invalidate)
		clone_drop_cached(c, f);
	rc = o->ioengine == IO_MMAP && e->map ? map_file(c, f) : 0;
	if (rc || o->fadvise_hint == HINT_NONE)
		return rc;
	if (o->fadvise_hint == HINT_PATTERN)
		advice = o->rw & RW_RANDOM ? JOB_ADV_RANDOM : JOB_ADV_SEQUENTIAL;
	else
		advice = o->fadvise_hint == HINT_RANDOM ? JOB_ADV_RANDOM : JOB_ADV_SEQUENTIAL;
	e->advise(f->handle, f->plan->start, f->plan->length, advice);
	return 0;
}

void clone_close_file(struct clone *c, struct clone_file *f)
{
	struct job_engine *e = c->run->engine;
	int rc = 0;

	if (!f->handle)
		return;
	if (c->job->o.fsync_on_close && (c->job->o.rw & RW_WRITE))
		rc = e->fsync(f->handle, false);
	e->close(f->handle);
	f->handle = NULL;
	c->open_files--;
	if (rc)
		clone_fail(c, rc, "fsync %s: %s", f->plan->path, strerror(-rc));
}

void clone_close_files(struct clone *c)
{
	for (u32 i = 0; i < c->plans.count && c->files; i++)
		clone_close_file(c, &c->files[i]);
}

/* Another clone may have removed them before. */
void clone_unlink_files(struct clone *c)
{
	struct job_engine *e = c->run->engine;

	for (u32 i = 0; i < c->plans.count && c->job->o.ioengine != IO_NULL; i++) {
		int rc = e->unlink(e, c->plans.plan[i].path);

		if (rc && rc != -ENOENT)
			clone_fail(c, rc, "unlink %s: %s", c->plans.plan[i].path, strerror(-rc));
	}
}

static int pre_read_file(struct clone *c, struct clone_file *f, void *buffer, u64 bs)
{
	u64 end = f->plan->start + f->plan->length;
	int rc = clone_open_file(c, f);

	for (u64 at = f->plan->start; at < end && !rc;) {
		ssize_t got = c->run->engine->pread(f->handle, buffer, min_u64(bs, end - at), at);

		if (got <= 0) {
			rc = got ? (int)got : -EIO;
			clone_fail(c, rc, "pre_read %s at %llu: %s", f->plan->path,
				   (unsigned long long)at, got ? strerror(-rc) : "the file ended");
		} else {
			at += (u64)got;
		}
	}
	return rc;
}

void clone_pre_read(struct clone *c)
{
	u64 bs = job_max_bs(&c->job->o);
	bool contents = c->run->options && c->run->options->contents;
	void *buffer = contents ? aligned_alloc(PAGE_SIZE, round_up(bs, PAGE_SIZE)) : NULL;

	if (contents && !buffer)
		clone_fail(c, -ENOMEM, "no memory for blocks of %llu bytes",
			   (unsigned long long)bs);
	for (u32 i = 0; i < c->plans.count && !c->stop && c->job->o.ioengine != IO_NULL; i++)
		if (pre_read_file(c, &c->files[i], buffer, bs))
			break;
	free(buffer);
}
