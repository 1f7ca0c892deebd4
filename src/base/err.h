/* SPDX-License-Identifier: MIT */
/*
 * One-line error messages for people. A function that reads what people wrote
 * (files, options) takes a `struct err *` and, when it fails, leaves in it one
 * line that names the file, line or option and says what would be right.
 */
#ifndef SLUICE_BASE_ERR_H
#define SLUICE_BASE_ERR_H

#include "base/types.h"

struct err {
	char text[512]; /* "" while nothing went wrong */
};

/*
 * Writes "FILE:LINE: MESSAGE" (LINE left out when 0, FILE too when NULL) unless
 * a message stands there already: the first one is the cause. Returns -EINVAL,
 * so that callers can say `return err_set(...)`. `e` may be NULL.
 */
int err_set(struct err *e, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * The candidate nearest to `word` by edit distance, or NULL if none is near
 * enough to be a slip of the pen. For "unknown key X, did you mean Y".
 */
const char *err_nearest(const char *word, const char *const *candidates, size_t count);

#endif
