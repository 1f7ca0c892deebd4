/* SPDX-License-Identifier: MIT */
/*
 * The command line: `sluice COMMAND [OPTION]... [ARGUMENT]...`. Each command has a
 * row in a table, with its options and the text of its help, and a function.
 *
 * Exit status: 0 when all went well, 1 when something failed while it ran, 2 when
 * what was asked for makes no sense; then nothing was done.
 */
#ifndef SLUICE_CLI_CLI_H
#define SLUICE_CLI_CLI_H

#include "base/err.h"

#define EXIT_OK     0
#define EXIT_FAILED 1
#define EXIT_USAGE  2

/* What becomes of an option's value: it is put into a field of the command's request. */
enum option_kind {
	TAKES_FLAG,         /* bool, set to true */
	TAKES_NUMBER,       /* u64, from min to max */
	TAKES_REAL,         /* double, from min to max */
	TAKES_SIZE,         /* u64 of bytes, with a unit, from min to max */
	TAKES_TEXT,         /* const char * */
	TAKES_FILE,         /* const char *, not empty */
	TAKES_FILE_OR_DASH, /* the same; "-" is stdout */
	TAKES_WORDS,        /* struct words: it may be repeated */
};

struct option {
	const char *name;     /* "seed" for --seed */
	char letter;          /* 's' for -s, or 0 */
	const char *argument; /* "N" in the help; NULL: takes none */
	const char *help;
	enum option_kind kind;
	size_t field;         /* of the request */
	long double min, max; /* wide enough for any u64 */
};

struct command {
	const char *name;
	const char *arguments; /* "EXPERIMENT.ini", for the help */
	const char *about;     /* one line */
	const char *text;      /* a paragraph or two */
	const char *examples;
	const struct option *options; /* up to one without a name */
	int (*run)(const struct command *c, int argc, char **argv);
};

extern const struct command command_lab, command_fio, command_sweep, command_limits,
	command_calibrate, command_policies, command_device, command_run, command_mount,
	command_umount, command_stat, command_sync, command_tenants, command_torture, command_help,
	command_version;

/* The program under the name mount.sluice, as mount(8) calls it. */
int run_mount_helper(int argc, char **argv);
/* And under umount.sluice and umount.fuse.sluice, as umount(8) does. */
int run_umount_helper(int argc, char **argv);

/* All commands in the order of the help, NULL past the end. */
const struct command *command_at(size_t i);
const struct command *command_find(const char *name);
void command_print_help(const struct command *c);
void print_overview(void);

/* The values of an option that may be repeated, or the words that are no options. */
#define WORDS_MAX 64
struct words {
	const char *word[WORDS_MAX];
	size_t count;
};

/*
 * Reads all options of a command into its request, and collects the words that are none. True
 * to go on; false: the program ends with *status, everything was said.
 */
bool args_read(const struct command *c, int argc, char **argv, void *request, struct words *plain,
	       int *status);
/* Prints "sluice COMMAND: TEXT" on stderr; returns EXIT_USAGE. */
int usage_error(const struct command *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A row of an option whose value goes into a field of a request of type T. */
#define OPTION(T, field, kind, name, letter, argument, help) \
	OPTION_IN(T, field, kind, name, letter, argument, help, 0, 0)
#define OPTION_IN(T, field, kind, name, letter, argument, help, min, max)                \
	{                                                                                \
		name, letter, argument, help, TAKES_##kind, offsetof(T, field), min, max \
	}

/* Those that several commands have mean the same everywhere. */
#define OPTION_CASE(T) \
	OPTION(T, cases, WORDS, "case", 'c', "CASE", "run only this case (may be repeated)")
#define OPTION_POLICIES(T)                                  \
	OPTION(T, policies, WORDS, "policy", 'p', "POLICY", \
	       "run under this preset instead (may be repeated)")
#define OPTION_POLICY(T) \
	OPTION(T, policy, TEXT, "policy", 'p', "POLICY", "of the page cache (default: sluice)")
#define OPTION_SET(T, argument, help) OPTION(T, settings, WORDS, "set", 's', argument, help)
#define OPTION_SEED(T)                                                                         \
	OPTION_IN(T, seed, NUMBER, "seed", 0, "N", "seed of everything random (default 1)", 0, \
		  INT64_MAX)
#define OPTION_JOBS(T, help) OPTION_IN(T, jobs, NUMBER, "jobs", 'j', "N", help, 1, 1024)
#define OPTION_JSON(T)                                   \
	OPTION(T, json, FILE_OR_DASH, "json", 0, "FILE", \
	       "write the results as JSON; \"-\": only that, on stdout")
#define OPTION_REPORT(T)                                     \
	OPTION(T, report, FILE_OR_DASH, "report", 0, "FILE", \
	       "write a page of plots, to open in a browser; \"-\": only that, on stdout")
#define OPTION_QUIET(T, help) OPTION(T, quiet, FLAG, "quiet", 'q', NULL, help)

/* All return 0, or EXIT_USAGE after a complaint. */
/* The one word of a command that takes one: *out. `what` is "experiment". */
int words_one(const struct command *c, const struct words *w, const char *what, const char **out);
/* A result that cannot be written should be known before an hour of work, not after. */
int check_place(const struct command *c, const char *option, const char *path);
/* Refuses a file to write that is `other` too: an input, or another output. NULL is no file. */
int check_apart(const struct command *c, const char *option, const char *path, const char *other);

/* outputs.c: a path that is standard output; refuses results that cannot be written where they
 * shall; remarks on an experiment, on standard error. */
struct experiment;
bool is_stdout(const char *path);
int check_outputs(const struct command *c, const char *json, const char *report, const char *input);
void print_experiment_notes(const struct experiment *x);

/* "; did you mean "NEAR"?" when there is one, or "". */
const char *hint(char buf[160], const char *near, const char *dashes);

#endif
