/* SPDX-License-Identifier: MIT */
/* sluice lab: runs an experiment and prints what came out beside what was published. */
#include "lab/lab.h"
#include "base/outfile.h"
#include "cli/cli.h"
#include "lab/explain.h"
#include "lab/report.h"
#include "lab/trace_text.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request {
	const char *path, *json, *report, *trace;
	struct words cases, policies, settings;
	u64 seed, jobs;
	bool explain, check, quiet;
};

static const struct option options[] = {
	OPTION_CASE(struct request),
	OPTION_POLICIES(struct request),
	OPTION_SET(struct request, "KEY=VALUE",
		   "set a choice of the policy, or SECTION.KEY, in all cases"),
	OPTION_SEED(struct request),
	OPTION_JOBS(struct request, "cases to run at a time (default: one per CPU)"),
	OPTION_JSON(struct request),
	OPTION_REPORT(struct request),
	OPTION(struct request, explain, FLAG, "explain", 0, NULL,
	       "say what decided the outcome of each case"),
	OPTION(struct request, trace, FILE, "trace", 0, "FILE",
	       "write the throttle's and flusher's decisions, as the kernel's trace"),
	OPTION(struct request, check, FLAG, "check", 0, NULL,
	       "fail if a figure misses its published one"),
	OPTION_QUIET(struct request, "no progress"),
	{ 0 },
};

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

/* The lab at work, while what it is to trace is written. */
struct lab_run {
	const struct plan *plan;
	struct lab_options options;
	struct lab_result *results;
};

static int run_traced(FILE *out, void *ctx)
{
	struct lab_run *run = ctx;

	run->options.trace = out;
	trace_text_head(out);
	return lab_run(run->plan, &run->options, run->results);
}

/* Runs all; false after a complaint. */
static bool run_cases(const struct request *r, struct lab_run *run)
{
	struct err e = { "" };

	if (!run->results) {
		err_set(&e, NULL, 0, "not enough memory");
	} else if (r->trace) {
		if (!outfile_write(r->trace, run_traced, run, &e))
			return true;
	} else if (!lab_run(run->plan, &run->options, run->results)) {
		return true;
	}
	fprintf(stderr, "sluice lab: %s\n", e.text[0] ? e.text : "not enough memory");
	return false;
}

static int run_plan(const struct request *r, const struct plan *plan)
{
	bool show = !r->quiet && isatty(STDERR_FILENO);
	struct lab_run run = {
		.plan = plan,
		.options = { .seed = r->seed,
			     .jobs = (unsigned)r->jobs,
			     .record = r->report || r->explain,
			     .progress = show ? show_progress : NULL },
		.results = calloc(plan->count, sizeof(*run.results)),
	};
	struct lab_result *results = run.results;
	int status = EXIT_FAILED;

	if (run_cases(r, &run)) {
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
		if (r->trace && plan.count > 1)
			status = usage_error(self,
					     "--trace is for one case under one policy, not %zu: "
					     "choose with -c and -p",
					     plan.count);
		else
			status = run_plan(r, &plan);
		plan_finish(&plan);
	}
	experiment_finish(&x);
	return status;
}

/* One after the other; each prints its table, so nothing else can be asked for. */
static int run_several(const struct command *self, struct request *r, const struct words *paths)
{
	int status = EXIT_OK;

	if (r->json || r->report || r->trace)
		return usage_error(self, "--%s is for one experiment, not %zu",
				   r->json     ? "json"
				   : r->report ? "report"
					       : "trace",
				   paths->count);
	for (size_t i = 0; i < paths->count && status != EXIT_USAGE; i++) {
		int one;

		if (i)
			putchar('\n');
		r->path = paths->word[i];
		one = run_request(self, r);
		status = one == EXIT_OK ? status : one;
	}
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct request r = { .seed = 1 };
	struct words plain = { 0 };
	int status;

	if (!args_read(self, argc, argv, &r, &plain, &status))
		return status;
	if (plain.count > 1)
		return run_several(self, &r, &plain);
	if (words_one(self, &plain, "experiment", &r.path))
		return EXIT_USAGE;
	if (check_outputs(self, r.json, r.report, r.path))
		return EXIT_USAGE;
	if (r.trace && check_place(self, "trace", r.trace))
		return EXIT_USAGE;
	if (check_apart(self, "trace", r.trace, r.path) ||
	    check_apart(self, "trace", r.trace, r.json) ||
	    check_apart(self, "trace", r.trace, r.report))
		return EXIT_USAGE;
	return run_request(self, &r);
}

const struct command command_lab = {
	.name = "lab",
	.arguments = "EXPERIMENT.ini...",
	.about = "run an experiment in virtual time",
	.text = "Runs the cases of an experiment, each in a simulated machine of its own, and\n"
		"prints what came out beside what was published. The same experiment and seed\n"
		"give the same figures, on any machine and whatever runs beside it. The file is\n"
		"explained in sluice-experiment(5). Several experiments run one after the other;\n"
		"--json, --report and --trace are for one.",
	.examples = "  sluice lab experiments/p2.ini\n"
		    "  sluice lab experiments/p2.ini -c baseline -c sluice --json p2.json\n"
		    "  sluice lab experiments/p2.ini -c baseline -p linux-6.1 -p linux-7.4\n"
		    "  sluice lab experiments/p2.ini -s vm.dirty_ratio=40 -s accounting=page\n"
		    "  sluice lab experiments/p2.ini --report p2.html --explain\n"
		    "  sluice lab experiments/p2.ini --check\n"
		    "  sluice lab experiments/p5-*.ini\n"
		    "  sluice lab experiments/p4*.ini\n"
		    "  sluice lab experiments/p2.ini -c baseline --trace p2.trace\n",
	.options = options,
	.run = run,
};
