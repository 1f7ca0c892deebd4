/* SPDX-License-Identifier: MIT */
/* sluice calibrate: measures what the lab charges for CPU time on the machine it runs on. */
#include "lab/calibrate.h"
#include "base/units.h"
#include "cli/cli.h"
#include <stdio.h>

enum {
	OPT_DIR,
	OPT_FRESH,
	OPT_ROUNDS,
	OPT_WRITE,
};

static const struct option options[] = {
	[OPT_DIR] = { "dir", 0, "DIR", "where the test file goes: on a disk (default \".\")" },
	[OPT_FRESH] = { "fresh", 0, "SIZE", "take page_ns from so much memory that nobody used" },
	[OPT_ROUNDS] = { "rounds", 0, "N", "how often everything is measured (default 15)" },
	[OPT_WRITE] = { "write", 0, "FILE", "put the result into this machine file" },
	{ 0 },
};

static int run(const struct command *self, int argc, char **argv)
{
	struct args a = { .command = self, .words = argv, .count = argc };
	const char *value, *folder = ".", *path = NULL;
	struct calibration c;
	struct err e = { "" };
	u64 rounds = 15, fresh = 0;
	int arg;

	while ((arg = args_next(&a, &value)) != ARG_END) {
		if (arg == ARG_HELP || arg == ARG_WRONG)
			return arg == ARG_HELP ? EXIT_OK : EXIT_USAGE;
		if (arg == ARG_PLAIN)
			return usage_error(self, "takes no arguments, not \"%s\"", value);
		if (arg == OPT_DIR)
			folder = value;
		else if (arg == OPT_WRITE)
			path = value;
		else if (arg == OPT_FRESH && (units_parse_bytes(value, &fresh) || fresh < 1 << 20))
			return usage_error(
				self, "--fresh cannot be \"%s\", only a size of 1M or more", value);
		else if (arg == OPT_FRESH)
			continue;
		else if (take_number(self, "rounds", value, 1, CALIBRATE_ROUNDS_MAX, &rounds))
			return EXIT_USAGE;
	}
	if (path && check_place(self, "write", path))
		return EXIT_USAGE;
	if (calibrate(&c, folder, (unsigned)rounds, &e) ||
	    (fresh && calibrate_fresh(&c, fresh, &e))) {
		fprintf(stderr, "sluice calibrate: %s\n", e.text);
		return EXIT_FAILED;
	}
	calibrate_print(stdout, &c);
	if (path && calibrate_write(path, &c, &e)) {
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
