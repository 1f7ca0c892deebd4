/* SPDX-License-Identifier: MIT */
/*
 * Reading an experiment goes section by section, in the order in which the sections
 * need each other, whatever their order in the file: the experiment and its machine
 * first, then phases with their job files, references, and last the cases, which
 * refer to all of them. Each reader takes the keys it knows and refuses the rest.
 *
 * Strings are borrowed from the two INI files, which live as long as the experiment;
 * the few that must be made (paths, halves of dotted keys) are kept beside them.
 */
#include "base/infile.h"
#include "base/units.h"
#include "lab/compare.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int experiment_no_memory(struct err *e)
{
	err_set(e, NULL, 0, "not enough memory");
	return -ENOMEM;
}

int origin_error(struct err *e, const struct origin *at, const char *format, ...)
{
	char text[sizeof(e->text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return err_set(e, at->file, at->line, "%s", text);
}

const char *experiment_keep(struct experiment *x, char *string)
{
	char **strings;

	if (!string)
		return NULL;
	strings = reallocarray(x->strings, x->string_count + 1, sizeof(*strings));
	if (!strings) {
		free(string);
		return NULL;
	}
	x->strings = strings;
	x->strings[x->string_count++] = string;
	return string;
}

/* `path` as seen from the folder of the file `beside`. */
static char *path_beside(const char *path, const char *beside)
{
	const char *slash = beside ? strrchr(beside, '/') : NULL;
	char *joined;

	if (path[0] == '/' || !slash)
		return strdup(path);
	if (asprintf(&joined, "%.*s/%s", (int)(slash - beside), beside, path) < 0)
		return NULL;
	return joined;
}

static int keep_jobs(struct experiment *x, char *path, struct jobs *jobs, struct err *e)
{
	struct loaded_jobs *loaded;

	loaded = reallocarray(x->loaded, x->loaded_count + 1, sizeof(*loaded));
	if (!loaded || !path) {
		x->loaded = loaded ? loaded : x->loaded;
		free(path);
		jobs_free(jobs);
		return experiment_no_memory(e);
	}
	x->loaded = loaded;
	x->loaded[x->loaded_count++] = (struct loaded_jobs){ path, jobs };
	return 0;
}

int experiment_load_jobs(struct experiment *x, const char *path, const char *beside,
			 const struct origin *at, const struct jobs **out, struct err *e)
{
	char *full = path_beside(path, beside);
	struct jobs *jobs = NULL;
	int error;

	if (!full)
		return experiment_no_memory(e);
	for (size_t i = 0; i < x->loaded_count; i++) {
		if (!strcmp(x->loaded[i].path, full)) {
			*out = x->loaded[i].jobs;
			free(full);
			return 0;
		}
	}
	error = access(full, R_OK) ? -errno : jobs_load(full, &jobs, e);
	if (error) {
		origin_error(e, at, "the job file \"%s\" cannot be read: %s", full,
			     infile_error(error));
		free(full);
		return error;
	}
	*out = jobs;
	return keep_jobs(x, full, jobs, e);
}

int experiment_phase(const struct experiment *x, const char *name)
{
	for (size_t i = 0; i < x->phase_count; i++)
		if (!strcmp(x->phases[i].name, name))
			return (int)i;
	return -1;
}

struct experiment_case *experiment_find(const struct experiment *x, const char *name)
{
	for (size_t i = 0; i < x->case_count; i++)
		if (!strcmp(x->cases[i].name, name)) /* NOLINT: each case has a name */
			return &x->cases[i];
	return NULL;
}

const struct jobs *experiment_jobs(const struct experiment *x, const struct experiment_case *c,
				   size_t i)
{
	assert(i < x->phase_count);
	if (c->skip[i])
		return NULL;
	return c->jobs[i] ? c->jobs[i] : x->phases[i].jobs;
}

/* "case baseline" is of kind "case" and has the name "baseline"; NULL if it is another kind. */
static const char *named(const struct ini_section *s, const char *kind)
{
	size_t len = strlen(kind);

	if (strncmp(s->name, kind, len) != 0 || s->name[len] != ' ')
		return NULL;
	return s->name + len + strspn(s->name + len, " ");
}

static const char *const plain_sections[] = { "experiment", "machine", "cpu",
					      "device",     "vm",      "tolerance" };
static const char *const named_sections[] = { "phase", "case", "reference", "compare" };

static int check_section(const struct ini *ini, const struct ini_section *s, bool whole,
			 struct err *e)
{
	const char *known[ARRAY_SIZE(plain_sections) + ARRAY_SIZE(named_sections)];
	const char *near;
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(plain_sections); i++) {
		if (!whole && !setup_has_section(plain_sections[i]))
			continue;
		if (!strcmp(s->name, plain_sections[i]))
			return 0;
		known[count++] = plain_sections[i];
	}
	if (setup_has_section(s->name)) /* [device NAME] */
		return setup_check_section(s->name, &(struct origin){ ini->path, s->line }, e);
	for (size_t i = 0; whole && i < ARRAY_SIZE(named_sections); i++) {
		const char *name = named(s, named_sections[i]);

		if (name && *name)
			return 0;
		if (!strcmp(s->name, named_sections[i]))
			return err_set(e, ini->path, s->line,
				       "section [%s] needs a name, as in [%s NAME]", s->name,
				       s->name);
	}
	near = err_nearest(s->name, known, count);
	return err_set(e, ini->path, s->line, "unknown section [%s]%s%s%s", s->name,
		       near ? "; did you mean [" : "", near ? near : "", near ? "]?" : "");
}

/* Every section is known and stands once, as does every key. `whole`: not a machine file. */
static int check_sections(const struct ini *ini, bool whole, struct err *e)
{
	for (size_t i = 0; i < ini->section_count; i++) {
		const struct ini_section *s = &ini->sections[i];

		if (check_section(ini, s, whole, e))
			return -EINVAL;
		for (size_t j = 0; j < i; j++)
			if (!strcmp(ini->sections[j].name, s->name))
				return err_set(e, ini->path, s->line,
					       "section [%s] stands twice, first on line %d",
					       s->name, ini->sections[j].line);
		if (ini_refuse_duplicates(ini, s, named(s, "phase") ? "line" : NULL, e))
			return -EINVAL;
	}
	return 0;
}

/* The machine's sections of one file become settings, in the order they stand. */
static int add_settings(struct settings *to, const struct ini *ini, struct err *e)
{
	for (size_t i = 0; i < ini->section_count; i++) {
		const struct ini_section *s = &ini->sections[i];
		const struct setting bare = setup_bare_tenant(s->name, ini->path, s->line);

		if (bare.key && !s->entry_count && settings_add(to, &bare))
			return experiment_no_memory(e);
		for (size_t j = 0; setup_has_section(s->name) && j < s->entry_count; j++) {
			const struct ini_entry *entry = &s->entries[j];
			struct setting new = {
				s->name, entry->key, entry->value, { ini->path, entry->line }
			};

			if (settings_add(to, &new))
				return experiment_no_memory(e);
		}
	}
	return 0;
}

int machine_read(struct settings *to, struct ini *ini, const char *path, struct err *e)
{
	int error = ini_load(ini, path, e);

	if (error)
		return error;
	return check_sections(ini, false, e) ? -EINVAL : add_settings(to, ini, e);
}

static int read_machine(struct experiment *x, const struct ini_entry *entry, struct err *e)
{
	struct origin at = { x->path, entry->line };
	const char *path = experiment_keep(x, path_beside(entry->value, x->path));
	struct err inner = { "" };
	int error;

	if (!path)
		return experiment_no_memory(e);
	error = machine_read(&x->settings, &x->machine, path, &inner);
	if (error == -EINVAL || error == -ENOMEM)
		err_set(e, NULL, 0, "%s", inner.text);
	else if (error)
		origin_error(e, &at, "the machine file \"%s\" cannot be read: %s", path,
			     infile_error(error));
	return error;
}

static int read_head(struct experiment *x, struct err *e)
{
	static const char *const known[] = { "name", "title", "source", "policy", "machine" };
	struct ini_section *s = ini_section(&x->ini, "experiment");
	struct ini_entry *entry[ARRAY_SIZE(known)];
	const struct policy *preset;

	if (!s)
		return err_set(e, x->path, 0, "there is no [experiment]: this is no experiment");
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		entry[i] = ini_get(s, known[i]);
	if (ini_refuse_unused(&x->ini, s, known, ARRAY_SIZE(known), e))
		return -EINVAL;
	if (!entry[0] || !*entry[0]->value)
		return err_set(e, x->path, s->line, "section [experiment] needs \"name\"");
	x->name = entry[0]->value;
	x->title = entry[1] ? entry[1]->value : NULL;
	x->source = entry[2] ? entry[2]->value : NULL;
	preset = policy_find("sluice");
	if (entry[3])
		preset = case_policy(entry[3]->value, &(struct origin){ x->path, entry[3]->line },
				     e);
	if (!preset)
		return -EINVAL;
	x->policy = *preset;
	return entry[4] ? read_machine(x, entry[4], e) : 0;
}

/*
 * The lines of a job written into the phase itself. They keep their line numbers: the text
 * starts with as many empty lines as stand above them in the experiment.
 */
static int read_job_lines(struct experiment *x, struct phase *p, struct ini_section *s,
			  struct err *e)
{
	struct jobs *jobs;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int line = 1, error;

	if (!out)
		return experiment_no_memory(e);
	for (size_t i = 0; i < s->entry_count; i++) {
		if (strcmp(s->entries[i].key, "line") != 0)
			continue;
		for (; line < s->entries[i].line; line++)
			fputc('\n', out);
		fputs(s->entries[i].value, out);
	}
	fputc('\n', out);
	if (fclose(out)) {
		free(text);
		return experiment_no_memory(e);
	}
	error = jobs_parse(x->path, text, &jobs, e);
	free(text);
	if (error)
		return error;
	p->jobs = jobs;
	return keep_jobs(x, strdup(""), jobs, e);
}

static int read_phase_jobs(struct experiment *x, struct phase *p, struct ini_section *s,
			   struct err *e)
{
	struct ini_entry *job = ini_get(s, "job"), *line = ini_get(s, "line");

	if (job && line)
		return err_set(e, x->path, line->line,
			       "phase \"%s\" has both a job file and job lines: one of them",
			       p->name);
	if (!job && !line)
		return err_set(e, x->path, s->line,
			       "phase \"%s\" needs \"job = FILE\" or lines of a job", p->name);
	p->job_at = (struct origin){ x->path, job ? job->line : s->line };
	if (job)
		return experiment_load_jobs(x, job->value, x->path, &p->job_at, &p->jobs, e);
	return read_job_lines(x, p, s, e);
}

static int read_flag(const struct experiment *x, struct ini_section *s, const char *key, bool *out,
		     struct err *e)
{
	const struct ini_entry *entry = ini_get(s, key);

	if (!entry || !units_parse_bool(entry->value, out))
		return 0;
	return err_set(e, x->path, entry->line, "%s cannot be \"%s\", only yes or no", key,
		       entry->value);
}

/* "linger = 600ms": in Linux the device goes on while a tool sets about reading its counters. */
static int read_linger(const struct experiment *x, struct phase *p, struct ini_section *s,
		       struct err *e)
{
	const struct ini_entry *entry = ini_get(s, "linger");

	if (!entry || !units_parse_time(entry->value, NSEC_PER_SEC, &p->linger_ns))
		return 0;
	return err_set(e, x->path, entry->line, "linger cannot be \"%s\", only a time, as 600ms",
		       entry->value);
}

int experiment_phase_key(struct experiment *x, const char *key, const char *value,
			 const struct origin *at, struct setting *out, struct err *e)
{
	char *section;
	int error;

	if (strncmp(key, "device.", 7) != 0 && strncmp(key, "vm.", 3) != 0)
		return 0;
	*out = (struct setting){ .value = value, .at = *at };
	error = setting_address(&x->settings, key, at, &section, &out->key, e);
	if (error)
		return error;
	out->section = experiment_keep(x, section);
	return out->section ? 1 : experiment_no_memory(e);
}

int experiment_phase_setting(struct settings *to, const struct setting *new, struct err *e)
{
	static const char *const fixed[] = { "model", "size", "block_bytes", "mount" };

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (strcmp(new->section, "vm") != 0 && !strcmp(new->key, fixed[i]))
			return origin_error(e, &new->at,
					    "a phase cannot change the %s of the device", fixed[i]);
	return settings_add(to, new) ? experiment_no_memory(e) : 0;
}

/* "device.iops = 10000" in a phase: the device is so while the phase lasts. */
static int read_phase_settings(struct experiment *x, struct phase *p, struct ini_section *s,
			       struct err *e)
{
	for (size_t i = 0; i < s->entry_count; i++) {
		struct ini_entry *entry = &s->entries[i];
		const struct origin at = { x->path, entry->line };
		struct setting new;
		int is = experiment_phase_key(x, entry->key, entry->value, &at, &new, e);

		if (is < 0)
			return is;
		if (!is)
			continue;
		entry->used = true;
		if (experiment_phase_setting(&p->settings, &new, e))
			return -EINVAL;
	}
	return 0;
}

static int read_phase(struct experiment *x, struct ini_section *s, struct err *e)
{
	static const char *const known[] = {
		"job",    "line",        "measure", "sync_after", "drop_caches_after",
		"linger", "close_tenant"
	};
	struct phase *p = &x->phases[x->phase_count];
	int error;

	if (x->phase_count == PHASES_MAX)
		return err_set(e, x->path, s->line, "there are more than %d phases", PHASES_MAX);
	*p = (struct phase){ .name = named(s, "phase"), .at = { x->path, s->line } };
	x->phase_count++;
	assert(p->name);
	if (strchr(p->name, '.'))
		return err_set(e, x->path, s->line, "the name of a phase cannot have a dot");
	if (read_flag(x, s, "measure", &p->measure, e) ||
	    read_flag(x, s, "sync_after", &p->sync_after, e) ||
	    read_flag(x, s, "drop_caches_after", &p->drop_caches_after, e))
		return -EINVAL;
	if (ini_get(s, "close_tenant"))
		p->close_tenant = ini_get(s, "close_tenant")->value;
	error = read_linger(x, p, s, e);
	if (!error)
		error = read_phase_jobs(x, p, s, e);
	if (!error)
		error = read_phase_settings(x, p, s, e);
	if (!error)
		error = ini_refuse_unused(&x->ini, s, known, ARRAY_SIZE(known), e);
	return error;
}

static int read_phases(struct experiment *x, struct err *e)
{
	size_t measured = 0;

	for (size_t i = 0; i < x->ini.section_count; i++) {
		if (named(&x->ini.sections[i], "phase")) {
			int error = read_phase(x, &x->ini.sections[i], e);

			if (error)
				return error;
		}
	}
	for (size_t i = 0; i < x->phase_count; i++) {
		if (!x->phases[i].measure)
			continue;
		if (measured++)
			return origin_error(e, &x->phases[i].at,
					    "two phases are measured, \"%s\" and \"%s\": only one "
					    "can be",
					    x->phases[x->measured].name, x->phases[i].name);
		x->measured = i;
	}
	if (!measured)
		return err_set(e, x->path, 0, "no phase is measured: one needs \"measure = yes\"");
	return 0;
}

static size_t count_named(const struct experiment *x, const char *kind)
{
	size_t count = 0;

	for (size_t i = 0; i < x->ini.section_count; i++)
		count += named(&x->ini.sections[i], kind) != NULL;
	return count;
}

static int read_references(struct experiment *x, struct err *e)
{
	struct ini_section *tolerance = ini_section(&x->ini, "tolerance");

	x->references = calloc(count_named(x, "reference") + 1, sizeof(*x->references));
	if (!x->references)
		return experiment_no_memory(e);
	for (size_t i = 0; i < x->ini.section_count; i++) {
		struct ini_section *s = &x->ini.sections[i];
		struct reference *r = &x->references[x->reference_count];

		if (!named(s, "reference"))
			continue;
		r->case_name = named(s, "reference");
		if (reference_read(x, r, s, e))
			return -EINVAL;
		x->reference_count++;
	}
	return tolerance ? tolerance_read(x, tolerance, e) : 0;
}

static int read_cases(struct experiment *x, struct err *e)
{
	x->cases = calloc(count_named(x, "case") + 1, sizeof(*x->cases));
	if (!x->cases)
		return experiment_no_memory(e);
	for (size_t i = 0; i < x->ini.section_count; i++) {
		struct ini_section *s = &x->ini.sections[i];
		struct experiment_case *c = &x->cases[x->case_count];
		int error;

		if (!named(s, "case"))
			continue;
		x->case_count++;
		c->name = named(s, "case");
		error = case_read(x, c, s, e);
		if (error)
			return error;
	}
	if (!x->case_count)
		return err_set(e, x->path, 0, "there is no [case NAME]: nothing to run");
	return 0;
}

/* References and cases name each other; whether all match is known once both are read. */
static int match_references(struct experiment *x, struct err *e)
{
	for (size_t i = 0; i < x->reference_count; i++) {
		const struct reference *r = &x->references[i];
		struct experiment_case *c = experiment_find(x, r->case_name);

		if (!c)
			return origin_error(e, &r->at, "[reference %s] is for a case there is not",
					    r->case_name);
		c->reference = r;
	}
	return 0;
}

static int load(struct experiment *x, struct err *e)
{
	int error;

	if (check_sections(&x->ini, true, e))
		return -EINVAL;
	error = read_head(x, e);
	if (!error)
		error = add_settings(&x->settings, &x->ini, e);
	if (!error)
		error = read_phases(x, e);
	if (!error)
		error = read_references(x, e);
	if (!error)
		error = read_cases(x, e);
	if (!error)
		error = match_references(x, e);
	for (size_t i = 0; !error && i < x->case_count; i++)
		error = case_find_after(x, &x->cases[i], e);
	for (size_t i = 0; !error && i < x->case_count; i++)
		error = case_check(x, &x->cases[i], e);
	if (!error)
		error = comparisons_read(x, e);
	return error ? error : experiment_take_notes(x, e);
}

int experiment_load(struct experiment *x, const char *path, struct err *e)
{
	int error;

	*x = (struct experiment){ 0 };
	error = ini_load(&x->ini, path, e);
	if (error)
		return error;
	x->path = x->ini.path;
	error = load(x, e);
	if (error)
		experiment_finish(x);
	return error;
}

void experiment_finish(struct experiment *x)
{
	for (size_t i = 0; i < x->loaded_count; i++) {
		jobs_free(x->loaded[i].jobs);
		free(x->loaded[i].path);
	}
	for (size_t i = 0; i < x->case_count; i++)
		case_finish(&x->cases[i]);
	for (size_t i = 0; i < x->string_count; i++)
		free(x->strings[i]);
	free(x->loaded);
	free(x->cases);
	free(x->references);
	free(x->comparisons);
	free(x->strings);
	settings_finish(&x->settings);
	for (size_t i = 0; i < PHASES_MAX; i++)
		settings_finish(&x->phases[i].settings);
	ini_finish(&x->machine);
	ini_finish(&x->ini);
	*x = (struct experiment){ 0 };
}
