/* SPDX-License-Identifier: MIT */
/*
 * The columns of a series, worked out from its points: a level is what stands there, a
 * rate the difference of two counters over the time between them.
 */
#include "lab/series.h"
#include <math.h>

static const char *const keys[] = {
#define SERIES_KEY(name, key, text) #key,
	SERIES(SERIES_KEY)
#undef SERIES_KEY
};

static const char *const abouts[] = {
#define SERIES_TEXT(name, key, text) text,
	SERIES(SERIES_TEXT)
#undef SERIES_TEXT
};

const char *series_key(enum series_column c)
{
	assert(c < SERIES_COLUMNS);
	return keys[c];
}

const char *series_about(enum series_column c)
{
	assert(c < SERIES_COLUMNS);
	return abouts[c];
}

static const char *const tenant_keys[] = {
#define SERIES_KEY(name, key, text) #key,
	SERIES_TENANT(SERIES_KEY)
#undef SERIES_KEY
};

static double level(const struct series_point *p, enum series_column c)
{
	const struct engine_stats *e = &p->engine;

	switch (c) {
	case SERIES_DIRTY:
		return (double)e->dirty * PAGE_SIZE;
	case SERIES_WRITEBACK:
		return (double)e->writeback * PAGE_SIZE;
	case SERIES_DEBT:
		return (double)e->debt * PAGE_SIZE;
	case SERIES_IN_FLIGHT:
		return (double)e->in_flight * PAGE_SIZE;
	case SERIES_PINNED:
		return (double)e->pinned * PAGE_SIZE;
	case SERIES_DROP:
		return (double)e->drop * PAGE_SIZE;
	case SERIES_CACHED:
		return (double)e->cached * PAGE_SIZE;
	case SERIES_FREE:
		return (double)e->free * PAGE_SIZE;
	case SERIES_BACKGROUND:
		return (double)e->background_thresh * PAGE_SIZE;
	case SERIES_FREERUN:
		return (double)e->freerun * PAGE_SIZE;
	case SERIES_SETPOINT:
		return (double)e->setpoint * PAGE_SIZE;
	case SERIES_LIMIT:
		return (double)e->dirty_limit * PAGE_SIZE;
	default:
		assert(c >= SERIES_ORDER0);
		return (double)e->cached_of_order[c - SERIES_ORDER0] * PAGE_SIZE;
	}
}

static double milliseconds(const struct series_latency *l, u64 ns)
{
	return l->samples ? (double)ns / NSEC_PER_MSEC : NAN;
}

static double latency(const struct series_point *p, enum series_column c)
{
	const struct series_latency *reads = &p->latency[JOB_DIR_READ];
	const struct series_latency *writes = &p->latency[JOB_DIR_WRITE];
	const struct series_latency *syncs = &p->latency[SERIES_SYNC];

	switch (c) {
	case SERIES_READ_P50:
		return milliseconds(reads, reads->p50_ns);
	case SERIES_READ_P99:
		return milliseconds(reads, reads->p99_ns);
	case SERIES_READ_MAX:
		return milliseconds(reads, reads->max_ns);
	case SERIES_WRITE_P50:
		return milliseconds(writes, writes->p50_ns);
	case SERIES_WRITE_P99:
		return milliseconds(writes, writes->p99_ns);
	case SERIES_WRITE_MAX:
		return milliseconds(writes, writes->max_ns);
	case SERIES_SYNC_P50:
		return milliseconds(syncs, syncs->p50_ns);
	case SERIES_SYNC_P99:
		return milliseconds(syncs, syncs->p99_ns);
	default:
		assert(c == SERIES_SYNC_MAX);
		return milliseconds(syncs, syncs->max_ns);
	}
}

/* What grew from point p to q, in the unit of the column. */
static double growth(const struct series_point *p, const struct series_point *q,
		     enum series_column c)
{
	const struct engine_stats *a = &p->engine, *b = &q->engine;

	switch (c) {
	case SERIES_READ_IOPS:
		return (double)(q->ios[JOB_DIR_READ] - p->ios[JOB_DIR_READ]);
	case SERIES_WRITE_IOPS:
		return (double)(q->ios[JOB_DIR_WRITE] - p->ios[JOB_DIR_WRITE]);
	case SERIES_READ_RATE:
		return (double)(q->bytes[JOB_DIR_READ] - p->bytes[JOB_DIR_READ]);
	case SERIES_WRITE_RATE:
		return (double)(q->bytes[JOB_DIR_WRITE] - p->bytes[JOB_DIR_WRITE]);
	case SERIES_ASLEEP:
		return (double)(b->throttle_sleep_ns - a->throttle_sleep_ns) / NSEC_PER_SEC;
	case SERIES_SLEEPS:
		return (double)(b->throttle_sleeps - a->throttle_sleeps);
	case SERIES_CHARGED:
		return (double)(b->charged - a->charged) * PAGE_SIZE;
	case SERIES_DIRTIED:
		return (double)(b->pages_dirtied - a->pages_dirtied) * PAGE_SIZE;
	default:
		assert(c == SERIES_WRITTEN);
		return (double)(b->pages_written - a->pages_written) * PAGE_SIZE;
	}
}

/* The same of one device. */
static double device_growth(const struct device_stats *d, const struct device_stats *e,
			    enum series_column c)
{
	switch (c) {
	case SERIES_DEVICE_READS:
		return (double)(e->reads - d->reads);
	case SERIES_DEVICE_WRITES:
		return (double)(e->writes - d->writes);
	case SERIES_DEVICE_READ_RATE:
		return (double)(e->read_bytes - d->read_bytes);
	case SERIES_DEVICE_WRITE_RATE:
		return (double)(e->write_bytes - d->write_bytes);
	case SERIES_DEVICE_BUSY:
		return 100 * (double)(e->busy_ns - d->busy_ns) / NSEC_PER_SEC;
	default:
		assert(c >= SERIES_SIZE0 && c <= SERIES_SIZE9);
		return (double)(e->write_sizes[c - SERIES_SIZE0] -
				d->write_sizes[c - SERIES_SIZE0]);
	}
}

static double mean_pause(const struct engine_stats *a, const struct engine_stats *b)
{
	u64 sleeps = b->throttle_sleeps - a->throttle_sleeps;

	if (!sleeps)
		return NAN;
	return (double)(b->throttle_sleep_ns - a->throttle_sleep_ns) / (double)sleeps /
	       NSEC_PER_MSEC;
}

static double mean_write(const struct device_stats *d, const struct device_stats *e)
{
	u64 writes = e->writes - d->writes;

	return writes ? (double)(e->write_bytes - d->write_bytes) / (double)writes : NAN;
}

bool series_of_device(enum series_column c)
{
	return c >= SERIES_DEVICE_READS && c <= SERIES_SIZE9;
}

double series_device_value(const struct series *s, enum series_column c, u32 device, size_t point)
{
	const struct series_point *q = &s->points[point], *p = q - 1;
	double seconds;

	assert(point < s->count && device < s->device_count && series_of_device(c));
	if (c == SERIES_DEVICE_DEPTH)
		return (double)q->device[device].in_flight;
	if (!point)
		return NAN;
	if (c == SERIES_DEVICE_WRITE_SIZE)
		return mean_write(&p->device[device], &q->device[device]);
	seconds = (double)(q->t_ns - p->t_ns) / NSEC_PER_SEC;
	return seconds > 0 ? device_growth(&p->device[device], &q->device[device], c) / seconds
			   : NAN;
}

static double mean_write_of_all(const struct series *s, size_t point)
{
	struct device_stats before = { 0 }, after = { 0 };

	for (u32 i = 0; i < s->device_count && point; i++) {
		before.writes += s->points[point - 1].device[i].writes;
		before.write_bytes += s->points[point - 1].device[i].write_bytes;
		after.writes += s->points[point].device[i].writes;
		after.write_bytes += s->points[point].device[i].write_bytes;
	}
	return mean_write(&before, &after);
}

static double devices_value(const struct series *s, enum series_column c, size_t point)
{
	double all = 0;

	if (c == SERIES_DEVICE_WRITE_SIZE)
		return mean_write_of_all(s, point);
	for (u32 i = 0; i < s->device_count; i++) {
		double one = series_device_value(s, c, i, point);

		if (isnan(one))
			return one;
		all = c == SERIES_DEVICE_BUSY ? fmax(all, one) : all + one;
	}
	return all;
}

double series_value(const struct series *s, enum series_column c, size_t point)
{
	const struct series_point *q = &s->points[point], *p = q - 1;
	double seconds;

	assert(point < s->count && c < SERIES_COLUMNS);
	if (c == SERIES_T)
		return (double)q->t_ns / NSEC_PER_SEC;
	if (series_of_device(c))
		return devices_value(s, c, point);
	if ((c >= SERIES_DIRTY && c <= SERIES_LIMIT) || c >= SERIES_ORDER0)
		return level(q, c);
	if (!point)
		return NAN;
	if (c >= SERIES_READ_P50 && c <= SERIES_SYNC_MAX)
		return latency(q, c);
	if (c == SERIES_PAUSE)
		return mean_pause(&p->engine, &q->engine);
	seconds = (double)(q->t_ns - p->t_ns) / NSEC_PER_SEC;
	return seconds > 0 ? growth(p, q, c) / seconds : NAN;
}

/* --- of a tenant */

const char *series_tenant_key(enum series_tenant_column c)
{
	assert(c < SERIES_TENANT_COLUMNS);
	return tenant_keys[c];
}

static double tenant_growth(const struct tenant_stats *a, const struct tenant_stats *b,
			    enum series_tenant_column c)
{
	switch (c) {
	case SERIES_TENANT_DIRTIED:
		return (double)(b->pages_dirtied - a->pages_dirtied) * PAGE_SIZE;
	case SERIES_TENANT_WRITTEN:
		return (double)(b->pages_written - a->pages_written) * PAGE_SIZE;
	default:
		assert(c == SERIES_TENANT_ASLEEP);
		return (double)(b->throttle_sleep_ns - a->throttle_sleep_ns) / NSEC_PER_SEC;
	}
}

double series_tenant_value(const struct series *s, enum series_tenant_column c, u32 tenant,
			   size_t point)
{
	const struct tenant_stats *b = &s->tenants[point * s->tenant_count + tenant];
	double seconds;

	assert(point < s->count && tenant < s->tenant_count);
	if (c == SERIES_TENANT_DIRTY)
		return (double)b->dirty * PAGE_SIZE;
	if (c == SERIES_TENANT_LIMIT)
		return (double)b->thresh * PAGE_SIZE;
	if (!point)
		return NAN;
	seconds = series_value(s, SERIES_T, point) - series_value(s, SERIES_T, point - 1);
	return seconds > 0 ? tenant_growth(b - s->tenant_count, b, c) / seconds : NAN;
}
