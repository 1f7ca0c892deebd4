/* SPDX-License-Identifier: MIT */
/* The decisions of a case as text, in the form of the kernel's trace files. */
#ifndef SLUICE_LAB_TRACE_TEXT_H
#define SLUICE_LAB_TRACE_TEXT_H

#include "file/engine.h"
#include <stdio.h>

/* Writes the head of the file. */
void trace_text_head(FILE *out);
/* From now on each event of the engine is a line of `out`. 0 or -ENOMEM. */
int trace_text_begin(struct engine *e, FILE *out);
/* A line between the events: "# TEXT". */
void trace_text_note(FILE *out, const char *text);

#endif
