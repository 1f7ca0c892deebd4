/* SPDX-License-Identifier: MIT */
/*
 * One case, from an empty machine to its figures:
 *
 *	simulated world, device, engine, table of files
 *	  phase, phase, ...: its jobs to their end, then sync and drop caches if asked
 *	  the measured one: counters before and after, maxima from its start
 *	all of it taken down again
 *
 * The case runs as the first task of its world. What it finds stands in a struct of
 * the OS thread's, because a histogram is too large for a fiber's stack.
 */
#include "lab/lab.h"
#include "lab/rig.h"
#include "lab/tenant_figures.h"
#include "lab/trace_text.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS (NSEC_PER_SEC / 2) /* virtual time between two reports of progress */

struct run {
	const struct experiment *x;
	const struct experiment_case *c; /* whose phases are run */
	bool preceding;                  /* it is one that the case to run comes after */
	struct lab_result *out;
	u64 seed;
	void (*tick)(void *ctx, u64 now_ns);
	void *tick_ctx;
	struct rig rig;
	struct case_watch watch;
	struct recorder *recorder; /* while the measured phase runs, if it is to be recorded */
	u64 ticked_ns;
	/* of the measured phase */
	struct engine_stats before, after;
	struct device_stats device_before[ENGINE_DEVICES_MAX], device_after[ENGINE_DEVICES_MAX];
	/* when what they did is read, a little later */
	struct device_stats device_read[ENGINE_DEVICES_MAX];
	struct job_dir_stats reads, writes;
	struct tenant_figures tenants;
	struct hist syncs;
	u64 started_ns, ended_ns;
};

static void fail(struct run *r, int error, const char *doing, const char *why)
{
	if (r->out->error)
		return;
	r->out->error = error;
	snprintf(r->out->text, sizeof(r->out->text), "case %s: %s: %s", r->c->name, doing, why);
}

static bool failed(struct run *r, int error, const char *doing)
{
	if (error)
		fail(r, error, doing, strerror(-error));
	return error != 0;
}

static void look_at_devices(const struct run *r, struct device_stats *stats)
{
	for (u32 i = 0; i < r->rig.device_count; i++)
		device_stats(r->rig.device[i], &stats[i]);
}

static void begin_measuring(struct run *r)
{
	engine_stats_reset(r->rig.engine);
	engine_stats(r->rig.engine, &r->before);
	look_at_devices(r, r->device_before);
	tenant_figures_begin(&r->tenants, &r->c->setup, r->rig.engine);
	r->started_ns = world_now();
}

static void end_measuring(struct run *r, const struct job_results *results)
{
	engine_stats(r->rig.engine, &r->after);
	look_at_devices(r, r->device_after);
	tenant_figures_end(&r->tenants, results);
	r->ended_ns = world_now();
	if (r->x->phases[r->x->measured].linger_ns)
		world_sleep_until(r->ended_ns + r->x->phases[r->x->measured].linger_ns);
	look_at_devices(r, r->device_read);
	job_results_total(results, JOB_DIR_READ, &r->reads);
	job_results_total(results, JOB_DIR_WRITE, &r->writes);
	hist_init(&r->syncs);
	for (size_t i = 0; i < results->count; i++)
		hist_merge(&r->syncs, &results->rows[i].sync_lat);
}

/* Called by the jobs as often as a series may have points, which is more often than ticks. */
static void look(void *ctx, u64 now_ns)
{
	struct run *r = ctx;

	recorder_look(r->recorder);
	if (r->tick && now_ns - r->ticked_ns >= TICK_NS) {
		r->ticked_ns = now_ns;
		r->tick(r->tick_ctx, now_ns);
	}
}

static void begin_recording(struct run *r, struct jobs_options *options)
{
	r->recorder = recorder_create(r->rig.engine, r->rig.device, &r->c->setup);
	if (!r->recorder) {
		failed(r, -ENOMEM, "recording");
		return;
	}
	recorder_begin(r->recorder);
	r->ticked_ns = world_now();
	options->live = recorder_live(r->recorder);
	options->live_syncs = recorder_live_syncs(r->recorder);
	options->progress = look;
	options->progress_ctx = r;
	options->progress_ns = SERIES_STEP_NS;
}

static void end_recording(struct run *r, const struct job_results *results)
{
	recorder_end(r->recorder, results);
	r->out->series = recorder_finish(r->recorder);
	r->recorder = NULL;
	if (!r->out->series)
		failed(r, -ENOMEM, "recording");
}

/* The devices and the limits as they are in phase i, once what is in flight has ended. */
static void set_up_phase(struct run *r, size_t i)
{
	const struct setup_device *now = r->c->phase_devices[i];
	int error;

	error = rig_set(&r->rig, &r->c->phase_vm[i], now ? now : r->c->setup.device, r->seed);
	failed(r, error, r->rig.device_count > 1 ? "setting the devices" : "setting the device");
}

/* A look is an event of the world, and all runs of a case have the same: also unwatched ones. */
static void nobody_looks(void *ctx, u64 now_ns)
{
	(void)ctx;
	(void)now_ns;
}

static void run_phase(struct run *r, size_t i)
{
	const struct phase *p = &r->x->phases[i];
	struct jobs_options options = {
		.seed = r->seed,
		.progress = r->tick ? r->tick : nobody_looks,
		.progress_ctx = r->tick_ctx,
		.progress_ns = TICK_NS,
	};
	struct job_results results;
	bool measure = p->measure && !r->preceding;
	char doing[256], place[128];
	int error;

	set_up_phase(r, i);
	snprintf(doing, sizeof(doing), "phase %s", p->name);
	if (r->watch.trace)
		trace_text_note(r->watch.trace, doing);
	if (measure)
		begin_measuring(r);
	if (measure && r->watch.record)
		begin_recording(r, &options);
	if (r->out->error)
		return;
	error = jobs_run(experiment_jobs(r->x, r->c, i), r->rig.files, &options, &results);
	if (failed(r, error, doing))
		return;
	if (r->recorder)
		end_recording(r, &results);
	if (measure)
		end_measuring(r, &results);
	for (size_t row = 0; row < results.count && !r->out->error; row++) {
		const struct job_result *job = &results.rows[row];

		if (!job->error)
			continue;
		snprintf(doing, sizeof(doing), "phase %s, job %s (%s)", p->name, job->name,
			 job_result_place(experiment_jobs(r->x, r->c, i), job, place,
					  sizeof(place)));
		fail(r, job->error, doing,
		     job->error_text[0] ? job->error_text : strerror(-job->error));
	}
	job_results_finish(&results);
	snprintf(doing, sizeof(doing), "close_tenant after phase %s", p->name);
	if (p->close_tenant && !r->out->error)
		failed(r, tenant_close(r->rig.engine, p->close_tenant, &r->out->predicted), doing);
	snprintf(doing, sizeof(doing), "sync after phase %s", p->name);
	if (p->sync_after && !r->out->error)
		failed(r, engine_sync(r->rig.engine), doing);
	if (p->drop_caches_after && !r->out->error)
		engine_drop_caches(r->rig.engine);
}

static void run_phases_of(struct run *r, const struct experiment_case *c, bool preceding)
{
	const struct experiment_case *own = r->c;

	r->c = c;
	r->preceding = preceding;
	for (size_t i = 0; i < r->x->phase_count && !r->out->error; i++)
		if (experiment_jobs(r->x, c, i))
			run_phase(r, i);
	r->c = own;
	if (!preceding || r->out->error)
		return;
	failed(r, engine_sync(r->rig.engine), "sync before the case");
	engine_drop_caches(r->rig.engine);
}

static void run_phases(void *arg)
{
	struct run *r = arg;
	const char *doing;
	int error = rig_build(&r->rig, &r->c->setup, &r->c->policy, r->seed, &doing);

	if (!error && r->watch.trace) {
		doing = "starting the trace";
		error = trace_text_begin(r->rig.engine, r->watch.trace);
	}
	if (!failed(r, error, doing)) {
		for (size_t i = 0; i < r->c->after_count && !r->out->error; i++)
			run_phases_of(r, &r->x->cases[r->c->after[i]], true);
		if (!r->out->error)
			run_phases_of(r, r->c, false);
	}
	r->out->virtual_s = (double)world_now() / NSEC_PER_SEC;
	rig_take_down(&r->rig);
}

/* A percentile is the middle of a bucket, which may lie past the largest sample: not here. */
static double percentile_ms(const struct hist *h, double percent)
{
	return (double)min_u64(hist_percentile(h, percent), h->max_ns) / NSEC_PER_MSEC;
}

/* The figures of reads or of writes. */
struct dir_metrics {
	enum metric iops, mib, mb, p50, p99, p999, max;
};

static void put_dir(struct metrics *to, const struct job_dir_stats *d, const struct dir_metrics *m)
{
	double s = (double)d->runtime_ns / NSEC_PER_SEC;

	metric_put(to, m->iops, d->runtime_ns ? (double)d->ios * NSEC_PER_SEC / d->runtime_ns : 0);
	metric_put(to, m->mib, s > 0 ? (double)d->bytes / (1 << 20) / s : 0);
	metric_put(to, m->mb, s > 0 ? (double)d->bytes / 1e6 / s : 0);
	metric_put(to, m->p50, percentile_ms(&d->clat, 50));
	metric_put(to, m->p99, percentile_ms(&d->clat, 99));
	metric_put(to, m->p999, percentile_ms(&d->clat, 99.9));
	metric_put(to, m->max, d->ios ? (double)d->clat.max_ns / NSEC_PER_MSEC : 0);
}

/* A moment of the measured phase, or never. */
static void put_moment(struct metrics *to, enum metric m, const struct run *r, u64 when_ns)
{
	to->state[m] = METRIC_NEVER;
	if (when_ns == WORLD_NEVER || when_ns > r->ended_ns)
		return;
	assert(when_ns >= r->started_ns);
	metric_put(to, m, (double)(when_ns - r->started_ns) / NSEC_PER_SEC);
}

static void put_pages(struct metrics *to, enum metric m, u64 pages)
{
	metric_put(to, m, (double)pages * PAGE_SIZE);
}

/*
 * What the jobs' writes cost the device: what it wrote, and what it still will have to, since a
 * large limit only puts that off. Below 1 the cache absorbed writes to the same pages.
 */
static void put_write_factor(const struct run *r, struct metrics *to)
{
	double device = 0;
	double owed = (double)r->after.debt - (double)r->before.debt;

	for (u32 i = 0; i < r->c->setup.device_count; i++)
		device +=
			(double)(r->device_after[i].write_bytes - r->device_before[i].write_bytes);
	metric_put(to, METRIC_WRITE_FACTOR,
		   fmax(0, device + owed * PAGE_SIZE) / (double)r->writes.bytes);
}

static void put_syncs(const struct run *r, struct metrics *to)
{
	metric_put(to, METRIC_FSYNC_P99, percentile_ms(&r->syncs, 99));
	metric_put(to, METRIC_FSYNC_MAX, (double)r->syncs.max_ns / NSEC_PER_MSEC);
}

static void put_device(const struct run *r, u32 i, struct metrics *to)
{
	const struct device_stats *a = &r->device_read[i], *b = &r->device_before[i];
	double ns = (double)(r->ended_ns - r->started_ns);

	metric_put(to, METRIC_DEVICE_READS, (double)(a->reads - b->reads));
	metric_put(to, METRIC_DEVICE_WRITES, (double)(a->writes - b->writes));
	metric_put(to, METRIC_DEVICE_READ_BYTES, (double)(a->read_bytes - b->read_bytes));
	metric_put(to, METRIC_DEVICE_WRITE_BYTES, (double)(a->write_bytes - b->write_bytes));
	metric_put(to, METRIC_DEVICE_BUSY,
		   ns > 0 ? 100 * (double)(r->device_after[i].busy_ns - b->busy_ns) / ns : 0);
}

/* How large the requests of a FUSE file system were. */
static void put_sizes(const struct run *r, u32 i, struct metrics *to)
{
	const struct device_stats *a = &r->device_read[i], *b = &r->device_before[i];

	static_assert(METRIC_DEVICE_WRITES_LARGER - METRIC_DEVICE_WRITES_4K + 1 == DEVICE_SIZES,
		      "a figure for each class");
	for (u32 size = 0; size < DEVICE_SIZES; size++)
		metric_put(to, METRIC_DEVICE_WRITES_4K + size,
			   (double)(a->write_sizes[size] - b->write_sizes[size]));
}

/* Each device's figures, their sums, and how busy the busiest was. */
static void put_devices(const struct run *r, struct metrics *to)
{
	struct lab_result *out = r->out;

	for (u32 i = 0; i < r->c->setup.device_count; i++) {
		struct metrics *one = &out->device[i];

		put_device(r, i, one);
		if (!strcmp(r->c->setup.device[i].config.model, "fuse"))
			put_sizes(r, i, one);
		for (enum metric m = 0; m < METRIC_MAX; m++) {
			double sum = to->value[m] + one->value[m];

			if (one->state[m] == METRIC_KNOWN)
				metric_put(to, m,
					   m == METRIC_DEVICE_BUSY
						   ? fmax(to->value[m], one->value[m])
						   : sum);
		}
	}
}

static void put_pace(struct metrics *to, const struct engine_stats *a)
{
	to->state[METRIC_PACE] = to->state[METRIC_PACE_DIRTY] = METRIC_NEVER;
	if (a->first_pace_ns == WORLD_NEVER)
		return;
	metric_put(to, METRIC_PACE, (double)a->first_pace * (PAGE_SIZE / 1024));
	put_pages(to, METRIC_PACE_DIRTY, a->first_pace_dirty);
}

/* What the devices did not read, readahead and all, came from the cache. */
static void put_read_hits(const struct run *r, struct metrics *to)
{
	double fetched = 0;

	for (u32 i = 0; i < r->c->setup.device_count; i++)
		fetched += (double)(r->device_after[i].read_bytes - r->device_before[i].read_bytes);
	metric_put(to, METRIC_READ_HITS, 100 * fmax(0, 1 - fetched / (double)r->reads.bytes));
}

static void put_figures(const struct run *r, struct metrics *to)
{
	const struct engine_stats *a = &r->after, *b = &r->before;

	static const struct dir_metrics reads = {
		METRIC_READ_IOPS, METRIC_READ_MIBS, METRIC_READ_MB,  METRIC_READ_P50,
		METRIC_READ_P99,  METRIC_READ_P999, METRIC_READ_MAX,
	};
	static const struct dir_metrics writes = {
		METRIC_WRITE_IOPS, METRIC_WRITE_MIBS, METRIC_WRITE_MB,  METRIC_WRITE_P50,
		METRIC_WRITE_P99,  METRIC_WRITE_P999, METRIC_WRITE_MAX,
	};

	if (r->reads.ios)
		put_dir(to, &r->reads, &reads);
	if (r->reads.bytes)
		put_read_hits(r, to);
	if (r->writes.ios || !r->reads.ios)
		put_dir(to, &r->writes, &writes);
	metric_put(to, METRIC_SLEEP,
		   (double)(a->throttle_sleep_ns - b->throttle_sleep_ns) / NSEC_PER_SEC);
	put_pages(to, METRIC_MAX_DIRTY, a->dirty_max);
	put_pages(to, METRIC_MAX_DEBT, a->debt_max);
	put_pages(to, METRIC_MAX_PINNED, a->pinned_max);
	if (a->drop_max)
		put_pages(to, METRIC_MAX_DROP, a->drop_max);
	metric_put(to, METRIC_CHARGED, (double)(a->charged - b->charged));
	metric_put(to, METRIC_WRITTEN, (double)(a->written - b->written));
	put_devices(r, to);
	for (u32 i = 0; i < r->c->setup.tenant_count; i++)
		tenant_figures_put(&r->tenants, i, &r->out->tenant[i]);
	if (r->syncs.samples)
		put_syncs(r, to);
	if (r->writes.bytes)
		put_write_factor(r, to);
	put_moment(to, METRIC_FIRST_THROTTLE, r, a->first_throttle_ns);
	put_moment(to, METRIC_BACKGROUND, r, a->background_ns);
	if (r->writes.ios)
		put_moment(to, METRIC_LAST_WRITE, r, r->writes.last_ns);
	metric_put(to, METRIC_ENDED, (double)(r->ended_ns - r->started_ns) / NSEC_PER_SEC);
	put_pace(to, a);
}

/* The simulated world around a run: made, run to its end, taken down. */
static void run_world(struct run *r)
{
	struct sim_config config = r->c->setup.sim;
	struct world *world;
	char why[256] = "";

	config.seed = r->seed;
	world = sim_create(&config);
	if (!world) {
		fail(r, -ENOMEM, "making the world", strerror(ENOMEM));
		return;
	}
	if (sim_run(world, run_phases, r, why, sizeof(why)))
		fail(r, -EDEADLK, "nothing can go on", why);
	sim_destroy(world);
}

void run_case_watched(const struct experiment *x, const struct experiment_case *c, u64 seed,
		      void (*tick)(void *ctx, u64 now_ns), void *tick_ctx,
		      const struct case_watch *watch, struct lab_result *out)
{
	u64 started_ns = world_now_real();
	struct run *r = calloc(1, sizeof(*r));

	*out = (struct lab_result){ .c = c };
	policy_label(&c->policy, out->policy, sizeof(out->policy));
	if (!r) {
		out->error = -ENOMEM;
		snprintf(out->text, sizeof(out->text), "case %s: not enough memory", c->name);
		return;
	}
	*r = (struct run){ .x = x, .c = c, .out = out, .seed = seed, .tick = tick };
	r->tick_ctx = tick_ctx;
	r->watch = *watch;
	run_world(r);
	if (r->recorder) /* the measured phase failed */
		series_destroy(recorder_finish(r->recorder));
	if (out->error) {
		series_destroy(out->series);
		out->series = NULL;
	} else {
		put_figures(r, &out->predicted);
	}
	free(r);
	out->wall_s = (double)(world_now_real() - started_ns) / NSEC_PER_SEC;
}

void run_case(const struct experiment *x, const struct experiment_case *c, u64 seed,
	      void (*tick)(void *ctx, u64 now_ns), void *tick_ctx, struct lab_result *out)
{
	run_case_watched(x, c, seed, tick, tick_ctx, &(struct case_watch){ 0 }, out);
}

static u64 guess_own_ns(const struct experiment *x, const struct experiment_case *c)
{
	const struct device_config *d = &c->setup.device[0].config;
	double bytes_per_s = fmax(d->bytes_per_s, d->write_bytes_per_s);
	u64 sum_ns = 0;

	for (size_t i = 0; i < x->phase_count; i++) {
		const struct jobs *jobs = experiment_jobs(x, c, i);

		if (!jobs)
			continue;
		if (jobs_duration_ns(jobs))
			sum_ns += jobs_duration_ns(jobs);
		else if (bytes_per_s > 0)
			sum_ns += (u64)((double)jobs_file_bytes(jobs) / bytes_per_s * NSEC_PER_SEC);
	}
	return sum_ns;
}

u64 run_guess_ns(const struct experiment *x, const struct experiment_case *c)
{
	u64 sum_ns = guess_own_ns(x, c);

	for (size_t i = 0; i < c->after_count; i++)
		sum_ns += guess_own_ns(x, &x->cases[c->after[i]]);
	return sum_ns;
}
