/* SPDX-License-Identifier: MIT */
/*
 * A case is a policy and what it does differently from the experiment. All its keys
 * but `policy`, `title`, `skip_phase` and `after` can also be set from the command line, so
 * one function sets one key, wherever it was written:
 *
 *	accounting = page		a choice of the policy
 *	vm.dirty_ratio = 40		a setting of the machine
 *	phase.load.job = other.fio	other jobs in a phase's place
 *
 * A case is checked once all of it is known: its machine is put together from all
 * layers, and its jobs must fit the device.
 */
#include "base/units.h"
#include "lab/experiment.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct policy *case_policy(const char *name, const struct origin *at, struct err *e)
{
	const char *names[32], *near;
	const struct policy *p = policy_find(name);
	size_t count = 0;

	if (p)
		return p;
	while (count < ARRAY_SIZE(names) && policy_preset(count)) {
		names[count] = policy_preset(count)->name;
		count++;
	}
	near = err_nearest(name, names, count);
	if (near)
		origin_error(e, at, "unknown policy \"%s\"; did you mean \"%s\"?", name, near);
	else
		origin_error(e, at, "unknown policy \"%s\"; \"sluice policies\" lists them", name);
	return NULL;
}

/* Splits "a, b" and marks the phases named. */
static int read_skips(const struct experiment *x, struct experiment_case *c, const char *list,
		      const struct origin *at, struct err *e)
{
	char *copy = strdup(list), *rest = copy;
	int error = 0;

	if (!copy)
		return experiment_no_memory(e);
	for (char *name; !error && (name = strsep(&rest, ", "));) {
		int phase = experiment_phase(x, name);

		if (!*name)
			continue;
		if (phase < 0)
			error = origin_error(e, at, "skip_phase names \"%s\", no such phase", name);
		else
			c->skip[phase] = true;
	}
	free(copy);
	return error;
}

/* "phase.load.job", "phase.load.device.iops", "phase.load.vm.dirty_bytes" */
static int set_phase(struct experiment *x, struct experiment_case *c, const char *key,
		     const char *value, const struct origin *at, struct err *e)
{
	const char *name = key + strlen("phase."), *dot = strchr(name, '.');
	struct setting new;
	bool setting = dot && experiment_phase_key(dot + 1, &new);
	char copy[128];
	int phase;

	if (!setting && (!dot || strcmp(dot, ".job") != 0))
		return origin_error(e, at,
				    "unknown key \"%s\": of a phase only phase.NAME.job, "
				    "phase.NAME.device.KEY and phase.NAME.vm.KEY can be set",
				    key);
	snprintf(copy, sizeof(copy), "%.*s", (int)(dot - name), name);
	phase = experiment_phase(x, copy);
	if (phase < 0)
		return origin_error(e, at, "\"%s\" names a phase there is not", key);
	if (setting) {
		new.value = value;
		new.at = *at;
		return experiment_phase_setting(&c->phase_settings[phase], &new, e);
	}
	c->job_at[phase] = *at;
	/* What a person typed in a shell is seen from where the shell is. */
	return experiment_load_jobs(x, value, at->line ? at->file : NULL, at, &c->jobs[phase], e);
}

static int set_setting(struct experiment *x, struct experiment_case *c, const char *key,
		       const char *value, const struct origin *at, struct err *e)
{
	const char *dot = strchr(key, '.');
	const char *section = experiment_keep(x, strndup(key, (size_t)(dot - key)));
	struct setting new = { section, dot + 1, value, *at };

	if (!section)
		return experiment_no_memory(e);
	if (!setup_has_section(section)) {
		const char *known[8], *near;
		size_t count = 0;

		for (; setup_section(count) && count < ARRAY_SIZE(known); count++)
			known[count] = setup_section(count);
		near = err_nearest(section, known, count);
		return origin_error(e, at, "\"%s\" is in no section there is%s%s%s", key,
				    near ? "; did you mean \"" : "", near ? near : "",
				    near ? ".\"?" : "");
	}
	return settings_add(&c->settings, &new) ? experiment_no_memory(e) : 0;
}

int case_set(struct experiment *x, struct experiment_case *c, const char *key, const char *value,
	     const struct origin *at, struct err *e)
{
	struct err inner = { "" };

	if (!strncmp(key, "phase.", 6))
		return set_phase(x, c, key, value, at, e);
	if (strchr(key, '.'))
		return set_setting(x, c, key, value, at, e);
	if (policy_set(&c->policy, key, value, &inner))
		return origin_error(e, at, "%s", inner.text);
	return 0;
}

/* The keys a case may have that are no choices of a policy, for "did you mean". */
static int refuse_key(const struct ini_entry *entry, const struct origin *at, struct err *e)
{
	const char *known[32] = { "policy", "title", "skip_phase", "after" }, *near;
	size_t count = 4;

	for (size_t i = 0; policy_key(i) && count < ARRAY_SIZE(known); i++)
		known[count++] = policy_key(i);
	near = err_nearest(entry->key, known, count);
	return origin_error(e, at, "unknown key \"%s\" in a case%s%s%s", entry->key,
			    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

int case_read(struct experiment *x, struct experiment_case *c, struct ini_section *section,
	      struct err *e)
{
	const struct ini_entry *policy = ini_get(section, "policy");
	const struct policy *preset = &x->policy;

	c->at = (struct origin){ x->path, section->line };
	if (policy)
		preset = case_policy(policy->value, &(struct origin){ x->path, policy->line }, e);
	if (!preset)
		return -EINVAL;
	c->policy = *preset;
	for (size_t i = 0; i < section->entry_count; i++) {
		const struct ini_entry *entry = &section->entries[i];
		struct origin at = { x->path, entry->line };
		int error = 0;

		if (!strcmp(entry->key, "policy"))
			continue;
		if (!strcmp(entry->key, "title"))
			c->title = entry->value;
		else if (!strcmp(entry->key, "skip_phase"))
			error = read_skips(x, c, entry->value, &at, e);
		else if (!strcmp(entry->key, "after"))
			c->after_list = entry->value, c->after_line = entry->line;
		else if (!strchr(entry->key, '.') && !policy_has_key(entry->key))
			error = refuse_key(entry, &at, e);
		else
			error = case_set(x, c, entry->key, entry->value, &at, e);
		if (error)
			return error;
	}
	return 0;
}

int case_find_after(const struct experiment *x, struct experiment_case *c, struct err *e)
{
	struct origin at = { x->path, c->after_line };
	char *copy, *rest;
	int error = 0;

	if (!c->after_list)
		return 0;
	copy = rest = strdup(c->after_list);
	if (!copy)
		return experiment_no_memory(e);
	for (char *name; !error && (name = strsep(&rest, ", "));) {
		const struct experiment_case *other = experiment_find(x, name);

		if (!*name)
			continue;
		if (!other || other == c)
			error = origin_error(e, &at, "after names \"%s\", no other case", name);
		else if (c->after_count == AFTER_MAX)
			error = origin_error(e, &at, "a case can be after %d others at most",
					     AFTER_MAX);
		else
			c->after[c->after_count++] = (size_t)(other - x->cases);
	}
	free(copy);
	return error;
}

static int check_jobs_fit(const struct experiment *x, const struct experiment_case *c,
			  struct err *e)
{
	char need[UNITS_TEXT_MAX], have[UNITS_TEXT_MAX];

	for (size_t i = 0; i < x->phase_count; i++) {
		const struct jobs *jobs = experiment_jobs(x, c, i);
		u64 bytes = jobs ? jobs_file_bytes(jobs) : 0;

		if (jobs && jobs_check_blocks(jobs, c->setup.block_bytes, e))
			return -EINVAL;
		if (!c->setup.device_size_bytes || bytes <= c->setup.device_size_bytes)
			continue;
		return origin_error(e, c->jobs[i] ? &c->job_at[i] : &x->phases[i].job_at,
				    "the files of phase \"%s\" have %s, but the device holds %s",
				    x->phases[i].name, units_print_bytes(need, bytes),
				    units_print_bytes(have, c->setup.device_size_bytes));
	}
	return 0;
}

/* Reads device and vm as they are during phase i; `all` are the settings of the whole case. */
static int check_phase(const struct experiment *x, struct experiment_case *c, size_t i,
		       const struct settings *all, struct err *e)
{
	struct settings s = { 0 };
	struct setup setup;
	int error;

	c->phase_vm[i] = c->setup.vm;
	if (!x->phases[i].settings.count && !c->phase_settings[i].count)
		return 0;
	error = settings_append(&s, all);
	if (!error)
		error = settings_append(&s, &x->phases[i].settings);
	if (!error)
		error = settings_append(&s, &c->phase_settings[i]);
	if (error)
		experiment_no_memory(e);
	else
		error = setup_read(&setup, &s, x->path, e);
	settings_finish(&s);
	if (!error) {
		c->phase_device[i] = setup.device;
		c->phase_vm[i] = setup.vm;
	}
	return error;
}

int case_check(const struct experiment *x, struct experiment_case *c, struct err *e)
{
	struct settings all = { 0 };
	int error;

	if (c->skip[x->measured])
		return origin_error(e, &c->at, "case \"%s\" skips the phase that is measured",
				    c->name);
	error = settings_append(&all, &x->settings);
	if (!error)
		error = settings_append(&all, &c->settings);
	if (error)
		experiment_no_memory(e);
	else
		error = setup_read(&c->setup, &all, x->path, e);
	for (size_t i = 0; i < x->phase_count && !error; i++)
		error = check_phase(x, c, i, &all, e);
	settings_finish(&all);
	return error ? error : check_jobs_fit(x, c, e);
}
