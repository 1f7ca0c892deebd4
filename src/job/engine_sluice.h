/* SPDX-License-Identifier: MIT */
/* The job engine `sluice`: a flat table of paths over the devices of an engine. */
#ifndef SLUICE_JOB_ENGINE_SLUICE_H
#define SLUICE_JOB_ENGINE_SLUICE_H

#include "file/engine.h"
#include "job/engine.h"

/* Files have blocks of block_bytes (512, 1024, 2048 or 4096). */
int engine_sluice_create(struct engine *e, unsigned device, u32 block_bytes,
			 struct job_engine **out);
/*
 * Puts files whose names are in the folder `path` onto another device; the mount that has the
 * longest `path` counts. Before any file is opened; `path` outlives the table. -ENOSPC: no room.
 */
int engine_sluice_mount(struct job_engine *je, const char *path, unsigned device, u32 block_bytes);
/*
 * The file of that name is everybody's once it is made, as the metadata of a file system is;
 * `path` outlives the table. One for each device; -ENOSPC.
 */
int engine_sluice_share(struct job_engine *je, const char *path);
/*
 * Which of mounts[1] to mounts[count - 1] is the longest folder that a file's name is in; 0: none.
 * "//" and "/./" are as "/".
 */
u32 engine_sluice_mount_of(const char *path, const char *const *mounts, u32 count);
/* Frees the table. Its files stay with the engine until that is destroyed or discarded. */
void engine_sluice_destroy(struct job_engine *je);

#endif
