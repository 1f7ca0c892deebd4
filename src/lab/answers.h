/* SPDX-License-Identifier: MIT */
/* Published, predicted, ours: a table of those cases that another one answers. */
#ifndef SLUICE_LAB_ANSWERS_H
#define SLUICE_LAB_ANSWERS_H

#include "lab/report.h"

/* Nothing if no case of the results has an answer among them. */
void answers_table(FILE *out, const struct lab_result *results, size_t count);

#endif
