/* SPDX-License-Identifier: MIT */
/* Figures as JSON: an object with a key for each; null for what never happened. */
#ifndef SLUICE_LAB_METRIC_JSON_H
#define SLUICE_LAB_METRIC_JSON_H

#include "lab/metric.h"
#include <jansson.h>

/* Adds the figures to an object. 0, or -1 when memory is short. */
int metrics_to_json(json_t *to, const struct metrics *m);
/* Reads such an object. 0, or -1 when it is none. */
int metrics_from_json(const json_t *from, struct metrics *m);

#endif
