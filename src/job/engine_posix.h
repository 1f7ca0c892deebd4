/* SPDX-License-Identifier: MIT */
/* The job engine `posix`: system calls on real paths, so jobs drive the kernel's page cache. */
#ifndef SLUICE_JOB_ENGINE_POSIX_H
#define SLUICE_JOB_ENGINE_POSIX_H

#include "job/engine.h"

/* Real world only. */
int engine_posix_create(struct job_engine **out);
void engine_posix_destroy(struct job_engine *je);

/* Makes `path` have at least `size` bytes, written, by system calls; for other engines too. */
int posix_lay_out(const char *path, u64 size);
/* 0 if files can be made in a folder. */
int posix_folder(const char *path);

#endif
