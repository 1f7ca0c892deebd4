/* SPDX-License-Identifier: MIT */
/*
 * Limits, worked out as the engine and Linux do (Linux writeback reference, sections
 * 4.1 to 4.8):
 *
 *	background	the flusher writes while more is dirty
 *	freerun		up to here nobody is slowed: halfway from background to limit
 *	setpoint	where the throttle holds the dirty memory: halfway from freerun
 *	limit		nobody writes beyond it
 *
 * The throttle measures bandwidth, and lets writers sleep, for up to 200 ms at a time.
 * So limits that a device empties in less than that leave it idle while writers sleep;
 * that, and settings that contradict each other, is what the warnings are about.
 */
#include "lab/limits.h"
#include "base/units.h"
#include "ledger/bandwidth.h"
#include "ledger/limits.h"
#include "ledger/proportion.h"
#include "writeback/position.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_MS      200 /* MAX_PAUSE and BANDWIDTH_INTERVAL (section 1) */
#define POLL_MIN      16  /* of ratelimit_pages, and its divisor (section 1) */
#define POLL_DIVISOR  32
#define LARGE_FOLIO   512 /* pages: 2 MiB, the largest folio that readahead makes */
#define STRICT_DIVIDE 4   /* a strict device is slowed above 3/4 of its share (section 5.7) */

struct text {
	char of[UNITS_TEXT_MAX];
};

static struct text size(u64 pages)
{
	struct text t;

	units_print_bytes(t.of, pages * PAGE_SIZE);
	return t;
}

#define SIZE(pages) (size(pages).of)

static int warn(struct limits_view *v, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static int warn(struct limits_view *v, const char *format, ...)
{
	va_list args;
	int len;

	if (v->warning_count == LIMITS_WARNINGS_MAX)
		return 0;
	va_start(args, format);
	len = vasprintf(&v->warnings[v->warning_count], format, args);
	va_end(args);
	if (len < 0)
		return -ENOMEM;
	v->warning_count++;
	return 0;
}

/* A ratio's percent, or the bytes' in its place. */
static double part_of(u64 bytes, u32 ratio, u64 limit)
{
	if (bytes && limit)
		ratio = (u32)(bytes / PAGE_SIZE * BDI_RATIO_ALL / limit);
	return 100.0 * ratio / BDI_RATIO_ALL;
}

static struct limits_device device_of(const struct setup *setup, const struct setup_device *from)
{
	const struct device_config *d = &from->config;
	u64 limit = setup_limit(setup);
	struct limits_device device = {
		.read_ahead_kb = from->bdi.read_ahead_kb,
		.min_ratio = part_of(from->bdi.min_bytes, from->bdi.min_ratio, limit),
		.max_ratio = part_of(from->bdi.max_bytes, from->bdi.max_ratio, limit),
		.strict = from->bdi.strict_limit,
	};
	double bandwidth = d->write_bytes_per_s > 0 ? d->write_bytes_per_s : d->bytes_per_s;

	snprintf(device.name, sizeof(device.name), "%s", setup_device_name(from));
	device.bandwidth_bytes = bandwidth > 0 ? (u64)bandwidth : 0;
	return device;
}

int limits_of_setup(struct limits_view *v, const struct setup *setup)
{
	*v = (struct limits_view){
		.vm = setup->vm,
		.cpus = setup->sim.cpus,
		.free = setup->memory_bytes / PAGE_SIZE,
		.reserve = setup->reserve_bytes / PAGE_SIZE,
		.hz = setup->sim.hz,
	};
	v->devices = calloc(setup->device_count, sizeof(v->devices[0]));
	if (!v->devices)
		return -ENOMEM;
	for (u32 i = 0; i < setup->device_count; i++)
		v->devices[v->device_count++] = device_of(setup, &setup->device[i]);
	return 0;
}

/* The settings of one of the pair, as people wrote it. */
static const char *knob(char buf[64], const char *name, u64 bytes, u32 ratio)
{
	char text[UNITS_TEXT_MAX];

	if (bytes)
		snprintf(buf, 64, "%s_bytes = %s", name, units_print_bytes(text, bytes));
	else
		snprintf(buf, 64, "%s_ratio = %u", name, ratio);
	return buf;
}

static int check_order(struct limits_view *v, const struct limits_config *c)
{
	struct limits_config wide = *c;
	char dirty[64], background[64];
	u64 asked;

	knob(dirty, "dirty", c->dirty_bytes, c->dirty_ratio);
	knob(background, "dirty_background", c->dirty_background_bytes, c->dirty_background_ratio);
	if (!v->limit)
		return warn(v,
			    "%s: nothing may be dirty, every writer waits for its data to be "
			    "written",
			    dirty);
	/* what the background alone would be: as the limit of one that has it for a limit */
	wide.dirty_bytes = c->dirty_background_bytes;
	wide.dirty_ratio = c->dirty_background_ratio;
	asked = limits_of(&wide, v->avail, false, 0).thresh;
	if (asked >= v->limit)
		return warn(v,
			    "%s (%s) is not below %s (%s): half of the limit, %s, counts instead",
			    background, SIZE(asked), dirty, SIZE(v->limit), SIZE(v->bg));
	if (!v->bg)
		return warn(v, "%s: the flusher never rests while anything is dirty", background);
	return 0;
}

static int check_memory(struct limits_view *v, const struct limits_config *c)
{
	char dirty[64];

	if (v->limit < v->avail)
		return 0;
	return warn(v,
		    "%s: the limit of %s is all of the dirtyable memory or more: memory runs out "
		    "before writers are stopped",
		    knob(dirty, "dirty", c->dirty_bytes, c->dirty_ratio), SIZE(v->limit));
}

static int check_polls(struct limits_view *v)
{
	u64 unseen = v->poll * v->cpus, band = v->limit - v->freerun;

	if (!v->limit || unseen <= band)
		return 0;
	return warn(v,
		    "%u CPUs may each dirty %s before somebody looks: %s, more than the %s between "
		    "freerun and limit",
		    v->cpus, SIZE(v->poll), SIZE(unseen), SIZE(band));
}

static int check_ages(struct limits_view *v)
{
	if (v->vm.dirty_writeback_centisecs)
		return 0;
	return warn(v,
		    "dirty_writeback_centisecs = 0: what is dirty may stay so for ever, below the "
		    "background threshold nothing is written");
}

/* What a device writes while a writer sleeps, against what may be dirty for it. */
static int check_bandwidth(struct limits_view *v, const struct limits_device *d)
{
	u64 pause = (u64)((double)d->bandwidth_bytes * PAUSE_MS / 1000 / PAGE_SIZE);
	u64 band = v->limit - v->freerun;

	if (!d->bandwidth_bytes || !v->limit)
		return 0;
	if (d->most < pause)
		return warn(v,
			    "%s: may have %s dirty, but writes %s in %d ms: it runs dry while "
			    "writers sleep",
			    d->name, SIZE(d->most), SIZE(pause), PAUSE_MS);
	if (band < pause)
		return warn(v,
			    "%s: writes %s in %d ms, more than the %s between freerun and limit: "
			    "its writers are stopped instead of slowed",
			    d->name, SIZE(pause), PAUSE_MS, SIZE(band));
	return 0;
}

/* A strict device's writers are slowed in the last quarter of its share. */
static int check_strict(struct limits_view *v, const struct limits_device *d)
{
	u64 folio = d->read_ahead_kb / (PAGE_SIZE / 1024);

	if (folio > LARGE_FOLIO)
		folio = LARGE_FOLIO;
	if (!d->strict || !v->limit || d->most / STRICT_DIVIDE >= folio)
		return 0;
	return warn(
		v,
		"%s: has a strict limit of %s, and readahead makes folios of up to %s: one small "
		"write into such a folio can take its writers from free to stopped",
		d->name, SIZE(d->most), SIZE(folio));
}

static int work_out_devices(struct limits_view *v)
{
	double min_sum = 0;
	int error = 0;

	for (size_t i = 0; i < v->device_count && !error; i++) {
		struct limits_device *d = &v->devices[i];

		min_sum += d->min_ratio;
		d->most = (u64)((double)v->limit * d->max_ratio / 100);
		error = check_bandwidth(v, d);
		if (!error)
			error = check_strict(v, d);
	}
	if (!error && min_sum >= 100)
		error = warn(v,
			     "the min_ratios of all devices add up to %.0f %%: nothing is left to "
			     "share",
			     min_sum);
	return error;
}

int limits_work_out(struct limits_view *v)
{
	struct limits_config c = {
		.dirty_ratio = v->vm.dirty_ratio,
		.dirty_background_ratio = v->vm.dirty_background_ratio,
		.dirty_bytes = v->vm.dirty_bytes,
		.dirty_background_bytes = v->vm.dirty_background_bytes,
	};
	struct limits l;
	int error;

	v->avail = limits_avail(v->free, v->reserve, v->file, 0);
	l = limits_of(&c, v->avail, false, 0);
	v->limit = l.thresh;
	v->bg = l.bg;
	v->freerun = limits_freerun(l.thresh, l.bg);
	v->setpoint = (v->freerun + v->limit) / 2;
	v->poll = max_u64(POLL_MIN, v->limit / (POLL_DIVISOR * (u64)v->cpus));
	error = check_order(v, &c);
	if (!error)
		error = check_memory(v, &c);
	if (!error)
		error = check_polls(v);
	if (!error)
		error = check_ages(v);
	return error ? error : work_out_devices(v);
}

struct limits_pace limits_pace(const struct limits_view *v, const struct limits_device *d,
			       u64 dirty)
{
	const struct wb_share share = {
		.num = 1,
		.den = 1,
		.min_ratio = (u32)llround(d->min_ratio * RATIO_ALL / 100),
		.max_ratio = (u32)llround(d->max_ratio * RATIO_ALL / 100),
		.strictlimit = d->strict,
		.floor_in_threshold = true,
	};
	u64 part = wb_thresh(v->limit, dirty, &share);
	const struct position at = {
		.thresh = v->limit,
		.bg = v->bg,
		.limit = v->limit,
		.dirty = dirty,
		.wb_thresh = part,
		.wb_bg_thresh = wb_bg_thresh(part, v->limit, v->bg),
		.wb_dirty = dirty,
		.avg_write_bw = d->bandwidth_bytes >= PAGE_SIZE ? d->bandwidth_bytes / PAGE_SIZE
								: BANDWIDTH_INIT,
		.strictlimit = d->strict,
	};
	struct limits_pace pace = { .rate = BANDWIDTH_INIT };

	pace.freerun = d->strict ? limits_freerun(at.wb_thresh, at.wb_bg_thresh) : v->freerun;
	pace.pos_ratio = v->limit ? position_ratio(&at) : 0;
	pace.allowed = position_scale(pace.rate, pace.pos_ratio);
	return pace;
}

void limits_finish(struct limits_view *v)
{
	for (size_t i = 0; i < v->warning_count; i++)
		free(v->warnings[i]);
	free(v->devices);
	*v = (struct limits_view){ 0 };
}
