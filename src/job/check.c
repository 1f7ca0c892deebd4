/* SPDX-License-Identifier: MIT */
/*
 * What can only be said when all options are known: options that need others, options
 * that say the same in two ways, and jobs that speak of other jobs.
 */
#include "job/clone.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const struct jobs *jobs, const struct job *j, const char *option,
		  const char *text, struct err *e)
{
	const struct origin_line *at = job_origin(jobs, j, option);

	return err_set(e, at->file, at->line, "%s in job %s", text, j->o.name);
}

/* bssplit before bsrange before bs, as fio; then the smallest and the largest block are known. */
static void settle_blocks(struct job_options *o)
{
	for (int dir = 0; dir < JOB_DIRS; dir++) {
		struct splits *s = &o->splits[dir];
		u64 low = o->bs_bytes[dir], high = low;

		if (o->bsrange_max[dir]) {
			low = o->bsrange_min[dir];
			high = o->bsrange_max[dir];
		}
		for (u32 i = 0; i < s->count; i++) {
			low = min_u64(i ? low : s->part[i].bytes, s->part[i].bytes);
			high = max_u64(i ? high : s->part[i].bytes, s->part[i].bytes);
		}
		o->bs_bytes[dir] = low;
		o->bs_max_bytes[dir] = high;
		if (!o->ba_bytes[dir])
			o->ba_bytes[dir] = low;
	}
}

static int settle_zones(const struct jobs *jobs, struct job *j, struct err *e)
{
	struct job_options *o = &j->o;

	if (o->zonemode == ZONE_UNSET)
		o->zonemode = o->zonesize_bytes ? ZONE_STRIDED : ZONE_NONE;
	if (o->zonemode != ZONE_STRIDED)
		return 0;
	if (!o->zonesize_bytes)
		return refuse(jobs, j, "zonemode", "zonemode=strided needs a zonesize", e);
	if (!o->zonerange_bytes)
		o->zonerange_bytes = o->zonesize_bytes;
	if (o->zonerange_bytes < o->bs_max_bytes[JOB_DIR_READ] ||
	    o->zonerange_bytes < o->bs_max_bytes[JOB_DIR_WRITE])
		return refuse(jobs, j,
			      o->zonerange_bytes == o->zonesize_bytes ? "zonesize" : "zonerange",
			      "the blocks are larger than the zones", e);
	return 0;
}

static int settle_waitee(const struct jobs *jobs, struct job *j, struct err *e)
{
	struct job_options *o = &j->o;

	if (!o->wait_for)
		return 0;
	for (const struct job *other = jobs->list; other < j; other++) {
		if (strcmp(other->o.name, o->wait_for) != 0)
			continue;
		if (j->waitee)
			return refuse(jobs, j, "wait_for", "wait_for names two jobs", e);
		j->waitee = other;
	}
	return j->waitee ? 0 : refuse(jobs, j, "wait_for", "wait_for must name a job before it", e);
}

static int split_names(const struct jobs *jobs, struct job *j, struct err *e)
{
	struct job_options *o = &j->o;
	const struct origin_line *at = job_origin(jobs, j, "filename");
	u64 count;

	if (o->filename_format && !*o->filename_format)
		o->filename_format = NULL;
	if (o->filename && words_split(&j->filenames, o->filename))
		return -ENOMEM;
	if (o->filename && !j->filenames.count)
		return err_set(e, at->file, at->line, "filename=%s names no file", o->filename);
	if (o->directory && words_split(&j->directories, o->directory))
		return -ENOMEM;
	count = j->filenames.count ? j->filenames.count : o->nrfiles;
	if (!o->openfiles || o->openfiles > count)
		o->openfiles = count;
	return 0;
}

static int note_engine(struct jobs *jobs, const struct job *j)
{
	const struct job_options *o = &j->o;

	if (o->iodepth > 1 &&
	    (o->ioengine == IO_SYNC || o->ioengine == IO_MMAP || o->ioengine == IO_NULL))
		return jobs_add_note(jobs, job_origin(jobs, j, "iodepth"),
				     "iodepth has no effect in job %s: its ioengine does one I/O "
				     "at a time",
				     o->name);
	return 0;
}

static int check_job(struct jobs *jobs, struct job *j, struct err *e)
{
	struct job_options *o = &j->o;
	int rc;

	if (o->time_based && !o->runtime_ns)
		return refuse(jobs, j, "time_based", "time_based needs a runtime", e);
	if (o->thinktime_iotime_ns &&
	    !j->option_at[options_find("thinktime_blocks") - options_table])
		o->thinktime_blocks = 0; /* then the time alone counts */
	if (o->latency_target_ns && !o->latency_window_ns)
		return refuse(jobs, j, "latency_target", "latency_target needs a latency_window",
			      e);
	if (o->verify == VERIFY_PATTERN && !o->verify_pattern.length)
		return refuse(jobs, j, "verify", "verify=pattern needs a verify_pattern", e);
	if (o->ioengine == IO_MMAP && job_min_bs(o) % PAGE_SIZE &&
	    (o->direct || o->fsync || o->fdatasync))
		return refuse(jobs, j, "bs",
			      "ioengine=mmap with direct, fsync or fdatasync needs blocks of whole "
			      "pages",
			      e);
	if (!o->loops)
		o->loops = 1;
	if (o->pre_read)
		o->invalidate = false;
	settle_blocks(o);
	rc = settle_zones(jobs, j, e);
	if (!rc)
		rc = settle_waitee(jobs, j, e);
	if (!rc)
		rc = split_names(jobs, j, e);
	return rc ? rc : note_engine(jobs, j);
}

int check_jobs(struct jobs *jobs, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < jobs->count && !rc; i++)
		rc = check_job(jobs, &jobs->list[i], e);
	return rc;
}

/* The folder that a file lies in must be there. */
static int check_folder(const struct jobs *jobs, const struct job *j, struct job_engine *engine,
			const char *option, const char *folder, const char *name, struct err *e)
{
	const struct origin_line *at = job_origin(jobs, j, option);
	char *path = NULL;
	int rc;

	if (asprintf(&path, "%s%s%s", folder ? folder : "", folder ? "/" : "", name) < 0)
		return -ENOMEM;
	*(strrchr(path, '/') + 1) = 0;
	rc = engine->folder(engine, path);
	if (rc)
		err_set(e, at->file, at->line, "%s: the folder %s of job %s: %s", option, path,
			j->o.name, strerror(-rc));
	free(path);
	return rc ? -ENOTSUP : 0;
}

static int check_folders(const struct jobs *jobs, const struct job *j, struct job_engine *engine,
			 struct err *e)
{
	const char *first = j->directories.count ? j->directories.word[0] : NULL;
	int rc = 0;

	for (u32 i = 0; i < j->directories.count && !rc; i++)
		rc = check_folder(jobs, j, engine, "directory", j->directories.word[i], "", e);
	for (u32 i = 0; i < j->filenames.count && !rc; i++)
		if (strchr(j->filenames.word[i], '/'))
			rc = check_folder(jobs, j, engine, "filename", first, j->filenames.word[i],
					  e);
	return rc;
}

int check_engine(const struct jobs *jobs, const struct job *j, struct job_engine *engine,
		 struct err *e)
{
	const struct job_options *o = &j->o;
	const struct {
		bool lacking;
		const char *option;
	} needs[] = {
		{ o->sync_range && !engine->sync_range, "sync_file_range" },
		{ (o->fallocate == ALLOC_POSIX || o->fallocate == ALLOC_KEEP) && !engine->allocate,
		  "fallocate" },
		{ o->uncached && !(engine->features & JOB_CAN_DONTCACHE), "uncached" },
		{ o->cgroup && !engine->act_for, "cgroup" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		const struct origin_line *at = job_origin(jobs, j, needs[i].option);

		if (!needs[i].lacking || o->ioengine == IO_NULL)
			continue;
		err_set(e, at->file, at->line, "the engine %s cannot do %s in job %s", engine->name,
			needs[i].option, o->name);
		return -ENOTSUP;
	}
	if (o->cgroup && engine->act_for && engine->find_tenant(engine, o->cgroup)) {
		const struct origin_line *at = job_origin(jobs, j, "cgroup");

		err_set(e, at->file, at->line,
			"cgroup: job %s is of tenant \"%s\", but there is none", o->name,
			o->cgroup);
		return -ENOTSUP;
	}
	return engine->folder && o->ioengine != IO_NULL ? check_folders(jobs, j, engine, e) : 0;
}

static int check_blocks(const struct jobs *jobs, const struct job *j, u32 block_bytes,
			struct err *e)
{
	const struct job_options *o = &j->o;
	const struct origin_line *at = job_origin(jobs, j, "bs");
	u64 bs = job_min_bs(o);

	if (o->size.bytes && !o->size.percent && o->size.bytes < bs)
		return err_set(e, at->file, at->line,
			       "the blocks of job %s are larger than its size", o->name);
	if (o->direct && bs % block_bytes)
		return err_set(
			e, at->file, at->line,
			"the blocks of job %s have %llu bytes: past the cache only multiples "
			"of block_bytes go, %u here",
			o->name, (unsigned long long)bs, block_bytes);
	return 0;
}

int jobs_check_blocks(const struct jobs *jobs, u32 block_bytes, struct err *e)
{
	for (size_t i = 0; i < jobs->count; i++)
		if (check_blocks(jobs, &jobs->list[i], block_bytes, e))
			return -EINVAL;
	return 0;
}

int jobs_check_engine(const struct jobs *jobs, struct job_engine *engine, struct err *e)
{
	for (size_t i = 0; i < jobs->count; i++)
		if (check_engine(jobs, &jobs->list[i], engine, e))
			return -ENOTSUP;
	return 0;
}

int jobs_note_engine(struct jobs *jobs, const struct job_engine *engine)
{
	for (size_t i = 0; i < jobs->count && !engine->map; i++)
		if (jobs->list[i].o.ioengine == IO_MMAP &&
		    jobs_add_note(
			    jobs, job_origin(jobs, &jobs->list[i], "ioengine"),
			    "ioengine=mmap reads and writes as psync does: there is no map of "
			    "the cache of engine %s",
			    engine->name))
			return -ENOMEM;
	return 0;
}
