/* SPDX-License-Identifier: MIT */
/* What a parsed job file is made of: inside src/job/ only. */
#ifndef SLUICE_JOB_JOBS_H
#define SLUICE_JOB_JOBS_H

#include "job/options.h"

struct words {
	char **word;
	u32 count;
};

/* A line of a job file, as it stands there. */
struct origin_line {
	const char *file;
	int line;
};

/* An option as somebody wrote it; value NULL: it stands alone. */
struct given {
	const char *name, *value;
	u32 at; /* index into the origins */
};

struct givens {
	struct given *option;
	u32 count;
};

struct job {
	struct job_options o;
	u32 at;                     /* origin of its section */
	u32 option_at[OPTIONS_MAX]; /* where each option was last set, 0: nowhere */
	struct words filenames;     /* filename, taken apart */
	struct words directories;
	struct givens given;      /* in its own section */
	const struct job *waitee; /* the job that wait_for names, or NULL */
};

struct jobs {
	char *path;
	char **kept; /* the texts that all others lie in */
	size_t kept_count;
	struct origin_line *origins; /* the first is no place */
	u32 origin_count;
	struct job *list;
	size_t count;
	struct givens globals; /* what [global] sections said */
	char **notes;
	size_t note_count;
};

/* Takes "a:b\:c" apart at its colons: "a", "b:c". Empty words are dropped. 0 or -ENOMEM. */
int words_split(struct words *w, const char *text);
void words_finish(struct words *w);

/* Where the option `name` of j was set, or its section. */
const struct origin_line *job_origin(const struct jobs *jobs, const struct job *j,
				     const char *name);

/* source.c: keeps a string of malloc's as long as the jobs; NULL if it is, or without memory. */
char *jobs_keep(struct jobs *jobs, char *text);
int jobs_add_origin(struct jobs *jobs, const char *file, int line, u32 *out);
int jobs_add_note(struct jobs *jobs, const struct origin_line *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Reads a whole file, to be freed. -errno, or -EILSEQ: it is no text, -EFBIG. */
int read_text_file(const char *path, char **out);
/*
 * The text with ${NAME} and, in a value, $pagesize, $mb_memory and $ncpus replaced. The same
 * text if there is nothing to replace. NULL with `e` set, or -ENOMEM in *error.
 */
const char *substitute(struct jobs *jobs, const struct jobs_reading *how, const char *text,
		       const struct origin_line *at, int *error, struct err *e);

/* check.c: what can only be said when all options of all jobs are known. */
int check_jobs(struct jobs *jobs, struct err *e);

/* A file as one clone sees it, before it is opened. */
struct file_plan {
	char *path;
	u64 start, length; /* the part the clone works on, in bytes */
	u64 size;          /* of the file: what it has, or will be given */
	bool extend;       /* smaller than that now */
};

struct file_plans {
	struct file_plan *plan;
	u32 count;
	u64 length; /* sum of lengths, at most size: what one pass reads or writes */
};

/*
 * Names and sizes of the files of clone `clone` of job j. `size_of` tells how large a
 * file is (0: not there). 0, -ENOMEM, or -EINVAL with `e` set.
 */
int files_plan(struct file_plans *p, const struct job *j, u32 clone,
	       u64 (*size_of)(void *ctx, const char *path), void *ctx, struct err *e);
void files_plan_finish(struct file_plans *p);
/* The smallest block size of the directions the job uses, and the largest. */
u64 job_min_bs(const struct job_options *o);
u64 job_max_bs(const struct job_options *o);

#endif
