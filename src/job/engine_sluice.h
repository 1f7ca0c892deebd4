/* SPDX-License-Identifier: MIT */
/* The job engine `sluice`: a flat table of paths over one device of an engine. */
#ifndef SLUICE_JOB_ENGINE_SLUICE_H
#define SLUICE_JOB_ENGINE_SLUICE_H

#include "file/engine.h"
#include "job/engine.h"

/* Files have blocks of block_bytes (512, 1024, 2048 or 4096). */
int engine_sluice_create(struct engine *e, unsigned device, u32 block_bytes,
			 struct job_engine **out);
/* Frees the table. Its files stay with the engine until that is destroyed or discarded. */
void engine_sluice_destroy(struct job_engine *je);

#endif
