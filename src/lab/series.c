/* SPDX-License-Identifier: MIT */
/*
 * Recording a phase of unknown length in a bounded number of points. Points are taken at
 * equal intervals, SERIES_STEP_NS at first. When there are POINTS_MAX, each two neighbours
 * become one and the interval doubles: so in the end there are between half as many and as
 * many, whatever the length. Nothing is lost but resolution: counters keep running, and
 * the latencies of an interval are kept as a histogram until the end, so that those of two
 * intervals can be added. A histogram of one interval has few buckets in use, and only
 * those are kept.
 *
 * Whoever looks on must not change what happens: the recorder only reads counters, takes
 * no lock across a wait, and spends no simulated CPU.
 */
#include "lab/series.h"
#include "base/bits.h"
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 1000

static_assert(POINTS_MAX % 2 == 0, "points are joined in pairs");

/* The buckets in use of a histogram. */
struct sparse {
	u32 count;
	struct {
		u32 bucket, samples;
	} used[];
};

struct recorder {
	struct engine *engine;
	struct device *const *device;
	const struct setup *setup;
	struct series *series;
	struct sparse *latency[POINTS_MAX + 1][SERIES_CALLS]; /* of the point's interval, or NULL */
	struct job_dir_stats live[JOB_DIRS];
	struct hist live_syncs;
	struct hist scratch;
	u64 due_ns; /* since the start */
	bool short_of_memory;
};

static struct hist *live_hist(struct recorder *r, int call)
{
	return call == SERIES_SYNC ? &r->live_syncs : &r->live[call].clat;
}

static struct series *series_create(const struct setup *setup)
{
	struct series *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->device_count = setup->device_count;
	s->tenant_count = setup->tenant_count;
	s->points = calloc(POINTS_MAX + 1, sizeof(*s->points));
	if (s->tenant_count)
		s->tenants = calloc(s->tenant_count, (POINTS_MAX + 1) * sizeof(*s->tenants));
	if (s->points && (s->tenants || !s->tenant_count))
		return s;
	series_destroy(s);
	return NULL;
}

struct recorder *recorder_create(struct engine *e, struct device *const *devices,
				 const struct setup *setup)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->engine = e;
	r->device = devices;
	r->setup = setup;
	r->series = series_create(setup);
	if (!r->series) {
		free(r);
		return NULL;
	}
	for (int call = 0; call < SERIES_CALLS; call++)
		hist_init(live_hist(r, call));
	return r;
}

struct job_dir_stats *recorder_live(struct recorder *r)
{
	return r->live;
}

struct hist *recorder_live_syncs(struct recorder *r)
{
	return &r->live_syncs;
}

static struct sparse *sparse_of(const struct hist *h)
{
	struct sparse *s;
	u32 count = 0;

	for (u32 i = 0; i < HIST_BUCKETS; i++)
		count += h->bucket[i] > 0;
	s = malloc(sizeof(*s) + count * sizeof(s->used[0]));
	if (!s)
		return NULL;
	s->count = 0;
	for (u32 i = 0; i < HIST_BUCKETS; i++) {
		if (!h->bucket[i])
			continue;
		s->used[s->count].bucket = i;
		s->used[s->count].samples = (u32)h->bucket[i];
		s->count++;
	}
	return s;
}

static void add_sparse(struct hist *h, const struct sparse *s)
{
	for (u32 i = 0; s && i < s->count; i++) {
		h->bucket[s->used[i].bucket] += s->used[i].samples;
		h->samples += s->used[i].samples;
	}
}

/* Keeps what the jobs entered since the last point as that of point i. */
static void keep_latency(struct recorder *r, size_t i)
{
	struct series_point *p = &r->series->points[i];

	for (int dir = 0; dir < SERIES_CALLS; dir++) {
		struct hist *h = live_hist(r, dir);

		p->latency[dir] = (struct series_latency){ h->samples, 0, 0, h->max_ns };
		if (!h->samples)
			continue;
		r->latency[i][dir] = sparse_of(h);
		r->short_of_memory |= !r->latency[i][dir];
		hist_init(h);
	}
}

static void copy_point(struct series *s, size_t to, size_t from)
{
	u32 n = s->tenant_count;

	s->points[to] = s->points[from];
	if (n)
		memcpy(&s->tenants[to * n], &s->tenants[from * n], n * sizeof(*s->tenants));
}

/* Point `from` becomes the end of the interval of `to`, which began before. */
static void join(struct recorder *r, size_t to, size_t from)
{
	struct series_point *a = &r->series->points[to];
	struct series_latency before[SERIES_CALLS];

	memcpy(before, a->latency, sizeof(before));
	copy_point(r->series, to, from);
	for (int dir = 0; dir < SERIES_CALLS; dir++) {
		struct sparse **one = &r->latency[to][dir], **two = &r->latency[from][dir];

		a->latency[dir].samples += before[dir].samples;
		a->latency[dir].max_ns = max_u64(a->latency[dir].max_ns, before[dir].max_ns);
		if (*one && *two) {
			hist_init(&r->scratch);
			add_sparse(&r->scratch, *one);
			add_sparse(&r->scratch, *two);
			free(*one);
			free(*two);
			*one = sparse_of(&r->scratch);
			r->short_of_memory |= !*one;
		} else if (*two) {
			*one = *two;
		}
		*two = NULL;
	}
}

/* Moves a point with its latencies to a place that is free. */
static void move(struct recorder *r, size_t to, size_t from)
{
	if (to == from)
		return;
	copy_point(r->series, to, from);
	memcpy(r->latency[to], r->latency[from], sizeof(r->latency[to]));
	memset(r->latency[from], 0, sizeof(r->latency[from]));
}

/* The point of time 0 stays, and of the others each two become one. */
static void halve(struct recorder *r)
{
	struct series *s = r->series;

	assert(s->count == POINTS_MAX + 1);
	for (size_t i = 1; 2 * i < s->count; i++) {
		join(r, 2 * i - 1, 2 * i);
		move(r, i, 2 * i - 1);
	}
	s->count = POINTS_MAX / 2 + 1;
	s->interval_ns *= 2;
}

static void look_at_tenants(struct recorder *r, struct tenant_stats *out)
{
	for (u32 i = 0; i < r->series->tenant_count; i++) {
		struct tenant *t = engine_tenant(r->engine, r->setup->tenant[i].name);

		if (t)
			engine_tenant_stats(r->engine, t, &out[i]);
	}
}

static void take_point(struct recorder *r)
{
	struct series *s = r->series;
	struct series_point *p = &s->points[s->count];

	*p = (struct series_point){ .t_ns = world_now() - s->started_ns };
	engine_stats(r->engine, &p->engine);
	for (u32 i = 0; i < s->device_count; i++)
		device_stats(r->device[i], &p->device[i]);
	if (s->tenant_count)
		look_at_tenants(r, &s->tenants[s->count * s->tenant_count]);
	for (int dir = 0; dir < JOB_DIRS; dir++) {
		p->ios[dir] = r->live[dir].ios;
		p->bytes[dir] = r->live[dir].bytes;
	}
	keep_latency(r, s->count);
	s->count++;
	if (s->count == POINTS_MAX + 1)
		halve(r);
}

void recorder_begin(struct recorder *r)
{
	assert(!r->series->count);
	r->series->started_ns = world_now();
	r->series->interval_ns = SERIES_STEP_NS;
	take_point(r);
	r->due_ns = SERIES_STEP_NS;
}

void recorder_look(struct recorder *r)
{
	struct series *s = r->series;
	u64 now = world_now() - s->started_ns;

	if (now < r->due_ns)
		return;
	take_point(r);
	r->due_ns = round_down(now, s->interval_ns) + s->interval_ns;
}

void recorder_end(struct recorder *r, const struct job_results *results)
{
	struct series *s = r->series;
	size_t last;

	take_point(r);
	last = s->count - 1;
	/* a short rest of an interval would show a few I/Os as a rate */
	if (last > 1 && s->points[last].t_ns - s->points[last - 1].t_ns < s->interval_ns / 2) {
		join(r, last - 1, last);
		s->count--;
	}
	for (size_t i = 0; i < results->count; i++) {
		const struct job_result *row = &results->rows[i];

		s->clones_all += row->clones;
		s->in_syncs_ns += row->sync_lat.sum_ns;
		for (int dir = 0; dir < JOB_DIRS; dir++) {
			s->clones[dir] += row->dir[dir].ios ? row->clones : 0;
			s->in_calls_ns[dir] += row->dir[dir].clat.sum_ns;
		}
	}
}

static void finish_point(struct recorder *r, size_t i)
{
	struct series_point *p = &r->series->points[i];

	for (int dir = 0; dir < SERIES_CALLS; dir++) {
		struct series_latency *l = &p->latency[dir];

		if (!r->latency[i][dir])
			continue;
		hist_init(&r->scratch);
		add_sparse(&r->scratch, r->latency[i][dir]);
		assert(r->scratch.samples == l->samples);
		/* a bucket's middle may lie past the longest sample in it */
		l->p50_ns = min_u64(hist_percentile(&r->scratch, 50), l->max_ns);
		l->p99_ns = min_u64(hist_percentile(&r->scratch, 99), l->max_ns);
		free(r->latency[i][dir]);
	}
}

struct series *recorder_finish(struct recorder *r)
{
	struct series *s = r->series;

	for (size_t i = 0; i < s->count; i++)
		finish_point(r, i);
	if (r->short_of_memory) {
		series_destroy(s);
		s = NULL;
	}
	free(r);
	return s;
}

void series_destroy(struct series *s)
{
	if (!s)
		return;
	free(s->points);
	free(s->tenants);
	free(s);
}
