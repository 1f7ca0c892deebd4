/* SPDX-License-Identifier: MIT */
/* Figures, tolerances, and results as table, JSON and complaints. */
#include "lab/lab.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Two cases, one with published figures, as a run would leave them. */
struct made {
	struct experiment x;
	struct experiment_case cases[2];
	struct reference reference;
	struct lab_result results[2];
};

static void put(struct metrics *m, double iops, double p99, double sleep, double dirty)
{
	metric_put(m, METRIC_WRITE_IOPS, iops);
	metric_put(m, METRIC_WRITE_P99, p99);
	metric_put(m, METRIC_SLEEP, sleep);
	metric_put(m, METRIC_MAX_DIRTY, dirty);
}

static void make(struct made *m)
{
	*m = (struct made){ .x = { .name = "p2", .title = "One disk", .source = "P2" } };
	m->cases[0].name = "baseline";
	m->cases[1].name = "ours";
	m->reference.case_name = "baseline";
	m->reference.source = "P2";
	put(&m->reference.values, 4061, 60, 179, 23.5 * (1 << 30));
	m->cases[0].reference = &m->reference;
	for (size_t i = 0; i < 2; i++) {
		m->results[i].c = &m->cases[i];
		m->results[i].wall_s = 0.5;
		m->results[i].virtual_s = 150.25;
		m->results[i].predicted.state[METRIC_FIRST_THROTTLE] = METRIC_NEVER;
		metric_put(&m->results[i].predicted, METRIC_CHARGED, 1e7);
		metric_put(&m->results[i].predicted, METRIC_MAX_PINNED, 1 << 30);
	}
	strcpy(m->results[0].policy, "linux-7.4");
	strcpy(m->results[1].policy, "sluice");
	put(&m->results[0].predicted, 4102, 59.9, 200, 23.4 * (1 << 30));
	put(&m->results[1].predicted, 9984, 0.0123, 0, 3.25 * (1 << 30));
	metric_put(&m->results[0].predicted, METRIC_FIRST_THROTTLE, 13.25);
	m->x.tolerance[METRIC_WRITE_IOPS] =
		(struct tolerance){ .kind = TOLERANCE_PERCENT, .amount = 3 };
	m->x.tolerance[METRIC_WRITE_P99] =
		(struct tolerance){ .kind = TOLERANCE_FACTOR, .amount = 1.6, .above = 1 };
	m->x.tolerance[METRIC_SLEEP] =
		(struct tolerance){ .kind = TOLERANCE_PERCENT, .amount = 40 };
}

static char *table_of(const struct made *m, size_t count)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	report_table(out, &m->x, m->results, count);
	fclose(out);
	return text;
}

static void tables_stand_in_columns(void **state)
{
	struct made m;
	char *text;

	(void)state;
	make(&m);
	text = table_of(&m, 2);
	assert_string_equal(text, "p2: One disk\n"
				  "source: P2\n"
				  "\n"
				  "                             write IOPS       p99 ms     sleep "
				  "s     max dirty   max "
				  "pinned\n"
				  "case       policy      pred publ diff %    pred publ   pred "
				  "publ    pred  publ         "
				  "pred\n"
				  "baseline   linux-7.4   4102 4061   +1.0    59.9 60.0    200  "
				  "179   23.4G 23.5G         "
				  "  1G\n"
				  "ours       sluice      9984    -      -   0.012    -      0    "
				  "-   3.25G     -         "
				  "  1G\n");
	free(text);
}

static void tables_without_references_have_no_such_columns(void **state)
{
	struct made m;
	char *text;

	(void)state;
	make(&m);
	m.cases[0].reference = NULL;
	m.x.title = m.x.source = NULL;
	text = table_of(&m, 1);
	assert_string_equal(
		text,
		"p2\n"
		"\n"
		"                       write IOPS   p99 ms   sleep s   max dirty   max pinned\n"
		"case       policy            pred     pred      pred        pred         pred\n"
		"baseline   linux-7.4         4102     59.9       200       23.4G           1G\n");
	free(text);
}

static json_t *json_of(const struct made *m)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	json_t *root;

	assert_int_equal(report_json(out, &m->x, 7, m->results, 2), 0);
	fclose(out);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	free(text);
	return root;
}

static void json_has_every_figure_in_its_kind(void **state)
{
	struct made m;
	json_t *root, *c, *p, *r;

	(void)state;
	make(&m);
	root = json_of(&m);
	assert_string_equal(json_string_value(json_object_get(root, "experiment")), "p2");
	assert_int_equal(json_integer_value(json_object_get(root, "seed")), 7);
	assert_int_equal(json_array_size(json_object_get(root, "cases")), 2);
	c = json_array_get(json_object_get(root, "cases"), 0);
	assert_string_equal(json_string_value(json_object_get(c, "case")), "baseline");
	assert_string_equal(json_string_value(json_object_get(c, "policy")), "linux-7.4");
	assert_true(json_real_value(json_object_get(c, "virtual_s")) == 150.25);
	p = json_object_get(c, "predicted");
	assert_true(json_real_value(json_object_get(p, "write_iops")) == 4102);
	assert_true(json_real_value(json_object_get(p, "first_throttle_s")) == 13.25);
	assert_int_equal(json_integer_value(json_object_get(p, "pages_charged")), 10000000);
	assert_true(json_is_integer(json_object_get(p, "max_pinned_bytes")));
	assert_null(json_object_get(p, "read_iops"));
	r = json_object_get(c, "reference");
	assert_string_equal(json_string_value(json_object_get(r, "source")), "P2");
	assert_true(json_real_value(json_object_get(r, "throttle_sleep_s")) == 179);
	assert_null(json_object_get(r, "pages_charged"));
	c = json_array_get(json_object_get(root, "cases"), 1);
	assert_true(
		json_is_null(json_object_get(json_object_get(c, "predicted"), "first_throttle_s")));
	assert_null(json_object_get(c, "reference"));
	assert_null(json_object_get(c, "error"));
	json_decref(root);
}

static void json_of_a_failed_case_says_why(void **state)
{
	struct made m;
	json_t *root, *c;

	(void)state;
	make(&m);
	m.results[1].error = -EIO;
	strcpy(m.results[1].text, "case ours: phase p, job j: Input/output error");
	root = json_of(&m);
	c = json_array_get(json_object_get(root, "cases"), 1);
	assert_string_equal(json_string_value(json_object_get(c, "error")), m.results[1].text);
	assert_null(json_object_get(c, "predicted"));
	json_decref(root);
}

static void json_files_appear_whole_or_not_at_all(void **state)
{
	char folder[] = "/tmp/test-report-XXXXXX", path[64], text[256];
	struct err e = { "" };
	struct stat st;
	struct made m;
	json_t *root;

	(void)state;
	make(&m);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/r.json", folder);
	umask(027);
	assert_int_equal(report_json_file(path, &m.x, 1, m.results, 2, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	root = json_load_file(path, 0, NULL);
	assert_non_null(root);
	json_decref(root);
	assert_int_equal(unlink(path), 0);
	/* Nothing is left beside it, so the folder can go. */
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(report_json_file(path, &m.x, 1, m.results, 2, &e), -ENOENT);
	snprintf(text, sizeof(text), "%s: cannot be written: No such file or directory", path);
	assert_string_equal(e.text, text);
}

/* What stands at the path decides: a link stays a link, a pipe stays a pipe. */
static void json_replaces_files_and_nothing_else(void **state)
{
	char folder[] = "/tmp/test-report-XXXXXX", file[64], link[64], pipe[64];
	struct err e = { "" };
	struct stat st;
	struct made m;
	json_t *root;
	int fd;

	(void)state;
	make(&m);
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/file", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	snprintf(pipe, sizeof(pipe), "%s/pipe", folder);
	assert_int_equal(close(creat(file, 0600)), 0);
	assert_int_equal(symlink(file, link), 0);
	assert_int_equal(report_json_file(link, &m.x, 1, m.results, 2, &e), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	root = json_load_file(file, 0, NULL);
	assert_non_null(root);
	json_decref(root);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	fd = open(pipe, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(report_json_file(pipe, &m.x, 1, m.results, 2, &e), 0);
	assert_int_equal(stat(pipe, &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	root = json_loadfd(fd, JSON_DISABLE_EOF_CHECK, NULL);
	assert_non_null(root);
	json_decref(root);
	close(fd);
	unlink(file);
	unlink(link);
	unlink(pipe);
	assert_int_equal(rmdir(folder), 0);
}

static void assert_misses(const struct made *m, size_t count, const char *expected)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(report_misses(out, &m->x, m->results, 2), count);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void misses_are_named_with_what_was_allowed(void **state)
{
	struct made m;

	(void)state;
	make(&m);
	assert_misses(&m, 0, "");
	metric_put(&m.results[0].predicted, METRIC_WRITE_IOPS, 4200);
	metric_put(&m.results[0].predicted, METRIC_WRITE_P99, 120);
	assert_misses(
		&m, 2,
		"baseline: write_iops is predicted 4200, published 4061: 3.4 % off, 3 % are "
		"allowed\n"
		"baseline: write_p99_ms is predicted 120, published 60.0: 2.00 times off, 1.6 "
		"are allowed\n");
	make(&m);
	m.results[0].predicted.state[METRIC_SLEEP] = METRIC_ABSENT;
	assert_misses(&m, 1, "baseline: throttle_sleep_s is not predicted, published 179\n");
	m.results[0].error = -EIO;
	assert_misses(&m, 0, "");
}

static bool holds(int kind, double amount, double above, double reference, double prediction)
{
	struct tolerance t = { .kind = kind, .amount = amount, .above = above };
	char why[128];

	return tolerance_holds(&t, reference, prediction, why, sizeof(why));
}

static void tolerances_hold_to_their_edges(void **state)
{
	(void)state;
	assert_true(holds(TOLERANCE_PERCENT, 3, 0, 1000, 1030));
	assert_true(holds(TOLERANCE_PERCENT, 3, 0, 1000, 970));
	assert_false(holds(TOLERANCE_PERCENT, 3, 0, 1000, 1031));
	assert_false(holds(TOLERANCE_PERCENT, 3, 0, 1000, 969));
	assert_true(holds(TOLERANCE_PERCENT, 40, 0, 0, 0));
	assert_false(holds(TOLERANCE_PERCENT, 40, 0, 0, 0.001));
	assert_true(holds(TOLERANCE_FACTOR, 1.5, 1, 60, 90));
	assert_true(holds(TOLERANCE_FACTOR, 1.5, 1, 60, 40));
	assert_false(holds(TOLERANCE_FACTOR, 1.5, 1, 60, 91));
	assert_false(holds(TOLERANCE_FACTOR, 1.5, 1, 60, 39));
	assert_false(holds(TOLERANCE_FACTOR, 1.5, 1, 60, 0));
	assert_true(holds(TOLERANCE_FACTOR, 1.5, 1, 0.01, 0.99));
	assert_false(holds(TOLERANCE_FACTOR, 1.5, 1, 0.01, 1));
	assert_true(holds(TOLERANCE_FACTOR, 1.5, 0, 0, 0));
	assert_true(holds(TOLERANCE_ABSOLUTE, 2, 0, 6, 8));
	assert_false(holds(TOLERANCE_ABSOLUTE, 2, 0, 6, 3.9));
	assert_true(holds(TOLERANCE_NONE, 0, 0, 6, 600));
	assert_false(holds(TOLERANCE_PERCENT, 3, 0, 1000, NAN));
}

static void assert_printed(enum metric m, double value, const char *text)
{
	char buf[METRIC_TEXT_MAX];

	assert_string_equal(metric_print(buf, m, value), text);
}

static void figures_are_read_and_printed_in_their_units(void **state)
{
	double value;

	(void)state;
	assert_int_equal(metric_find("write_p99_ms"), METRIC_WRITE_P99);
	assert_int_equal(metric_find("write_p98_ms"), METRIC_MAX);
	assert_string_equal(metric_nearest("write_p98_ms"), "write_p99_ms");
	assert_int_equal(metric_parse(METRIC_MAX_DIRTY, "23.5G", &value), 0);
	assert_true(value == 23.5 * (1 << 30));
	assert_int_equal(metric_parse(METRIC_WRITE_P99, "0.01", &value), 0);
	assert_true(value == 0.01);
	assert_int_equal(metric_parse(METRIC_WRITE_P99, "-1", &value), -EINVAL);
	assert_int_equal(metric_parse(METRIC_WRITE_P99, "1ms", &value), -EINVAL);
	assert_printed(METRIC_WRITE_IOPS, 9983.6, "9984");
	assert_printed(METRIC_WRITE_P99, 0, "0");
	assert_printed(METRIC_WRITE_P99, 0.0123, "0.012");
	assert_printed(METRIC_WRITE_P99, 0.67, "0.67");
	assert_printed(METRIC_WRITE_P99, 9.994, "9.99");
	assert_printed(METRIC_WRITE_P99, 59.94, "59.9");
	assert_printed(METRIC_WRITE_P99, 279.6, "280");
	assert_printed(METRIC_SLEEP, 73, "73.0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_stand_in_columns),
		cmocka_unit_test(tables_without_references_have_no_such_columns),
		cmocka_unit_test(json_has_every_figure_in_its_kind),
		cmocka_unit_test(json_of_a_failed_case_says_why),
		cmocka_unit_test(json_files_appear_whole_or_not_at_all),
		cmocka_unit_test(json_replaces_files_and_nothing_else),
		cmocka_unit_test(misses_are_named_with_what_was_allowed),
		cmocka_unit_test(tolerances_hold_to_their_edges),
		cmocka_unit_test(figures_are_read_and_printed_in_their_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
