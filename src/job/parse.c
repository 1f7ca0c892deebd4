/* SPDX-License-Identifier: MIT */
/*
 * Reading a job file. It is a sequence of lines: "[name]" begins a job, "option=value"
 * or a bare "option" belongs to the job begun last. A section whose name begins with
 * "global" is not a job: what it sets is the starting point of all jobs after it, on
 * top of what earlier global sections said. A line is cut at its first ; or #, as fio
 * cuts it, wherever that stands; what is left is stripped of blanks. "include PATH" puts
 * the lines of another file, which may not begin sections, in its place.
 *
 * Lines are gathered until the section ends and then set, in order, but for kb_base,
 * which says how to read the others. A job is a plain structure that starts as a copy of
 * the global one.
 */
#include "base/infile.h"
#include "job/jobs.h"
#include "job/number.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS      " \t\r\v\f"
#define INCLUDE_MAX 16 /* files within files */

struct parser {
	struct jobs *jobs;
	const struct jobs_reading *how;
	struct job global;
	struct job *job; /* the section begun last: &global or one of the list */
	struct givens section;
	bool noted[OPTIONS_MAX];
	struct err *e;
};

/* Lines of one file. */
struct input {
	const char *path;
	char *text;
	int depth;
};

static char *strip(char *text)
{
	char *end;

	text[strcspn(text, ";#")] = 0;
	text += strspn(text, BLANKS);
	end = text + strlen(text);
	while (end > text && strchr(BLANKS, end[-1]))
		*--end = 0;
	return text;
}

static const struct origin_line *origin_of(const struct parser *p, u32 at)
{
	return &p->jobs->origins[at];
}

static int givens_add(struct givens *g, const struct given *new)
{
	struct given *option = reallocarray(g->option, g->count + 1, sizeof(*option));

	if (!option)
		return -ENOMEM;
	g->option = option;
	option[g->count++] = *new;
	return 0;
}

static int refuse_option(struct parser *p, const struct given *g)
{
	const struct origin_line *at = origin_of(p, g->at);
	bool fios = options_is_fios(g->name);
	const char *nearest = fios ? options_related(g->name) : options_nearest(g->name);

	if (p->how && p->how->lenient)
		return jobs_add_note(p->jobs, at, "%s %s is ignored",
				     fios ? "fio's option" : "the unknown option", g->name);
	if (fios)
		return err_set(p->e, at->file, at->line, "fio's option %s is not supported%s%s",
			       g->name, nearest ? "; the nearest that is: " : "",
			       nearest ? nearest : "");
	return err_set(p->e, at->file, at->line, "unknown option %s%s%s%s", g->name,
		       nearest ? ", did you mean " : "", nearest ? nearest : "",
		       nearest ? "?" : "");
}

static bool is_number(const struct option *o)
{
	return o->type != OPTION_TEXT && o->type != OPTION_TEXT_MAYBE && o->type != OPTION_OWN &&
	       o->type != OPTION_CHOICE;
}

/* Says once what does not count, and each time where we and fio part. */
static int note_option(struct parser *p, const struct option *o, const struct given *g)
{
	const struct origin_line *at = origin_of(p, g->at);
	size_t i = (size_t)(o - options_table);
	int rc = 0;

	if (o->no_effect && !p->noted[i])
		rc = jobs_add_note(p->jobs, at, "%s has no effect here: %s", g->name, o->no_effect);
	p->noted[i] |= o->no_effect != NULL;
	if (!rc && g->value && is_number(o) && number_is_computed(g->value))
		rc = jobs_add_note(p->jobs, at,
				   "%s=%s is computed; fio does so only in parentheses, and "
				   "else reads the first number",
				   g->name, g->value);
	return rc;
}

static int set_option(struct parser *p, const struct given *g)
{
	const struct origin_line *at = origin_of(p, g->at);
	const struct option *option = options_find(g->name);
	int rc;

	if (!option)
		return refuse_option(p, g);
	rc = options_set(&p->job->o, option, g->value, at->file, at->line, p->e);
	if (rc)
		return rc;
	p->job->option_at[option - options_table] = g->at;
	return note_option(p, option, g);
}

static bool is_first(const struct given *g)
{
	return !strcmp(g->name, "kb_base");
}

/* Sets what the section said, and keeps it for the report. */
static int finish_section(struct parser *p)
{
	int rc = 0;

	for (int first = 1; first >= 0; first--)
		for (u32 i = 0; i < p->section.count && !rc; i++)
			if (is_first(&p->section.option[i]) == first)
				rc = set_option(p, &p->section.option[i]);
	for (u32 i = 0; i < p->section.count && !rc && p->job == &p->global; i++)
		rc = givens_add(&p->jobs->globals, &p->section.option[i]);
	if (!p->job || p->job == &p->global)
		free(p->section.option);
	else
		p->job->given = p->section;
	p->section = (struct givens){ 0 };
	return rc;
}

static int begin_section(struct parser *p, const struct input *in, int line, char *text)
{
	struct jobs *jobs = p->jobs;
	size_t len = strlen(text);
	struct job *list;
	int rc;

	if (in->depth)
		return err_set(p->e, in->path, line, "%s: an included file begins no sections",
			       text);
	if (text[len - 1] != ']')
		return err_set(p->e, in->path, line, "%s: the section's name must end in ]", text);
	text[len - 1] = 0;
	if (!*++text)
		return err_set(p->e, in->path, line, "[]: a section needs a name");
	rc = finish_section(p);
	if (rc)
		return rc;
	if (!strncmp(text, "global", strlen("global"))) {
		p->job = &p->global;
		return 0;
	}
	list = reallocarray(jobs->list, jobs->count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	jobs->list = list;
	p->job = &list[jobs->count++];
	*p->job = p->global;
	p->job->o.name = text;
	return jobs_add_origin(jobs, in->path, line, &p->job->at);
}

static int add_option(struct parser *p, const struct input *in, int line, char *text)
{
	struct origin_line at = { in->path, line };
	char *name, *value;
	struct given g;
	int rc;

	if (!p->job)
		return err_set(p->e, in->path, line, "%s: options must follow a [section]", text);
	name = (char *)substitute(p->jobs, p->how, text, &at, &rc, p->e);
	if (!name)
		return rc;
	value = strchr(name, '=');
	if (value) {
		*value++ = 0;
		name = strip(name);
		value = strip(value);
	}
	g = (struct given){ .name = name, .value = value };
	rc = jobs_add_origin(p->jobs, in->path, line, &g.at);
	return rc ? rc : givens_add(&p->section, &g);
}

static int parse_lines(struct parser *p, const struct input *in);

/* The file as named from the current folder, or else from that of the including file. */
static int read_included(struct parser *p, const struct input *in, const char *name,
			 struct input *out)
{
	const char *slash = strrchr(in->path, '/');
	char *path = strdup(name);
	int rc = path ? read_text_file(path, &out->text) : -ENOMEM;

	if (path && rc && rc != -ENOMEM && slash && *name != '/') {
		free(path);
		if (asprintf(&path, "%.*s/%s", (int)(slash - in->path), in->path, name) < 0)
			return -ENOMEM;
		rc = read_text_file(path, &out->text);
	}
	if (!rc && !jobs_keep(p->jobs, out->text))
		rc = -ENOMEM;
	out->path = jobs_keep(p->jobs, path);
	return rc || out->path ? rc : -ENOMEM;
}

static int parse_include(struct parser *p, const struct input *in, int line, char *name)
{
	struct input included = { .depth = in->depth + 1 };
	struct origin_line at = { in->path, line };
	const char *path;
	int rc;

	if (!p->job)
		return err_set(p->e, in->path, line, "include %s: options must follow a [section]",
			       name);
	if (p->how && p->how->no_includes)
		return err_set(p->e, in->path, line, "include %s: no file may be included here",
			       name);
	if (included.depth > INCLUDE_MAX)
		return err_set(p->e, in->path, line, "include %s: too many files within files",
			       name);
	path = substitute(p->jobs, p->how, name, &at, &rc, p->e);
	if (!path)
		return rc;
	rc = read_included(p, in, path, &included);
	if (rc == -ENOMEM)
		return rc;
	if (rc)
		return err_set(p->e, in->path, line, "include %s: %s", path,
			       rc == -EILSEQ ? "this is not a text" : infile_error(rc));
	return parse_lines(p, &included);
}

static int parse_lines(struct parser *p, const struct input *in)
{
	char *at = in->text, *next;
	int rc = 0;

	for (int line = 1; at && !rc; at = next, line++) {
		next = strchr(at, '\n');
		if (next)
			*next++ = 0;
		at = strip(at);
		if (*at == '[')
			rc = begin_section(p, in, line, at);
		else if (!strncmp(at, "include", 7) && at[7] && strchr(BLANKS, at[7]))
			rc = parse_include(p, in, line, at + 8 + strspn(at + 8, BLANKS));
		else if (*at)
			rc = add_option(p, in, line, at);
	}
	return rc;
}

static int parse_whole(struct parser *p, const char *text)
{
	struct input in = { .path = p->jobs->path };
	u32 none;
	int rc;

	in.text = jobs_keep(p->jobs, strdup(text));
	if (!in.text || jobs_add_origin(p->jobs, NULL, 0, &none))
		return -ENOMEM;
	options_defaults(&p->global.o);
	rc = parse_lines(p, &in);
	if (!rc)
		rc = finish_section(p);
	free(p->section.option);
	if (!rc && !p->jobs->count)
		rc = err_set(p->e, in.path, 0, "there is no job: a [section] is needed");
	return rc ? rc : check_jobs(p->jobs, p->e);
}

int jobs_parse_as(const char *path, const char *text, const struct jobs_reading *how,
		  struct jobs **out, struct err *e)
{
	struct parser *p = calloc(1, sizeof(*p));
	struct jobs *jobs = calloc(1, sizeof(*jobs));
	int rc = -ENOMEM;

	if (jobs)
		jobs->path = strdup(path);
	if (p && jobs && jobs->path) {
		p->jobs = jobs;
		p->how = how;
		p->e = e;
		rc = parse_whole(p, text);
	}
	free(p);
	if (rc == -ENOMEM)
		err_set(e, path, 0, "out of memory");
	if (rc) {
		jobs_free(jobs);
		return rc;
	}
	*out = jobs;
	return 0;
}

int jobs_load_as(const char *path, const struct jobs_reading *how, struct jobs **out, struct err *e)
{
	char *text = NULL;
	int rc = read_text_file(path, &text);

	if (rc) {
		err_set(e, path, 0, "%s", rc == -EILSEQ ? "this is not a text" : infile_error(rc));
		return rc;
	}
	rc = jobs_parse_as(path, text, how, out, e);
	free(text);
	return rc;
}

int jobs_parse(const char *path, const char *text, struct jobs **out, struct err *e)
{
	return jobs_parse_as(path, text, NULL, out, e);
}

int jobs_load(const char *path, struct jobs **out, struct err *e)
{
	return jobs_load_as(path, NULL, out, e);
}

void jobs_free(struct jobs *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->count; i++) {
		words_finish(&j->list[i].filenames);
		words_finish(&j->list[i].directories);
		free(j->list[i].given.option);
	}
	for (size_t i = 0; i < j->kept_count; i++)
		free(j->kept[i]);
	for (size_t i = 0; i < j->note_count; i++)
		free(j->notes[i]);
	free(j->kept);
	free(j->notes);
	free(j->origins);
	free(j->globals.option);
	free(j->list);
	free(j->path);
	free(j);
}
