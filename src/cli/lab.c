/* SPDX-License-Identifier: MIT */
/* sluice lab: runs an experiment and prints what came out beside what was published. */
#include "lab/lab.h"
#include "cli/cli.h"
#include "lab/explain.h"
#include "lab/report.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OPT_CASE,
	OPT_POLICY,
	OPT_SET,
	OPT_SEED,
	OPT_JOBS,
	OPT_JSON,
	OPT_REPORT,
	OPT_EXPLAIN,
	OPT_CHECK,
	OPT_QUIET,
};

static const struct option options[] = {
	[OPT_CASE] = { "case", 'c', "CASE", "run only this case (may be repeated)" },
	[OPT_POLICY] = { "policy", 'p', "POLICY",
			 "run under this preset instead (may be repeated)" },
	[OPT_SET] = { "set", 's', "KEY=VALUE",
		      "set a choice of the policy, or SECTION.KEY, in all cases" },
	[OPT_SEED] = { "seed", 0, "N", "seed of everything random (default 1)" },
	[OPT_JOBS] = { "jobs", 'j', "N", "cases to run at a time (default: one per CPU)" },
	[OPT_JSON] = { "json", 0, "FILE",
		       "write the results as JSON; \"-\": only that, on stdout" },
	[OPT_REPORT] = { "report", 0, "FILE",
			 "write a page of plots, to open in a browser; \"-\": only that, on "
			 "stdout" },
	[OPT_EXPLAIN] = { "explain", 0, NULL, "say what decided the outcome of each case" },
	[OPT_CHECK] = { "check", 0, NULL, "fail if a figure misses its published one" },
	[OPT_QUIET] = { "quiet", 'q', NULL, "no progress" },
	{ 0 },
};

struct request {
	const char *path, *json, *report;
	struct words cases, policies, settings;
	u64 seed, jobs;
	bool explain, check, quiet;
};

static int take(const struct command *self, struct request *r, int arg, const char *value)
{
	switch (arg) {
	case OPT_CASE:
		return words_add(self, &r->cases, value);
	case OPT_POLICY:
		return words_add(self, &r->policies, value);
	case OPT_SET:
		return words_add(self, &r->settings, value);
	case OPT_SEED:
		return take_number(self, "seed", value, 0, INT64_MAX, &r->seed);
	case OPT_JOBS:
		return take_number(self, "jobs", value, 1, 1024, &r->jobs);
	case OPT_JSON:
		r->json = value;
		return *value ? 0 : usage_error(self, "--json needs the name of a file, or \"-\"");
	case OPT_REPORT:
		r->report = value;
		return *value ? 0
			      : usage_error(self, "--report needs the name of a file, or \"-\"");
	case OPT_EXPLAIN:
		r->explain = true;
		return 0;
	case OPT_CHECK:
		r->check = true;
		return 0;
	case OPT_QUIET:
		r->quiet = true;
		return 0;
	}
	assert(arg == ARG_PLAIN);
	if (r->path)
		return usage_error(self, "one experiment at a time, not \"%s\" too", value);
	r->path = value;
	return 0;
}

static void show_progress(void *ctx, const struct lab_progress *p)
{
	double speed = p->wall_s > 0 ? p->virtual_s / p->wall_s : 0;
	char left[48] = "";

	(void)ctx;
	if (p->left_s >= 0)
		snprintf(left, sizeof(left), ", %.0f s left", p->left_s);
	fprintf(stderr, "\r\033[K%zu of %zu cases done, %s: %.0f s virtual, %.0f times real%s",
		p->done, p->total, p->newest, p->virtual_s, speed, left);
	fflush(stderr);
}

/* The errors of cases that failed; returns how many. */
static size_t print_errors(const struct lab_result *results, size_t count)
{
	size_t failures = 0;

	for (size_t i = 0; i < count; i++) {
		if (!results[i].error)
			continue;
		fprintf(stderr, "sluice lab: %s\n", results[i].text);
		failures++;
	}
	return failures;
}

static struct selection selection_of(const struct request *r)
{
	return (struct selection){ r->cases.word,     r->cases.count,   r->policies.word,
				   r->policies.count, r->settings.word, r->settings.count };
}

static bool write_report(const struct request *r, const struct experiment *x,
			 const struct lab_result *results, size_t count)
{
	struct selection s = selection_of(r);
	struct report report = { x, &s, r->seed, results, count };
	struct err e = { "" };

	if (is_stdout(r->report)) {
		report_html(stdout, &report);
		return !ferror(stdout);
	}
	if (!report_html_file(r->report, &report, &e))
		return true;
	fprintf(stderr, "sluice lab: %s\n", e.text);
	return false;
}

static int print_results(const struct request *r, const struct experiment *x,
			 const struct lab_result *results, size_t count)
{
	struct err e = { "" };
	size_t failures = print_errors(results, count);
	bool bad = failures > 0;

	if (is_stdout(r->json)) {
		bad |= report_json(stdout, x, r->seed, results, count) != 0;
	} else if (!is_stdout(r->report)) {
		if (failures < count)
			report_table(stdout, x, results, count);
		if (r->explain)
			explain_all(stdout, results, count);
	}
	if (r->json && !is_stdout(r->json) &&
	    report_json_file(r->json, x, r->seed, results, count, &e)) {
		fprintf(stderr, "sluice lab: %s\n", e.text);
		bad = true;
	}
	if (r->report)
		bad |= !write_report(r, x, results, count);
	if (r->check)
		bad |= report_misses(stderr, x, results, count) > 0;
	return bad ? EXIT_FAILED : EXIT_OK;
}

static int run_plan(const struct request *r, const struct plan *plan)
{
	bool show = !r->quiet && isatty(STDERR_FILENO);
	struct lab_options o = {
		.seed = r->seed,
		.jobs = (unsigned)r->jobs,
		.record = r->report || r->explain,
		.progress = show ? show_progress : NULL,
	};
	struct lab_result *results = calloc(plan->count, sizeof(*results));
	int status = EXIT_FAILED;

	if (!results || lab_run(plan, &o, results)) {
		fprintf(stderr, "sluice lab: not enough memory\n");
	} else {
		if (show)
			fprintf(stderr, "\r\033[K");
		status = print_results(r, plan->experiment, results, plan->count);
	}
	if (results)
		lab_results_finish(results, plan->count);
	free(results);
	return status;
}

static int run_request(const struct command *self, const struct request *r)
{
	struct selection s = selection_of(r);
	struct experiment x;
	struct plan plan;
	struct err e = { "" };
	int status;

	if (experiment_load(&x, r->path, &e))
		return usage_error(self, "%s", e.text);
	print_experiment_notes(&x);
	if (plan_make(&plan, &x, &s, &e)) {
		status = usage_error(self, "%s", e.text);
	} else {
		status = run_plan(r, &plan);
		plan_finish(&plan);
	}
	experiment_finish(&x);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct args a = { .command = self, .words = argv, .count = argc };
	struct request r = { .seed = 1 };
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
		return usage_error(self, "which experiment? \"sluice lab --help\" says more");
	if (check_outputs(self, r.json, r.report, r.path))
		return EXIT_USAGE;
	return run_request(self, &r);
}

const struct command command_lab = {
	.name = "lab",
	.arguments = "EXPERIMENT.ini",
	.about = "run an experiment in virtual time",
	.text = "Runs the cases of an experiment, each in a simulated machine of its own, and\n"
		"prints what came out beside what was published. The same experiment and seed\n"
		"give the same figures, on any machine and whatever runs beside it. The file is\n"
		"explained in sluice-experiment(5).",
	.examples = "  sluice lab experiments/p2.ini\n"
		    "  sluice lab experiments/p2.ini -c baseline -c sluice --json p2.json\n"
		    "  sluice lab experiments/p2.ini -c baseline -p linux-6.1 -p linux-7.4\n"
		    "  sluice lab experiments/p2.ini -s vm.dirty_ratio=40 -s accounting=page\n"
		    "  sluice lab experiments/p2.ini --report p2.html --explain\n"
		    "  sluice lab experiments/p2.ini --check\n",
	.options = options,
	.run = run,
};
