/* SPDX-License-Identifier: MIT */
/* The job engine `sluice` in the real world: our cache over files of the system. */
#ifndef SLUICE_JOB_ENGINE_CACHE_H
#define SLUICE_JOB_ENGINE_CACHE_H

#include "file/path.h"
#include "job/engine.h"

/* Both outlive it. */
int engine_cache_create(struct engine *e, struct path_table *paths, struct job_engine **out);
void engine_cache_destroy(struct job_engine *je);

#endif
