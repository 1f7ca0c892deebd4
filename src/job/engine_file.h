/* SPDX-License-Identifier: MIT */
/* What the job engines over a cache of ours do with an open file. Inside src/job/ only. */
#ifndef SLUICE_JOB_ENGINE_FILE_H
#define SLUICE_JOB_ENGINE_FILE_H

#include "file/engine.h"
#include "file/file.h"
#include "file/map.h"
#include "file/tenant.h"
#include "job/engine.h"

/* Where an engine keeps more of an open file than this, it is the first of that. */
struct job_file {
	struct file *file;
	unsigned io_flags; /* of each call */
	bool direct;
	struct file_map *map; /* NULL: it is read and written */
};

/* The flags of each call, of those that a file is opened with. */
unsigned engine_file_flags(unsigned job_flags);
/* Ends what engine_file_map() began, if it did. */
void engine_file_unmap(struct job_file *f);
int engine_file_map(struct job_file *f, u64 offset, u64 len);
/* Sets the calls that need nothing but the open file: all but open, close, unlink, lay_out. */
void engine_file_calls(struct job_engine *je);
/* The calling task acts for the tenant of that name from now on; 0 or -ENOENT. */
int engine_file_act_for(struct engine *e, const char *tenant);

#endif
