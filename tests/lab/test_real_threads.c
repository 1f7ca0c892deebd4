/* SPDX-License-Identifier: MIT */
/*
 * Simulations side by side on OS threads: no case may notice what runs beside it, and
 * ThreadSanitizer, which runs the tests of this kind, must find nothing they share.
 */
#include "lab/lab.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CASES 6

static const char *const policies[] = { "linux-6.1", "linux-7.4", "sluice" };

struct small {
	struct experiment experiment;
	struct plan plan;
};

static void small_load(struct small *s)
{
	struct selection all = { .policies = policies, .policy_count = ARRAY_SIZE(policies) };
	struct err e = { "" };

	if (experiment_load(&s->experiment, SOURCE_ROOT "/tests/lab/small.ini", &e) ||
	    plan_make(&s->plan, &s->experiment, &all, &e))
		fail_msg("%s", e.text);
	assert_int_equal(s->plan.count, CASES);
}

static void small_finish(struct small *s)
{
	plan_finish(&s->plan);
	experiment_finish(&s->experiment);
}

/* Not atomic: the lab promises never to report twice at once. */
struct reports {
	u64 count;
	size_t done;
};

static void reported(void *ctx, const struct lab_progress *p)
{
	struct reports *r = ctx;

	r->count++;
	r->done = p->done;
	assert_int_equal(p->total, CASES);
	assert_true(p->done <= p->total);
	assert_true(p->virtual_s >= 0);
}

static void run_small(struct small *s, unsigned jobs, struct lab_result *results)
{
	struct reports r = { 0 };
	struct lab_options o = {
		.seed = 1, .jobs = jobs, .progress = reported, .progress_ctx = &r
	};

	assert_int_equal(lab_run(&s->plan, &o, results), 0);
	assert_in_range(r.count, 1, UINT64_MAX);
	assert_int_equal(r.done, CASES);
	for (size_t i = 0; i < CASES; i++) {
		assert_string_equal(results[i].text, "");
		assert_int_equal(results[i].error, 0);
	}
}

static void assert_same(const struct lab_result *a, const struct lab_result *b)
{
	assert_ptr_equal(a->c, b->c);
	assert_string_equal(a->policy, b->policy);
	assert_true(a->virtual_s == b->virtual_s);
	for (enum metric m = 0; m < METRIC_MAX; m++) {
		assert_int_equal(a->predicted.state[m], b->predicted.state[m]);
		if (a->predicted.state[m] == METRIC_KNOWN)
			assert_true(a->predicted.value[m] == b->predicted.value[m]);
	}
}

static void cases_do_not_notice_each_other(void **state)
{
	static const unsigned jobs[] = { 2, 3, 8 };
	struct lab_result alone[CASES], beside[CASES];
	struct small s;

	(void)state;
	small_load(&s);
	run_small(&s, 1, alone);
	assert_true(alone[0].predicted.value[METRIC_CHARGED] !=
		    alone[2].predicted.value[METRIC_CHARGED]);
	for (size_t j = 0; j < ARRAY_SIZE(jobs); j++) {
		run_small(&s, jobs[j], beside);
		for (size_t i = 0; i < CASES; i++)
			assert_same(&alone[i], &beside[i]);
	}
	small_finish(&s);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Each figure of several seeds is the median of what they give by themselves. */
static void seeds_give_medians(void **state)
{
	struct lab_result alone[3][CASES], all[CASES];
	struct small s;

	(void)state;
	small_load(&s);
	for (u64 n = 0; n < 3; n++) {
		struct lab_options o = { .seed = 4 + n, .jobs = 2 };

		assert_int_equal(lab_run(&s.plan, &o, alone[n]), 0);
	}
	assert_int_equal(
		lab_run_seeds(&s.plan, &(struct lab_options){ .seed = 4, .jobs = 2 }, 3, all), 0);
	assert_true(alone[0][0].predicted.value[METRIC_CHARGED] !=
		    alone[1][0].predicted.value[METRIC_CHARGED]);
	for (size_t i = 0; i < CASES; i++) {
		for (enum metric m = 0; m < METRIC_MAX; m++) {
			double v[3];

			if (all[i].predicted.state[m] != METRIC_KNOWN)
				continue;
			for (u32 n = 0; n < 3; n++)
				v[n] = alone[n][i].predicted.value[m];
			qsort(v, 3, sizeof(*v), compare);
			assert_true(all[i].predicted.value[m] == v[1]);
		}
	}
	small_finish(&s);
}

/* Two labs at once, as a program might that uses this one: two tasks of the real world. */
static void run_two(void *arg)
{
	struct lab_result *results = arg;
	struct small s;

	small_load(&s);
	run_small(&s, 2, results);
	small_finish(&s);
}

static void labs_do_not_notice_each_other(void **state)
{
	struct lab_result first[CASES], second[CASES];
	struct task *other;

	(void)state;
	other = world_spawn("lab", run_two, second);
	assert_non_null(other);
	run_two(first);
	world_join(other);
	for (size_t i = 0; i < CASES; i++) {
		assert_true(first[i].virtual_s == second[i].virtual_s);
		assert_memory_equal(first[i].predicted.value, second[i].predicted.value,
				    sizeof(first[i].predicted.value));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cases_do_not_notice_each_other),
		cmocka_unit_test(labs_do_not_notice_each_other),
		cmocka_unit_test(seeds_give_medians),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
