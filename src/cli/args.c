/* SPDX-License-Identifier: MIT */
/*
 * Options are read word by word: --name VALUE, --name=VALUE, -n VALUE, -nVALUE; "--"
 * ends them. Words that are no options may stand anywhere. Every command knows
 * --help and -h. A word that is nearly an option is answered with the option.
 */
#include "base/units.h"
#include "cli/cli.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPTIONS_MAX 32

/* A walk over the words behind a command. */
struct args {
	const struct command *command;
	char **words;
	int count, next;
	bool only_arguments; /* "--" was seen */
};

enum { ARG_END = -1, ARG_PLAIN = -2, ARG_WRONG = -3, ARG_HELP = -4 };

int usage_error(const struct command *c, const char *format, ...)
{
	va_list list;

	fprintf(stderr, c ? "sluice %s: " : "sluice: ", c ? c->name : "");
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

void command_print_help(const struct command *c)
{
	printf("Usage: sluice %s%s%s%s\n\n%s\n\nOptions:\n", c->name,
	       c->options->name ? " [OPTION]..." : "", *c->arguments ? " " : "", c->arguments,
	       c->text);
	for (const struct option *o = c->options; o->name; o++) {
		char left[48];

		if (o->letter)
			snprintf(left, sizeof(left), "-%c, --%s%s%s", o->letter, o->name,
				 o->argument ? " " : "", o->argument ? o->argument : "");
		else
			snprintf(left, sizeof(left), "    --%s%s%s", o->name,
				 o->argument ? " " : "", o->argument ? o->argument : "");
		printf("  %-24s %s\n", left, o->help);
	}
	printf("  %-24s %s\n\nExamples:\n%s", "-h, --help", "print this help", c->examples);
}

const char *hint(char buf[160], const char *near, const char *dashes)
{
	buf[0] = 0;
	if (near)
		snprintf(buf, 160, "; did you mean \"%s%s\"?", dashes, near);
	return buf;
}

static int refuse(const struct args *a, const char *word)
{
	const char *names[OPTIONS_MAX] = { "help" };
	size_t len = strcspn(word, "="), count = 1;
	char buf[160], name[64];

	for (const struct option *o = a->command->options; o->name; o++) {
		assert(count < OPTIONS_MAX);
		names[count++] = o->name;
	}
	snprintf(name, sizeof(name), "%.*s", (int)len, word);
	usage_error(a->command, "unknown option \"%s\"%s", name,
		    hint(buf, err_nearest(name + strspn(name, "-"), names, count), "--"));
	return ARG_WRONG;
}

/* The value of option o: behind "=" or the letter if there is one, else the next word. */
static int take_value(struct args *a, const struct option *o, const char *attached,
		      const char **value)
{
	int index = (int)(o - a->command->options);

	*value = attached;
	if (!o->argument && attached) {
		usage_error(a->command, "option \"--%s\" takes no value", o->name);
		return ARG_WRONG;
	}
	if (!o->argument || attached)
		return index;
	if (a->next == a->count) {
		usage_error(a->command, "option \"--%s\" needs a value: %s", o->name, o->argument);
		return ARG_WRONG;
	}
	*value = a->words[a->next++];
	return index;
}

static int long_option(struct args *a, const char *word, const char **value)
{
	const char *name = word + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);

	for (const struct option *o = a->command->options; o->name; o++)
		if (strlen(o->name) == len && !strncmp(o->name, name, len))
			return take_value(a, o, equals ? equals + 1 : NULL, value);
	return refuse(a, word);
}

static int short_option(struct args *a, const char *word, const char **value)
{
	for (const struct option *o = a->command->options; o->name; o++)
		if (o->letter == word[1])
			return take_value(a, o, word[2] ? word + 2 : NULL, value);
	return refuse(a, word);
}

/*
 * The index of the next option in the command's table, with its value in *value; or ARG_PLAIN
 * with a word that is no option; or ARG_END. After ARG_WRONG the complaint was printed, after
 * ARG_HELP the help.
 */
static int args_next(struct args *a, const char **value)
{
	const char *word;

	*value = NULL;
	if (a->next == a->count)
		return ARG_END;
	word = a->words[a->next++];
	if (!a->only_arguments && !strcmp(word, "--")) {
		a->only_arguments = true;
		return args_next(a, value);
	}
	if (a->only_arguments || word[0] != '-' || !word[1]) {
		*value = word;
		return ARG_PLAIN;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		command_print_help(a->command);
		return ARG_HELP;
	}
	return word[1] == '-' ? long_option(a, word, value) : short_option(a, word, value);
}

static int words_add(const struct command *self, struct words *w, const char *word)
{
	if (w->count == WORDS_MAX)
		return usage_error(self, "more than %d of one option", WORDS_MAX);
	w->word[w->count++] = word;
	return 0;
}

static int take_number(const struct command *self, const char *name, const char *text, u64 min,
		       u64 max, u64 *out)
{
	if (!units_parse_u64(text, out) && *out >= min && *out <= max)
		return 0;
	return usage_error(self, "--%s cannot be \"%s\", only %ju to %ju", name, text,
			   (uintmax_t)min, (uintmax_t)max);
}

static int refuse_number(const struct command *self, const struct option *o, const char *text)
{
	return usage_error(self, "--%s cannot be \"%s\", only %.15Lg to %.15Lg", o->name, text,
			   o->min, o->max);
}

static int take_size(const struct command *self, const struct option *o, const char *text, u64 *out)
{
	char least[UNITS_TEXT_MAX];
	u64 bytes;

	if (!units_parse_bytes(text, &bytes) && bytes >= o->min && bytes <= o->max) {
		*out = bytes;
		return 0;
	}
	if (o->min <= 1)
		return usage_error(self, "--%s cannot be \"%s\", only a size, as 500M", o->name,
				   text);
	return usage_error(self, "--%s cannot be \"%s\", only a size of at least %s", o->name, text,
			   units_print_bytes(least, (u64)o->min));
}

/* 0, or EXIT_USAGE after a complaint. */
static int take_value_into(const struct command *self, const struct option *o, const char *text,
			   char *request)
{
	void *field = request + o->field;
	double real;

	assert(text || o->kind == TAKES_FLAG);
	switch (o->kind) {
	case TAKES_FLAG:
		*(bool *)field = true;
		return 0;
	case TAKES_NUMBER:
		return take_number(self, o->name, text, (u64)o->min, (u64)o->max, field);
	case TAKES_REAL:
		if (units_parse_double(text, &real) || !(real >= o->min && real <= o->max))
			return refuse_number(self, o, text);
		*(double *)field = real;
		return 0;
	case TAKES_SIZE:
		return take_size(self, o, text, field);
	case TAKES_TEXT:
		*(const char **)field = text;
		return 0;
	case TAKES_FILE:
	case TAKES_FILE_OR_DASH:
		*(const char **)field = text;
		if (*text)
			return 0;
		return usage_error(self, "--%s needs the name of a file%s", o->name,
				   o->kind == TAKES_FILE_OR_DASH ? ", or \"-\"" : "");
	case TAKES_WORDS:
		return words_add(self, field, text);
	}
	return EXIT_USAGE;
}

bool args_read(const struct command *self, int argc, char **argv, void *request,
	       struct words *plain, int *status)
{
	struct args a = { .command = self, .words = argv, .count = argc };
	const char *value;
	int arg;

	while ((arg = args_next(&a, &value)) != ARG_END) {
		if (arg == ARG_HELP)
			*status = EXIT_OK;
		else if (arg == ARG_WRONG)
			*status = EXIT_USAGE;
		else if (arg == ARG_PLAIN)
			*status = words_add(self, plain, value);
		else
			*status = take_value_into(self, &self->options[arg], value, request);
		if (arg == ARG_HELP || *status)
			return false;
	}
	return true;
}

int words_one(const struct command *self, const struct words *w, const char *what, const char **out)
{
	if (!w->count)
		return usage_error(self, "which %s? \"sluice %s --help\" says more", what,
				   self->name);
	if (w->count > 1)
		return usage_error(self, "one %s at a time, not \"%s\" too", what, w->word[1]);
	*out = w->word[0];
	return 0;
}

/* Whether two paths lead to one file, there already or not. */
static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	if (!strcmp(a, b))
		return true;
	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino &&
	       S_ISREG(x.st_mode);
}

int check_apart(const struct command *self, const char *option, const char *path, const char *other)
{
	if (!path || !other || !same_file(path, other))
		return 0;
	return usage_error(self, "--%s %s: is %s, which must not be overwritten", option, path,
			   strcmp(path, other) ? other : "in use already");
}

int check_place(const struct command *self, const char *option, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct stat there;
	char *folder;
	int error = 0;

	if (!stat(path, &there) && S_ISDIR(there.st_mode))
		return usage_error(self, "--%s %s: is a folder", option, path);
	if (!stat(path, &there) && !S_ISREG(there.st_mode))
		return 0;
	folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
	if (!folder || access(folder, W_OK | X_OK))
		error = usage_error(self, "--%s %s: the folder cannot be written: %s", option, path,
				    strerror(errno));
	free(folder);
	return error;
}
