// SPDX-License-Identifier: MIT
/*
 * A tenant's figures are those of its jobs (rows of the results by their cgroup), and those that
 * the engine keeps of it. They have the names of the figures of all.
 */
#include "lab/tenant_figures.h"
#include <errno.h>
#include <string.h>

static void look(const struct tenant_figures *f, struct tenant_stats *stats)
{
	for (u32 i = 0; i < f->setup->tenant_count; i++) {
		struct tenant *t = engine_tenant(f->engine, f->setup->tenant[i].name);

		if (t)
			engine_tenant_stats(f->engine, t, &stats[i]);
	}
}

void tenant_figures_begin(struct tenant_figures *f, const struct setup *s, struct engine *e)
{
	*f = (struct tenant_figures){ .setup = s, .engine = e, .started_ns = world_now() };
	for (u32 i = 0; i < s->tenant_count; i++)
		if (engine_tenant(e, s->tenant[i].name))
			engine_tenant_reset(e, engine_tenant(e, s->tenant[i].name));
	look(f, f->before);
}

static void add_row(struct tenant_figures *f, u32 i, const struct job_result *row)
{
	for (enum job_dir dir = 0; dir < JOB_DIRS; dir++) {
		struct job_dir_stats *to = &f->dir[i][dir];
		const struct job_dir_stats *from = &row->dir[dir];

		to->ios += from->ios;
		to->bytes += from->bytes;
		to->runtime_ns = max_u64(to->runtime_ns, from->runtime_ns);
		if (!to->clat.samples && from->clat.samples)
			to->clat = from->clat;
		else if (from->clat.samples)
			hist_merge(&to->clat, &from->clat);
	}
	f->ended_ns[i] = max_u64(f->ended_ns[i], row->ended_ns);
}

void tenant_figures_end(struct tenant_figures *f, const struct job_results *results)
{
	look(f, f->after);
	for (size_t row = 0; row < results->count; row++) {
		const char *name = job_result_tenant(&results->rows[row]);

		for (u32 i = 0; name && i < f->setup->tenant_count; i++)
			if (!strcmp(name, f->setup->tenant[i].name))
				add_row(f, i, &results->rows[row]);
	}
}

static double percentile_ms(const struct hist *h, double percent)
{
	return (double)min_u64(hist_percentile(h, percent), h->max_ns) / NSEC_PER_MSEC;
}

static void put_dir(struct metrics *to, const struct job_dir_stats *d, enum metric iops,
		    enum metric p50, enum metric p99, enum metric max)
{
	if (!d->ios)
		return;
	metric_put(to, iops, d->runtime_ns ? (double)d->ios * NSEC_PER_SEC / d->runtime_ns : 0);
	metric_put(to, p50, percentile_ms(&d->clat, 50));
	metric_put(to, p99, percentile_ms(&d->clat, 99));
	metric_put(to, max, (double)d->clat.max_ns / NSEC_PER_MSEC);
}

int tenant_close(struct engine *e, const char *name, struct metrics *to)
{
	struct tenant *t = engine_tenant(e, name);
	u64 began = world_now(), inodes, longest_ns;

	if (!t)
		return -ENOENT;
	engine_close_tenant_telling(e, t, &inodes, &longest_ns);
	metric_put(to, METRIC_CLOSE, (double)(world_now() - began) / NSEC_PER_SEC);
	metric_put(to, METRIC_CLOSE_STEP, (double)longest_ns / NSEC_PER_MSEC);
	return 0;
}

void tenant_figures_put(const struct tenant_figures *f, u32 i, struct metrics *to)
{
	const struct tenant_stats *a = &f->after[i], *b = &f->before[i];

	put_dir(to, &f->dir[i][JOB_DIR_READ], METRIC_READ_IOPS, METRIC_READ_P50, METRIC_READ_P99,
		METRIC_READ_MAX);
	put_dir(to, &f->dir[i][JOB_DIR_WRITE], METRIC_WRITE_IOPS, METRIC_WRITE_P50,
		METRIC_WRITE_P99, METRIC_WRITE_MAX);
	metric_put(to, METRIC_SLEEP,
		   (double)(a->throttle_sleep_ns - b->throttle_sleep_ns) / NSEC_PER_SEC);
	metric_put(to, METRIC_MAX_DIRTY, (double)a->dirty_max * PAGE_SIZE);
	metric_put(to, METRIC_CHARGED, (double)(a->pages_dirtied - b->pages_dirtied));
	metric_put(to, METRIC_WRITTEN, (double)(a->pages_written - b->pages_written));
	if (f->ended_ns[i])
		metric_put(to, METRIC_ENDED,
			   (double)(f->ended_ns[i] - f->started_ns) / NSEC_PER_SEC);
}
