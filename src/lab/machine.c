/* SPDX-License-Identifier: MIT */
/*
 * A machine is put together from layers of settings, as the setup of an experiment's case
 * is: the default machine, the machine file, the command line. A run builds it in a
 * simulated world of its own (device, page cache, table of files), runs the jobs as the
 * world's first task, and takes it down again.
 */
#include "lab/machine.h"
#include "lab/rig.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS (NSEC_PER_SEC / 2) /* virtual time between two reports of progress */

const char machine_default[] = "[machine]\n"
			       "cpus = 8\n"
			       "memory = 16GiB\n"
			       "[device]\n"
			       "model = nvme\n"
			       "name = nvme\n"
			       "channels = 64\n"
			       "read_bandwidth = 3e9\n"
			       "write_bandwidth = 2e9\n"
			       "read_latency_us = 80\n"
			       "write_latency_us = 20\n"
			       "latency_sigma = 0.25\n"
			       "max_sectors_kb = 1280\n"
			       "nr_requests = 1023\n";

static int no_memory(struct err *e)
{
	err_set(e, NULL, 0, "not enough memory");
	return -ENOMEM;
}

static int add_section(struct machine *m, const struct ini *ini, const struct ini_section *s,
		       struct err *e)
{
	const struct setting bare = setup_bare_tenant(s->name, ini->path, s->line);

	if (!setup_has_section(s->name))
		return err_set(e, ini->path, s->line, "[%s] is no section of a machine", s->name);
	if (ini_refuse_duplicates(ini, s, NULL, e))
		return -EINVAL;
	if (bare.key && !s->entry_count && settings_add(&m->settings, &bare))
		return no_memory(e);
	for (size_t i = 0; i < s->entry_count; i++) {
		const struct ini_entry *entry = &s->entries[i];
		const struct setting new = {
			s->name, entry->key, entry->value, { ini->path, entry->line }
		};

		if (settings_add(&m->settings, &new))
			return no_memory(e);
	}
	return 0;
}

static int add_file(struct machine *m, const struct ini *ini, bool device, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < ini->section_count && !rc; i++)
		if (device || strcmp(ini->sections[i].name, "device") != 0)
			rc = add_section(m, ini, &ini->sections[i], e);
	return rc;
}

/* "vm.dirty_ratio=40" or "accounting=page" */
static int add_set(struct machine *m, const char *set, struct err *e)
{
	char *copy = strdup(set), *value, *origin, *section, **strings;
	const char *key;
	struct setting new;
	int rc;

	strings = reallocarray(m->strings, m->string_count + 3, sizeof(*strings));
	if (strings)
		m->strings = strings;
	if (!copy || !strings || asprintf(&origin, "-s %s", set) < 0) {
		free(copy);
		return no_memory(e);
	}
	m->strings[m->string_count++] = copy;
	m->strings[m->string_count++] = origin;
	value = strchr(copy, '=');
	if (!value)
		return err_set(e, origin, 0, "KEY=VALUE is needed");
	*value++ = 0;
	if (!strchr(copy, '.')) {
		struct err inner = { "" };

		return policy_set(&m->policy, copy, value, &inner)
			       ? err_set(e, origin, 0, "%s", inner.text)
			       : 0;
	}
	rc = setting_address(&m->settings, copy, &(struct origin){ origin, 0 }, &section, &key, e);
	if (rc)
		return rc;
	m->strings[m->string_count++] = section;
	new = (struct setting){ section, key, value, { origin, 0 } };
	return settings_add(&m->settings, &new) ? no_memory(e) : 0;
}

int machine_load(struct machine *m, const char *path, const struct policy *policy,
		 const char *const *sets, size_t set_count, struct err *e)
{
	const char *name = path ? path : "the default machine";
	bool own_device = false;
	int rc;

	*m = (struct machine){ .path = path, .policy = *policy };
	rc = ini_load_text(&m->base, "the default machine", machine_default, e);
	if (!rc && path)
		rc = ini_load(&m->file, path, e);
	if (!rc && path)
		own_device = ini_section(&m->file, "device") != NULL;
	if (!rc)
		rc = add_file(m, &m->base, !own_device, e);
	if (!rc && path)
		rc = add_file(m, &m->file, true, e);
	for (size_t i = 0; i < set_count && !rc; i++)
		rc = add_set(m, sets[i], e);
	if (!rc)
		rc = setup_read(&m->setup, &m->settings, name, e);
	if (rc)
		machine_finish(m);
	return rc;
}

void machine_finish(struct machine *m)
{
	settings_finish(&m->settings);
	ini_finish(&m->base);
	ini_finish(&m->file);
	for (size_t i = 0; i < m->string_count; i++)
		free(m->strings[i]);
	free(m->strings);
	*m = (struct machine){ 0 };
}

struct machine_run {
	const struct machine *machine;
	const struct jobs *jobs;
	struct jobs_options options;
	struct machine_result *out;
	struct rig rig;
};

static bool failed(struct machine_run *r, int error, const char *doing, const char *why)
{
	if (!error || r->out->error)
		return error;
	r->out->error = error;
	snprintf(r->out->text, sizeof(r->out->text), "%s: %s", doing, why);
	return true;
}

static void run_jobs(void *arg)
{
	struct machine_run *r = arg;
	const struct machine *m = r->machine;
	struct err e = { "" };
	const char *doing;
	int rc = rig_build(&r->rig, &m->setup, &m->policy, r->options.seed, &doing);

	if (!failed(r, rc, doing, strerror(-rc)) &&
	    !failed(r, jobs_check_engine(r->jobs, r->rig.files, &e), "these jobs cannot run",
		    e.text)) {
		rc = jobs_run(r->jobs, r->rig.files, &r->options, &r->out->jobs);
		failed(r, rc, "running the jobs", strerror(-rc));
		for (u32 i = 0; i < r->rig.device_count; i++)
			device_stats(r->rig.device[i], &r->out->device[i]);
	}
	r->out->virtual_s = (double)world_now() / NSEC_PER_SEC;
	rig_take_down(&r->rig);
}

/* Whether the jobs' files fit on the devices they are on. */
struct fitting {
	const struct setup *setup;
	u64 bytes[ENGINE_DEVICES_MAX];
};

static void add_file_bytes(void *ctx, const char *path, u64 bytes)
{
	struct fitting *f = ctx;

	f->bytes[setup_device_of(f->setup, path) - f->setup->device] += bytes;
}

void machine_run(const struct machine *m, const struct jobs *jobs, u64 seed,
		 void (*tick)(void *ctx, u64 now_ns), void *tick_ctx, struct machine_result *out)
{
	struct machine_run run = { .machine = m, .jobs = jobs, .out = out };
	struct sim_config config = m->setup.sim;
	struct world *world;
	struct fitting fit = { .setup = &m->setup };
	char why[256] = "";

	*out = (struct machine_result){ 0 };
	run.options = (struct jobs_options){
		.seed = seed, .progress = tick, .progress_ctx = tick_ctx, .progress_ns = TICK_NS
	};
	jobs_each_file(jobs, add_file_bytes, &fit);
	for (u32 i = 0; i < m->setup.device_count; i++) {
		u64 size = m->setup.device[i].size_bytes;

		if (size && fit.bytes[i] > size) {
			failed(&run, -ENOSPC, "the files of the jobs do not fit",
			       "the device is smaller");
			return;
		}
	}
	config.seed = seed;
	world = sim_create(&config);
	if (!world) {
		failed(&run, -ENOMEM, "making the world", strerror(ENOMEM));
		return;
	}
	if (sim_run(world, run_jobs, &run, why, sizeof(why)))
		failed(&run, -EDEADLK, "nothing can go on", why);
	sim_destroy(world);
}
