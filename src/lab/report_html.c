/* SPDX-License-Identifier: MIT */
/*
 * A report is one file that needs nothing else: style, scripts and data stand in it, and its
 * own rule (a content security policy) forbids browsers to fetch anything. What people wrote,
 * titles and names and paths, goes into the page only as escaped text; the scripts read it
 * from there. The data are numbers under keys of ours. So nothing that stands in an
 * experiment can be taken for markup or script.
 *
 * The table and the explanations are plain HTML and can be read without scripts.
 */
#include "base/outfile.h"
#include "lab/explain.h"
#include "lab/page.h"
#include "lab/report.h"
#include <errno.h>
#include <string.h>

static void head(FILE *out, const struct report *r)
{
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta name=\"generator\" content=\"sluice " SLUICE_VERSION "\">\n<title>",
	      out);
	html_text(out, r->x->name);
	fprintf(out, " \xe2\x80\x93 Sluice</title>\n<style>\n%s%s</style>\n</head>\n<body>\n",
		dygraphs_css, page_css);
}

static void introduce(FILE *out, const struct report *r)
{
	fputs("<header>\n<h1>", out);
	html_text(out, r->x->title ? r->x->title : r->x->name);
	fputs("</h1>\n<p class=\"source\">", out);
	html_text(out, r->x->name);
	fprintf(out, " \xc2\xb7 %zu case%s \xc2\xb7 seed %ju \xc2\xb7 sluice " SLUICE_VERSION,
		r->count, r->count == 1 ? "" : "s", (uintmax_t)r->seed);
	if (r->x->source) {
		fputs("<br>Published figures: ", out);
		html_text(out, r->x->source);
	}
	fputs("</p>\n</header>\n<main>\n", out);
}

/* Which columns a figure has in the table: 0 none, 1 predicted, 2 published, 3 the difference. */
static unsigned columns_of(const struct report *r, const struct report_group *g)
{
	bool any = false, published = false;

	for (size_t i = 0; i < r->count; i++) {
		any |= report_known(&r->results[i].predicted, g->metric);
		published |= report_known(report_reference(&r->results[i]), g->metric);
	}
	if (g->quiet && !published)
		return 0;
	return !any ? 0 : !published ? 1 : g->diff ? 3 : 2;
}

static void table_head(FILE *out, const struct report *r)
{
	static const char *const kinds[] = { "pred", "publ", "diff %" };

	fputs("<thead>\n<tr><th></th><th></th>", out);
	for (size_t g = 0; g < REPORT_GROUPS; g++) {
		unsigned n = columns_of(r, &report_groups[g]);

		if (n)
			fprintf(out, "<th class=\"group\" colspan=\"%u\" title=\"%s\">%s</th>", n,
				metric_about(report_groups[g].metric), report_groups[g].title);
	}
	fputs("<th></th></tr>\n<tr><th class=\"name\">case</th><th class=\"name\">policy</th>",
	      out);
	for (size_t g = 0; g < REPORT_GROUPS; g++)
		for (unsigned k = 0; k < columns_of(r, &report_groups[g]); k++)
			fprintf(out, "<th%s>%s</th>", k ? "" : " class=\"group\"", kinds[k]);
	fputs("<th class=\"name group\">decided by</th></tr>\n</thead>\n", out);
}

static void figure(FILE *out, const char *class, const struct metrics *m, enum metric metric)
{
	char text[METRIC_TEXT_MAX];

	fprintf(out, "<td class=\"%s\">%s</td>", class,
		report_known(m, metric) ? metric_print(text, metric, m->value[metric])
					: "\xe2\x80\x93");
}

static void difference(FILE *out, const struct metrics *p, const struct metrics *ref, enum metric m)
{
	fputs("<td class=\"diff\">", out);
	if (report_known(p, m) && report_known(ref, m) && ref->value[m] > 0)
		fprintf(out, "%+.1f", 100 * (p->value[m] - ref->value[m]) / ref->value[m]);
	else
		fputs("\xe2\x80\x93", out);
	fputs("</td>", out);
}

static void table_row(FILE *out, const struct report *r, size_t i)
{
	const struct lab_result *result = &r->results[i];
	const struct metrics *ref = report_reference(result);
	struct explanation why;

	fprintf(out, "<tr><th class=\"name\"><a href=\"#case-%zu\">", i);
	html_text(out, result->c->name);
	fputs("</a></th><td class=\"name\">", out);
	html_text(out, result->policy);
	fputs("</td>", out);
	for (size_t g = 0; g < REPORT_GROUPS; g++) {
		enum metric m = report_groups[g].metric;
		unsigned n = columns_of(r, &report_groups[g]);

		if (n > 0)
			figure(out, "group", &result->predicted, m);
		if (n > 1)
			figure(out, "publ", ref, m);
		if (n > 2)
			difference(out, &result->predicted, ref, m);
	}
	fputs("<td class=\"name group\">", out);
	if (result->series) {
		explain(result, &why);
		fputs(verdict_name(why.verdict), out);
	} else {
		fputs("failed", out);
	}
	fputs("</td></tr>\n", out);
}

static void summarize(FILE *out, const struct report *r)
{
	fputs("<section id=\"summary\">\n<div class=\"scroll\"><table>\n", out);
	table_head(out, r);
	fputs("<tbody>\n", out);
	for (size_t i = 0; i < r->count; i++)
		table_row(out, r, i);
	fputs("</tbody>\n</table></div>\n</section>\n", out);
}

/*
 * The two cases to begin with, as places among those that have series: the one whose writers
 * slept most (the first if none did), and the last other one. False if there are no two.
 */
static bool pair_to_compare(const struct report *r, size_t *a, size_t *b)
{
	double most = -1;
	size_t n = 0;

	*a = 0;
	for (size_t i = 0; i < r->count; i++) {
		double sleep = r->results[i].predicted.value[METRIC_SLEEP];

		if (!r->results[i].series)
			continue;
		if (sleep > most) {
			most = sleep;
			*a = n;
		}
		n++;
	}
	if (n < 2)
		return false;
	*b = *a == n - 1 ? 0 : n - 1;
	return true;
}

static void compare(FILE *out, const struct report *r)
{
	size_t a, b;

	if (!pair_to_compare(r, &a, &b))
		return;
	fprintf(out,
		"<section id=\"compare\" data-a=\"%zu\" data-b=\"%zu\">\n"
		"<h2>Two cases on the same axes</h2>\n"
		"<div class=\"bar\"><label>A <select id=\"case-a\"></select></label>"
		"<label>B <select id=\"case-b\"></select></label>"
		"<span class=\"segment\"><button type=\"button\" aria-pressed=\"true\">side by "
		"side</button><button type=\"button\" aria-pressed=\"false\">overlaid</button>"
		"</span><span class=\"hint\">drag to zoom, shift-drag to move, double click for "
		"all</span></div>\n<div class=\"plots\"></div>\n</section>\n",
		a, b);
}

static void foot(FILE *out, const struct report *r)
{
	fprintf(out,
		"</main>\n<footer>\n<p>Time is virtual and counted from the start of the measured "
		"phase. Made by sluice " SLUICE_VERSION "; the plots are drawn by dygraphs.</p>\n"
		"<details><summary>Licence of dygraphs</summary><pre>");
	html_text(out, dygraphs_licence);
	fputs("</pre></details>\n</footer>\n<script type=\"application/json\" id=\"data\">\n", out);
	report_html_data(out, r);
	fprintf(out,
		"</script>\n<script>\n%s\n</script>\n<script>\n%s</script>\n</body>\n</html>\n",
		dygraphs_js, page_js);
}

void report_html(FILE *out, const struct report *r)
{
	head(out, r);
	introduce(out, r);
	summarize(out, r);
	compare(out, r);
	report_html_cases(out, r);
	foot(out, r);
}

static int put(FILE *out, void *ctx)
{
	report_html(out, ctx);
	return ferror(out) ? -EIO : 0;
}

int report_html_file(const char *path, const struct report *r, struct err *e)
{
	struct report copy = *r;

	return outfile_write(path, put, &copy, e);
}
