/* SPDX-License-Identifier: MIT */
/* What the commands that run fio job files have in common: sluice fio and sluice run. */
#ifndef SLUICE_CLI_JOBS_H
#define SLUICE_CLI_JOBS_H

#include "cli/cli.h"
#include "job/report_fio.h"
#include "writeback/policy.h"

/* The first member of such a command's request. */
struct jobs_request {
	const char *format, *output, *policy;
	struct words settings;
	u64 seed;
	bool lenient, parse_only, quiet;
	/* made of them by jobs_request_check() */
	const struct policy *preset;
	bool json;
};

#define JOBS_REQUEST                                              \
	{                                                         \
		.format = "normal", .policy = "sluice", .seed = 1 \
	}

/* Their rows. */
#define JOBS_OPTION(...) OPTION(struct jobs_request, __VA_ARGS__)
#define JOBS_OPTIONS                                                                  \
	JOBS_OPTION(format, TEXT, "output-format", 0, "FORMAT",                       \
		    "normal (a table) or json (fio's)"),                              \
		JOBS_OPTION(output, FILE, "output", 'o', "FILE",                      \
			    "write the report there, not on stdout"),                 \
		OPTION_POLICY(struct jobs_request), OPTION_SEED(struct jobs_request), \
		JOBS_OPTION(lenient, FLAG, "lenient", 0, NULL,                        \
			    "ignore options that are not supported"),                 \
		JOBS_OPTION(parse_only, FLAG, "parse-only", 0, NULL,                  \
			    "read the job file and run nothing"),                     \
		OPTION_QUIET(struct jobs_request, "no progress, and no notes on options")

/* 0, or EXIT_USAGE after a complaint. `files` are those the command reads. */
int jobs_request_check(const struct command *self, struct jobs_request *r,
		       const struct words *files);
/* What was taken and does not count, unless nobody wants to know. */
void jobs_print_notes(const struct jobs_request *r, const struct jobs *jobs);
/* Writes the report where it belongs. 0, or a negative errno with `e` set. */
int jobs_report(const struct jobs_request *r, int (*print)(FILE *out, void *ctx), void *ctx,
		struct err *e);
/*
 * True if a job has failed. The table says which and why; where that is not what is printed, they
 * are said on stderr.
 */
bool jobs_failed(const struct command *self, const struct jobs_request *r, const struct jobs *jobs,
		 const struct job_results *results);

#endif
