// SPDX-License-Identifier: MIT
/* [compare NAME]: rows of figures and of changes, and what is said of those that miss. */
#include "lab/compare.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Three cases of an experiment, the first with published figures, as a run would leave them. */
struct made {
	struct experiment x;
	struct experiment_case cases[3];
	struct reference reference;
	struct lab_result results[3];
	struct comparison figures, change;
};

static void make(struct made *m)
{
	static const double iops[] = { 1000, 1500, 900 };
	static const char *const names[] = { "kick", "inline", "own" };

	*m = (struct made){ .x = { .name = "x" } };
	for (size_t i = 0; i < 3; i++) {
		m->cases[i].name = names[i];
		m->results[i].c = &m->cases[i];
		metric_put(&m->results[i].predicted, METRIC_WRITE_IOPS, iops[i]);
		metric_put(&m->results[i].predicted, METRIC_MAX_DIRTY, 1 << 20);
		metric_put(&m->results[i].predicted, METRIC_WRITE_P99, 1);
	}
	m->reference = (struct reference){ .case_name = "kick", .source = "P4" };
	metric_put(&m->reference.values, METRIC_WRITE_IOPS, 1100);
	m->cases[0].reference = &m->reference;
	m->figures = (struct comparison){ .name = "one", .of = { .case_name = "kick" } };
	m->figures.ours.case_name = "own";
	m->change = (struct comparison){ .name = "two",
					 .title = "writes",
					 .against = { "kick", METRIC_WRITE_IOPS, "" },
					 .of = { "inline", METRIC_WRITE_IOPS, "" },
					 .ours = { "own", METRIC_WRITE_IOPS, "" },
					 .published = true,
					 .percent = 45,
					 .within = 6 };
}

static char *table_of(struct made *m, struct comparison *c, size_t count)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	m->x.comparisons = c;
	m->x.comparison_count = 1;
	comparisons_table(out, &m->x, m->results, count);
	fclose(out);
	return text;
}

static char *misses_of(struct made *m, struct comparison *c, size_t expected)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	m->x.comparisons = c;
	m->x.comparison_count = 1;
	assert_int_equal(comparisons_misses(out, &m->x, m->results, 3), expected);
	fclose(out);
	return text;
}

/* What was published has a row, and what is dirty; what was not has none. */
static void figures_stand_side_by_side(void **state)
{
	struct made m;
	char *text;

	(void)state;
	make(&m);
	text = table_of(&m, &m.figures, 3);
	assert_string_equal(text, "\n"
				  "comparison   of                         published  predicted"
				  "                ours\n"
				  "one          write_iops                 1100       1000"
				  "                     900\n"
				  "             max_dirty_bytes            -          1M"
				  "                       1M\n");
	free(text);
}

static void changes_are_in_percent(void **state)
{
	struct made m;
	char *text;

	(void)state;
	make(&m);
	text = table_of(&m, &m.change, 3);
	assert_string_equal(text,
			    "\n"
			    "comparison   of                         published  predicted"
			    "                ours\n"
			    "writes       change from kick           +45.0 %    +50.0 % inline"
			    "           -10.0 % own\n");
	free(text);
	/* ours was not run */
	text = table_of(&m, &m.change, 2);
	assert_non_null(strstr(text, "+50.0 % inline           -\n"));
	free(text);
}

/* No row without the cases, and no heads without a row. */
static void cases_that_were_not_run_have_no_rows(void **state)
{
	struct made m;
	char *text;

	(void)state;
	make(&m);
	text = table_of(&m, &m.figures, 2);
	assert_string_equal(text, "");
	free(text);
	text = table_of(&m, &m.change, 1);
	assert_string_equal(text, "");
	free(text);
	m.results[0].error = -EINVAL;
	text = table_of(&m, &m.change, 3);
	assert_string_equal(text, "");
	free(text);
}

static void misses_are_named(void **state)
{
	struct made m;

	(void)state;
	make(&m);
	free(misses_of(&m, &m.change, 0)); /* 50 for 45, 6 points */
	m.change.within = 4;
	m.change.bounded = m.change.bounded_above = true;
	m.change.ours_within = 5;
	m.change.ours_at_most = -20;
	{
		char *text = misses_of(&m, &m.change, 3);

		assert_string_equal(
			text, "two: predicted +50.0 %, published +45.0 %: 4 points are allowed\n"
			      "two: ours is -10.0 %, it should be within 5 %\n"
			      "two: ours is -10.0 %, it should be at most -20 %\n");
		free(text);
	}
	free(misses_of(&m, &m.figures, 0)); /* those are for [tolerance] */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_stand_side_by_side),
		cmocka_unit_test(changes_are_in_percent),
		cmocka_unit_test(cases_that_were_not_run_have_no_rows),
		cmocka_unit_test(misses_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
