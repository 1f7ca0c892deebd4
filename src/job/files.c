/* SPDX-License-Identifier: MIT */
/*
 * Which files a clone works on, and how much of each. Either the job names them, and
 * then all its clones share them, or they are named by a pattern from job, clone and
 * file number. The size of a file is filesize, or an equal share of size (what does
 * not divide goes to the first files, a block each), or what the file has; from its
 * start offset to there is what the clone works on. These are fio 3.33's rules.
 */
#include "base/bits.h"
#include "base/rng.h"
#include "job/jobs.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static u64 extreme_bs(const struct job_options *o, bool largest)
{
	const u64 *bs = largest ? o->bs_max_bytes : o->bs_bytes;
	u64 r = bs[JOB_DIR_READ], w = bs[JOB_DIR_WRITE];

	if (!(o->rw & RW_WRITE))
		return r;
	if (!(o->rw & RW_READ))
		return w;
	return largest ? max_u64(r, w) : min_u64(r, w);
}

u64 job_min_bs(const struct job_options *o)
{
	return extreme_bs(o, false);
}

u64 job_max_bs(const struct job_options *o)
{
	return extreme_bs(o, true);
}

/* The format with its keywords replaced. */
static int format_name(FILE *out, const struct job *j, u32 clone, u32 number)
{
	const char *c = j->o.filename_format ? j->o.filename_format : "$jobname.$jobnum.$filenum";

	while (*c) {
		if (!strncmp(c, "$jobname", 8)) {
			fputs(j->o.name, out);
			c += 8;
		} else if (!strncmp(c, "$jobnum", 7)) {
			fprintf(out, "%u", clone);
			c += 7;
		} else if (!strncmp(c, "$filenum", 8)) {
			fprintf(out, "%u", number);
			c += 8;
		} else {
			fputc(*c++, out);
		}
	}
	return ferror(out) ? -ENOMEM : 0;
}

/* Directories go round over the clones; files named by the job are all in the first. */
static char *file_path(const struct job *j, u32 clone, u32 number)
{
	bool named = j->filenames.count;
	char *path = NULL;
	size_t size;
	FILE *out = open_memstream(&path, &size);
	int rc = 0;

	if (!out)
		return NULL;
	if (j->directories.count)
		fprintf(out, "%s/", j->directories.word[named ? 0 : clone % j->directories.count]);
	if (named)
		fputs(j->filenames.word[number], out);
	else
		rc = format_name(out, j, clone, number);
	if (fclose(out) || rc) {
		free(path);
		return NULL;
	}
	return path;
}

static u64 amount_of(const struct amount *a, u64 has)
{
	return a->percent ? (u64)((unsigned __int128)has * a->percent / 100) : a->bytes;
}

/*
 * Where in a file clone number `clone` begins. As fio does, what is a share of the file is rounded
 * up to whole blocks, or to what offset_align says; numbers are not.
 */
static int start_of(const struct job_options *o, u32 clone, u64 has, u64 *start)
{
	u64 unit = o->offset_align_bytes ? o->offset_align_bytes : job_min_bs(o), steps;

	if (__builtin_mul_overflow(amount_of(&o->offset_increment, has), clone, &steps) ||
	    steps > 1ull << 62)
		return -EINVAL;
	*start = amount_of(&o->offset, has) + steps;
	if (o->offset.percent || o->offset_increment.percent)
		*start = round_up(*start, unit);
	return 0;
}

/* The size of file `number`, drawn if filesize is a range, in whole blocks as far as can be. */
static u64 draw_filesize(const struct job_options *o, u32 clone, u32 number)
{
	u64 low = o->filesize_bytes, high = o->filesize_max_bytes, bs = job_min_bs(o), size;
	struct rng r;

	if (high <= low)
		return low;
	rng_init(&r, o->randseed + ((u64)clone << 32) + number);
	size = low + rng_below(&r, high - low + 1);
	return size / bs * bs >= low ? size / bs * bs : low;
}

static int plan_extent(struct file_plan *f, const struct job *j, u32 clone, u32 number, u64 share,
		       u64 has, struct err *e)
{
	const struct job_options *o = &j->o;
	u64 end;

	if (start_of(o, clone, has, &f->start))
		return err_set(e, NULL, 0, "offset_increment of job %s leads too far", o->name);
	if (o->filesize_bytes)
		end = draw_filesize(o, j->filenames.count ? 0 : clone, number);
	else if (share)
		end = f->start + share;
	else
		end = has;
	if (f->start > end)
		return err_set(e, NULL, 0, "offset of job %s is behind the end of %s", o->name,
			       f->path);
	f->length = end - f->start;
	if (o->size.percent && o->size.percent != 100) {
		u64 part = (u64)((unsigned __int128)end * o->size.percent / 100);

		f->length = min_u64(part, f->length);
		f->length = f->length / job_min_bs(o) * job_min_bs(o);
	}
	f->size = max_u64(has, f->start + f->length);
	f->extend = f->size > has;
	return 0;
}

int files_plan(struct file_plans *p, const struct job *j, u32 clone,
	       u64 (*size_of)(void *ctx, const char *path), void *ctx, struct err *e)
{
	const struct job_options *o = &j->o;
	u32 count = j->filenames.count ? j->filenames.count : (u32)o->nrfiles;
	u64 share = o->size.bytes / count, bs = job_min_bs(o), had = 0;
	u64 extra = o->filesize_bytes ? 0 : (o->size.bytes - share * count) / bs;
	int rc = 0;

	*p = (struct file_plans){ .plan = calloc(count, sizeof(*p->plan)) };
	if (!p->plan)
		return -ENOMEM;
	for (; p->count < count && !rc; p->count++) {
		struct file_plan *f = &p->plan[p->count];
		u64 has;

		f->path = file_path(j, clone, p->count);
		if (!f->path) {
			rc = -ENOMEM;
			break;
		}
		has = size_of(ctx, f->path);
		rc = plan_extent(f, j, clone, p->count, share + (p->count < extra ? bs : 0), has,
				 e);
		had += has;
		p->length += f->length;
	}
	if (!rc && !o->size.bytes && !o->filesize_bytes && !had)
		rc = err_set(e, NULL, 0, "job %s needs a size, since %s does not exist", o->name,
			     p->plan[0].path);
	if (o->size.bytes)
		p->length = min_u64(p->length, o->size.bytes);
	if (!rc && p->length < bs)
		rc = err_set(e, NULL, 0, "the blocks of job %s are larger than its data", o->name);
	if (rc)
		files_plan_finish(p);
	return rc;
}

void files_plan_finish(struct file_plans *p)
{
	for (u32 i = 0; i < p->count; i++)
		free(p->plan[i].path);
	free(p->plan);
	*p = (struct file_plans){ 0 };
}
