/* SPDX-License-Identifier: MIT */
/* sluice fio: runs a fio job file on a simulated machine and reports as fio does. */
#include "base/units.h"
#include "cli/jobs.h"
#include "lab/machine.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

struct request {
	struct jobs_request jobs; /* the first: its options have their fields there */
	const char *machine, *path;
};

static const struct option options[] = {
	JOBS_OPTIONS,
	OPTION_SET(struct jobs_request, "KEY=VALUE",
		   "set a choice of the policy, or SECTION.KEY of the machine"),
	OPTION(struct request, machine, TEXT, "machine", 'm', "FILE.ini",
	       "the machine, in place of the default one"),
	{ 0 },
};

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

	assert(setup->device_count);
	for (u32 i = 0; i < setup->device_count; i++) {
		const struct device_stats *d = &r->result->device[i];

		disk[i] = (struct report_disk){ setup_device_name(&setup->device[i]),
						d->reads,
						d->writes,
						d->busy_ns,
						results->ended_ns - results->started_ns,
						i + 1 < setup->device_count ? &disk[i + 1] : NULL };
	}
	if (r->request->jobs.json)
		return report_fio_json(out, r->jobs, results, disk, NULL);
	fprintf(out, "%s on %s: %u CPUs, %s of memory, device %s; policy %s\n\n", r->request->path,
		r->machine->path ? r->machine->path : "the default machine", setup->sim.cpus,
		units_print_bytes(memory, setup->memory_bytes), disk[0].name,
		policy_label(&r->machine->policy, label, sizeof(label)));
	report_fio_table(out, results, disk, NULL);
	return ferror(out) ? -EIO : 0;
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
	bool show = !r->jobs.quiet && isatty(STDERR_FILENO);
	struct machine_result result;
	struct report report = { r, m, jobs, &result };
	struct err e = { "" };
	int status = EXIT_OK;

	machine_run(m, jobs, r->jobs.seed, show ? show_progress : NULL, NULL, &result);
	if (show)
		fprintf(stderr, "\r\033[K");
	if (result.error) {
		usage_error(self, "%s", result.text);
		job_results_finish(&result.jobs);
		return result.error == -ENOTSUP || result.error == -ENOSPC ? EXIT_USAGE
									   : EXIT_FAILED;
	}
	if (jobs_report(&r->jobs, print_report, &report, &e))
		status = EXIT_FAILED;
	if (job_results_write_logs(&result.jobs, &e))
		status = EXIT_FAILED;
	if (e.text[0])
		usage_error(self, "%s", e.text);
	if (jobs_failed(self, &r->jobs, jobs, &result.jobs))
		status = EXIT_FAILED;
	job_results_finish(&result.jobs);
	return status;
}

static int run_request(const struct command *self, const struct request *r)
{
	struct jobs_reading reading = { .lenient = r->jobs.lenient };
	struct err e = { "" };
	struct machine m;
	struct jobs *jobs;
	int status = EXIT_OK;

	if (machine_load(&m, r->machine, r->jobs.preset, r->jobs.settings.word,
			 r->jobs.settings.count, &e))
		return usage_error(self, "%s", e.text);
	reading.memory_bytes = m.setup.memory_bytes;
	reading.cpus = m.setup.sim.cpus;
	if (jobs_load_as(r->path, &reading, &jobs, &e)) {
		status = usage_error(self, "%s", e.text);
	} else {
		jobs_print_notes(&r->jobs, jobs);
		if (!r->jobs.parse_only)
			status = run_jobs(self, r, &m, jobs);
		jobs_free(jobs);
	}
	machine_finish(&m);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct request r = { .jobs = JOBS_REQUEST };
	struct words plain = { 0 };
	int status;

	if (!args_read(self, argc, argv, &r, &plain, &status))
		return status;
	if (words_one(self, &plain, "job file", &r.path) ||
	    jobs_request_check(self, &r.jobs, &plain))
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
