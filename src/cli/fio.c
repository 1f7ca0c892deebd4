/* SPDX-License-Identifier: MIT */
/* sluice fio: runs a fio job file on a simulated machine and reports as fio does. */
#include "base/outfile.h"
#include "base/units.h"
#include "cli/cli.h"
#include "job/report_fio.h"
#include "lab/machine.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	OPT_FORMAT,
	OPT_OUTPUT,
	OPT_MACHINE,
	OPT_POLICY,
	OPT_SET,
	OPT_SEED,
	OPT_LENIENT,
	OPT_PARSE_ONLY,
	OPT_QUIET,
};

static const struct option options[] = {
	[OPT_FORMAT] = { "output-format", 0, "FORMAT", "normal (a table) or json (fio's)" },
	[OPT_OUTPUT] = { "output", 'o', "FILE", "write the report there, not on stdout" },
	[OPT_MACHINE] = { "machine", 'm', "FILE.ini", "the machine, in place of the default one" },
	[OPT_POLICY] = { "policy", 'p', "POLICY", "of the page cache (default: sluice)" },
	[OPT_SET] = { "set", 's', "KEY=VALUE",
		      "set a choice of the policy, or SECTION.KEY of the machine" },
	[OPT_SEED] = { "seed", 0, "N", "seed of everything random (default 1)" },
	[OPT_LENIENT] = { "lenient", 0, NULL, "ignore options that are not supported" },
	[OPT_PARSE_ONLY] = { "parse-only", 0, NULL, "read the job file and run nothing" },
	[OPT_QUIET] = { "quiet", 'q', NULL, "no progress, and no notes on options" },
	{ 0 },
};

#define SETS_MAX 64

struct request {
	const char *path, *output, *machine, *sets[SETS_MAX];
	size_t set_count;
	const struct policy *policy;
	u64 seed;
	bool json, lenient, parse_only, quiet;
};

static int choose_policy(const struct command *self, struct request *r, const char *name)
{
	const char *names[32];
	size_t count = 0;
	char buf[160];

	r->policy = policy_find(name);
	if (r->policy)
		return 0;
	while (count < ARRAY_SIZE(names) && policy_preset(count)) {
		names[count] = policy_preset(count)->name;
		count++;
	}
	return usage_error(self, "unknown policy \"%s\"%s", name,
			   hint(buf, err_nearest(name, names, count), ""));
}

static int take(const struct command *self, struct request *r, int arg, const char *value)
{
	switch (arg) {
	case OPT_FORMAT:
		r->json = !strcmp(value, "json");
		if (!r->json && strcmp(value, "normal") != 0)
			return usage_error(self,
					   "--output-format cannot be \"%s\", only normal or json",
					   value);
		return 0;
	case OPT_OUTPUT:
		r->output = value;
		return *value ? 0 : usage_error(self, "--output needs the name of a file");
	case OPT_MACHINE:
		r->machine = value;
		return 0;
	case OPT_POLICY:
		return choose_policy(self, r, value);
	case OPT_SET:
		if (r->set_count == SETS_MAX)
			return usage_error(self, "more than %d of one option", SETS_MAX);
		r->sets[r->set_count++] = value;
		return 0;
	case OPT_SEED:
		if (units_parse_u64(value, &r->seed) || r->seed > INT64_MAX)
			return usage_error(self, "--seed cannot be \"%s\", only 0 to %ju", value,
					   (uintmax_t)INT64_MAX);
		return 0;
	case OPT_LENIENT:
		r->lenient = true;
		return 0;
	case OPT_PARSE_ONLY:
		r->parse_only = true;
		return 0;
	case OPT_QUIET:
		r->quiet = true;
		return 0;
	}
	assert(arg == ARG_PLAIN);
	if (r->path)
		return usage_error(self, "one job file at a time, not \"%s\" too", value);
	r->path = value;
	return 0;
}

static void print_notes(const struct jobs *jobs)
{
	for (size_t i = 0; jobs_note(jobs, i); i++)
		fprintf(stderr, "note: %s\n", jobs_note(jobs, i));
}

/* What a report is made of. */
struct report {
	const struct request *request;
	const struct machine *machine;
	const struct jobs *jobs;
	const struct machine_result *result;
};

static int print_report(FILE *out, void *ctx)
{
	const struct report *r = ctx;
	const struct setup *setup = &r->machine->setup;
	const struct job_results *results = &r->result->jobs;
	struct report_disk disk[ENGINE_DEVICES_MAX];
	char label[256], memory[UNITS_TEXT_MAX];

	for (u32 i = 0; i < setup->device_count; i++) {
		const struct device_stats *d = &r->result->device[i];

		disk[i] = (struct report_disk){ setup_device_name(&setup->device[i]),
						d->reads,
						d->writes,
						d->busy_ns,
						results->ended_ns - results->started_ns,
						i + 1 < setup->device_count ? &disk[i + 1] : NULL };
	}
	if (r->request->json)
		return report_fio_json(out, r->jobs, results, disk);
	fprintf(out, "%s on %s: %u CPUs, %s of memory, device %s; policy %s\n\n", r->request->path,
		r->machine->path ? r->machine->path : "the default machine", setup->sim.cpus,
		units_print_bytes(memory, setup->memory_bytes), disk[0].name,
		policy_label(&r->machine->policy, label, sizeof(label)));
	report_fio_table(out, results, disk);
	return ferror(out) ? -EIO : 0;
}

static bool some_job_failed(const struct job_results *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->rows[i].error)
			return true;
	return false;
}

static void show_progress(void *ctx, u64 now_ns)
{
	(void)ctx;
	fprintf(stderr, "\r\033[K%.0f s virtual", (double)now_ns / NSEC_PER_SEC);
	fflush(stderr);
}

static int run_jobs(const struct command *self, const struct request *r, const struct machine *m,
		    const struct jobs *jobs)
{
	bool show = !r->quiet && isatty(STDERR_FILENO);
	struct machine_result result;
	struct report report = { r, m, jobs, &result };
	struct err e = { "" };
	int status = EXIT_OK;

	machine_run(m, jobs, r->seed, show ? show_progress : NULL, NULL, &result);
	if (show)
		fprintf(stderr, "\r\033[K");
	if (result.error) {
		usage_error(self, "%s", result.text);
		job_results_finish(&result.jobs);
		return result.error == -ENOTSUP || result.error == -ENOSPC ? EXIT_USAGE
									   : EXIT_FAILED;
	}
	if (r->output ? outfile_write(r->output, print_report, &report, &e)
		      : print_report(stdout, &report))
		status = EXIT_FAILED;
	if (job_results_write_logs(&result.jobs, &e))
		status = EXIT_FAILED;
	if (e.text[0])
		usage_error(self, "%s", e.text);
	if (some_job_failed(&result.jobs))
		status = EXIT_FAILED;
	job_results_finish(&result.jobs);
	return status;
}

static int run_request(const struct command *self, const struct request *r)
{
	struct jobs_reading reading = { .lenient = r->lenient };
	struct err e = { "" };
	struct machine m;
	struct jobs *jobs;
	int status = EXIT_OK;

	if (machine_load(&m, r->machine, r->policy, r->sets, r->set_count, &e))
		return usage_error(self, "%s", e.text);
	reading.memory_bytes = m.setup.memory_bytes;
	reading.cpus = m.setup.sim.cpus;
	if (jobs_load_as(r->path, &reading, &jobs, &e)) {
		status = usage_error(self, "%s", e.text);
	} else {
		if (!r->quiet)
			print_notes(jobs);
		if (!r->parse_only)
			status = run_jobs(self, r, &m, jobs);
		jobs_free(jobs);
	}
	machine_finish(&m);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct args a = { .command = self, .words = argv, .count = argc };
	struct request r = { .seed = 1, .policy = policy_find("sluice") };
	const char *value;
	int arg, status;

	while ((arg = args_next(&a, &value)) != ARG_END) {
		if (arg == ARG_HELP || arg == ARG_WRONG)
			return arg == ARG_HELP ? EXIT_OK : EXIT_USAGE;
		status = take(self, &r, arg, value);
		if (status)
			return status;
	}
	if (!r.path)
		return usage_error(self, "which job file? \"sluice fio --help\" says more");
	if (check_apart(self, "output", r.output, r.path))
		return EXIT_USAGE;
	if (r.output && check_place(self, "output", r.output))
		return EXIT_USAGE;
	return run_request(self, &r);
}

const struct command command_fio = {
	.name = "fio",
	.arguments = "JOBFILE",
	.about = "run a fio job file in virtual time",
	.text = "Runs the jobs of a file in fio's own language on a simulated machine and reports\n"
		"in a table, or as JSON with fio's keys for tools that read fio's. The default\n"
		"machine has 8 CPUs, 16 GiB of memory and a fast SSD; sluice-fio(1) says which\n"
		"options of fio have an effect.",
	.examples =
		"  sluice fio jobs.fio\n"
		"  sluice fio jobs.fio -m machines/m8g.8xlarge.ini -p linux-6.18\n"
		"  sluice fio jobs.fio --output-format=json --output=jobs.json\n"
		"  sluice fio jobs.fio --lenient -s machine.memory=64GiB -s vm.dirty_ratio=40\n",
	.options = options,
	.run = run,
};
