/* SPDX-License-Identifier: MIT */
/*
 * Logs of single I/Os, or with log_avg_msec of spans of time, kept in memory while a clone
 * runs and written when all is over. One list serves all three kinds of logs: bandwidth,
 * I/Os and latency of an entry follow from it. Lines are fio's:
 *
 *	milliseconds, value, direction, bytes of the I/O (0 of a span)[, offset], priority
 *
 * in files NAME_bw.N.log, NAME_iops.N.log, NAME_clat.N.log and NAME_lat.N.log, N being
 * the clone's number among all, or NAME_bw.log with per_job_logs=0.
 */
#include "job/clone.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool log_wanted(const struct job_options *o)
{
	return o->write_bw_log || o->write_iops_log || o->write_lat_log;
}

static void append(struct job_log *l, const struct log_entry *e)
{
	size_t room = max_u64(256, 2 * l->room);
	struct log_entry *entry;

	if (l->count == l->room) {
		entry = reallocarray(l->entry, room, sizeof(*entry));
		if (!entry)
			return;
		l->entry = entry;
		l->room = room;
	}
	l->entry[l->count++] = *e;
}

static void end_span(struct job_log *l, u64 now_ms)
{
	for (u32 dir = 0; dir <= JOB_DIR_WRITE; dir++) {
		struct log_entry *e = &l->open[dir];

		if (e->ios) {
			e->dir = dir;
			e->time_ms = now_ms;
			e->span_ms = (u32)max_u64(1, now_ms - l->span_start_ms);
			if (!l->job->o.log_max_value)
				e->latency_ns /= e->ios;
			append(l, e);
		}
		*e = (struct log_entry){ 0 };
	}
	l->span_start_ms = now_ms;
}

void log_add(struct job_log *l, const struct io *io, u64 bytes, u64 now_ns, u64 latency_ns)
{
	const struct job_options *o = &l->job->o;
	u64 now_ms = now_ns / NSEC_PER_MSEC;
	struct log_entry *e;

	if (io->kind > IO_WRITE)
		return;
	if (!o->log_avg_ms) {
		append(l, &(struct log_entry){ .time_ms = now_ms,
					       .latency_ns = latency_ns,
					       .ios = 1,
					       .bytes = bytes,
					       .offset = io->offset,
					       .dir = (u32)io->kind });
		return;
	}
	while (now_ms - l->span_start_ms >= o->log_avg_ms)
		end_span(l, l->span_start_ms + o->log_avg_ms);
	e = &l->open[io->kind];
	e->ios++;
	e->bytes += bytes;
	e->latency_ns =
		o->log_max_value ? max_u64(e->latency_ns, latency_ns) : e->latency_ns + latency_ns;
}

void log_close(struct job_log *l, u64 now_ns)
{
	if (l->job->o.log_avg_ms)
		end_span(l, now_ns / NSEC_PER_MSEC);
}

enum log_kind { LOG_BW, LOG_IOPS, LOG_CLAT, LOG_LAT };

static u64 value_of(const struct log_entry *e, enum log_kind kind)
{
	switch (kind) {
	case LOG_BW: /* KiB a second */
		if (e->span_ms)
			return e->bytes * 1000 / e->span_ms / 1024;
		return (u64)((unsigned __int128)e->bytes * NSEC_PER_SEC /
			     max_u64(1, e->latency_ns) / 1024);
	case LOG_IOPS:
		return e->span_ms ? e->ios * 1000 / e->span_ms : 1;
	default:
		return e->latency_ns;
	}
}

static int write_file(const struct job_log *l, const char *name, enum log_kind kind, bool first,
		      struct err *e)
{
	static const char *const suffixes[] = { "bw", "iops", "clat", "lat" };
	const struct job_options *o = &l->job->o;
	char number[16] = "", path[4096];
	FILE *f;
	int rc = 0;

	if (o->per_job_logs)
		snprintf(number, sizeof(number), ".%u", l->number);
	if (snprintf(path, sizeof(path), "%s_%s%s.log", *name ? name : o->name, suffixes[kind],
		     number) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	f = fopen(path, first ? "w" : "a");
	for (size_t i = 0; f && i < l->count; i++) {
		const struct log_entry *x = &l->entry[i];

		fprintf(f, "%llu, %llu, %u, %llu", (unsigned long long)x->time_ms,
			(unsigned long long)value_of(x, kind), x->dir,
			(unsigned long long)(x->span_ms ? 0 : x->bytes));
		if (o->log_offset)
			fprintf(f, ", %llu", (unsigned long long)x->offset);
		fputs(", 0\n", f);
	}
	if (!f || ferror(f))
		rc = -errno;
	if (f && fclose(f) && !rc)
		rc = -errno;
	if (rc)
		err_set(e, path, 0, "%s", strerror(-rc));
	return rc;
}

int job_results_write_logs(const struct job_results *r, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < r->log_count && !rc; i++) {
		const struct job_log *l = &r->logs[i];
		const struct job_options *o = &l->job->o;
		/* without a number, the clones of a job share a file */
		bool first = o->per_job_logs || !i || r->logs[i - 1].job != l->job;

		if (o->write_bw_log)
			rc = write_file(l, o->write_bw_log, LOG_BW, first, e);
		if (o->write_iops_log && !rc)
			rc = write_file(l, o->write_iops_log, LOG_IOPS, first, e);
		if (o->write_lat_log && !rc)
			rc = write_file(l, o->write_lat_log, LOG_CLAT, first, e);
		if (o->write_lat_log && !rc)
			rc = write_file(l, o->write_lat_log, LOG_LAT, first, e);
	}
	return rc;
}
