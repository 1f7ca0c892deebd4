/* SPDX-License-Identifier: MIT */
/*
 * The lab runs the cases of a plan, each in a simulated world of its own on an OS
 * thread of its own, and says what came out. What comes out of a case depends on
 * the experiment and the seed alone, not on what runs beside it.
 */
#ifndef SLUICE_LAB_LAB_H
#define SLUICE_LAB_LAB_H

#include "lab/experiment.h"
#include "lab/series.h"
#include <stdio.h>

struct lab_result {
	const struct experiment_case *c;
	char policy[256]; /* as policy_label() */
	int error;        /* 0, or a negative errno: then `text` says what failed */
	char text[640];
	struct metrics predicted;
	struct metrics device[ENGINE_DEVICES_MAX]; /* those of single devices, as in the setup */
	struct metrics tenant[SETUP_TENANTS_MAX];  /* likewise */
	double wall_s, virtual_s;
	struct series *series; /* of the measured phase, if it was to be recorded and no error */
};

/* A moment of a running lab; virtual times are summed over its cases. */
struct lab_progress {
	size_t done, total;
	const char *newest; /* the case that reported last */
	double wall_s, virtual_s;
	double left_s; /* wall time, guessed from the jobs' own durations; < 0: no idea */
};

struct lab_options {
	u64 seed;
	unsigned jobs; /* cases at a time; 0: as many as there are CPUs */
	bool record;   /* series too; they change no figure */
	FILE *trace;   /* the decisions of the plan's only case go there as text; NULL: nowhere */
	/* Called now and then, never twice at once, on some thread of the lab's. May be NULL. */
	void (*progress)(void *ctx, const struct lab_progress *p);
	void *progress_ctx;
};

/* Runs all; results[i] is of plan->cases[i]. 0, or -ENOMEM before anything ran. */
int lab_run(const struct plan *plan, const struct lab_options *o, struct lab_result *results);

/*
 * The same under `seeds` seeds, an odd number of them, from o->seed on: results[i] has each
 * figure's median. Nothing can be recorded or traced then, unless it is one.
 */
#define LAB_SEEDS_MAX 99
int lab_run_seeds(const struct plan *plan, const struct lab_options *o, u32 seeds,
		  struct lab_result *results);

/* Frees the series of all. */
void lab_results_finish(struct lab_result *results, size_t count);

/* run.c: one case, on the calling OS thread. `tick` is called with the virtual time. */
void run_case(const struct experiment *x, const struct experiment_case *c, u64 seed,
	      void (*tick)(void *ctx, u64 now_ns), void *tick_ctx, struct lab_result *out);
/* The same, with its series, or its decisions as text; no figure depends on that. */
struct case_watch {
	bool record;
	FILE *trace; /* or NULL */
};
void run_case_watched(const struct experiment *x, const struct experiment_case *c, u64 seed,
		      void (*tick)(void *ctx, u64 now_ns), void *tick_ctx,
		      const struct case_watch *watch, struct lab_result *out);
/* How long a case takes in virtual time, by its jobs' own words and the device's speed. */
u64 run_guess_ns(const struct experiment *x, const struct experiment_case *c);

/* A table of predictions, beside the references where there are some. */
void report_table(FILE *out, const struct experiment *x, const struct lab_result *results,
		  size_t count);
/* The same as JSON; -ENOMEM or the error of writing. */
int report_json(FILE *out, const struct experiment *x, u64 seed, const struct lab_result *results,
		size_t count);
/* report_json() into a file that appears whole or not at all; a device is written into. */
int report_json_file(const char *path, const struct experiment *x, u64 seed,
		     const struct lab_result *results, size_t count, struct err *e);
/* Writes a line for each prediction that misses its tolerance; returns how many. */
size_t report_misses(FILE *out, const struct experiment *x, const struct lab_result *results,
		     size_t count);

#endif
