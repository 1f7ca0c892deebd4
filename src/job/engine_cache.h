/* SPDX-License-Identifier: MIT */
/* The job engine `sluice` in the real world: a cache of ours over files of the system. */
#ifndef SLUICE_JOB_ENGINE_CACHE_H
#define SLUICE_JOB_ENGINE_CACHE_H

#include "file/path.h"
#include "job/engine.h"
#include "lib/config.h"

/* Makes a cache as configured. 0, or a negative errno with `e` set. */
int engine_cache_create(const struct lib_config *c, struct job_engine **out, struct err *e);
/*
 * Writes everything back and takes the cache down; nothing is open. 0, or the first error of
 * data that could not be written; `losses`, which may be NULL, says of what.
 */
int engine_cache_destroy(struct job_engine *je, struct engine_losses *losses);

struct engine *engine_cache_engine(struct job_engine *je);
struct device *engine_cache_device(struct job_engine *je);

#endif
