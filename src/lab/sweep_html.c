/* SPDX-License-Identifier: MIT */
/*
 * A sweep as one page that needs nothing else, not even scripts: the table, and a plot
 * of each figure along the axis, drawn as SVG. A curve is a line of its own colour,
 * the same in all plots; a ring on it marks the figure's knee, and a disc the knee of all
 * figures together. As in a lab's report, what people wrote stands in the page only
 * as escaped text.
 */
#include "base/outfile.h"
#include "lab/page.h"
#include "lab/report.h"
#include "lab/sweep_report.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A plot in its own units. */
#define WIDTH  520
#define HEIGHT 260
#define LEFT   70
#define RIGHT  14
#define TOP    10
#define BOTTOM 34
#define HUE    137.5 /* degrees from one curve's to the next: never the same again */

struct page {
	FILE *out;
	const struct sweep *s;
	const struct sweep_curves *c;
	struct sweep_table table;
	bool log_x;
	double first, last; /* on the axis, by its logarithm if that is meant */
};

static double place(const struct page *p, double x)
{
	return p->log_x ? log(x) : x;
}

static double number(const struct page *p, size_t point)
{
	const struct sweep_axis *a = &p->s->axes[p->c->axis];

	return place(p, a->numbers[sweep_value(p->s, point, (size_t)p->c->axis)]);
}

static double across(const struct page *p, size_t point)
{
	return LEFT + (number(p, point) - p->first) / (p->last - p->first) * (WIDTH - LEFT - RIGHT);
}

/* From the bottom, which is 0. */
static double up(const struct page *p, size_t point, enum metric m, double most)
{
	double y = p->s->results[point].predicted.value[m];

	return HEIGHT - BOTTOM - (most > 0 ? y / most : 0) * (HEIGHT - TOP - BOTTOM);
}

static double most_of(const struct page *p, enum metric m)
{
	double most = 0;

	for (size_t i = 0; i < p->s->count; i++)
		if (sweep_known(p->s, i, m))
			most = fmax(most, p->s->results[i].predicted.value[m]);
	return most;
}

static void stroke(FILE *out, size_t curve)
{
	fprintf(out, "hsl(%.0f 62%% 48%%)", fmod(205 + HUE * (double)curve, 360));
}

static void draw_axes(const struct page *p, enum metric m, double most)
{
	const struct sweep_curve *c = &p->c->curves[0];
	const struct sweep_axis *a = &p->s->axes[p->c->axis];
	double before = -WIDTH;

	for (int i = 0; i <= 4; i++) {
		double y = HEIGHT - BOTTOM - i / 4.0 * (HEIGHT - TOP - BOTTOM);
		char text[METRIC_TEXT_MAX];

		fprintf(p->out,
			"<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>"
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			LEFT, WIDTH - RIGHT, y, y, LEFT - 7, y + 4,
			metric_print(text, m, most * i / 4));
	}
	for (size_t i = 0; i < c->count; i++) {
		double x = across(p, c->points[i]);

		if (x - before < 38) /* no room for its label */
			continue;
		before = x;
		fprintf(p->out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x,
			HEIGHT - BOTTOM + 17);
		html_text(p->out, a->values[sweep_value(p->s, c->points[i], (size_t)p->c->axis)]);
		fputs("</text>\n", p->out);
	}
}

static void draw_mark(const struct page *p, size_t curve, long point, enum metric m, double most,
		      bool full)
{
	if (point < 0 || !sweep_known(p->s, (size_t)point, m))
		return;
	fprintf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" stroke=\"",
		across(p, (size_t)point), up(p, (size_t)point, m, most), full ? "3.5" : "6.5");
	stroke(p->out, curve);
	fputs("\" fill=\"", p->out);
	if (full)
		stroke(p->out, curve);
	else
		fputs("none", p->out);
	fputs("\"/>\n", p->out);
}

static void draw_curve(const struct page *p, size_t curve, size_t goal, double most)
{
	const struct sweep_curve *c = &p->c->curves[curve];
	enum metric m = sweep_goals[goal].metric;
	const char *with = "M";

	fputs("<path fill=\"none\" stroke=\"", p->out);
	stroke(p->out, curve);
	fputs("\" d=\"", p->out);
	for (size_t i = 0; i < c->count; i++) {
		if (!sweep_known(p->s, c->points[i], m)) {
			with = "M"; /* a gap */
			continue;
		}
		fprintf(p->out, "%s%.1f %.1f", with, across(p, c->points[i]),
			up(p, c->points[i], m, most));
		with = "L";
	}
	fputs("\"/>\n", p->out);
	draw_mark(p, curve, c->knees[goal], m, most, false);
	draw_mark(p, curve, c->knee, m, most, true);
}

static void plot(const struct page *p, size_t goal)
{
	double most = most_of(p, sweep_goals[goal].metric);

	fprintf(p->out,
		"<figure><figcaption><b>%s</b><span class=\"of\">%s</span></figcaption>\n"
		"<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n",
		sweep_goals[goal].title, metric_about(sweep_goals[goal].metric), WIDTH, HEIGHT,
		sweep_goals[goal].title);
	draw_axes(p, sweep_goals[goal].metric, most);
	for (size_t i = 0; i < p->c->count; i++)
		draw_curve(p, i, goal, most);
	fputs("</svg></figure>\n", p->out);
}

static bool has_goal(const struct page *p, size_t goal)
{
	for (size_t i = 0; i < p->table.count; i++)
		if (p->table.columns[i].kind == COLUMN_GOAL && p->table.columns[i].index == goal)
			return true;
	return false;
}

/* What is the same along a curve and different from other curves. */
static void name_curve(const struct page *p, const struct sweep_curve *c)
{
	char text[SWEEP_CELL_MAX];
	bool any = false;

	for (size_t i = 0; i < p->table.count; i++) {
		const struct sweep_column *col = &p->table.columns[i];
		bool along = col->kind == COLUMN_AXIS && col->index == (size_t)p->c->axis;

		if (col->kind == COLUMN_GOAL || col->kind == COLUMN_KNEE || along)
			continue;
		sweep_cell(&p->table, col, c->points[0], text);
		fputs(any ? ", " : "", p->out);
		if (col->kind == COLUMN_AXIS) {
			html_text(p->out, sweep_head(&p->table, col));
			fputc('=', p->out);
		}
		html_text(p->out, text);
		any = true;
	}
	if (!any)
		html_text(p->out, p->s->plan.cases[0].name);
}

static void keys(const struct page *p)
{
	fputs("<p class=\"keys\">\n", p->out);
	for (size_t i = 0; i < p->c->count; i++) {
		fputs("<span class=\"key\"><svg width=\"18\" height=\"6\"><line x2=\"18\" y1=\"3\" "
		      "y2=\"3\" stroke-width=\"3\" stroke=\"",
		      p->out);
		stroke(p->out, i);
		fputs("\"/></svg>", p->out);
		name_curve(p, &p->c->curves[i]);
		fputs("</span>\n", p->out);
	}
	fputs("</p>\n", p->out);
}

static void plots(struct page *p)
{
	const struct sweep_curve *c = &p->c->curves[0];
	const struct sweep_axis *a;

	if (!p->c->count)
		return;
	a = &p->s->axes[p->c->axis];
	p->log_x = false;
	p->first = number(p, c->points[0]);
	p->last = number(p, c->points[c->count - 1]);
	p->log_x = p->first > 0 && knee_log((double[]){ p->first, p->last }, 2);
	p->first = place(p, p->first);
	p->last = place(p, p->last);
	fputs("<section>\n<h2>Along ", p->out);
	html_text(p->out, a->key);
	fputs("</h2>\n", p->out);
	keys(p);
	fputs("<div class=\"plots\">\n", p->out);
	for (size_t g = 0; g < SWEEP_GOALS_MAX; g++)
		if (has_goal(p, g))
			plot(p, g);
	fputs("</div>\n<p>A ring is the knee of that figure: beyond it going on costs more than it "
	      "brings. A disc is the knee of all figures together.</p>\n</section>\n",
	      p->out);
}

static void row(const struct page *p, size_t point)
{
	char text[SWEEP_CELL_MAX];

	fputs("<tr>", p->out);
	for (size_t i = 0; i < p->table.count; i++) {
		const struct sweep_column *col = &p->table.columns[i];

		sweep_cell(&p->table, col, point, text);
		fputs(col->kind == COLUMN_GOAL || col->kind == COLUMN_KNEE ? "<td>"
									   : "<td class=\"name\">",
		      p->out);
		html_text(p->out, text);
		fputs("</td>", p->out);
	}
	fputs("</tr>\n", p->out);
}

static void table(const struct page *p)
{
	fputs("<section>\n<div class=\"scroll\"><table>\n<thead><tr>", p->out);
	for (size_t i = 0; i < p->table.count; i++) {
		const struct sweep_column *col = &p->table.columns[i];

		fputs(col->kind == COLUMN_GOAL || col->kind == COLUMN_KNEE ? "<th>"
									   : "<th class=\"name\">",
		      p->out);
		html_text(p->out, sweep_head(&p->table, col));
		fputs("</th>", p->out);
	}
	fputs("</tr></thead>\n<tbody>\n", p->out);
	for (size_t i = 0; i < p->s->count; i++)
		row(p, i);
	fputs("</tbody>\n</table></div>\n</section>\n", p->out);
}

static void head(const struct page *p)
{
	const struct experiment *x = p->s->x;

	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"generator\" content=\"sluice " SLUICE_VERSION "\">\n<title>",
	      p->out);
	html_text(p->out, x->name);
	fprintf(p->out,
		" \xe2\x80\x93 Sluice</title>\n<style>\n%s"
		"svg text { font-size: 12px; fill: var(--soft); }\nsvg .grid { stroke: "
		"var(--grid); }\nsvg path { stroke-width: 2; }\n"
		"td { white-space: pre; font-variant-numeric: tabular-nums; }\n</style>\n"
		"</head>\n<body>\n<header>\n<h1>",
		page_css);
	html_text(p->out, x->title ? x->title : x->name);
	fputs("</h1>\n<p class=\"source\">", p->out);
	html_text(p->out, x->name);
	fprintf(p->out, " \xc2\xb7 %zu points \xc2\xb7 seed %ju \xc2\xb7 sluice " SLUICE_VERSION,
		p->s->count, (uintmax_t)p->s->seed);
	for (size_t i = 0; i < p->s->axis_count; i++) {
		if (p->s->axes[i].count > 1)
			continue;
		fputs("<br>", p->out);
		html_text(p->out, p->s->axes[i].settings[0]);
	}
	fputs("</p>\n</header>\n<main>\n", p->out);
}

int sweep_html(FILE *out, const struct sweep *s, const struct sweep_curves *c)
{
	struct page p = { .out = out, .s = s, .c = c };

	if (sweep_lay_out(&p.table, s, c))
		return -ENOMEM;
	head(&p);
	plots(&p);
	table(&p);
	fputs("</main>\n</body>\n</html>\n", out);
	free(p.table.curve_of);
	return ferror(out) ? -EIO : 0;
}

struct output {
	const struct sweep *s;
	const struct sweep_curves *c;
};

static int write_html(FILE *out, void *ctx)
{
	const struct output *o = ctx;

	return sweep_html(out, o->s, o->c);
}

int sweep_html_file(const char *path, const struct sweep *s, const struct sweep_curves *c,
		    struct err *e)
{
	struct output o = { s, c };

	return outfile_write(path, write_html, &o, e);
}
