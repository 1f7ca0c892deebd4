/* SPDX-License-Identifier: MIT */
/*
 * Results by fio's rule of rows: a clone begins a new row unless its job says
 * group_reporting and the clone before it is of the same group. Groups are cut by
 * stonewall and new_group. A row has the name of its first clone's job; its runtime in
 * a direction is that of its slowest clone.
 */
#include "job/clone.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_direction(struct job_dir_stats *into, const struct job_dir_stats *from)
{
	into->ios += from->ios;
	into->bytes += from->bytes;
	into->short_ios += from->short_ios;
	into->runtime_ns = max_u64(into->runtime_ns, from->runtime_ns);
	into->last_ns = max_u64(into->last_ns, from->last_ns);
	hist_merge(&into->clat, &from->clat);
}

static void row_init(struct job_result *r, const struct clone *c)
{
	memset(r, 0, sizeof(*r));
	snprintf(r->name, sizeof(r->name), "%s", c->job->o.name);
	r->job = c->job;
	r->group = c->group;
	r->started_ns = ~0ull;
	for (int dir = 0; dir < JOB_DIRS; dir++)
		hist_init(&r->dir[dir].clat);
	hist_init(&r->sync_lat);
}

static void row_add(struct job_result *r, const struct clone *c)
{
	r->clones++;
	if (c->error && !r->error) {
		r->error = c->error;
		memcpy(r->error_text, c->error_text, sizeof(r->error_text));
	}
	if (c->first_error && !r->first_error) {
		r->first_error = c->first_error;
		memcpy(r->first_error_text, c->first_error_text, sizeof(r->first_error_text));
	}
	r->total_errors += c->total_errors;
	for (int dir = 0; dir < JOB_DIRS; dir++)
		add_direction(&r->dir[dir], &c->dir[dir]);
	hist_merge(&r->sync_lat, &c->sync_lat);
	r->sync_ios += c->sync_ios;
	levels_merge(&r->levels, &c->levels);
	r->latency_depth = c->depth;
	if (!c->ended_ns) /* it did not even begin */
		return;
	r->started_ns = min_u64(r->started_ns, c->counted_ns);
	r->ended_ns = max_u64(r->ended_ns, c->ended_ns);
	r->busy_ns += c->ended_ns - c->counted_ns;
}

void clone_forget_figures(struct clone *c, u64 now)
{
	for (int dir = 0; dir < JOB_DIRS; dir++) {
		c->dir[dir] = (struct job_dir_stats){ 0 };
		hist_init(&c->dir[dir].clat);
	}
	hist_init(&c->sync_lat);
	c->sync_ios = 0;
	c->levels = (struct job_levels){ 0 };
	c->series.count = 0;
	c->log.count = 0;
	c->counted_ns = now;
}

static bool begins_row(const struct run *run, size_t i)
{
	const struct clone *c = &run->clones[i];

	return !i || !c->job->o.group_reporting || run->clones[i - 1].group != c->group;
}

/* Samples of the row that clones [first, end) make up. */
static void row_samples(const struct run *run, size_t first, size_t end, struct job_result *r)
{
	struct series sum = { 0 };

	if (!r->ended_ns)
		return;
	for (size_t i = first; i < end; i++)
		series_merge(&sum, &run->clones[i].series);
	for (int dir = 0; dir <= JOB_DIR_WRITE; dir++)
		if (r->dir[dir].ios)
			series_samples(&sum, (enum job_dir)dir, r->started_ns - run->genesis_ns,
				       r->ended_ns - run->genesis_ns, &r->dir[dir].bw,
				       &r->dir[dir].iops);
	free(sum.window);
}

/* Logs change hands. */
static int take_logs(const struct run *run, struct job_results *out)
{
	out->logs = calloc(run->clone_count, sizeof(*out->logs));
	if (!out->logs)
		return -ENOMEM;
	for (size_t i = 0; i < run->clone_count; i++) {
		struct job_log *l = &run->clones[i].log;

		if (!log_wanted(&run->clones[i].job->o))
			continue;
		out->logs[out->log_count++] = *l;
		l->entry = NULL;
	}
	return 0;
}

int run_results(const struct run *run, struct job_results *out)
{
	size_t rows = 0, first = 0;

	for (size_t i = 0; i < run->clone_count; i++)
		rows += begins_row(run, i);
	out->rows = calloc(rows, sizeof(*out->rows));
	if (!out->rows)
		return -ENOMEM;
	for (size_t i = 0; i < run->clone_count; i++) {
		if (begins_row(run, i)) {
			row_init(&out->rows[out->count++], &run->clones[i]);
			first = i;
		}
		row_add(&out->rows[out->count - 1], &run->clones[i]);
		if (i + 1 == run->clone_count || begins_row(run, i + 1))
			row_samples(run, first, i + 1, &out->rows[out->count - 1]);
	}
	return take_logs(run, out);
}

void job_results_finish(struct job_results *r)
{
	for (size_t i = 0; i < r->log_count; i++)
		free(r->logs[i].entry);
	free(r->logs);
	free(r->rows);
	*r = (struct job_results){ 0 };
}

void job_results_total(const struct job_results *r, enum job_dir dir, struct job_dir_stats *out)
{
	memset(out, 0, sizeof(*out));
	hist_init(&out->clat);
	for (size_t i = 0; i < r->count; i++)
		add_direction(out, &r->rows[i].dir[dir]);
}

const char *job_result_place(const struct jobs *j, const struct job_result *r, char *buf,
			     size_t size)
{
	const struct origin_line *at = &j->origins[r->job->at];

	snprintf(buf, size, "%s:%d", at->file, at->line);
	return buf;
}

const char *job_result_tenant(const struct job_result *r)
{
	return r->job ? r->job->o.cgroup : NULL;
}
