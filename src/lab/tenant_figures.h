/* SPDX-License-Identifier: MIT */
/* What the measured phase came to for each tenant of the machine. */
#ifndef SLUICE_LAB_TENANT_FIGURES_H
#define SLUICE_LAB_TENANT_FIGURES_H

#include "job/job.h"
#include "lab/metric.h"
#include "lab/setup.h"

struct tenant_figures {
	const struct setup *setup;
	struct engine *engine;
	struct tenant_stats before[SETUP_TENANTS_MAX], after[SETUP_TENANTS_MAX];
	struct job_dir_stats dir[SETUP_TENANTS_MAX][JOB_DIRS];
	u64 ended_ns[SETUP_TENANTS_MAX]; /* its last job; 0: it had none */
	u64 started_ns;
};

void tenant_figures_begin(struct tenant_figures *f, const struct setup *s, struct engine *e);
void tenant_figures_end(struct tenant_figures *f, const struct job_results *results);
/* That tenant goes away; says how long it took. 0 or -ENOENT. */
int tenant_close(struct engine *e, const char *name, struct metrics *to);
/* Of tenant i of the setup. */
void tenant_figures_put(const struct tenant_figures *f, u32 i, struct metrics *to);

#endif
