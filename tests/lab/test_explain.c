/* SPDX-License-Identifier: MIT */
/* What is said of a case, sentence by sentence: of cases made up here, and of one that is run. */
#include "lab/explain.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Four writers for ten seconds; their first sleep, if any, after four. */
struct made {
	struct experiment_case c;
	struct lab_result result;
	struct series series;
	struct series_point points[3];
};

#define STARTED (100 * NSEC_PER_SEC)

static void make(struct made *m)
{
	*m = (struct made){ .c = { .name = "c", .policy = *policy_find("linux-7.4") } };
	m->result = (struct lab_result){ .c = &m->c, .series = &m->series };
	m->series = (struct series){ .points = m->points,
				     .count = 3,
				     .device_count = 1,
				     .started_ns = STARTED,
				     .clones_all = 4,
				     .clones = { 0, 4, 0 } };
	for (u64 i = 0; i < 3; i++) {
		struct series_point *p = &m->points[i];

		p->t_ns = (i * 4 + (i == 2) * 2) * NSEC_PER_SEC;
		p->ios[JOB_DIR_WRITE] = i * 5000;
		p->bytes[JOB_DIR_WRITE] = i * 5000 * 4096;
		p->engine.charged = i * 5000;
		p->engine.background_thresh = 4096;
		p->engine.background_ns = p->engine.first_throttle_ns = WORLD_NEVER;
		p->engine.dirty_max = 1024;
		p->device[0].writes = i * 100;
		p->device[0].write_bytes = i * 100 * 8192;
	}
}

/* Writers slept 10 of their 40 seconds; `debt` of 1,000 pages charged had to be written. */
static void put_to_sleep(struct made *m, u64 debt)
{
	struct engine_stats *e = &m->points[2].engine;

	e->background_ns = STARTED + NSEC_PER_SEC;
	e->background_dirty = 800;
	e->background_debt = debt < 800 ? debt : 800;
	e->first_throttle_ns = STARTED + 4 * NSEC_PER_SEC;
	e->first_throttle_dirty = 1000;
	e->first_throttle_debt = debt;
	e->throttle_sleep_ns = 10 * NSEC_PER_SEC;
	e->throttle_sleeps = 1250;
	m->series.in_calls_ns[JOB_DIR_WRITE] = 20e9;
}

static const char *of(const struct made *m, size_t i)
{
	static struct explanation why;

	explain(&m->result, &why);
	assert_true(i < why.count);
	return why.sentence[i];
}

static const char *conclusion(const struct made *m, enum verdict verdict)
{
	static struct explanation why;

	explain(&m->result, &why);
	assert_int_equal(why.verdict, verdict);
	return why.sentence[why.count - 1];
}

static void the_charge_decides_when_most_need_not_be_written(void **state)
{
	struct made m;

	(void)state;
	make(&m);
	put_to_sleep(&m, 500);
	assert_string_equal(conclusion(&m, VERDICT_CHARGE),
			    "The charge decided: writers slept for dirty memory of which 50 % had "
			    "to be written.");
	assert_string_equal(verdict_name(VERDICT_CHARGE), "charge");
	put_to_sleep(&m, 501);
	m.points[2].device[0].busy_ns = 10 * NSEC_PER_SEC;
	conclusion(&m, VERDICT_DEVICE);
}

static void the_device_decides_when_it_is_busy(void **state)
{
	struct made m;

	(void)state;
	make(&m);
	put_to_sleep(&m, 1000);
	/* from the first sleep on: the four seconds before do not count */
	m.points[2].device[0].busy_ns = 54 * NSEC_PER_SEC / 10;
	assert_string_equal(conclusion(&m, VERDICT_DEVICE),
			    "The device decided: the throttle slowed the writers to its speed.");
	make(&m);
	m.series.in_calls_ns[JOB_DIR_WRITE] = 20e9;
	m.points[2].device[0].busy_ns = 9 * NSEC_PER_SEC;
	assert_string_equal(conclusion(&m, VERDICT_DEVICE),
			    "The device decided: calls waited for it.");
}

static void the_limits_decide_when_the_device_has_time(void **state)
{
	struct made m;

	(void)state;
	make(&m);
	put_to_sleep(&m, 1000);
	m.points[2].device[0].busy_ns = 3 * NSEC_PER_SEC;
	assert_string_equal(conclusion(&m, VERDICT_LIMITS),
			    "The limits decided: writers slept while the device was idle 50 % of "
			    "the time.");
	m.series.in_calls_ns[JOB_DIR_WRITE] = 3e9;
	conclusion(&m, VERDICT_JOBS);
}

static void memory_the_cpu_or_nothing_decides(void **state)
{
	struct made m;

	(void)state;
	make(&m);
	m.series.in_calls_ns[JOB_DIR_WRITE] = 4e9;
	assert_string_equal(conclusion(&m, VERDICT_JOBS),
			    "Nothing held the jobs back: they asked for no more.");
	m.points[2].engine.reclaim_waits = 3;
	assert_string_equal(conclusion(&m, VERDICT_MEMORY),
			    "Memory decided: there was too little that could be reclaimed.");
	assert_string_equal(of(&m, 5), "Tasks waited for memory 3 times.");
	make(&m);
	m.series.in_syncs_ns = 30e9;
	assert_string_equal(conclusion(&m, VERDICT_CPU),
			    "The CPU decided: calls took 75 % of the jobs' time and waited for "
			    "nothing else.");
}

static void every_step_is_said_with_its_numbers(void **state)
{
	struct made m;

	(void)state;
	make(&m);
	put_to_sleep(&m, 40);
	m.points[1].device[0].busy_ns = NSEC_PER_SEC;
	m.points[2].device[0].busy_ns = 4 * NSEC_PER_SEC;
	m.points[2].engine.charged = 320000;
	m.points[2].engine.folios_split = 1007;
	m.points[2].engine.folios_shed = 7;
	m.points[2].engine.folios_reclaimed = 1234567;
	assert_string_equal(of(&m, 0), "4 writers made 1,000 writes a second, 3.91M a second, for "
				       "10.0 s.");
	assert_string_equal(of(&m, 1),
			    "For each byte written 32.0 were charged as dirty, 1.22G for "
			    "39.1M: a folio is charged whole, whatever of it was written.");
	assert_string_equal(of(&m, 2),
			    "After 1.00 s the background limit was passed: 3.12M were "
			    "charged, the limit was 16M, of which 160K, 5.0 %, had to be "
			    "written.");
	assert_string_equal(of(&m, 3),
			    "After 4.00 s the first writer was put to sleep: 3.91M were "
			    "charged or in flight, of which 160K, 4.0 %, had to be written.");
	assert_string_equal(of(&m, 4),
			    "Writers slept 10.0 s in all, 25 % of their time, in 1,250 "
			    "pauses of 8.00 ms on average; 50 % of their time went by in "
			    "calls, which wait for a file whose writer sleeps.");
	assert_string_equal(of(&m, 5), "The device was busy 25 % of the time until then, and since "
				       "then 50 %: 17 writes a second, 8.00K a write.");
	assert_string_equal(of(&m, 6),
			    "Folios: 1,000 split before a small write, 7 split to let go "
			    "of clean pages, 1,234,567 reclaimed.");
}

static void readers_are_explained_without_the_throttle(void **state)
{
	struct explanation why;
	struct made m;

	(void)state;
	make(&m);
	m.series.clones[JOB_DIR_READ] = 1;
	m.series.clones[JOB_DIR_WRITE] = 0;
	m.series.clones_all = 1;
	m.series.in_calls_ns[JOB_DIR_READ] = 1e9;
	for (u64 i = 0; i < 3; i++) {
		m.points[i].ios[JOB_DIR_READ] = i * 50;
		m.points[i].bytes[JOB_DIR_READ] = i * 50 * 65536;
		m.points[i].ios[JOB_DIR_WRITE] = m.points[i].bytes[JOB_DIR_WRITE] = 0;
		m.points[i].device[0].reads = i * 20;
		m.points[i].device[0].read_bytes = i * 20 * 131072;
		m.points[i].device[0].writes = m.points[i].device[0].write_bytes = 0;
	}
	explain(&m.result, &why);
	assert_int_equal(why.count, 3);
	assert_string_equal(why.sentence[0], "1 reader made 10 reads a second, 640K a second, for "
					     "10.0 s.");
	assert_string_equal(why.sentence[1],
			    "The device was busy 0 % of the time: 4 reads a second, 128K a read.");
	assert_string_equal(why.sentence[2], "Nothing held the jobs back: they asked for no more.");
}

static void requests_to_a_server_are_told_by_size(void **state)
{
	struct made m;

	(void)state;
	make(&m);
	m.points[2].device[0].write_sizes[0] = 50;
	m.points[2].device[0].write_sizes[3] = 2700;
	m.points[0].device[0].write_sizes[3] = 700;
	m.points[2].device[0].write_sizes[DEVICE_SIZES - 1] = 1;
	assert_null(strstr(of(&m, 5), "server")); /* of other devices it is not asked */
	snprintf(m.c.setup.device[0].config.model, sizeof(m.c.setup.device[0].config.model),
		 "fuse");
	assert_string_equal(of(&m, 5), "Its server was sent requests to write: 50 of 4K, 2,000 of "
				       "up to 32K, 1 of more than 1M.");
}

static void cases_that_are_run_are_explained(void **state)
{
	struct lab_options o = { .seed = 1, .jobs = 1, .record = true };
	struct selection s = { 0 };
	struct lab_result results[2];
	struct experiment x;
	struct plan plan;
	struct err e = { "" };
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(experiment_load(&x, SOURCE_ROOT "/tests/lab/small.ini", &e), 0);
	assert_int_equal(plan_make(&plan, &x, &s, &e), 0);
	assert_int_equal(plan.count, 2);
	assert_int_equal(lab_run(&plan, &o, results), 0);
	explain_all(out, results, 2);
	fclose(out);
	assert_string_equal(text,
			    "\n"
			    "baseline, linux-7.4\n"
			    "  4 writers made 343 writes a second, 1.34M a second, for 5.02 s.\n"
			    "  For each byte written 48.8 were charged as dirty, 328M for 6.72M: a "
			    "folio is charged whole, whatever of it was written.\n"
			    "  After 0.112 s the background limit was passed: 24.1M were charged, "
			    "the limit was 24M, of which 456K, 1.9 %, had to be written.\n"
			    "  After 0.276 s the first writer was put to sleep: 48.3M were charged "
			    "or in flight, of which 916K, 1.9 %, had to be written.\n"
			    "  Writers slept 6.78 s in all, 34 % of their time, in 107 pauses of "
			    "63.4 ms on average; 94 % of their time went by in calls, which wait "
			    "for a file whose writer sleeps.\n"
			    "  The device was busy 63 % of the time until then, and since then 100 "
			    "%: 299 writes a second, 4.04K a write.\n"
			    "  The charge decided: writers slept for dirty memory of which 1.9 % "
			    "had to be written.\n"
			    "\n"
			    "sluice, sluice\n"
			    "  4 writers made 1,000 writes a second, 3.91M a second, for 5.00 s.\n"
			    "  For each byte written 0.927 were charged as dirty, 18.1M for 19.5M; "
			    "the rest met pages that were dirty already.\n"
			    "  At most 18.1M were charged at a time: the background limit of 24M "
			    "was never passed.\n"
			    "  No writer was put to sleep; calls took less than 0.1 % of the jobs' "
			    "time.\n"
			    "  The device was busy 0 % of the time.\n"
			    "  Nothing held the jobs back: they asked for no more.\n");
	free(text);
	lab_results_finish(results, 2);
	plan_finish(&plan);
	experiment_finish(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_charge_decides_when_most_need_not_be_written),
		cmocka_unit_test(the_device_decides_when_it_is_busy),
		cmocka_unit_test(the_limits_decide_when_the_device_has_time),
		cmocka_unit_test(memory_the_cpu_or_nothing_decides),
		cmocka_unit_test(every_step_is_said_with_its_numbers),
		cmocka_unit_test(readers_are_explained_without_the_throttle),
		cmocka_unit_test(requests_to_a_server_are_told_by_size),
		cmocka_unit_test(cases_that_are_run_are_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
