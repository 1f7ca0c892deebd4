/* SPDX-License-Identifier: MIT */
/* sluice limits: what may be dirty on a machine, and which settings cannot work. */
#include "lab/limits.h"
#include "base/units.h"
#include "cli/cli.h"
#include "lab/experiment.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct request {
	struct words machines, settings;
	const char *machine;
	u64 bandwidth_bytes, dirty;
	bool asks; /* about `dirty` pages */
	bool here, json;
};

static const struct option options[] = {
	OPTION(struct request, machines, WORDS, "machine", 'm', "FILE",
	       "of a machine file, as machines/m8g.8xlarge.ini"),
	OPTION(struct request, here, FLAG, "this-machine", 0, NULL, "of the running system"),
	OPTION_SET(struct request, "KEY=VALUE", "another setting, as vm.dirty_bytes=1G"),
	OPTION_IN(struct request, bandwidth_bytes, SIZE, "bandwidth", 0, "BYTES",
		  "what each device writes a second, if not known", 1, UINT64_MAX),
	OPTION_IN(struct request, dirty, NUMBER, "dirty", 0, "PAGES",
		  "what writers are allowed when so many pages of a device are dirty", 0,
		  UINT32_MAX),
	OPTION(struct request, json, FLAG, "json", 0, NULL, "as JSON"),
	{ 0 },
};

/* "-s vm.dirty_ratio=40" as settings; strings[] keeps what had to be made. */
static int add_setting(struct settings *to, const char *text, bool only_vm, char *strings[3],
		       struct err *e)
{
	const char *dot = strchr(text, '.'), *equals = strchr(text, '=');
	struct setting new = { .value = equals ? equals + 1 : NULL };
	int error;

	if (!equals || !dot || dot > equals)
		return err_set(e, NULL, 0, "-s %s: a setting is SECTION.KEY=VALUE", text);
	if (asprintf(&strings[0], "-s %s", text) < 0)
		return experiment_no_memory(e);
	strings[1] = strndup(text, (size_t)(equals - text));
	if (!strings[1])
		return experiment_no_memory(e);
	new.at.file = strings[0];
	error = setting_address(to, strings[1], &new.at, &strings[2], &new.key, e);
	if (error)
		return error;
	new.section = strings[2];
	if (only_vm && strcmp(new.section, "vm") != 0)
		return err_set(e, strings[0], 0, "only vm.KEY can be set of the running system");
	return settings_add(to, &new) ? experiment_no_memory(e) : 0;
}

/* Whether section [machine] has that key. */
static bool names(const struct settings *s, const char *key)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->all[i].section, "machine") && !strcmp(s->all[i].key, key))
			return true;
	return false;
}

static int read_view(const struct request *r, struct settings *layers, struct ini *ini,
		     char *strings[][3], struct limits_view *v, struct err *e)
{
	struct setup setup;
	int error = r->machine ? machine_read(layers, ini, r->machine, e) : 0;

	for (size_t i = 0; i < r->settings.count && !error; i++)
		error = add_setting(layers, r->settings.word[i], r->here, strings[i], e);
	if (!error && r->machine && (!names(layers, "cpus") || !names(layers, "memory")))
		error = err_set(e, r->machine, 0,
				"it does not say how much memory and how many CPUs there are, only "
				"what device; say it with -s machine.memory=16G -s machine.cpus=8");
	if (!error && r->machine)
		error = setup_read(&setup, layers, r->machine, e);
	if (error)
		return error;
	if (r->machine)
		return limits_of_setup(v, &setup) ? experiment_no_memory(e) : 0;
	error = limits_of_system(v, "", e);
	return error ? error : setup_read_vm(&v->vm, layers, e);
}

static void print_size(const char *name, u64 pages, const char *about)
{
	char text[UNITS_TEXT_MAX];

	printf("%-12s %8s  %15ju  %s\n", name, units_print_bytes(text, pages * PAGE_SIZE),
	       (uintmax_t)(pages * PAGE_SIZE), about);
}

static void print_devices(const struct limits_view *v)
{
	char most[UNITS_TEXT_MAX], freerun[UNITS_TEXT_MAX];

	for (size_t i = 0; i < v->device_count; i++) {
		const struct limits_device *d = &v->devices[i];

		printf("%s%-12s may have %s dirty%s", i ? "" : "\n", d->name,
		       units_print_bytes(most, d->most * PAGE_SIZE),
		       d->strict ? " at any time (strict)" : "");
		if (d->strict)
			printf(", its writers are slowed above %s",
			       units_print_bytes(freerun,
						 limits_pace(v, d, 0).freerun * PAGE_SIZE));
		if (d->bandwidth_bytes)
			printf(", which takes %.3g s to write",
			       (double)d->most * PAGE_SIZE / (double)d->bandwidth_bytes);
		putchar('\n');
	}
}

static void print_paces(const struct request *r, const struct limits_view *v)
{
	char dirty[UNITS_TEXT_MAX], freerun[UNITS_TEXT_MAX];

	printf("\nWith %ju pages dirty, %s, all on one device:\n", (uintmax_t)r->dirty,
	       units_print_bytes(dirty, r->dirty * PAGE_SIZE));
	for (size_t i = 0; i < v->device_count; i++) {
		struct limits_pace p = limits_pace(v, &v->devices[i], r->dirty);

		units_print_bytes(freerun, p.freerun * PAGE_SIZE);
		printf("%-12s ", v->devices[i].name);
		if (r->dirty <= p.freerun)
			printf("its writers run free up to %ju pages, %s\n", (uintmax_t)p.freerun,
			       freerun);
		else
			printf("position ratio %ju/1024: of %ju KiB/s a writer is allowed %ju "
			       "(slowed above %ju pages, %s)\n",
			       (uintmax_t)p.pos_ratio, (uintmax_t)(p.rate * (PAGE_SIZE / 1024)),
			       (uintmax_t)(p.allowed * (PAGE_SIZE / 1024)), (uintmax_t)p.freerun,
			       freerun);
	}
}

static void print_text(const struct request *r, const struct limits_view *v)
{
	print_size("dirtyable", v->avail, "free memory beyond the reserve, and file pages");
	print_size("background", v->bg, "above it the flusher writes");
	print_size("freerun", v->freerun, "up to here no writer is slowed");
	print_size("setpoint", v->setpoint, "where slowed writers hold the dirty memory");
	print_size("limit", v->limit, "where writers are stopped");
	if (v->kernel_says) {
		putchar('\n');
		print_size("kernel", v->kernel_bg, "its own background threshold");
		print_size("", v->kernel_thresh, "and limit, from /proc/vmstat");
	}
	print_devices(v);
	if (r->asks)
		print_paces(r, v);
	if (v->warning_count)
		putchar('\n');
	for (size_t i = 0; i < v->warning_count; i++)
		printf("warning: %s\n", v->warnings[i]);
}

static json_t *bytes_json(u64 pages)
{
	return json_integer((json_int_t)(pages * PAGE_SIZE));
}

/* What print_paces() says of a device. */
static json_t *pace_json(const struct request *r, const struct limits_view *v, size_t i)
{
	struct limits_pace p = limits_pace(v, &v->devices[i], r->dirty);
	bool free = r->dirty <= p.freerun;

	return json_pack("{s:I, s:I, s:b, s:I, s:I, s:I}", "dirty_pages", (json_int_t)r->dirty,
			 "freerun_pages", (json_int_t)p.freerun, "free", free, "pos_ratio_1024",
			 (json_int_t)p.pos_ratio, "ratelimit_kb",
			 (json_int_t)(p.rate * (PAGE_SIZE / 1024)), "allowed_kb",
			 (json_int_t)(p.allowed * (PAGE_SIZE / 1024)));
}

static json_t *devices_json(const struct request *r, const struct limits_view *v)
{
	json_t *devices = json_array();

	for (size_t i = 0; i < v->device_count; i++) {
		const struct limits_device *d = &v->devices[i];
		json_t *one = json_pack("{s:s, s:b, s:f, s:f, s:i, s:o}", "name", d->name,
					"strict_limit", d->strict, "min_ratio", d->min_ratio,
					"max_ratio", d->max_ratio, "read_ahead_kb",
					(int)d->read_ahead_kb, "limit_bytes", bytes_json(d->most));

		if (d->bandwidth_bytes)
			json_object_set_new(one, "bandwidth_bytes",
					    json_integer((json_int_t)d->bandwidth_bytes));
		if (r->asks)
			json_object_set_new(one, "pace", pace_json(r, v, i));
		json_array_append_new(devices, one);
	}
	return devices;
}

static int print_json(const struct request *r, const struct limits_view *v)
{
	json_t *warnings = json_array();
	json_t *root = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "dirtyable_bytes",
				 bytes_json(v->avail), "reserve_bytes", bytes_json(v->reserve),
				 "background_bytes", bytes_json(v->bg), "freerun_bytes",
				 bytes_json(v->freerun), "setpoint_bytes", bytes_json(v->setpoint),
				 "limit_bytes", bytes_json(v->limit), "devices", devices_json(r, v),
				 "warnings", warnings);
	int error;

	for (size_t i = 0; i < v->warning_count; i++)
		json_array_append_new(warnings, json_string(v->warnings[i]));
	if (v->kernel_says)
		json_object_set_new(root, "kernel",
				    json_pack("{s:o, s:o}", "background_bytes",
					      bytes_json(v->kernel_bg), "limit_bytes",
					      bytes_json(v->kernel_thresh)));
	error = !root || json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) ||
		putchar('\n') == EOF;
	json_decref(root);
	return error ? EXIT_FAILED : EXIT_OK;
}

static int run_request(const struct command *self, const struct request *r)
{
	struct settings layers = { 0 };
	struct ini ini = { 0 };
	char *strings[WORDS_MAX][3] = { 0 };
	struct limits_view v = { 0 };
	struct err e = { "" };
	int status = EXIT_OK;

	if (read_view(r, &layers, &ini, strings, &v, &e)) {
		status = usage_error(self, "%s", e.text);
	} else {
		for (size_t i = 0; i < v.device_count && r->bandwidth_bytes; i++)
			v.devices[i].bandwidth_bytes = r->bandwidth_bytes;
		if (limits_work_out(&v))
			status = usage_error(self, "not enough memory");
		else if (r->json)
			status = print_json(r, &v);
		else
			print_text(r, &v);
	}
	limits_finish(&v);
	settings_finish(&layers);
	ini_finish(&ini);
	for (size_t i = 0; i < r->settings.count; i++) {
		free(strings[i][0]);
		free(strings[i][1]);
		free(strings[i][2]);
	}
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct request r = { .dirty = UINT64_MAX };
	struct words plain = { 0 };
	int status;

	if (!args_read(self, argc, argv, &r, &plain, &status))
		return status;
	if (plain.count)
		return usage_error(self,
				   "takes no arguments, not \"%s\"; a machine file is named by -m",
				   plain.word[0]);
	if (r.machines.count > 1)
		return usage_error(self, "one machine at a time, not \"%s\" too",
				   r.machines.word[1]);
	r.machine = r.machines.word[0];
	r.asks = r.dirty != UINT64_MAX;
	if (!r.machine == !r.here)
		return usage_error(self, "of which machine: either -m FILE or --this-machine");
	return run_request(self, &r);
}

const struct command command_limits = {
	.name = "limits",
	.arguments = "",
	.about = "print a machine's limits of dirty memory",
	.text = "Prints how much may be dirty on a machine, where the flusher starts, and where\n"
		"writers are slowed and stopped; and warns of settings that cannot work. Of the\n"
		"running system the kernel's own two thresholds stand beside it.",
	.examples = "  sluice limits -m machines/m8g.8xlarge.ini\n"
		    "  sluice limits -m machines/m8g.8xlarge.ini -s vm.dirty_bytes=64M\n"
		    "  sluice limits --this-machine --bandwidth 500M\n"
		    "  sluice limits --this-machine -s vm.dirty_ratio=5 --json\n",
	.options = options,
	.run = run,
};
