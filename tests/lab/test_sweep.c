/* SPDX-License-Identifier: MIT */
/* Sweeps: which points there are, knees of curves, records and journals. */
#include "lab/sweep.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/test-sweep-XXXXXX";

static int enter_folder(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	return chdir(folder);
}

static int leave_folder(void **state)
{
	(void)state;
	unlink("journal");
	assert_int_equal(chdir("/"), 0);
	return rmdir(folder);
}

struct fixture {
	struct experiment x;
	struct sweep s;
};

static int make(struct fixture *f, const char *const *settings, size_t count, struct err *e)
{
	static const char *const policies[] = { "linux-6.1", "sluice" };
	static const char *const cases[] = { "baseline" };
	struct selection selection = { .cases = cases,
				       .case_count = 1,
				       .policies = policies,
				       .policy_count = 2,
				       .settings = settings,
				       .setting_count = count };
	int error;

	assert_int_equal(experiment_load(&f->x, SOURCE_ROOT "/tests/lab/small.ini", e), 0);
	error = sweep_make(&f->s, &f->x, &selection, 1, e);
	if (error)
		experiment_finish(&f->x);
	return error;
}

static void make_good(struct fixture *f, const char *const *settings, size_t count)
{
	struct err e = { "" };
	int error = make(f, settings, count, &e);

	assert_string_equal(e.text, "");
	assert_int_equal(error, 0);
}

static void finish(struct fixture *f)
{
	sweep_finish(&f->s);
	experiment_finish(&f->x);
}

static const char *const three_axes[] = { "vm.dirty_bytes=4M,1M,2M", "accounting=page,folio",
					  "device.iops=200" };

static void points_are_the_product_of_all_values(void **state)
{
	struct fixture f;

	(void)state;
	make_good(&f, three_axes, 3);
	assert_int_equal(f.s.rows, 2);
	assert_int_equal(f.s.steps, 6);
	assert_int_equal(f.s.count, 12);
	for (size_t i = 0; i < f.s.count; i++) {
		static const u64 bytes[] = { 4 << 20, 1 << 20, 2 << 20 };
		const struct experiment_case *c = &f.s.plan.cases[i];

		assert_string_equal(c->policy.name, i < 6 ? "linux-6.1" : "sluice");
		assert_int_equal(c->setup.vm.dirty_bytes, bytes[i % 6 / 2]);
		assert_int_equal(c->policy.accounting, i % 2 ? ACCOUNT_FOLIO : ACCOUNT_PAGE);
		assert_true(c->setup.device[0].config.iops == 200);
		assert_int_equal(sweep_value(&f.s, i, 0), i % 6 / 2);
		assert_int_equal(sweep_value(&f.s, i, 1), i % 2);
		assert_int_equal(sweep_value(&f.s, i, 2), 0);
	}
	assert_int_equal(sweep_moved(&f.s, 7, 0, 2), 11);
	assert_int_equal(sweep_moved(&f.s, 7, 1, 0), 6);
	assert_true(f.s.axes[0].numeric);
	assert_false(f.s.axes[1].numeric);
	finish(&f);
}

static void assert_refused(const char *one, const char *two, const char *complaint)
{
	const char *const settings[] = { one, two };
	struct fixture f;
	struct err e = { "" };

	assert_int_not_equal(make(&f, settings, two ? 2 : 1, &e), 0);
	assert_string_equal(e.text, complaint);
}

static void mistakes_are_named(void **state)
{
	(void)state;
	assert_refused("vm.dirty_bytes", NULL,
		       "-s vm.dirty_bytes: a setting is KEY=VALUE,VALUE,...");
	assert_refused("vm.dirty_ratio=1,,2", NULL, "-s vm.dirty_ratio=...: a value is missing");
	assert_refused("vm.dirty_ratio=1,2,1", NULL,
		       "-s vm.dirty_ratio=...: the value \"1\" stands twice");
	assert_refused("vm.dirty_ratio=1", "vm.dirty_ratio=2", "-s vm.dirty_ratio: is given twice");
	assert_refused("vm.dirty_ratio=5,500", NULL,
		       "-s vm.dirty_ratio=500: dirty_ratio cannot be \"500\", only 0 to 100 "
		       "(percent)");
	assert_refused("vm.dirty_ratoi=5,50", NULL,
		       "-s vm.dirty_ratoi=5: unknown key \"dirty_ratoi\" in section [vm]; did you "
		       "mean \"dirty_ratio\"?");
}

static void settings_that_override_each_other_are_found(void **state)
{
	static const struct {
		const char *axes[2];
		bool rivals;
	} cases[] = {
		{ { "vm.dirty_ratio=5,10", "vm.dirty_bytes=1M,2M" }, true },
		{ { "vm.dirty_bytes=1M,2M", "vm.dirty_ratio=5,10" }, true },
		{ { "vm.dirty_ratio=5,10", "vm.dirty_background_bytes=1M,2M" }, false },
		{ { "device.max_ratio=5,10", "device.max_bytes=1M,2M" }, true },
		{ { "device.max_ratio=5,10", "device.min_ratio=1,2" }, false },
		{ { "vm.dirty_ratio=5,10", "device.iops=100,200" }, false },
		{ { "vm.dirty_ratio=5,10", "accounting=page,folio" }, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fixture f;
		size_t a, b;

		make_good(&f, cases[i].axes, 2);
		assert_int_equal(sweep_rivals(&f.s, &a, &b), cases[i].rivals);
		if (cases[i].rivals)
			assert_true(a == 0 && b == 1);
		finish(&f);
	}
}

static void the_name_knows_what_goes_into_the_points(void **state)
{
	static const char *const other[] = { "vm.dirty_bytes=4M,1M,3M", "accounting=page,folio",
					     "device.iops=200" };
	struct fixture a, b, c;

	(void)state;
	make_good(&a, three_axes, 3);
	make_good(&b, three_axes, 3);
	make_good(&c, other, 3);
	assert_string_equal(a.s.code_name, b.s.code_name);
	assert_string_not_equal(a.s.code_name, c.s.code_name);
	finish(&a);
	finish(&b);
	finish(&c);
}

static void knees_are_where_a_cost_turns(void **state)
{
	static const double x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	/* falls steeply to 3, then hardly */
	static const double fall[] = { 100, 50, 10, 9, 8, 7, 6, 5, 4, 3 };
	/* rises from 7 on */
	static const double rise[] = { 1, 1, 1, 1, 1, 1, 2, 20, 60, 100 };
	static const double line[] = { 10, 9, 8, 7, 6, 5, 4, 3, 2, 1 };
	static const double flat[] = { 100, 99, 97, 98, 99, 99, 100, 98, 97, 96 };
	/* Bends the wrong way: it pays to go on to the end. */
	static const double late[] = { 10, 10, 10, 10, 10, 10, 9, 7, 4, 1 };
	static const double valley[] = { 9, 6, 4, 2, 1, 2, 4, 6, 8, 9 };

	(void)state;
	assert_int_equal(knee_find(x, fall, 10, false), 2);
	assert_int_equal(knee_find(x, rise, 10, false), 6);
	assert_int_equal(knee_find(x, line, 10, false), -1);
	assert_int_equal(knee_find(x, flat, 10, false), -1);
	assert_int_equal(knee_find(x, late, 10, false), -1);
	assert_int_equal(knee_find(x, valley, 10, false), 4);
	assert_int_equal(knee_find(x, fall, 2, false), -1);
}

/* y = 1/x: by the logarithm the knee is where e-folds count, else it is close to the start. */
static void wide_axes_are_taken_by_their_logarithm(void **state)
{
	double x[11], y[11];

	(void)state;
	for (int i = 0; i <= 10; i++) {
		x[i] = pow(2, i);
		y[i] = 1000 / x[i];
	}
	assert_true(knee_log(x, 11));
	assert_true(knee_log(x, 4));
	assert_false(knee_log(x, 3));
	/* below the line from (0, 1) to (1, 0) by 1 - i/10 - 2^-i: most at i = 3 */
	assert_int_equal(knee_find(x, y, 11, true), 3);
	/* with x itself: 1 - x/1024 - 1/x, most at x = 32 */
	assert_int_equal(knee_find(x, y, 11, false), 5);
}

/* A made-up result, the same for the same point; its doubles have no short text. */
static void fill(struct sweep *s, size_t i)
{
	struct lab_result *r = &s->results[i];

	*r = (struct lab_result){ .c = &s->plan.cases[i], .virtual_s = 1.0 / 3 + (double)i };
	policy_label(&r->c->policy, r->policy, sizeof(r->policy));
	metric_put(&r->predicted, METRIC_WRITE_IOPS, 1000.0 / 7 * (double)(i + 1));
	metric_put(&r->predicted, METRIC_DEVICE_WRITE_BYTES, 9007199254740991.0);
	r->predicted.state[METRIC_FIRST_THROTTLE] = METRIC_NEVER;
	s->done[i] = true;
}

static void assert_same(const struct sweep *a, const struct sweep *b, size_t i)
{
	assert_true(b->done[i]);
	assert_string_equal(a->results[i].policy, b->results[i].policy);
	assert_true(a->results[i].virtual_s == b->results[i].virtual_s);
	assert_string_equal(a->results[i].text, b->results[i].text);
	for (enum metric m = 0; m < METRIC_MAX; m++) {
		assert_int_equal(a->results[i].predicted.state[m],
				 b->results[i].predicted.state[m]);
		assert_true(a->results[i].predicted.value[m] == b->results[i].predicted.value[m]);
	}
}

static void records_are_exact(void **state)
{
	struct fixture a, b;

	(void)state;
	make_good(&a, three_axes, 3);
	make_good(&b, three_axes, 3);
	for (size_t i = 0; i < a.s.count; i++) {
		char *record;

		fill(&a.s, i);
		if (i == 3) {
			a.s.results[i].error = -EIO;
			strcpy(a.s.results[i].text, "case baseline: \"it\" broke");
		}
		record = sweep_record(&a.s, i);
		assert_non_null(record);
		assert_null(strchr(record, '\n'));
		assert_int_equal(sweep_enter(&b.s, record), i);
		assert_same(&a.s, &b.s, i);
		free(record);
	}
	assert_int_equal(b.s.results[3].error, -EIO);
	assert_int_equal(sweep_enter(&b.s, "{\"point\":12,\"predicted\":{}}"), -1);
	assert_int_equal(sweep_enter(&b.s, "{\"point\":-1,\"predicted\":{}}"), -1);
	assert_int_equal(sweep_enter(&b.s, "{\"point\":1,\"predicted\":{\"colour\":3}}"), -1);
	assert_int_equal(sweep_enter(&b.s, "{\"point\":1"), -1);
	finish(&a);
	finish(&b);
}

static void open_good(struct sweep_journal *j, struct sweep *s)
{
	struct err e = { "" };
	int error = sweep_journal_open(j, s, "journal", &e);

	assert_string_equal(e.text, "");
	assert_int_equal(error, 0);
}

static void append(const char *text)
{
	FILE *f = fopen("journal", "a");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void a_journal_brings_back_what_was_done(void **state)
{
	struct fixture a, b;
	struct sweep_journal j;
	struct stat before, after;
	char *torn;

	(void)state;
	unlink("journal");
	make_good(&a, three_axes, 3);
	make_good(&b, three_axes, 3);
	open_good(&j, &a.s);
	for (size_t i = 0; i < 5; i++) {
		fill(&a.s, i);
		a.s.results[i].error = i == 2 ? -EIO : 0;
		assert_int_equal(sweep_journal_add(&j, &a.s, i), 0);
	}
	sweep_journal_close(&j);
	/* The machine stopped in the middle of the sixth. */
	assert_int_equal(stat("journal", &before), 0);
	fill(&a.s, 5);
	torn = sweep_record(&a.s, 5);
	torn[strlen(torn) / 2] = 0;
	append(torn);
	free(torn);
	open_good(&j, &b.s);
	assert_int_equal(stat("journal", &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	for (size_t i = 0; i < b.s.count; i++)
		assert_int_equal(b.s.done[i], i < 5 && i != 2);
	assert_same(&a.s, &b.s, 4);
	/* and goes on */
	fill(&b.s, 11);
	assert_int_equal(sweep_journal_add(&j, &b.s, 11), 0);
	sweep_journal_close(&j);
	finish(&a);
	make_good(&a, three_axes, 3);
	open_good(&j, &a.s);
	sweep_journal_close(&j);
	assert_true(a.s.done[11] && a.s.done[0] && !a.s.done[2] && !a.s.done[5]);
	finish(&a);
	finish(&b);
}

static void another_sweeps_journal_is_refused(void **state)
{
	static const char *const other[] = { "vm.dirty_bytes=4M,1M" };
	struct fixture a, b;
	struct sweep_journal j;
	struct err e = { "" };

	(void)state;
	unlink("journal");
	make_good(&a, three_axes, 3);
	make_good(&b, other, 1);
	open_good(&j, &a.s);
	sweep_journal_close(&j);
	assert_int_equal(sweep_journal_open(&j, &b.s, "journal", &e), -EINVAL);
	assert_string_equal(e.text, "journal:1: this is no journal of this sweep: its experiment, "
				    "settings, seed or version are others");
	append("{\"point\":\"three\"}\n");
	e.text[0] = 0;
	assert_int_equal(sweep_journal_open(&j, &a.s, "journal", &e), -EINVAL);
	assert_string_equal(e.text, "journal:2: this is no result of a point");
	finish(&a);
	finish(&b);
}

/* Stalls fall until 2M, throughput rises evenly; only the first three axes' values count. */
static void curves_run_along_the_first_axis_of_numbers(void **state)
{
	static const double stall[] = { 3, 100, 5 }; /* of 4M, 1M, 2M */
	struct fixture f;
	struct sweep_curves c;

	(void)state;
	make_good(&f, three_axes, 3);
	for (size_t i = 0; i < f.s.count; i++) {
		fill(&f.s, i);
		metric_put(&f.s.results[i].predicted, METRIC_WRITE_IOPS, 500);
		metric_put(&f.s.results[i].predicted, METRIC_WRITE_MAX, stall[i % 6 / 2]);
	}
	f.s.results[10].error = -EIO; /* its curve cannot be judged */
	assert_int_equal(sweep_curves(&f.s, &c), 0);
	assert_int_equal(c.axis, 0);
	assert_int_equal(c.count, 4);
	/* in the order of the numbers: 1M, 2M, 4M */
	assert_int_equal(c.curves[0].points[0], 2);
	assert_int_equal(c.curves[0].points[1], 4);
	assert_int_equal(c.curves[0].points[2], 0);
	assert_int_equal(c.curves[0].knees[0], 4);
	assert_int_equal(c.curves[0].knees[2], -1);
	assert_int_equal(c.curves[0].knee, 4);
	assert_int_equal(c.curves[1].knee, 5);
	assert_int_equal(c.curves[2].knee, -1);
	assert_int_equal(c.curves[3].knee, 11);
	sweep_curves_finish(&c);
	finish(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(points_are_the_product_of_all_values),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(settings_that_override_each_other_are_found),
		cmocka_unit_test(the_name_knows_what_goes_into_the_points),
		cmocka_unit_test(knees_are_where_a_cost_turns),
		cmocka_unit_test(wide_axes_are_taken_by_their_logarithm),
		cmocka_unit_test(records_are_exact),
		cmocka_unit_test(a_journal_brings_back_what_was_done),
		cmocka_unit_test(another_sweeps_journal_is_refused),
		cmocka_unit_test(curves_run_along_the_first_axis_of_numbers),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
