/* SPDX-License-Identifier: MIT */
/* sluice calibrate: measures what the lab charges for CPU time on the machine it runs on. */
#include "lab/calibrate.h"
#include "base/units.h"
#include "cli/cli.h"
#include <stdio.h>

struct request {
	const char *folder, *write;
	u64 rounds, fresh_bytes;
};

static const struct option options[] = {
	OPTION(struct request, folder, TEXT, "dir", 0, "DIR",
	       "where the test file goes: on a disk (default \".\")"),
	OPTION_IN(struct request, fresh_bytes, SIZE, "fresh", 0, "SIZE",
		  "take page_ns from so much memory that nobody used", 1 << 20, UINT64_MAX),
	OPTION_IN(struct request, rounds, NUMBER, "rounds", 0, "N",
		  "how often everything is measured (default 15)", 1, CALIBRATE_ROUNDS_MAX),
	OPTION(struct request, write, FILE, "write", 0, "FILE",
	       "put the result into this machine file"),
	{ 0 },
};

static int run(const struct command *self, int argc, char **argv)
{
	struct request r = { .folder = ".", .rounds = 15 };
	struct words plain = { 0 };
	struct calibration c;
	struct err e = { "" };
	int status;

	if (!args_read(self, argc, argv, &r, &plain, &status))
		return status;
	if (plain.count)
		return usage_error(self, "takes no arguments, not \"%s\"", plain.word[0]);
	if (r.write && check_place(self, "write", r.write))
		return EXIT_USAGE;
	if (calibrate(&c, r.folder, (unsigned)r.rounds, &e) ||
	    (r.fresh_bytes && calibrate_fresh(&c, r.fresh_bytes, &e))) {
		fprintf(stderr, "sluice calibrate: %s\n", e.text);
		return EXIT_FAILED;
	}
	calibrate_print(stdout, &c);
	if (r.write && calibrate_write(r.write, &c, &e)) {
		fprintf(stderr, "sluice calibrate: %s\n", e.text);
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

const struct command command_calibrate = {
	.name = "calibrate",
	.arguments = "",
	.about = "measure what CPU work costs here",
	.text = "Measures with system calls of its own what the lab charges for CPU work: calls,\n"
		"finding, copying, dirtying and allocating pages, submitting I/O, waking threads.\n"
		"Prints a [cpu] section for a machine file. The machine should be quiet.",
	.examples = "  sluice calibrate --dir /var/tmp\n"
		    "  sluice calibrate --dir /mnt/disk --write machines/mine.ini\n",
	.options = options,
	.run = run,
};
