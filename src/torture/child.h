/* SPDX-License-Identifier: MIT */
/* One run in a process of its own. */
#ifndef SLUICE_TORTURE_CHILD_H
#define SLUICE_TORTURE_CHILD_H

#include "torture/torture.h"

/* Memory that children share with their parent, zeroed; NULL. */
void *child_share(size_t bytes);
void child_unshare(void *memory, size_t bytes);
/* From now on the process ends by SIGPROF if it takes too long. */
void child_limit_cpu(void);
/* Runs c; 0: it went well, 1: it failed as *report (shared memory) says; or a negative errno. */
int child_try(const struct torture_config *c, bool quiet, struct torture_report *report);

#endif
