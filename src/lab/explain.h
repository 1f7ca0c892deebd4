/* SPDX-License-Identifier: MIT */
/* What decided the outcome of a case, in sentences. */
#ifndef SLUICE_LAB_EXPLAIN_H
#define SLUICE_LAB_EXPLAIN_H

#include "lab/lab.h"

#define EXPLAIN_SENTENCES (9 + 2 * ENGINE_DEVICES_MAX)

/* What held the jobs back most; explain.c has the rules. */
enum verdict {
	VERDICT_CHARGE, /* the throttle, for memory that mostly need not be written */
	VERDICT_DEVICE,
	VERDICT_LIMITS, /* the throttle, while the device had time */
	VERDICT_MEMORY,
	VERDICT_CPU,
	VERDICT_JOBS, /* nothing: they asked for no more */
};

/* One word: "charge". */
const char *verdict_name(enum verdict v);

struct explanation {
	enum verdict verdict;
	size_t count; /* the last sentence is the conclusion */
	char sentence[EXPLAIN_SENTENCES][256];
};

/* Explains a case that was recorded. */
void explain(const struct lab_result *r, struct explanation *out);
/* The same of all cases as text, each under its name. */
void explain_all(FILE *out, const struct lab_result *results, size_t count);

#endif
