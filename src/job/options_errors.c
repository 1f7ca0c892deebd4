// SPDX-License-Identifier: MIT
/*
 * ignore_error: lists of errors, "EIO,ENOSPC:EIO": after which reads, writes and verification go
 * on. An error is a name or a number. As in fio, to name errors of a kind is to say that the job
 * goes on after them.
 */
#include "job/options.h"
#include <stdlib.h>
#include <string.h>

#define ERRNO_MAX  133
#define LIST_BYTES 1024

/* The number of an error, or 0. */
static int read_error(const char *word)
{
	char *end;
	long number = strtol(word, &end, 10);

	if (*word && !*end)
		return number >= -ERRNO_MAX && number <= ERRNO_MAX ? abs((int)number) : 0;
	for (int i = 1; i <= ERRNO_MAX; i++)
		if (strerrorname_np(i) && !strcmp(strerrorname_np(i), word))
			return i;
	return 0;
}

static const char *read_list(struct ignored_errors *list, char *text)
{
	char *word;

	list->count = 0;
	while ((word = strsep(&text, ":"))) {
		int error = read_error(word);

		if (!error)
			return "names or numbers of errors are needed, as EIO,ENOSPC:EIO";
		if (list->count == IGNORED_MAX)
			return "at most 32 errors of a kind are possible";
		list->error[list->count++] = error;
	}
	return NULL;
}

const char *set_ignored_errors(struct job_options *o, const char *value)
{
	char text[LIST_BYTES], *rest = text, *field;

	if (strlen(value) >= sizeof(text))
		return "it is too long";
	strcpy(text, value);
	for (int kind = 0; (field = strsep(&rest, ",")); kind++) {
		const char *wrong;

		if (kind == ERROR_KINDS)
			return "at most three lists are possible: reads,writes,verification";
		if (!*field)
			continue;
		wrong = read_list(&o->ignored[kind], field);
		if (wrong)
			return wrong;
		o->continue_on_error |= 1u << kind;
	}
	return NULL;
}
