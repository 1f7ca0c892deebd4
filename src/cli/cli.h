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

struct option {
	const char *name;     /* "seed" for --seed */
	char letter;          /* 's' for -s, or 0 */
	const char *argument; /* "N" in the help; NULL: takes none */
	const char *help;
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
	command_calibrate, command_policies, command_help, command_version;

/* All commands in the order of the help, NULL past the end. */
const struct command *command_at(size_t i);
const struct command *command_find(const char *name);
void command_print_help(const struct command *c);
void print_overview(void);

/* A walk over the words behind a command. */
struct args {
	const struct command *command;
	char **words;
	int count, next;
	bool only_arguments; /* "--" was seen */
};

enum { ARG_END = -1, ARG_PLAIN = -2, ARG_WRONG = -3, ARG_HELP = -4 };

/*
 * The index of the next option in the command's table, with its value in *value; or
 * ARG_PLAIN with a word that is no option; or ARG_END. After ARG_WRONG the complaint was
 * printed, after ARG_HELP the help.
 */
int args_next(struct args *a, const char **value);
/* Prints "sluice COMMAND: TEXT" on stderr; returns EXIT_USAGE. */
int usage_error(const struct command *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The values of an option that may be repeated. */
#define WORDS_MAX 64
struct words {
	const char *word[WORDS_MAX];
	size_t count;
};

/* All return 0, or EXIT_USAGE after a complaint. */
int words_add(const struct command *c, struct words *w, const char *word);
int take_number(const struct command *c, const char *option, const char *text, u64 min, u64 max,
		u64 *out);
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
