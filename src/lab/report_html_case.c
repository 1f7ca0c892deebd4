/* SPDX-License-Identifier: MIT */
/*
 * A section for each case: why it came out so, the command that gives it again, its policy
 * and machine, all its figures, and room for its plots.
 */
#include "base/units.h"
#include "lab/explain.h"
#include "lab/report.h"
#include <string.h>

void html_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		const char *special = strchr("&<>\"'", *text);

		if (special)
			fprintf(out, "&#%d;", *special);
		else
			fputc(*text, out);
	}
}

/* A word as a shell reads it. */
static void shell_word(FILE *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_./=:,+%@-";
	char one[2] = "";

	fputc(' ', out);
	if (*word && word[strspn(word, plain)] == 0) {
		html_text(out, word);
		return;
	}
	html_text(out, "'");
	for (; *word; word++) {
		one[0] = *word;
		html_text(out, *word == '\'' ? "'\\''" : one);
	}
	html_text(out, "'");
}

static void command(FILE *out, const struct report *r, const struct experiment_case *c)
{
	const struct selection *s = r->selection;

	fputs("<div class=\"command\"><code>sluice lab", out);
	shell_word(out, r->x->path);
	fputs(" -c", out);
	shell_word(out, c->name);
	if (s->policy_count) {
		fputs(" -p", out);
		shell_word(out, c->policy.name);
	}
	for (size_t i = 0; i < s->setting_count; i++) {
		fputs(" -s", out);
		shell_word(out, s->settings[i]);
	}
	fprintf(out,
		" --seed %ju</code><button type=\"button\" class=\"copy\">copy</button></div>\n",
		(uintmax_t)r->seed);
}

static void choice(FILE *out, const char *key, const char *value)
{
	fputs("<div><dt>", out);
	html_text(out, key);
	fputs("</dt><dd>", out);
	html_text(out, value);
	fputs("</dd></div>\n", out);
}

static void choices(FILE *out, const struct policy *p)
{
	char buf[16];

	fputs("<h3>Policy</h3>\n<dl class=\"choices\">\n", out);
	for (size_t i = 0; policy_key(i); i++)
		choice(out, policy_key(i), policy_value(p, i, buf));
	fputs("</dl>\n", out);
}

static void choice_number(FILE *out, const char *key, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.10g", value);
	choice(out, key, text);
}

static void choice_bytes(FILE *out, const char *key, double value)
{
	char text[UNITS_TEXT_MAX];

	choice(out, key, units_print_bytes(text, (u64)value));
}

static void choice_ratio(FILE *out, const char *name, u64 ratio_bytes, u32 ratio, u32 usual)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_%s", name, ratio_bytes ? "bytes" : "ratio");
	if (ratio_bytes)
		choice_bytes(out, key, (double)ratio_bytes);
	else if (ratio != usual)
		choice_number(out, key, 100.0 * ratio / BDI_RATIO_ALL);
}

static void device(FILE *out, const struct setup_device *s)
{
	const struct device_config *d = &s->config;

	choice(out, "device", s->name[0] ? s->name : d->model);
	if (s->name[0])
		choice(out, "model", d->model);
	if (s->mount)
		choice(out, "mount", s->mount);
	if (d->iops > 0)
		choice_number(out, "iops", d->iops);
	if (d->bytes_per_s > 0)
		choice_bytes(out, "bandwidth, a second", d->bytes_per_s);
	if (d->write_bytes_per_s > 0)
		choice_bytes(out, "write bandwidth, a second", d->write_bytes_per_s);
	choice_number(out, "read_ahead_kb", s->bdi.read_ahead_kb);
	if (s->bdi.strict_limit)
		choice(out, "strict_limit", "yes");
	choice_ratio(out, "min", s->bdi.min_bytes, s->bdi.min_ratio, 0);
	choice_ratio(out, "max", s->bdi.max_bytes, s->bdi.max_ratio, BDI_RATIO_ALL);
}

static void machine(FILE *out, const struct setup *s)
{
	fputs("<h3>Machine</h3>\n<dl class=\"choices\">\n", out);
	choice_number(out, "cpus", s->sim.cpus);
	choice_bytes(out, "memory", (double)s->memory_bytes);
	choice_bytes(out, "reserve", (double)s->reserve_bytes);
	if (s->ready_bytes)
		choice_bytes(out, "ready", (double)s->ready_bytes);
	if (s->page_out_bytes)
		choice_bytes(out, "page_out, a second", (double)s->page_out_bytes);
	choice_number(out, "hz", s->sim.hz);
	for (u32 i = 0; i < s->device_count; i++)
		device(out, &s->device[i]);
	if (s->vm.dirty_background_bytes)
		choice_bytes(out, "dirty_background_bytes", (double)s->vm.dirty_background_bytes);
	else
		choice_number(out, "dirty_background_ratio", s->vm.dirty_background_ratio);
	if (s->vm.dirty_bytes)
		choice_bytes(out, "dirty_bytes", (double)s->vm.dirty_bytes);
	else
		choice_number(out, "dirty_ratio", s->vm.dirty_ratio);
	fputs("</dl>\n", out);
}

static void cell(FILE *out, const struct metrics *m, enum metric i, const char *class)
{
	char text[METRIC_TEXT_MAX];

	fprintf(out, "<td class=\"%s\">", class);
	if (report_known(m, i))
		fputs(metric_print(text, i, m->value[i]), out);
	else if (m && m->state[i] == METRIC_NEVER)
		fputs("never", out);
	fputs("</td>", out);
}

static void figures(FILE *out, const struct lab_result *r)
{
	const struct metrics *ref = report_reference(r);

	fputs("<h3>Figures</h3>\n<div class=\"scroll\"><table class=\"figures\">\n<thead><tr>"
	      "<th class=\"name\"></th><th>predicted</th>",
	      out);
	if (ref)
		fputs("<th>published</th>", out);
	fputs("<th></th></tr></thead>\n<tbody>\n", out);
	for (enum metric i = 0; i < METRIC_MAX; i++) {
		if (r->predicted.state[i] == METRIC_ABSENT)
			continue;
		fprintf(out, "<tr><td>%s</td>", metric_key(i));
		cell(out, &r->predicted, i, "pred");
		if (ref)
			cell(out, ref, i, "publ");
		fprintf(out, "<td>%s</td></tr>\n", metric_about(i));
	}
	fputs("</tbody>\n</table></div>\n", out);
}

/* A table of figures with a column for each part of the machine. */
struct parts {
	const char *title;
	const char *name[ENGINE_DEVICES_MAX > SETUP_TENANTS_MAX ? ENGINE_DEVICES_MAX
								: SETUP_TENANTS_MAX];
	const struct metrics *figures;
	u32 count;
};

static bool any_has(const struct parts *p, enum metric m)
{
	for (u32 i = 0; i < p->count; i++)
		if (p->figures[i].state[m] != METRIC_ABSENT)
			return true;
	return false;
}

static void parts(FILE *out, const struct parts *p)
{
	fprintf(out,
		"<h3>%s</h3>\n<div class=\"scroll\"><table class=\"figures "
		"devices\">\n<thead><tr><th class=\"name\"></th>",
		p->title);
	for (u32 i = 0; i < p->count; i++) {
		fputs("<th>", out);
		html_text(out, p->name[i]);
		fputs("</th>", out);
	}
	fputs("<th></th></tr></thead>\n<tbody>\n", out);
	for (enum metric m = 0; m < METRIC_MAX; m++) {
		if (!any_has(p, m))
			continue;
		fprintf(out, "<tr><td>%s</td>", metric_key(m));
		for (u32 i = 0; i < p->count; i++)
			cell(out, &p->figures[i], m, "pred");
		fputs("<td></td></tr>\n", out);
	}
	fputs("</tbody>\n</table></div>\n", out);
}

/* The figures of each device, where there are several, and of each tenant. */
static void of_parts(FILE *out, const struct lab_result *r)
{
	const struct setup *s = &r->c->setup;
	struct parts devices = { "Devices", .figures = r->device, .count = s->device_count };
	struct parts tenants = { "Tenants", .figures = r->tenant, .count = s->tenant_count };

	for (u32 i = 0; i < s->device_count; i++)
		devices.name[i] = setup_device_name(&s->device[i]);
	for (u32 i = 0; i < s->tenant_count; i++)
		tenants.name[i] = s->tenant[i].name;
	if (devices.count > 1)
		parts(out, &devices);
	if (tenants.count)
		parts(out, &tenants);
}

static void inside(FILE *out, const struct report *r, const struct lab_result *result,
		   const struct explanation *why)
{
	fputs("<div class=\"inside\">\n", out);
	if (result->error) {
		fputs("<p class=\"failed\">", out);
		html_text(out, result->text);
		fputs("</p>\n", out);
		command(out, r, result->c);
		fputs("</div>\n", out);
		return;
	}
	fputs("<ul class=\"why\">\n", out);
	for (size_t i = 0; i < why->count; i++) {
		fputs("<li>", out);
		html_text(out, why->sentence[i]);
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
	command(out, r, result->c);
	fputs("<div class=\"plots\"></div>\n", out);
	choices(out, &result->c->policy);
	machine(out, &result->c->setup);
	figures(out, result);
	of_parts(out, result);
	fputs("</div>\n", out);
}

/* Case and policy, or the case alone where that says which it is. */
static void label(FILE *out, const struct report *r, size_t i)
{
	const struct lab_result *result = &r->results[i];
	bool twice = false;

	for (size_t other = 0; other < r->count; other++)
		twice |= other != i && !strcmp(r->results[other].c->name, result->c->name);
	html_text(out, result->c->name);
	if (twice) {
		fputs(" / ", out);
		html_text(out, result->policy);
	}
}

static void one_case(FILE *out, const struct report *r, size_t i)
{
	const struct lab_result *result = &r->results[i];
	struct explanation why = { .count = 0 };

	if (result->series)
		explain(result, &why);
	fprintf(out, "<details class=\"case\" id=\"case-%zu\" data-case=\"%zu\"%s data-label=\"", i,
		i, r->count == 1 ? " open" : "");
	label(out, r, i);
	for (u32 d = 0; d < result->c->setup.device_count; d++) {
		fprintf(out, "\" data-device-%u=\"", d);
		html_text(out, setup_device_name(&result->c->setup.device[d]));
	}
	for (u32 t = 0; t < result->c->setup.tenant_count; t++) {
		fprintf(out, "\" data-tenant-%u=\"", t);
		html_text(out, result->c->setup.tenant[t].name);
	}
	fputs("\">\n<summary><span class=\"name\">", out);
	html_text(out, result->c->name);
	fputs("</span><span class=\"soft\">", out);
	html_text(out, result->policy);
	if (result->c->title) {
		fputs(" \xc2\xb7 ", out);
		html_text(out, result->c->title);
	}
	fputs("</span><span class=\"verdict\">", out);
	html_text(out, result->error ? "failed" : why.count ? why.sentence[why.count - 1] : "");
	fputs("</span></summary>\n", out);
	inside(out, r, result, &why);
	fputs("</details>\n", out);
}

void report_html_cases(FILE *out, const struct report *r)
{
	fputs("<section id=\"cases\">\n<h2>Case by case</h2>\n", out);
	for (size_t i = 0; i < r->count; i++)
		one_case(out, r, i);
	fputs("</section>\n", out);
}
