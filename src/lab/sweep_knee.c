/* SPDX-License-Identifier: MIT */
/*
 * The knee of a curve is where going on begins to cost more than it brings. As in
 * Kneedle (Satopaa, Albrecht, Irwin and Raghavan, "Finding a 'Kneedle' in a
 * Haystack", 2011) both axes are scaled to 0..1, and the knee is the point farthest
 * below the straight line from the first point to the last: here all curves are costs,
 * so the knee of a falling curve is where it stops falling, that of a rising one
 * where it starts to rise, and that of a valley its ground. A curve has no knee if
 * no point is farther below the line than a tenth of the curve's height, or if its
 * costs hardly differ.
 *
 * An axis that spans a factor of eight or more is taken by its logarithm, because so
 * people choose its values: 64M, 128M, 256M, ...
 *
 * A sweep wants several things at once: writes that do not stall, short fsyncs,
 * throughput, a device that is not made to write the same page again and again. The
 * knee of all together is that of the mean of the costs, each scaled to 0..1.
 */
#include "lab/sweep.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLAT        0.05 /* of the largest cost: what differs less is noise */
#define SIGNIFICANT 0.1  /* of the curve's height, below the line */
#define LOG_SPAN    8

const struct sweep_goal sweep_goals[SWEEP_GOALS_MAX] = {
	{ METRIC_WRITE_MAX, "write max ms", false },    { METRIC_FSYNC_MAX, "fsync max ms", false },
	{ METRIC_WRITE_IOPS, "write IOPS", true },      { METRIC_READ_IOPS, "read IOPS", true },
	{ METRIC_WRITE_FACTOR, "write factor", false },
};

bool knee_log(const double *x, size_t count)
{
	return count && x[0] > 0 && x[count - 1] >= LOG_SPAN * x[0];
}

/* Scales costs to 0..1; false if they are flat. */
static bool scale(const double *y, size_t count, double *to)
{
	double least = y[0], most = y[0], size = 0;

	for (size_t i = 0; i < count; i++) {
		least = fmin(least, y[i]);
		most = fmax(most, y[i]);
		size = fmax(size, fabs(y[i]));
	}
	if (most - least <= FLAT * size)
		return false;
	for (size_t i = 0; i < count; i++)
		to[i] = (y[i] - least) / (most - least);
	return true;
}

static double place(double x, bool log_x)
{
	return log_x ? log(x) : x;
}

/* The same of costs that are scaled already. */
static int find_scaled(const double *x, const double *y, size_t count, bool log_x)
{
	double first = place(x[0], log_x), span = place(x[count - 1], log_x) - first;
	double deepest = SIGNIFICANT;
	int knee = -1;

	for (size_t i = 1; i + 1 < count; i++) {
		double at = (place(x[i], log_x) - first) / span;
		double below = y[0] + at * (y[count - 1] - y[0]) - y[i];

		assert(x[i] > x[i - 1]);
		if (below > deepest) {
			deepest = below;
			knee = (int)i;
		}
	}
	return knee;
}

int knee_find(const double *x, const double *y, size_t count, bool log_x)
{
	double *scaled = calloc(count, sizeof(*scaled));
	int knee = -1;

	if (scaled && count >= 3 && scale(y, count, scaled))
		knee = find_scaled(x, scaled, count, log_x);
	free(scaled);
	return knee;
}

/* Costs along a curve; false if a point lacks the figure. */
static bool costs(const struct sweep *s, const struct sweep_curve *c, const struct sweep_goal *g,
		  double *y)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct lab_result *r = &s->results[c->points[i]];

		if (r->error || r->predicted.state[g->metric] != METRIC_KNOWN)
			return false;
		y[i] = r->predicted.value[g->metric] * (g->more_is_better ? -1 : 1);
	}
	return true;
}

/* `room` is for the numbers of four curves. */
static void find_knees(const struct sweep *s, size_t axis, struct sweep_curve *c, double *room)
{
	double *x = room, *y = room + c->count, *sum = room + 2 * c->count;
	double *scaled = room + 3 * c->count;
	size_t counted = 0;
	bool log_x;

	for (size_t i = 0; i < c->count; i++) {
		x[i] = s->axes[axis].numbers[sweep_value(s, c->points[i], axis)];
		sum[i] = 0;
	}
	log_x = knee_log(x, c->count);
	c->knee = -1;
	for (size_t g = 0; g < SWEEP_GOALS_MAX; g++) {
		int knee;

		c->knees[g] = -1;
		if (!costs(s, c, &sweep_goals[g], y) || !scale(y, c->count, scaled))
			continue;
		knee = find_scaled(x, scaled, c->count, log_x);
		c->knees[g] = knee < 0 ? -1 : (long)c->points[knee];
		for (size_t i = 0; i < c->count; i++)
			sum[i] += scaled[i];
		counted++;
	}
	if (counted) {
		int knee = knee_find(x, sum, c->count, log_x);

		c->knee = knee < 0 ? -1 : (long)c->points[knee];
	}
}

/* The axis's values in the order of their numbers. */
static void sort_values(const struct sweep_axis *a, size_t *order)
{
	for (size_t i = 0; i < a->count; i++) {
		size_t at = i;

		for (; at && a->numbers[order[at - 1]] > a->numbers[i]; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

static int make_curve(const struct sweep *s, size_t first, size_t axis, const size_t *order,
		      struct sweep_curve *c)
{
	c->count = s->axes[axis].count;
	c->points = calloc(c->count, sizeof(*c->points));
	for (size_t i = 0; c->points && i < c->count; i++)
		c->points[i] = sweep_moved(s, first, axis, order[i]);
	return c->points ? 0 : -ENOMEM;
}

static int make_curves(const struct sweep *s, struct sweep_curves *out)
{
	size_t axis = (size_t)out->axis, length = s->axes[axis].count;
	double *room = calloc(4 * length, sizeof(*room));
	size_t *order = calloc(length, sizeof(*order));
	int error = 0;

	out->curves = calloc(s->count / length, sizeof(*out->curves));
	if (!room || !order || !out->curves)
		error = -ENOMEM;
	else
		sort_values(&s->axes[axis], order);
	for (size_t first = 0; first < s->count && !error; first++) {
		if (sweep_value(s, first, axis))
			continue;
		error = make_curve(s, first, axis, order, &out->curves[out->count]);
		if (error)
			break;
		find_knees(s, axis, &out->curves[out->count], room);
		out->count++;
	}
	free(room);
	free(order);
	return error;
}

int sweep_curves(const struct sweep *s, struct sweep_curves *out)
{
	int error;

	*out = (struct sweep_curves){ .axis = -1 };
	for (size_t i = 0; i < s->axis_count && out->axis < 0; i++)
		if (s->axes[i].numeric && s->axes[i].count >= 3)
			out->axis = (long)i;
	error = out->axis < 0 ? 0 : make_curves(s, out);
	if (error)
		sweep_curves_finish(out);
	return error;
}

void sweep_curves_finish(struct sweep_curves *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->curves[i].points);
	free(c->curves);
	*c = (struct sweep_curves){ .axis = -1 };
}
