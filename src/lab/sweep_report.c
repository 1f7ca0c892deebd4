/* SPDX-License-Identifier: MIT */
/*
 * A sweep as a table and as JSON. The table has a row for each point: what is
 * different about it, and the figures of the goals. A star behind a figure marks the
 * knee of its curve, one in the last column the knee of all goals together.
 *
 * In neither is anything that depends on who ran the points, or how fast: the same
 * sweep gives the same bytes wherever it ran.
 */
#include "lab/sweep_report.h"
#include "base/outfile.h"
#include "lab/metric_json.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CELL_MAX SWEEP_CELL_MAX
#define ROW_MAX  ((size_t)SWEEP_COLUMNS_MAX * CELL_MAX)

static const struct sweep_curve **curves_of_points(const struct sweep *s,
						   const struct sweep_curves *c)
{
	const struct sweep_curve **of = calloc(s->count, sizeof(*of));

	for (size_t i = 0; of && i < c->count; i++)
		for (size_t j = 0; j < c->curves[i].count; j++)
			of[c->curves[i].points[j]] = &c->curves[i];
	return of;
}

bool sweep_known(const struct sweep *s, size_t point, enum metric m)
{
	return !s->results[point].error && s->results[point].predicted.state[m] == METRIC_KNOWN;
}

const char *sweep_head(const struct sweep_table *t, const struct sweep_column *col)
{
	switch (col->kind) {
	case COLUMN_AXIS:
		return t->s->axes[col->index].key;
	case COLUMN_CASE:
		return "case";
	case COLUMN_POLICY:
		return "policy";
	case COLUMN_GOAL:
		return sweep_goals[col->index].title;
	case COLUMN_KNEE:
		return "knee";
	}
	return "";
}

static void goal_cell(const struct sweep_table *t, size_t goal, size_t point, char buf[CELL_MAX])
{
	const struct sweep_curve *c = t->curve_of[point];
	enum metric m = sweep_goals[goal].metric;

	strcpy(buf, t->s->results[point].error ? "failed" : "-");
	if (sweep_known(t->s, point, m))
		metric_print(buf, m, t->s->results[point].predicted.value[m]);
	strcat(buf, c && c->knees[goal] == (long)point ? "*" : " ");
}

void sweep_cell(const struct sweep_table *t, const struct sweep_column *col, size_t point,
		char buf[CELL_MAX])
{
	const struct sweep_curve *c = t->curve_of[point];
	const struct lab_result *r = &t->s->results[point];

	switch (col->kind) {
	case COLUMN_AXIS:
		snprintf(buf, CELL_MAX, "%s",
			 t->s->axes[col->index].values[sweep_value(t->s, point, col->index)]);
		break;
	case COLUMN_CASE:
		snprintf(buf, CELL_MAX, "%s", r->c->name);
		break;
	case COLUMN_POLICY:
		snprintf(buf, CELL_MAX, "%s", t->s->plan.cases[point].policy.name);
		break;
	case COLUMN_GOAL:
		goal_cell(t, col->index, point, buf);
		break;
	case COLUMN_KNEE:
		strcpy(buf, c && c->knee == (long)point ? "*" : "");
		break;
	}
}

static void add_column(struct sweep_table *t, enum sweep_column_kind kind, size_t index)
{
	struct sweep_column *col = &t->columns[t->count++];
	char buf[CELL_MAX];

	assert(t->count <= SWEEP_COLUMNS_MAX);
	*col = (struct sweep_column){ .kind = kind, .index = index };
	col->width = strlen(sweep_head(t, col)) + (kind == COLUMN_GOAL);
	for (size_t i = 0; i < t->s->count; i++) {
		sweep_cell(t, col, i, buf);
		if (strlen(buf) > col->width)
			col->width = strlen(buf);
	}
}

int sweep_lay_out(struct sweep_table *t, const struct sweep *s, const struct sweep_curves *c)
{
	bool policies = false;

	*t = (struct sweep_table){ .s = s, .curve_of = curves_of_points(s, c) };
	if (!t->curve_of)
		return -ENOMEM;

	for (size_t i = s->steps; i < s->count; i += s->steps)
		policies |= strcmp(s->plan.cases[i].policy.name, s->plan.cases[0].policy.name) != 0;
	if (s->rows > 1)
		add_column(t, COLUMN_CASE, 0);
	if (policies)
		add_column(t, COLUMN_POLICY, 0);
	for (size_t i = 0; i < s->axis_count; i++)
		if (s->axes[i].count > 1)
			add_column(t, COLUMN_AXIS, i);
	for (size_t g = 0; g < SWEEP_GOALS_MAX; g++) {
		bool any = false;

		for (size_t i = 0; i < s->count; i++)
			any |= sweep_known(s, i, sweep_goals[g].metric);
		if (any)
			add_column(t, COLUMN_GOAL, g);
	}
	if (c->count)
		add_column(t, COLUMN_KNEE, 0);
	return 0;
}

/* Adds a column's text to a line. */
static void put(char line[ROW_MAX], const struct sweep_table *t, size_t column, const char *text)
{
	const struct sweep_column *col = &t->columns[column];
	size_t used = strlen(line);
	int width = col->kind == COLUMN_GOAL ? (int)col->width : -(int)col->width;

	snprintf(line + used, ROW_MAX - used, "%s%*s", column ? "  " : "", width, text);
}

/* Without the blanks at its end. */
static void write_line(FILE *out, char *line)
{
	size_t len = strlen(line);

	while (len && line[len - 1] == ' ')
		len--;
	fprintf(out, "%.*s\n", (int)len, line);
	line[0] = 0;
}

static void write_heading(FILE *out, const struct sweep *s)
{
	const char *with = "with";

	fprintf(out, "%s%s%s: %zu points", s->x->name, s->x->title ? ": " : "",
		s->x->title ? s->x->title : "", s->count);
	if (s->rows == 1)
		fprintf(out, " of case %s", s->plan.cases[0].name);
	fputc('\n', out);
	for (size_t i = 0; i < s->axis_count; i++) {
		if (s->axes[i].count > 1)
			continue;
		fprintf(out, "%s %s", with, s->axes[i].settings[0]);
		with = ",";
	}
	fputs(*with == ',' ? "\n\n" : "\n", out);
}

static void write_legend(FILE *out, const struct sweep *s, const struct sweep_curves *c)
{
	const char *key = c->axis < 0 ? NULL : s->axes[c->axis].key;
	bool any = false;

	for (size_t i = 0; i < c->count; i++) {
		any |= c->curves[i].knee >= 0;
		for (size_t g = 0; g < SWEEP_GOALS_MAX; g++)
			any |= c->curves[i].knees[g] >= 0;
	}
	if (any)
		fprintf(out,
			"\n* knee along %s: of the figure before it, or in the last column of all"
			" together\n",
			key);
	else if (key)
		fprintf(out, "\nno figure has a knee along %s\n", key);
}

void sweep_table(FILE *out, const struct sweep *s, const struct sweep_curves *c)
{
	struct sweep_table t;
	char buf[CELL_MAX], line[ROW_MAX] = "";

	write_heading(out, s);
	if (sweep_lay_out(&t, s, c)) {
		fputs("not enough memory for the table\n", out);
		return;
	}
	for (size_t i = 0; i < t.count; i++) {
		snprintf(buf, sizeof(buf), "%s%s", sweep_head(&t, &t.columns[i]),
			 t.columns[i].kind == COLUMN_GOAL ? " " : "");
		put(line, &t, i, buf);
	}
	write_line(out, line);
	for (size_t point = 0; point < s->count; point++) {
		for (size_t i = 0; i < t.count; i++) {
			sweep_cell(&t, &t.columns[i], point, buf);
			put(line, &t, i, buf);
		}
		write_line(out, line);
	}
	write_legend(out, s, c);
	free(t.curve_of);
}

static json_t *axes_json(const struct sweep *s)
{
	json_t *axes = json_array();

	for (size_t i = 0; i < s->axis_count; i++) {
		json_t *values = json_array();

		for (size_t v = 0; v < s->axes[i].count; v++)
			json_array_append_new(values, json_string(s->axes[i].values[v]));
		json_array_append_new(
			axes, json_pack("{s:s, s:o}", "key", s->axes[i].key, "values", values));
	}
	return axes;
}

static json_t *point_json(const struct sweep *s, size_t point)
{
	const struct lab_result *r = &s->results[point];
	json_t *settings = json_object(), *figures = json_object();
	json_t *p = json_pack("{s:I, s:s, s:s, s:o, s:f}", "point", (json_int_t)point, "case",
			      r->c->name, "policy", r->policy, "settings", settings, "virtual_s",
			      r->virtual_s);

	for (size_t i = 0; i < s->axis_count; i++)
		json_object_set_new(settings, s->axes[i].key,
				    json_string(s->axes[i].values[sweep_value(s, point, i)]));
	if (r->error) {
		json_object_set_new(p, "error", json_string(r->text));
		json_decref(figures);
	} else {
		metrics_to_json(figures, &r->predicted);
		json_object_set_new(p, "predicted", figures);
	}
	return p;
}

static json_t *knee_json(long point)
{
	return point < 0 ? json_null() : json_integer(point);
}

static json_t *curve_json(const struct sweep *s, const struct sweep_curves *curves,
			  const struct sweep_curve *c)
{
	json_t *points = json_array(), *knees = json_object();

	for (size_t i = 0; i < c->count; i++)
		json_array_append_new(points, json_integer((json_int_t)c->points[i]));
	for (size_t g = 0; g < SWEEP_GOALS_MAX; g++)
		if (sweep_known(s, c->points[0], sweep_goals[g].metric))
			json_object_set_new(knees, metric_key(sweep_goals[g].metric),
					    knee_json(c->knees[g]));
	return json_pack("{s:s, s:o, s:o, s:o}", "axis", s->axes[curves->axis].key, "points",
			 points, "knees", knees, "knee", knee_json(c->knee));
}

int sweep_json(FILE *out, const struct sweep *s, const struct sweep_curves *c)
{
	json_t *points = json_array(), *curves = json_array();
	json_t *root = json_pack("{s:s, s:I, s:o, s:o, s:o}", "experiment", s->x->name, "seed",
				 (json_int_t)s->seed, "axes", axes_json(s), "points", points,
				 "curves", curves);
	int error = root ? 0 : -ENOMEM;

	for (size_t i = 0; i < s->count && !error; i++)
		if (json_array_append_new(points, point_json(s, i)))
			error = -ENOMEM;
	for (size_t i = 0; i < c->count && !error; i++)
		if (json_array_append_new(curves, curve_json(s, c, &c->curves[i])))
			error = -ENOMEM;
	if (!error && (json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) ||
		       fputc('\n', out) == EOF))
		error = -EIO;
	json_decref(root);
	return error;
}

struct output {
	const struct sweep *s;
	const struct sweep_curves *c;
};

static int write_json(FILE *out, void *ctx)
{
	const struct output *o = ctx;

	return sweep_json(out, o->s, o->c);
}

int sweep_json_file(const char *path, const struct sweep *s, const struct sweep_curves *c,
		    struct err *e)
{
	struct output o = { s, c };

	return outfile_write(path, write_json, &o, e);
}
