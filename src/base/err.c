/* SPDX-License-Identifier: MIT */
/*
 * An error is one line of text, and the first one written stays: what goes wrong
 * later is usually a consequence. Since parts of the line come from files that
 * people wrote, control characters in it are turned into spaces.
 *
 * A misspelt word is matched by the "optimal string alignment" distance: the
 * smallest number of letters inserted, dropped, changed, or swapped with their
 * neighbour that makes one word of the other (Damerau 1964; Wagner and Fischer
 * 1974). The table is filled row by row, and a row needs only the two before it.
 */
#include "base/err.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 64 /* longer words are not compared */

int err_set(struct err *e, const char *file, int line, const char *format, ...)
{
	va_list args;
	size_t at = 0;

	if (!e || e->text[0])
		return -EINVAL;
	if (file && line)
		at = (size_t)snprintf(e->text, sizeof(e->text), "%s:%d: ", file, line);
	else if (file)
		at = (size_t)snprintf(e->text, sizeof(e->text), "%s: ", file);
	if (at < sizeof(e->text)) {
		va_start(args, format);
		vsnprintf(e->text + at, sizeof(e->text) - at, format, args);
		va_end(args);
	}
	for (char *c = e->text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = ' ';
	return -EINVAL;
}

static char fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '-' ? '_' : c;
}

static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *above2 = rows[0], *above = rows[1], *row = rows[2];

	assert(a_len <= WORD_MAX && b_len <= WORD_MAX);
	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t *spare = above2;

		above2 = above;
		above = row;
		row = spare;
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			char x = fold(a[i - 1]), y = fold(b[j - 1]);
			u64 best = above[j - 1] + (x != y);

			best = min_u64(best, above[j] + 1);
			best = min_u64(best, row[j - 1] + 1);
			if (i > 1 && j > 1 && x == fold(b[j - 2]) && y == fold(a[i - 2]))
				best = min_u64(best, above2[j - 2] + 1);
			row[j] = best;
		}
	}
	return row[b_len];
}

const char *err_nearest(const char *word, const char *const *candidates, size_t count)
{
	size_t word_len = strlen(word), nearest = SIZE_MAX;
	const char *found = NULL;

	if (word_len > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(candidates[i]), longer = max_u64(len, word_len), d;

		if (len > WORD_MAX)
			continue;
		/* A slip leaves most of a word standing: two letters of three. */
		d = distance(word, word_len, candidates[i], len);
		if (d < nearest && d < longer && d <= max_u64(1, longer / 3)) {
			nearest = d;
			found = candidates[i];
		}
	}
	return found;
}
