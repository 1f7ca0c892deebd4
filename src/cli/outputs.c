/* SPDX-License-Identifier: MIT */
/*
 * What the commands that run experiments share: results may go to files or, one of them, to
 * standard output in place of the table, and remarks on an experiment go to standard error.
 */
#include "cli/cli.h"
#include "lab/experiment.h"
#include <stdio.h>
#include <string.h>

bool is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

int check_outputs(const struct command *self, const char *json, const char *report,
		  const char *input)
{
	if (is_stdout(json) && is_stdout(report))
		return usage_error(self,
				   "--json - and --report -: standard output can be only one");
	if (json && !is_stdout(json) && check_place(self, "json", json))
		return EXIT_USAGE;
	if (report && !is_stdout(report) && check_place(self, "report", report))
		return EXIT_USAGE;
	if (check_apart(self, "json", json, input) || check_apart(self, "report", report, input) ||
	    check_apart(self, "report", report, json))
		return EXIT_USAGE;
	return 0;
}

void print_experiment_notes(const struct experiment *x)
{
	for (size_t i = 0; experiment_note(x, i); i++)
		fprintf(stderr, "note: %s\n", experiment_note(x, i));
}
