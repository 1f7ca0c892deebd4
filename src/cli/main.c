/* SPDX-License-Identifier: MIT */
/* sluice: finds the command and runs it; help and version. */
#include "cli/cli.h"
#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {
	&command_lab,     &command_fio,      &command_sweep,  &command_run,
	&command_device,  &command_mount,    &command_umount, &command_stat,
	&command_sync,    &command_tenants,  &command_limits, &command_calibrate,
	&command_torture, &command_policies, &command_help,   &command_version,
};

const struct command *command_at(size_t i)
{
	return i < ARRAY_SIZE(commands) ? commands[i] : NULL;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

void print_overview(void)
{
	puts("Usage: sluice COMMAND [OPTION]... [ARGUMENT]...\n\n"
	     "A page cache with honest dirty accounting, to run, measure and prove.\n\n"
	     "Commands:");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->about);
	puts("\n\"sluice COMMAND --help\" says more about each. Exit status: 0 all went well,\n"
	     "1 something failed, 2 what was asked for makes no sense.");
}

static int unknown_command(const char *name)
{
	const char *names[ARRAY_SIZE(commands)];
	char buf[160];

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i]->name;
	return usage_error(NULL, "unknown command \"%s\"%s", name,
			   hint(buf, err_nearest(name, names, ARRAY_SIZE(commands)), ""));
}

static int run_help(const struct command *self, int argc, char **argv)
{
	const struct command *about = NULL;
	struct words plain = { 0 };
	int status;

	if (!args_read(self, argc, argv, NULL, &plain, &status))
		return status;
	if (plain.count > 1)
		return usage_error(self, "one command at a time, not \"%s\" too", plain.word[1]);
	if (plain.count) {
		about = command_find(plain.word[0]);
		if (!about)
			return unknown_command(plain.word[0]);
	}
	if (about)
		command_print_help(about);
	else
		print_overview();
	return EXIT_OK;
}

static int run_version(const struct command *self, int argc, char **argv)
{
	struct words plain = { 0 };
	int status;

	if (!args_read(self, argc, argv, NULL, &plain, &status))
		return status;
	if (plain.count)
		return usage_error(self, "takes no arguments, not \"%s\"", plain.word[0]);
	puts("sluice " SLUICE_VERSION);
	return EXIT_OK;
}

static const struct option no_options[] = { { 0 } };

const struct command command_help = {
	.name = "help",
	.arguments = "[COMMAND]",
	.about = "explain a command",
	.text = "Explains a command, or lists all of them.",
	.examples = "  sluice help\n  sluice help lab\n",
	.options = no_options,
	.run = run_help,
};

const struct command command_version = {
	.name = "version",
	.arguments = "",
	.about = "print the version",
	.text = "Prints the version of this program.",
	.examples = "  sluice version\n",
	.options = no_options,
	.run = run_version,
};

int main(int argc, char **argv)
{
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	const struct command *c;
	int status;

	const char *name = !argc ? "" : slash ? slash + 1 : argv[0];

	if (!strcmp(name, "mount.sluice"))
		return run_mount_helper(argc, argv);
	if (!strcmp(name, "umount.sluice") || !strcmp(name, "umount.fuse.sluice"))
		return run_umount_helper(argc, argv);
	if (argc < 2)
		return usage_error(NULL, "no command given; \"sluice help\" lists them");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		argv[1] = (char *)"help";
	if (!strcmp(argv[1], "--version"))
		argv[1] = (char *)"version";
	if (argv[1][0] == '-')
		return usage_error(NULL,
				   "unknown option \"%s\"; only --help and --version come "
				   "before a command",
				   argv[1]);
	c = command_find(argv[1]);
	if (!c)
		return unknown_command(argv[1]);
	status = c->run(c, argc - 2, argv + 2);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "sluice %s: standard output cannot be written\n", c->name);
		return EXIT_FAILED;
	}
	return status;
}
