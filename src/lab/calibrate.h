/* SPDX-License-Identifier: MIT */
/*
 * What the steps that src/world/cost.h models cost on the machine this runs on,
 * measured with real system calls on a real file.
 */
#ifndef SLUICE_LAB_CALIBRATE_H
#define SLUICE_LAB_CALIBRATE_H

#include "base/err.h"
#include "world/cost.h"
#include <stdio.h>

#define CALIBRATE_ROUNDS_MAX 101

/* A median over the rounds with its quartiles, in nanoseconds. */
struct measured {
	bool known;
	double ns, low_ns, high_ns;
};

/* Whole calls, for comparison with the sums of their steps. */
enum whole {
	WHOLE_READ,        /* pread() of a cached page */
	WHOLE_WRITE_DIRTY, /* pwrite() of a page that is cached and dirty */
	WHOLE_WRITE_CLEAN, /* ... cached and clean */
	WHOLE_WRITE_NEW,   /* ... not cached */
	WHOLE_MAX
};

struct calibration {
	struct measured cost[COST_MAX], whole[WHOLE_MAX];
	u64 fresh_bytes; /* page_ns is that of so much memory nobody used; 0: of used memory */
	u64 ready_bytes; /* of it, what was at hand; fetch_ns is known then; 0: all */
};

/*
 * Measures, with a file of its own in `folder` that is gone afterwards. 0, or a negative errno with
 * `e` set.
 */
int calibrate(struct calibration *c, const char *folder, unsigned rounds, struct err *e);
/*
 * Measures page_ns over again: of so many bytes of memory new to this process. A virtual machine's
 * host takes back what has long been free, and then a page costs many times as much.
 */
int calibrate_fresh(struct calibration *c, u64 bytes, struct err *e);
/* What equal parts of that memory, of `part` bytes each, say: page_ns, and perhaps fetch_ns. */
void calibrate_parts(struct calibration *c, const double *ns, unsigned parts, u64 part);
/* What the lab charges unless it is told. */
double calibrate_default(enum cost cost);
/* How a cost is measured, or why it is not. */
const char *calibrate_method(enum cost cost);
/* What the engine would charge for a whole call, with these costs where they are known. */
double calibrate_sum(const struct calibration *c, enum whole w);
const char *calibrate_whole(enum whole w);
/* The [cpu] section of a machine file, with comments. */
void calibrate_print(FILE *out, const struct calibration *c);
/* Puts that section into a machine file, which may exist: its other sections stay. */
int calibrate_write(const char *path, const struct calibration *c, struct err *e);

#endif
