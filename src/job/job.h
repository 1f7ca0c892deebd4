/* SPDX-License-Identifier: MIT */
/*
 * fio jobs: reading job files, running them on an engine, and what came out.
 *
 * jobs_load() reads a job file in fio's own language into a list of jobs, each with
 * its options resolved ([global] sections applied, numjobs kept as a number).
 * jobs_run() runs them all, as fio would: every clone of every job is a task of the
 * world, stonewalls wait, rates are kept by fio's own rule, latencies go into
 * histograms by fio's bucket law.
 */
#ifndef SLUICE_JOB_JOB_H
#define SLUICE_JOB_JOB_H

#include "base/err.h"
#include "base/hist.h"
#include "job/engine.h"
#include <stdatomic.h>

struct jobs; /* a parsed job file */

/* How to read a job file. */
struct jobs_reading {
	bool lenient;     /* unknown and unsupported options are noted, not refused */
	bool no_includes; /* `include` is refused */
	/* The machine that $mb_memory and $ncpus speak of; 0: they are refused. */
	u64 memory_bytes;
	u32 cpus;
};

/*
 * 0 or -EINVAL / -errno with `e` naming file, line and option. Free with jobs_free().
 * `how` may be NULL. ${NAME} is the environment's; what it says is read like the rest.
 */
int jobs_load_as(const char *path, const struct jobs_reading *how, struct jobs **out,
		 struct err *e);
int jobs_parse_as(const char *path, const char *text, const struct jobs_reading *how,
		  struct jobs **out, struct err *e);
int jobs_load(const char *path, struct jobs **out, struct err *e);
int jobs_parse(const char *path, const char *text, struct jobs **out, struct err *e);
void jobs_free(struct jobs *j);

/* 0, or -ENOTSUP with `e` naming the first option that needs what the engine cannot do, or a
 * folder that is not there. */
int jobs_check_engine(const struct jobs *j, struct job_engine *engine, struct err *e);
/* Adds remarks on what the engine does in another way than it was asked for. 0 or -ENOMEM. */
int jobs_note_engine(struct jobs *j, const struct job_engine *engine);

/* Remark i, "FILE:LINE: what was taken but does not count", or NULL: there are i of them. */
const char *jobs_note(const struct jobs *j, size_t i);

/* -EINVAL when a job's blocks cannot be: larger than its size, or direct and in part of a block. */
int jobs_check_blocks(const struct jobs *j, u32 block_bytes, struct err *e);
/* Calls each() with every distinct file the jobs name and its bytes, to check against a machine. */
void jobs_each_file(const struct jobs *j, void (*each)(void *ctx, const char *path, u64 bytes),
		    void *ctx);
/* Their bytes together. */
u64 jobs_file_bytes(const struct jobs *j);
/* The longest the jobs can take by their own word (runtime + ramp_time + startdelay), 0 if open. */
u64 jobs_duration_ns(const struct jobs *j);

enum job_dir { JOB_DIR_READ, JOB_DIR_WRITE, JOB_DIR_TRIM, JOB_DIRS };

/* Figures of windows of half a second: how many, and what they say. */
struct job_samples {
	u64 count;
	double min, max, mean, deviation;
};

struct job_dir_stats {
	u64 ios, bytes, short_ios;
	u64 runtime_ns;   /* of the slowest clone, ramp time not counted */
	u64 last_ns;      /* world time at which the last I/O ended */
	struct hist clat; /* completion latency: of the call, as fio's clat for sync engines */
	struct job_samples bw, iops; /* KiB and I/Os a second; of rows only */
};

/* How deep the queue was when I/Os were issued, and how long they took, in fio's classes. */
#define JOB_DEPTHS 7 /* 1, 2.., 4.., 8.., 16.., 32.., 64.. */
#define JOB_TIMES  10
struct job_levels {
	u64 depth[JOB_DEPTHS];
	u64 ns[JOB_TIMES], us[JOB_TIMES], ms[JOB_TIMES + 2];
};

struct job; /* as it was read */

/* One row of results: a job, or a group of jobs under group_reporting. */
struct job_result {
	char name[64];
	const struct job *job; /* of its first clone; lives as long as the jobs */
	u32 clones, group;
	int error; /* first error of any clone, 0 or negative errno */
	char error_text[160];
	/* Errors that the job went on after: continue_on_error. They do not fail it. */
	u64 total_errors;
	int first_error;
	char first_error_text[160];
	struct job_dir_stats dir[JOB_DIRS];
	struct hist sync_lat; /* fsync, fdatasync and sync_file_range calls */
	u64 sync_ios;
	struct job_levels levels;
	u64 started_ns, ended_ns; /* world time of the first clone's start, the last one's end */
	u64 busy_ns;              /* time of all clones together */
	u32 latency_depth;        /* what latency_target came to, or iodepth */
};

struct job_log; /* what one clone was asked to log */

struct job_results {
	struct job_result *rows;
	size_t count;
	struct job_log *logs;
	size_t log_count;
	u64 started_ns, ended_ns; /* world time of the whole run */
	u64 date_ns;              /* of its end, since 1970; 0: it was simulated */
	bool stopped;             /* by jobs_stop(), before its end */
};

/* Ends a run from outside; jobs_stop() may be called from a signal handler. Begins as zeros. */
struct jobs_stop {
	_Atomic u32 asked;
	_Atomic u32 changes; /* the runner parks on it */
};
void jobs_stop(struct jobs_stop *s);

struct jobs_options {
	u64 seed;      /* mixed into every clone's random streams */
	bool contents; /* real buffers with a pattern in them; else the engine gets NULL */
	/* called every `progress_ns` of world time, if not NULL */
	void (*progress)(void *ctx, u64 now_ns);
	void *progress_ctx;
	u64 progress_ns;
	/* [JOB_DIRS], or NULL: each I/O is entered here too as it ends, for somebody who looks on
	 * while the jobs run. In the simulated world only, where tasks take turns. */
	struct job_dir_stats *live;
	struct jobs_stop *stop;  /* or NULL */
	struct hist *live_syncs; /* likewise, of fsyncs, or NULL */
};

/*
 * Runs all jobs to their end; call from a task. 0 or a negative errno when the run
 * could not be made at all (memory); errors of single jobs are in their rows.
 * Free results with job_results_finish().
 */
int jobs_run(const struct jobs *j, struct job_engine *engine, const struct jobs_options *o,
	     struct job_results *out);
void job_results_finish(struct job_results *r);
/* Where the job of a row stands, "FILE:LINE". Returns buf. */
const char *job_result_place(const struct jobs *j, const struct job_result *r, char *buf,
			     size_t size);
/* The tenant that the job of a row acts for (cgroup), or NULL. */
const char *job_result_tenant(const struct job_result *r);
/* Writes the logs that jobs asked for, named and written as fio's, into the current folder.
 * 0, or a negative errno with `e` naming the file. */
int job_results_write_logs(const struct job_results *r, struct err *e);
/* Sum over all rows of one direction, for experiments that report one figure. */
void job_results_total(const struct job_results *r, enum job_dir dir, struct job_dir_stats *out);

#endif
