/* SPDX-License-Identifier: MIT */
/*
 * Lists of words as fio writes them: separated by colons, and a colon that belongs
 * to a word has a backslash before it. Any other backslash is an ordinary letter.
 */
#include "job/jobs.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int words_add(struct words *w, const char *word)
{
	char **list = realloc(w->word, (w->count + 1) * sizeof(*list));

	if (!list)
		return -ENOMEM;
	w->word = list;
	list[w->count] = strdup(word);
	if (!list[w->count])
		return -ENOMEM;
	w->count++;
	return 0;
}

int words_split(struct words *w, const char *text)
{
	char *word = malloc(strlen(text) + 1);
	size_t len = 0;
	int rc = 0;

	*w = (struct words){ 0 };
	if (!word)
		return -ENOMEM;
	for (const char *c = text; !rc; c++) {
		if (*c && *c != ':') {
			c += c[0] == '\\' && c[1] == ':';
			word[len++] = *c;
			continue;
		}
		word[len] = 0;
		if (len)
			rc = words_add(w, word);
		len = 0;
		if (!*c)
			break;
	}
	free(word);
	if (rc)
		words_finish(w);
	return rc;
}

void words_finish(struct words *w)
{
	for (u32 i = 0; i < w->count; i++)
		free(w->word[i]);
	free(w->word);
	*w = (struct words){ 0 };
}
