/* SPDX-License-Identifier: MIT */
/*
 * fio's JSON (as of fio 3.33, found by running it): for each row of results an object with
 * "read", "write", "trim" and "sync" in it. Keys that speak of what does not exist here (CPU
 * time, context switches, submission latency of synchronous calls) are there with 0, since tools
 * take them for granted. Units are fio's: bw in KiB a second, bw_bytes in bytes, runtime in
 * milliseconds, *_ns in nanoseconds.
 *
 * An object is put together from what it takes over; the first failure leaves NULL behind,
 * which every later step passes on, so that only the end need look.
 */
#include "job/report_fio.h"
#include "job/jobs.h"
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

/* to[key] = value, or nothing is left. Takes `to` and `value`; either may be NULL. */
static json_t *with(json_t *to, const char *key, json_t *value)
{
	if (to && value) {
		if (!json_object_set_new(to, key, value))
			return to;
		value = NULL; /* it was taken all the same */
	}
	json_decref(to);
	json_decref(value);
	return NULL;
}

static json_t *number(u64 value)
{
	return json_integer((json_int_t)value);
}

/* `count` keys with their share of `total` in percent. */
static json_t *shares(const char *const *keys, const u64 *counts, size_t count, u64 total)
{
	json_t *o = json_object();

	for (size_t i = 0; i < count; i++)
		o = with(o, keys[i],
			 json_real(total ? 100.0 * (double)counts[i] / (double)total : 0));
	return o;
}

static json_t *percentiles(const struct hist *h, const struct percentiles *list)
{
	json_t *o = json_object();

	for (u32 i = 0; i < list->count; i++) {
		char key[32];

		snprintf(key, sizeof(key), "%f", list->percent[i]);
		o = with(o, key, number(hist_percentile(h, list->percent[i])));
	}
	return o;
}

/* `list` NULL: no percentiles. */
static json_t *latency(const struct hist *h, const struct percentiles *list)
{
	json_t *o = json_object();

	o = with(o, "min", number(h && h->samples ? h->min_ns : 0));
	o = with(o, "max", number(h ? h->max_ns : 0));
	o = with(o, "mean", json_real(h ? hist_mean(h) : 0));
	o = with(o, "stddev", json_real(h ? hist_stddev(h) : 0));
	o = with(o, "N", number(h ? h->samples : 0));
	if (h && h->samples && list)
		o = with(o, "percentile", percentiles(h, list));
	return o;
}

static json_t *with_samples(json_t *o, const struct job_dir_stats *d, double share)
{
	const struct job_samples *bw = &d->bw, *iops = &d->iops;

	o = with(o, "bw_min", number((u64)bw->min));
	o = with(o, "bw_max", number((u64)bw->max));
	o = with(o, "bw_agg", json_real(bw->count ? share : 0));
	o = with(o, "bw_mean", json_real(bw->mean));
	o = with(o, "bw_dev", json_real(bw->deviation));
	o = with(o, "bw_samples", number(bw->count));
	o = with(o, "iops_min", number((u64)iops->min));
	o = with(o, "iops_max", number((u64)iops->max));
	o = with(o, "iops_mean", json_real(iops->mean));
	o = with(o, "iops_stddev", json_real(iops->deviation));
	return with(o, "iops_samples", number(iops->count));
}

/* Mean rates of a direction, a second. */
static double rate(u64 count, u64 time_ns)
{
	return time_ns ? (double)count * NSEC_PER_SEC / (double)time_ns : 0;
}

/* `share`: of the bandwidth of its group, in percent. */
static json_t *direction(const struct job_result *r, enum job_dir dir, double share)
{
	const struct job_options *options = &r->job->o;
	const struct job_dir_stats *d = &r->dir[dir];
	u64 bytes_a_second = (u64)rate(d->bytes, d->runtime_ns);
	json_t *o = json_object();

	o = with(o, "io_bytes", number(d->bytes));
	o = with(o, "io_kbytes", number(d->bytes / 1024));
	o = with(o, "bw_bytes", number(bytes_a_second));
	o = with(o, "bw", number(bytes_a_second / 1024));
	o = with(o, "iops", json_real(rate(d->ios, d->runtime_ns)));
	o = with(o, "runtime", number(d->runtime_ns / NSEC_PER_MSEC));
	o = with(o, "total_ios", number(d->ios));
	o = with(o, "short_ios", number(d->short_ios));
	o = with(o, "drop_ios", number(0));
	o = with(o, "slat_ns", latency(NULL, NULL));
	o = with(o, "clat_ns",
		 latency(&d->clat, options->clat_percentiles ? &options->percentiles : NULL));
	o = with(o, "lat_ns",
		 latency(&d->clat, options->lat_percentiles ? &options->percentiles : NULL));
	return with_samples(o, d, share);
}

static json_t *sync_json(const struct job_result *r)
{
	json_t *o = json_object();

	o = with(o, "total_ios", number(r->sync_ios));
	return with(o, "lat_ns", latency(&r->sync_lat, &r->job->o.percentiles));
}

/* Options as somebody wrote them; fio leaves out those that stand alone. */
static json_t *options_json(const struct givens *g)
{
	json_t *o = json_object();

	for (u32 i = 0; i < g->count; i++) {
		json_t *value;

		if (!g->option[i].value)
			continue;
		value = json_string(g->option[i].value);
		/* what is no UTF-8 cannot be said in JSON */
		o = with(o, g->option[i].name, value ? value : json_string("?"));
	}
	return o;
}

static json_t *with_levels(json_t *o, const struct job_result *r)
{
	static const char *const depths[] = { "1", "2", "4", "8", "16", "32", ">=64" };
	static const char *const batches[] = { "0", "4", "8", "16", "32", "64", ">=64" };
	static const char *const times[] = { "2",   "4",   "10",  "20",   "50",   "100",
					     "250", "500", "750", "1000", "2000", ">=2000" };
	const struct job_levels *l = &r->levels;
	u64 total = 0, batch[JOB_DEPTHS] = { 0 };

	for (int i = 0; i < JOB_DEPTHS; i++)
		total += l->depth[i];
	batch[1] = total; /* one by one, in the class of 1 to 4 */
	o = with(o, "iodepth_level", shares(depths, l->depth, JOB_DEPTHS, total));
	o = with(o, "iodepth_submit", shares(batches, batch, JOB_DEPTHS, total));
	o = with(o, "iodepth_complete", shares(batches, batch, JOB_DEPTHS, total));
	o = with(o, "latency_ns", shares(times, l->ns, JOB_TIMES, total));
	o = with(o, "latency_us", shares(times, l->us, JOB_TIMES, total));
	return with(o, "latency_ms", shares(times, l->ms, JOB_TIMES + 2, total));
}

/* The row's share of what its group moved. */
static double share_of_group(const struct job_results *all, const struct job_result *r,
			     enum job_dir dir)
{
	u64 sum = 0;

	for (size_t i = 0; i < all->count; i++)
		if (all->rows[i].group == r->group)
			sum += all->rows[i].dir[dir].bytes;
	return sum ? 100.0 * (double)r->dir[dir].bytes / (double)sum : 0;
}

static json_t *job_json(const struct job_results *all, const struct job_result *r)
{
	static const char *const names[] = { "read", "write", "trim" };
	const struct job_options *options = &r->job->o;
	u64 elapsed_ns = all->ended_ns - all->started_ns;
	json_t *o = json_object(), *name = json_string(r->name);

	o = with(o, "jobname", name ? name : json_string("?"));
	o = with(o, "groupid", number(r->group));
	/* fio calls the first error that a job went on after its error, too */
	o = with(o, "error", number((u64) - (r->error ? r->error : r->first_error)));
	o = with(o, "eta", number(0));
	o = with(o, "elapsed", number(elapsed_ns / NSEC_PER_SEC + 1));
	o = with(o, "job options", options_json(&r->job->given));
	for (int dir = 0; dir < JOB_DIRS; dir++)
		o = with(
			o, names[dir],
			direction(r, (enum job_dir)dir, share_of_group(all, r, (enum job_dir)dir)));
	o = with(o, "sync", sync_json(r));
	o = with(o, "job_runtime", number(r->busy_ns / NSEC_PER_MSEC));
	o = with(o, "usr_cpu", json_real(0));
	o = with(o, "sys_cpu", json_real(0));
	o = with(o, "ctx", number(0));
	o = with(o, "majf", number(0));
	o = with(o, "minf", number(0));
	o = with_levels(o, r);
	o = with(o, "latency_depth", number(r->latency_depth));
	o = with(o, "latency_target", number(options->latency_target_ns));
	o = with(o, "latency_percentile", json_real(options->latency_percentile.percent[0]));
	o = with(o, "latency_window", number(options->latency_window_ns / NSEC_PER_USEC));
	if (options->continue_on_error) {
		o = with(o, "total_err", number(r->total_errors));
		o = with(o, "first_error", number((u64)-r->first_error));
	}
	if (r->error)
		o = with(o, "error_text", json_string(r->error_text));
	if (options->description)
		o = with(o, "desc", json_string(options->description));
	return o;
}

static json_t *disk_json(const struct report_disk *d)
{
	json_t *o = json_object();

	o = with(o, "name", json_string(d->name));
	o = with(o, "read_ios", number(d->reads));
	o = with(o, "write_ios", number(d->writes));
	o = with(o, "read_merges", number(0));
	o = with(o, "write_merges", number(0));
	o = with(o, "read_ticks", number(0));
	o = with(o, "write_ticks", number(0));
	o = with(o, "in_queue", number(0));
	return with(o, "util", json_real(100 * rate(d->busy_ns, d->elapsed_ns) / NSEC_PER_SEC));
}

static json_t *disks_json(const struct report_disk *d)
{
	json_t *list = json_array();

	for (; d && list; d = d->next) {
		if (json_array_append_new(list, disk_json(d))) {
			json_decref(list);
			list = NULL;
		}
	}
	return list;
}

/* When it ended, as fio says it; of a simulation, by its clock. */
static json_t *time_text(const struct job_results *r)
{
	time_t seconds = (time_t)(r->date_ns / NSEC_PER_SEC);
	u64 ms = r->ended_ns / NSEC_PER_MSEC;
	char text[64];
	struct tm tm;

	if (!r->date_ns)
		return json_sprintf("%llu.%03llu s", (unsigned long long)(ms / 1000),
				    (unsigned long long)(ms % 1000));
	if (!localtime_r(&seconds, &tm) ||
	    !strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", &tm))
		return NULL;
	return json_string(text);
}

/* fio knows no such thing; what reads its reports passes over it. */
static json_t *cache_json(const struct report_cache *c)
{
	json_t *o = json_object();

	o = with(o, "max_dirty_bytes", number(c->max_dirty_bytes));
	o = with(o, "max_debt_bytes", number(c->max_debt_bytes));
	o = with(o, "max_pinned_bytes", number(c->max_pinned_bytes));
	o = with(o, "throttle_sleep_ns", number(c->sleep_ns));
	return with(o, "throttle_sleeps", number(c->sleeps));
}

static json_t *document(const struct jobs *jobs, const struct job_results *r,
			const struct report_disk *disk, const struct report_cache *cache)
{
	json_t *o = json_object(), *list = json_array();
	u64 ended_ms = (r->date_ns ? r->date_ns : r->ended_ns) / NSEC_PER_MSEC;

	o = with(o, "fio version", json_string("sluice-" SLUICE_VERSION));
	o = with(o, "timestamp", number(ended_ms / 1000));
	o = with(o, "timestamp_ms", number(ended_ms));
	o = with(o, "time", time_text(r));
	if (jobs->globals.count)
		o = with(o, "global options", options_json(&jobs->globals));
	for (size_t i = 0; i < r->count && list; i++) {
		if (json_array_append_new(list, job_json(r, &r->rows[i]))) {
			json_decref(list);
			list = NULL;
		}
	}
	o = with(o, "jobs", list);
	if (cache)
		o = with(o, "sluice cache", cache_json(cache));
	return disk ? with(o, "disk_util", disks_json(disk)) : o;
}

int report_fio_json(FILE *out, const struct jobs *jobs, const struct job_results *r,
		    const struct report_disk *disk, const struct report_cache *cache)
{
	json_t *root = document(jobs, r, disk, cache);
	int error = 0;

	if (!root)
		return -ENOMEM;
	if (json_dumpf(root, out, JSON_INDENT(2)) || fputc('\n', out) == EOF)
		error = errno ? -errno : -EIO;
	json_decref(root);
	return error;
}
