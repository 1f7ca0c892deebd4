/* SPDX-License-Identifier: MIT */
/* A machine that has been put together: its devices, its page cache, its files. */
#ifndef SLUICE_LAB_RIG_H
#define SLUICE_LAB_RIG_H

#include "job/engine.h"
#include "lab/setup.h"

struct rig {
	struct device *device[ENGINE_DEVICES_MAX];
	u32 device_count;
	struct engine *engine;
	struct job_engine *files;
	struct fuse_server *server[ENGINE_DEVICES_MAX]; /* of devices of model "fuse" */
	struct page_out *page_out;                      /* NULL: cold memory stays */
};

/*
 * Builds a machine in the calling task's world. 0, or a negative errno and what was being done
 * in *doing; take it down in either case. `s` outlives it.
 */
int rig_build(struct rig *r, const struct setup *s, const struct policy *policy, u64 seed,
	      const char **doing);
void rig_take_down(struct rig *r);
/* Makes limits and devices be as `vm` and `as` say, once what is in flight has ended. */
int rig_set(struct rig *r, const struct vm_settings *vm, const struct setup_device *as, u64 seed);

#endif
