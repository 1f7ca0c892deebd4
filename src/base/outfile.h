/* SPDX-License-Identifier: MIT */
/* Files of results, which appear whole or not at all. */
#ifndef SLUICE_BASE_OUTFILE_H
#define SLUICE_BASE_OUTFILE_H

#include "base/err.h"
#include <stdio.h>

/*
 * Makes `path` what `fill` writes. A symbolic link is followed; into a device or pipe it is
 * written. 0, or a negative errno, of fill() or of writing, with `e` naming the file.
 */
int outfile_write(const char *path, int (*fill)(FILE *out, void *ctx), void *ctx, struct err *e);

#endif
