/* SPDX-License-Identifier: MIT */
/* sluice torture: random operations and faults, against a model, until something is wrong. */
#include "torture/torture.h"
#include "cli/cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
	u64 seed, runs, steps, jobs;
	const char *faults, *keep;
	bool trace, whole;
};

static const struct option options[] = {
	OPTION_IN(struct request, seed, NUMBER, "seed", 0, "N", "of the first run (default 1)", 0,
		  INT64_MAX),
	OPTION_IN(struct request, runs, NUMBER, "runs", 'n', "N", "how many (default 100)", 1,
		  INT64_MAX),
	OPTION_IN(struct request, steps, NUMBER, "steps", 0, "N",
		  "operations in each (default 150)", 1, TORTURE_STEPS_MAX),
	OPTION(struct request, faults, TEXT, "faults", 0, "LIST",
	       "of eio, full, hang, gone, slow, memory, power, short, death (default all)"),
	OPTION_JOBS(struct request, "so many at a time (default 1)"),
	OPTION(struct request, keep, TEXT, "keep", 0, "LIST",
	       "do only these operations of one run, as 3,7-9"),
	OPTION(struct request, trace, FLAG, "trace", 0, NULL, "print each operation of one run"),
	OPTION(struct request, whole, FLAG, "no-shrink", 0, NULL,
	       "do not look for a shorter way to fail"),
	{ 0 },
};

/* "3,7-9" into keep[steps]. False: it is no such list. */
static bool parse_keep(const char *text, u8 *keep, u64 steps)
{
	memset(keep, 0, steps);
	for (;;) {
		char *end;
		u64 first = strtoull(text, &end, 10), last = first;

		if (end == text)
			return false;
		if (*end == '-') {
			text = end + 1;
			last = strtoull(text, &end, 10);
			if (end == text)
				return false;
		}
		if (first > last || last >= steps)
			return false;
		memset(keep + first, 1, last - first + 1);
		if (!*end)
			return true;
		if (*end != ',')
			return false;
		text = end + 1;
	}
}

static void print_keep(const u8 *keep, u64 steps)
{
	const char *comma = "";

	for (u64 i = 0; i < steps; i++) {
		u64 last = i;

		if (!keep[i])
			continue;
		while (last + 1 < steps && keep[last + 1])
			last++;
		printf("%s%llu", comma, (unsigned long long)i);
		if (last > i)
			printf("-%llu", (unsigned long long)last);
		comma = ",";
		i = last;
	}
}

static void print_line(void *ctx, const char *line)
{
	(void)ctx;
	printf("  %s\n", line);
	fflush(stdout);
}

static void print_failure(const struct torture_report *report)
{
	printf("seed %llu fails at operation %u of %u: %s\n  while: %s\n  machine: %s\n",
	       (unsigned long long)report->seed, report->step, report->ops, report->why,
	       report->doing, report->machine);
	fflush(stdout);
}

static void print_short(const struct request *r, struct torture_config *c, u8 *keep,
			struct torture_report *report)
{
	int left = torture_shrink(c, keep, report);

	if (left < 0)
		return;
	printf("%d operations are enough: %s\n", left, report->why);
	printf("again: sluice torture --seed %llu --steps %llu --faults %s --trace --keep ",
	       (unsigned long long)c->seed, (unsigned long long)r->steps, r->faults);
	print_keep(keep, r->steps);
	putchar('\n');
}

static int torture(const struct request *r, struct torture_config *c, u8 *keep)
{
	struct torture_report report = { 0 };
	u64 runs = r->keep || r->trace ? 1 : r->runs;
	int rc;

	if (r->keep)
		c->keep = keep;
	if (r->trace)
		c->show = print_line;
	rc = torture_runs(c, runs, (unsigned)min_u64(r->jobs, runs), NULL, NULL, &report);
	if (rc < 0) {
		fprintf(stderr, "sluice torture: %s\n", strerror(-rc));
		return EXIT_FAILED;
	}
	if (!rc) {
		printf("%llu runs of %llu operations from seed %llu: nothing is wrong\n",
		       (unsigned long long)runs, (unsigned long long)r->steps,
		       (unsigned long long)r->seed);
		return EXIT_OK;
	}
	print_failure(&report);
	c->seed = report.seed;
	c->show = NULL;
	if (!r->whole && !r->keep)
		print_short(r, c, keep, &report);
	return EXIT_FAILED;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct request r = { .seed = 1, .runs = 100, .steps = 150, .jobs = 1, .faults = "all" };
	struct torture_config c = { 0 };
	struct words plain = { 0 };
	struct err e = { "" };
	int status;
	u8 *keep;

	if (!args_read(self, argc, argv, &r, &plain, &status))
		return status;
	if (plain.count)
		return usage_error(self, "takes no arguments, not \"%s\"", plain.word[0]);
	if (torture_faults_parse(r.faults, &c.faults, &e))
		return usage_error(self, "--faults: %s", e.text);
	c.seed = r.seed;
	c.steps = (u32)r.steps;
	keep = malloc(r.steps);
	if (!keep)
		return EXIT_FAILED;
	if (r.keep && !parse_keep(r.keep, keep, r.steps))
		status = usage_error(self, "--keep wants numbers below %llu, as 3,7-9, not \"%s\"",
				     (unsigned long long)r.steps, r.keep);
	else
		status = torture(&r, &c, keep);
	free(keep);
	return status;
}

const struct command command_torture = {
	.name = "torture",
	.arguments = "",
	.about = "try to make the engine lose data",
	.text = "Runs the engine in simulated worlds drawn from a seed: operations by several "
		"tasks,\n"
		"devices that fail, hang, fill up and lose power, memory that is refused. What it "
		"reads,\n"
		"returns and keeps is held against a model of plain bytes. A run that fails is "
		"made as\n"
		"short as it can be, and the command that repeats it is printed.",
	.examples = "  sluice torture --runs 2000 --jobs 2\n"
		    "  sluice torture --seed 17 --runs 1 --trace\n"
		    "  sluice torture --faults power,eio --runs 10000\n",
	.options = options,
	.run = run,
};
