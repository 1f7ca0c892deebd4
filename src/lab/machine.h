/* SPDX-License-Identifier: MIT */
/*
 * A simulated machine to run job files on, without an experiment around them: the default
 * machine, what a machine file changes of it, and what the command line does.
 */
#ifndef SLUICE_LAB_MACHINE_H
#define SLUICE_LAB_MACHINE_H

#include "base/ini.h"
#include "job/job.h"
#include "lab/setup.h"

/*
 * The default machine, as a machine file would say it. A file of a machine that has no
 * [machine] or no [device] leaves this one's; a [device] of its own takes its place whole.
 */
extern const char machine_default[];

struct machine {
	struct setup setup;
	struct policy policy;
	const char *path; /* NULL: the default */
	/* private: what the settings point into */
	struct ini base, file;
	struct settings settings;
	char **strings;
	size_t string_count;
};

/*
 * Reads a machine. `path` may be NULL; `policy` is that of a preset; `sets` are
 * "SECTION.KEY=VALUE" and "CHOICE=VALUE" of the policy. 0, or a negative errno with `e` set.
 */
int machine_load(struct machine *m, const char *path, const struct policy *policy,
		 const char *const *sets, size_t set_count, struct err *e);
void machine_finish(struct machine *m);

struct machine_result {
	int error; /* 0, or a negative errno, with `text`: nothing came out */
	char text[320];
	struct job_results jobs;
	struct device_stats device[ENGINE_DEVICES_MAX];
	double virtual_s;
};

/*
 * Runs the jobs on a fresh machine, on the calling OS thread. `tick` (or NULL) is called
 * with the virtual time. The result is freed with job_results_finish(&out->jobs).
 */
void machine_run(const struct machine *m, const struct jobs *jobs, u64 seed,
		 void (*tick)(void *ctx, u64 now_ns), void *tick_ctx, struct machine_result *out);

#endif
