/* SPDX-License-Identifier: MIT */
/*
 * Results of jobs as a table: a line for each row and direction, one for its syncs, and
 * what went wrong. Percentiles are those most people ask for; percentile_list adds a block
 * of its own.
 */
#include "base/units.h"
#include "job/jobs.h"
#include "job/report_fio.h"
#include <string.h>

/* A time in at most four digits, with its unit. */
static const char *print_time(char buf[16], double ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(units) && ns >= 999.5) {
		ns /= 1000;
		i++;
	}
	snprintf(buf, 16, "%.*f%s", ns < 9.995 && i ? 2 : ns < 99.95 && i ? 1 : 0, ns, units[i]);
	return buf;
}

/* A count in at most four digits: "312", "9984", "41.3k", "1.25M". */
static const char *print_count(char buf[16], double value)
{
	static const char *const units[] = { "", "k", "M", "G" };
	bool whole = value == (double)(u64)value;
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(units) && value >= (i ? 999.5 : 9999.5)) {
		value /= 1000;
		i++;
	}
	snprintf(buf, 16, "%.*f%s",
		 (whole && !i) || value >= 99.95 ? 0
		 : value >= 9.995                ? 1
						 : 2,
		 value, units[i]);
	return buf;
}

static void print_latencies(FILE *out, const struct hist *h)
{
	static const double list[] = { 50, 99, 99.9 };
	char buf[16];

	fprintf(out, "  %8s", print_time(buf, hist_mean(h)));
	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		fprintf(out, " %8s", print_time(buf, (double)hist_percentile(h, list[i])));
	fprintf(out, " %8s", print_time(buf, (double)h->max_ns));
}

static int name_width(const struct job_results *r)
{
	size_t width = strlen("job");

	for (size_t i = 0; i < r->count; i++)
		width = max_u64(width, strlen(r->rows[i].name));
	return (int)width;
}

static void print_direction(FILE *out, const struct job_result *r, int width, const char *name,
			    const struct job_dir_stats *d)
{
	double seconds = (double)d->runtime_ns / NSEC_PER_SEC;
	char buf[16], bytes[UNITS_TEXT_MAX];

	fprintf(out, "%-*s %6u  %-5s", width, r->name, r->clones, name);
	fprintf(out, "  %7s", print_count(buf, seconds > 0 ? (double)d->ios / seconds : 0));
	fprintf(out, " %7s/s",
		units_print_bytes(bytes, seconds > 0 ? (u64)((double)d->bytes / seconds) : 0));
	print_latencies(out, &d->clat);
	fprintf(out, "  %8s in %s\n", units_print_bytes(bytes, d->bytes),
		print_time(buf, (double)d->runtime_ns));
}

static void print_percentiles(FILE *out, const struct job_result *r, const char *name,
			      const struct hist *h)
{
	const struct percentiles *p = &r->job->o.percentiles;
	char buf[16];

	fprintf(out, "%s %s:", r->name, name);
	for (u32 i = 0; i < p->count; i++)
		fprintf(out, "%s %g%% %s", i ? "," : "", p->percent[i],
			print_time(buf, (double)hist_percentile(h, p->percent[i])));
	fputc('\n', out);
}

static void print_row(FILE *out, const struct job_result *r, int width)
{
	static const char *const names[] = { "read", "write" };
	char buf[16];

	for (int dir = 0; dir < 2; dir++)
		if (r->dir[dir].ios)
			print_direction(out, r, width, names[dir], &r->dir[dir]);
	if (r->sync_ios) {
		fprintf(out, "%-*s %6u  sync   %7s %9s", width, r->name, r->clones,
			print_count(buf, (double)r->sync_ios), "in all");
		print_latencies(out, &r->sync_lat);
		fputc('\n', out);
	}
	if (!r->dir[0].ios && !r->dir[1].ios && !r->error && !r->total_errors)
		fprintf(out, "%-*s %6u  no I/O\n", width, r->name, r->clones);
	if (r->job->o.latency_target_ns && !r->error)
		fprintf(out, "%-*s %6u  latency_target is met with %u in flight\n", width, r->name,
			r->clones, r->latency_depth);
	if (r->total_errors)
		fprintf(out, "%-*s %6u  went on after %llu errors, the first: %s\n", width, r->name,
			r->clones, (unsigned long long)r->total_errors, r->first_error_text);
	if (r->error)
		fprintf(out, "%-*s %6u  failed: %s\n", width, r->name, r->clones,
			r->error_text[0] ? r->error_text : strerror(-r->error));
}

static bool asks_for_percentiles(const struct job_result *r)
{
	return r->job->option_at[options_find("percentile_list") - options_table];
}

static void print_cache(FILE *out, const struct report_cache *c)
{
	char dirty[UNITS_TEXT_MAX], debt[UNITS_TEXT_MAX], pinned[UNITS_TEXT_MAX], sleep[16];

	fprintf(out,
		"cache: at most %s dirty, %s to write, %s pinned; writers slept %s in %llu "
		"pauses\n",
		units_print_bytes(dirty, c->max_dirty_bytes),
		units_print_bytes(debt, c->max_debt_bytes),
		units_print_bytes(pinned, c->max_pinned_bytes),
		print_time(sleep, (double)c->sleep_ns), (unsigned long long)c->sleeps);
}

void report_fio_table(FILE *out, const struct job_results *r, const struct report_disk *disk,
		      const struct report_cache *cache)
{
	static const char *const names[] = { "read", "write" };
	int width = name_width(r);
	bool more = false;

	fprintf(out, "%-*s clones  %-5s  %7s %9s  %8s %8s %8s %8s %8s  %8s\n", width, "job", "what",
		"IOPS", "bandwidth", "mean", "p50", "p99", "p99.9", "max", "moved");
	for (size_t i = 0; i < r->count; i++) {
		print_row(out, &r->rows[i], width);
		more |= asks_for_percentiles(&r->rows[i]);
	}
	if (more)
		fputc('\n', out);
	for (size_t i = 0; i < r->count; i++)
		for (int dir = 0; dir < 2 && asks_for_percentiles(&r->rows[i]); dir++)
			if (r->rows[i].dir[dir].ios)
				print_percentiles(out, &r->rows[i], names[dir],
						  &r->rows[i].dir[dir].clat);
	for (const struct report_disk *d = disk; d; d = d->next)
		fprintf(out, "%s%s: %llu reads, %llu writes, busy %.0f %% of the time\n",
			d == disk ? "\n" : "", d->name, (unsigned long long)d->reads,
			(unsigned long long)d->writes,
			d->elapsed_ns ? 100.0 * (double)d->busy_ns / (double)d->elapsed_ns : 0);
	if (cache)
		print_cache(out, cache);
}
