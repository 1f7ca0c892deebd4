/* SPDX-License-Identifier: MIT */
/* Series of whole cases: what is recorded, and that recording changes nothing. */
#include "lab/lab.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SMALL SOURCE_ROOT "/tests/lab/small.ini"

struct lab_run {
	struct experiment x;
	struct plan plan;
	struct lab_result *results;
};

static void run(struct lab_run *r, bool record, const char *const *settings, size_t count)
{
	struct selection s = { .settings = settings, .setting_count = count };
	struct lab_options o = { .seed = 1, .jobs = 1, .record = record };
	struct err e = { "" };

	if (experiment_load(&r->x, SMALL, &e) || plan_make(&r->plan, &r->x, &s, &e))
		fail_msg("%s", e.text);
	r->results = calloc(r->plan.count, sizeof(*r->results));
	assert_non_null(r->results);
	assert_int_equal(lab_run(&r->plan, &o, r->results), 0);
	for (size_t i = 0; i < r->plan.count; i++)
		assert_int_equal(r->results[i].error, 0);
}

static void finish(struct lab_run *r)
{
	lab_results_finish(r->results, r->plan.count);
	free(r->results);
	plan_finish(&r->plan);
	experiment_finish(&r->x);
}

static double at(const struct series *s, enum series_column c, size_t point)
{
	return series_value(s, c, point);
}

/* The sum of a rate over the whole phase, and the largest value of a column. */
static double total(const struct series *s, enum series_column c)
{
	double sum = 0;

	for (size_t i = 1; i < s->count; i++)
		sum += at(s, c, i) * (at(s, SERIES_T, i) - at(s, SERIES_T, i - 1));
	return sum;
}

static double largest(const struct series *s, enum series_column c)
{
	double most = 0;

	for (size_t i = 0; i < s->count; i++)
		most = fmax(most, at(s, c, i));
	return most;
}

static void assert_near(double found, double wanted)
{
	if (fabs(found - wanted) > 1e-9 * fmax(1, fabs(wanted)))
		fail_msg("found %.17g, wanted %.17g", found, wanted);
}

static void recording_changes_no_figure(void **state)
{
	struct lab_run with, without;

	(void)state;
	run(&with, true, NULL, 0);
	run(&without, false, NULL, 0);
	assert_int_equal(with.plan.count, 2);
	for (size_t i = 0; i < with.plan.count; i++) {
		assert_memory_equal(&with.results[i].predicted, &without.results[i].predicted,
				    sizeof(struct metrics));
		assert_true(with.results[i].virtual_s == without.results[i].virtual_s);
		assert_non_null(with.results[i].series);
		assert_null(without.results[i].series);
	}
	finish(&with);
	finish(&without);
}

static void points_are_equally_far_apart(void **state)
{
	struct lab_run r;

	(void)state;
	run(&r, true, NULL, 0);
	for (size_t c = 0; c < r.plan.count; c++) {
		const struct series *s = r.results[c].series;

		/* five seconds and the last pause, of at most 204 ms, in steps of 25 ms */
		assert_true(s->count >= 201 && s->count <= 210);
		assert_true(at(s, SERIES_T, 0) == 0);
		for (size_t i = 1; i + 1 < s->count; i++)
			assert_near(at(s, SERIES_T, i), 0.025 * (double)i);
	}
	finish(&r);
}

/* What the series adds up to is what the figures say. */
static void series_agree_with_the_figures(void **state)
{
	struct lab_run r;

	(void)state;
	run(&r, true, NULL, 0);
	for (size_t c = 0; c < r.plan.count; c++) {
		const struct series *s = r.results[c].series;
		const double *p = r.results[c].predicted.value;
		double seconds = at(s, SERIES_T, s->count - 1);

		assert_true(fabs(total(s, SERIES_WRITE_IOPS) / seconds / p[METRIC_WRITE_IOPS] - 1) <
			    0.01);
		assert_near(total(s, SERIES_WRITE_RATE), 4096 * total(s, SERIES_WRITE_IOPS));
		assert_near(total(s, SERIES_ASLEEP), p[METRIC_SLEEP]);
		assert_near(total(s, SERIES_CHARGED), 4096 * p[METRIC_CHARGED]);
		assert_near(total(s, SERIES_DEVICE_WRITES), p[METRIC_DEVICE_WRITES]);
		assert_near(total(s, SERIES_DEVICE_WRITE_RATE), p[METRIC_DEVICE_WRITE_BYTES]);
		assert_near(largest(s, SERIES_WRITE_MAX), p[METRIC_WRITE_MAX]);
		assert_true(largest(s, SERIES_DIRTY) <= p[METRIC_MAX_DIRTY]);
		/* 6 MB can be charged between two looks */
		assert_true(largest(s, SERIES_DIRTY) > p[METRIC_MAX_DIRTY] - (7 << 20));
		assert_true(largest(s, SERIES_DEBT) <= p[METRIC_MAX_DEBT]);
		assert_true(largest(s, SERIES_PINNED) <= p[METRIC_MAX_PINNED]);
		assert_true(isnan(at(s, SERIES_READ_P99, 9)) && total(s, SERIES_READ_IOPS) == 0);
		assert_int_equal(s->clones[JOB_DIR_WRITE], 4);
		assert_int_equal(s->clones[JOB_DIR_READ], 0);
	}
	finish(&r);
}

static void levels_hold_together(void **state)
{
	struct lab_run r;

	(void)state;
	run(&r, true, NULL, 0);
	for (size_t c = 0; c < r.plan.count; c++) {
		const struct series *s = r.results[c].series;

		for (size_t i = 0; i < s->count; i++) {
			double orders = 0;

			for (enum series_column o = SERIES_ORDER0; o <= SERIES_ORDER9; o++)
				orders += at(s, o, i);
			assert_near(orders, at(s, SERIES_CACHED, i));
			assert_true(at(s, SERIES_DEBT, i) <= at(s, SERIES_PINNED, i));
			assert_true(at(s, SERIES_BACKGROUND, i) < at(s, SERIES_FREERUN, i));
			assert_true(at(s, SERIES_FREERUN, i) < at(s, SERIES_SETPOINT, i));
			assert_true(at(s, SERIES_SETPOINT, i) < at(s, SERIES_LIMIT, i));
			assert_true(i == 0 || at(s, SERIES_DEVICE_BUSY, i) <= 100.0000001);
		}
		/* four files of 24 MiB were read: readahead starts small and ends at 64 pages */
		assert_near(at(s, SERIES_CACHED, 0), 96 << 20);
		assert_near(at(s, SERIES_ORDER6, 0), 93 << 20);
		assert_near(at(s, SERIES_ORDER4, 0), 1 << 20);
	}
	finish(&r);
}

/* A long phase is joined into fewer points; sums, percentiles and longest stay what they were. */
static void long_phases_have_no_more_points(void **state)
{
	static const char *const longer[] = { "phase.write.job=" SOURCE_ROOT
					      "/tests/lab/small-write-long.fio" };
	struct lab_run r;

	(void)state;
	run(&r, true, longer, 1);
	for (size_t c = 0; c < r.plan.count; c++) {
		const struct series *s = r.results[c].series;
		const double *p = r.results[c].predicted.value;

		/* 60 s: 2,400 steps, twice halved */
		assert_int_equal(s->interval_ns, 100 * NSEC_PER_MSEC);
		assert_true(s->count >= 600 && s->count <= 603);
		for (size_t i = 1; i + 1 < s->count; i++) {
			assert_near(at(s, SERIES_T, i), 0.1 * (double)i);
			if (isnan(at(s, SERIES_WRITE_P50, i)))
				continue;
			assert_true(at(s, SERIES_WRITE_P50, i) <= at(s, SERIES_WRITE_P99, i));
			assert_true(at(s, SERIES_WRITE_P99, i) <= at(s, SERIES_WRITE_MAX, i));
		}
		assert_near(total(s, SERIES_ASLEEP), p[METRIC_SLEEP]);
		assert_near(total(s, SERIES_CHARGED), 4096 * p[METRIC_CHARGED]);
		assert_near(largest(s, SERIES_WRITE_MAX), p[METRIC_WRITE_MAX]);
	}
	finish(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recording_changes_no_figure),
		cmocka_unit_test(points_are_equally_far_apart),
		cmocka_unit_test(series_agree_with_the_figures),
		cmocka_unit_test(levels_hold_together),
		cmocka_unit_test(long_phases_have_no_more_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
