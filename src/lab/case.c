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
	int is = dot ? experiment_phase_key(x, dot + 1, value, at, &new, e) : 0, phase;
	char copy[128];

	if (is < 0)
		return is;
	if (!is && (!dot || strcmp(dot, ".job") != 0))
		return origin_error(e, at,
				    "unknown key \"%s\": of a phase only phase.NAME.job, "
				    "phase.NAME.device.KEY and phase.NAME.vm.KEY can be set",
				    key);
	snprintf(copy, sizeof(copy), "%.*s", (int)(dot - name), name);
	phase = experiment_phase(x, copy);
	if (phase < 0)
		return origin_error(e, at, "\"%s\" names a phase there is not", key);
	if (is)
		return experiment_phase_setting(&c->phase_settings[phase], &new, e);
	c->job_at[phase] = *at;
	/* What a person typed in a shell is seen from where the shell is. */
	return experiment_load_jobs(x, value, at->line ? at->file : NULL, at, &c->jobs[phase], e);
}

static int set_setting(struct experiment *x, struct experiment_case *c, const char *key,
		       const char *value, const struct origin *at, struct err *e)
{
	struct setting new = { .value = value, .at = *at };
	char *section;
	int error = setting_address(&x->settings, key, at, &section, &new.key, e);

	if (error)
		return error;
	new.section = experiment_keep(x, section);
	if (!new.section)
		return experiment_no_memory(e);
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
	const char *known[40] = { "policy", "title", "skip_phase", "after" }, *near;
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

struct fitting {
	const struct setup *setup;
	u64 bytes[ENGINE_DEVICES_MAX];
	u32 files[ENGINE_DEVICES_MAX];
};

static void add_file(void *ctx, const char *path, u64 bytes)
{
	struct fitting *f = ctx;
	size_t i = (size_t)(setup_device_of(f->setup, path) - f->setup->device);

	f->bytes[i] += bytes;
	f->files[i]++;
}

/* The files of one phase's jobs fit on the devices they are on, and blocks into files. */
static int check_fit(const struct setup *s, const struct jobs *jobs, const char *phase,
		     const struct origin *at, struct err *e)
{
	char need[UNITS_TEXT_MAX], have[UNITS_TEXT_MAX];
	struct fitting f = { .setup = s };
	u32 block_bytes = PAGE_SIZE;

	jobs_each_file(jobs, add_file, &f);
	for (u32 i = 0; i < s->device_count; i++) {
		const struct setup_device *d = &s->device[i];

		if (f.files[i])
			block_bytes = (u32)min_u64(block_bytes, d->block_bytes);
		if (!d->size_bytes || f.bytes[i] <= d->size_bytes)
			continue;
		return origin_error(e, at, "the files of phase \"%s\" have %s, but %s%s holds %s",
				    phase, units_print_bytes(need, f.bytes[i]),
				    i ? "device " : "the device", d->name,
				    units_print_bytes(have, d->size_bytes));
	}
	return jobs_check_blocks(jobs, block_bytes, e);
}

void case_mark_devices(const struct experiment *x, const struct experiment_case *c, bool *used)
{
	struct fitting f = { .setup = &c->setup };

	for (size_t i = 0; i < x->phase_count; i++)
		if (experiment_jobs(x, c, i))
			jobs_each_file(experiment_jobs(x, c, i), add_file, &f);
	for (u32 i = 0; i < c->setup.device_count; i++)
		used[i] |= f.files[i] > 0;
}

static int check_jobs_fit(const struct experiment *x, const struct experiment_case *c,
			  struct err *e)
{
	int error = 0;

	for (size_t i = 0; i < x->phase_count && !error; i++) {
		const struct jobs *jobs = experiment_jobs(x, c, i);

		if (jobs)
			error = check_fit(&c->setup, jobs, x->phases[i].name,
					  c->jobs[i] ? &c->job_at[i] : &x->phases[i].job_at, e);
	}
	return error;
}

static void forget_devices(struct experiment_case *c)
{
	for (size_t i = 0; i < PHASES_MAX; i++) {
		free(c->phase_devices[i]);
		c->phase_devices[i] = NULL;
	}
}

void case_finish(struct experiment_case *c)
{
	forget_devices(c);
	settings_finish(&c->settings);
	for (size_t i = 0; i < PHASES_MAX; i++)
		settings_finish(&c->phase_settings[i]);
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
	if (error)
		return error;
	c->phase_vm[i] = setup.vm;
	c->phase_devices[i] = calloc(setup.device_count, sizeof(setup.device[0]));
	if (!c->phase_devices[i])
		return experiment_no_memory(e);
	memcpy(c->phase_devices[i], setup.device, setup.device_count * sizeof(setup.device[0]));
	return 0;
}

int case_check(const struct experiment *x, struct experiment_case *c, struct err *e)
{
	struct settings all = { 0 };
	int error;

	if (c->skip[x->measured])
		return origin_error(e, &c->at, "case \"%s\" skips the phase that is measured",
				    c->name);
	forget_devices(c);
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
