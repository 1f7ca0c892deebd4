/* SPDX-License-Identifier: MIT */
/*
 * What fio reports beside sums: the bandwidth and I/O rate of windows of half a second
 * (its bwavgtime and iopsavgtime), and shares of I/Os by queue depth and latency class.
 *
 * Windows are counted from the start of the run, so that those of several clones can be
 * added up; of a row, the windows that it ran through from beginning to end are sampled.
 */
#include "base/bits.h"
#include "job/clone.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_NS (NSEC_PER_SEC / 2)

static bool series_grow(struct series *s, size_t count)
{
	size_t room = max_u64(count, max_u64(64, 2 * s->room));
	struct window *window;

	if (count <= s->count)
		return true;
	if (count > s->room) {
		window = reallocarray(s->window, room, sizeof(*window));
		if (!window)
			return false;
		s->window = window;
		s->room = room;
	}
	memset(s->window + s->count, 0, (count - s->count) * sizeof(*s->window));
	s->count = count;
	return true;
}

void series_add(struct series *s, u64 since_start_ns, enum job_dir dir, u64 bytes)
{
	u64 i = since_start_ns / WINDOW_NS;

	if (dir > JOB_DIR_WRITE || !series_grow(s, i + 1))
		return;
	s->window[i].ios[dir]++;
	s->window[i].bytes[dir] += bytes;
}

void series_merge(struct series *into, const struct series *from)
{
	if (!series_grow(into, from->count))
		return;
	for (size_t i = 0; i < from->count; i++) {
		for (int dir = 0; dir <= JOB_DIR_WRITE; dir++) {
			into->window[i].ios[dir] += from->window[i].ios[dir];
			into->window[i].bytes[dir] += from->window[i].bytes[dir];
		}
	}
}

/* Welford's formulas (Technometrics 4, 1962). `deviation` holds the sum of squares on the way. */
static void sample(struct job_samples *s, double value)
{
	double away = value - s->mean;

	s->min = s->count ? fmin(s->min, value) : value;
	s->max = s->count ? fmax(s->max, value) : value;
	s->count++;
	s->mean += away / (double)s->count;
	s->deviation += away * (value - s->mean);
}

static void finish(struct job_samples *s)
{
	s->deviation = s->count > 1 ? sqrt(s->deviation / (double)(s->count - 1)) : 0;
}

void series_samples(const struct series *s, enum job_dir dir, u64 from_ns, u64 to_ns,
		    struct job_samples *bw, struct job_samples *iops)
{
	const double per_second = (double)NSEC_PER_SEC / WINDOW_NS;

	*bw = *iops = (struct job_samples){ 0 };
	for (u64 i = div_roundup(from_ns, WINDOW_NS); (i + 1) * WINDOW_NS <= to_ns; i++) {
		const struct window none = { 0 }, *w = i < s->count ? &s->window[i] : &none;

		sample(bw, (double)w->bytes[dir] * per_second / 1024);
		sample(iops, (double)w->ios[dir] * per_second);
	}
	finish(bw);
	finish(iops);
}

void levels_add(struct job_levels *l, u32 depth, u64 latency_ns)
{
	/* upper bounds, of ns, us and ms alike; the last of ms have none */
	static const u64 bounds[JOB_TIMES + 2] = { 2,   4,   10,  20,   50,   100,
						   250, 500, 750, 1000, 2000, ~0ull };
	u64 *class = l->ns, unit = 1, i = 0;

	l->depth[min_u64(depth ? ilog2(depth) : 0, JOB_DEPTHS - 1)]++;
	if (latency_ns >= NSEC_PER_MSEC) {
		class = l->ms;
		unit = NSEC_PER_MSEC;
	} else if (latency_ns >= NSEC_PER_USEC) {
		class = l->us;
		unit = NSEC_PER_USEC;
	}
	while (latency_ns / unit >= bounds[i])
		i++;
	class[i]++;
}

void levels_merge(struct job_levels *into, const struct job_levels *from)
{
	for (int i = 0; i < JOB_DEPTHS; i++)
		into->depth[i] += from->depth[i];
	for (int i = 0; i < JOB_TIMES; i++) {
		into->ns[i] += from->ns[i];
		into->us[i] += from->us[i];
	}
	for (int i = 0; i < JOB_TIMES + 2; i++)
		into->ms[i] += from->ms[i];
}
