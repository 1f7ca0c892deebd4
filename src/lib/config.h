/* SPDX-License-Identifier: MIT */
/*
 * The configuration of a cache in the real world, as "KEY=VALUE" settings under the names of Linux
 * and the lab: one table for whoever has settings to read (the library, the mount, jobs on real
 * files).
 */
#ifndef SLUICE_LIB_CONFIG_H
#define SLUICE_LIB_CONFIG_H

#include "device/device.h"
#include "file/engine.h"
#include <limits.h>

struct lib_config {
	struct engine_config engine;
	struct device_config device; /* of model "file" */
	u32 read_ahead_kb, block_bytes;
	u32 idle_files; /* kept without an open */
	bool strict_limit;
	/* survival.c: */
	char persist[PATH_MAX];   /* the arena's file; "": it is in memory of our own */
	char recovered[PATH_MAX]; /* the recovery folder; "": beside the former */
	u32 recovery;             /* enum recovery_mode */
};

enum recovery_mode { RECOVERY_REFUSE, RECOVERY_SET_ASIDE };

/* The defaults. */
void lib_config_init(struct lib_config *c);
/*
 * Applies settings in turn; a later one of a key wins, and choices of a policy go over the preset
 * wherever that stands. 0, or -EINVAL with `e` naming the setting and what would be right.
 */
int lib_config_read(struct lib_config *c, const char *const *settings, size_t count, struct err *e);
/* Whether the cache may have so much memory, as the setting `memory` says: 0 or -EINVAL. */
int lib_config_check_memory(u64 memory_bytes);

/* All keys but the choices of policies (policy_key()): "vm.dirty_ratio" and what it may be. */
const char *lib_config_key(size_t i, char buf[64]);
const char *lib_config_values(size_t i);

#endif
