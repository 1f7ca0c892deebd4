/* SPDX-License-Identifier: MIT */
/*
 * The setting persist=PATH: what a killed process left there is recovered, and then the arena of
 * this one is made there. See file/recover.h and cache/persist.h.
 */
#ifndef SLUICE_LIB_SURVIVAL_H
#define SLUICE_LIB_SURVIVAL_H

#include "file/recover.h"
#include "lib/config.h"

struct lib_recovered; /* one file's report */

struct lib_survival {
	struct persist *persist; /* NULL: nothing is to survive */
	struct recovery recovery;
	struct lib_recovered *first, **last; /* all reports */
};

/* Does both, for the engine that is made of `c` next. 0, or an error and `e`. */
int lib_survive(struct lib_config *c, struct lib_survival *s, struct err *e);
/* Once the engine is destroyed: all is written or was given up, so that the file goes, too. */
void lib_survival_end(struct lib_survival *s);
/* Calls fn for each file. */
void lib_survival_tell(const struct lib_survival *s,
		       void (*fn)(void *ctx, const struct recovered *r), void *ctx);

#endif
