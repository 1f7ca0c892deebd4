/* SPDX-License-Identifier: MIT */
/*
 * The setup of one simulated machine, read from settings in layers. A setting is one
 * `section.key = value` with the place where somebody wrote it; a later setting of
 * the same key wins. The layers, first to last: the machine file, the experiment's
 * own sections, the case, the command line.
 */
#ifndef SLUICE_LAB_SETUP_H
#define SLUICE_LAB_SETUP_H

#include "device/device.h"
#include "file/engine.h"
#include "world/sim.h"

/* Where a person wrote something: a file and line, or "-s KEY=VALUE" and line 0. */
struct origin {
	const char *file;
	int line;
};

struct setting {
	const char *section, *key, *value;
	struct origin at;
};

/* Settings in layer order. The strings are borrowed and outlive it. */
struct settings {
	struct setting *all;
	size_t count, capacity;
};

int settings_add(struct settings *s, const struct setting *new);
int settings_append(struct settings *s, const struct settings *more);
void settings_finish(struct settings *s);

struct setup {
	struct sim_config sim;
	u64 memory_bytes, reserve_bytes;
	enum fs_kind fs; /* under the files */
	struct vm_settings vm;
	struct device_config device;
	u64 device_size_bytes; /* 0: no limit */
	u32 read_ahead_kb;
	u32 block_bytes; /* of the files */
	bool strict_limit;
};

/*
 * Reads a setup. 0, or -EINVAL with `e` naming the setting that is wrong; what is
 * missing altogether is reported against `path`.
 */
int setup_read(struct setup *out, const struct settings *s, const char *path, struct err *e);

/* Applies settings of section vm, all there are, to the knobs. 0, or -EINVAL likewise. */
int setup_read_vm(struct vm_settings *vm, const struct settings *s, struct err *e);

/* The sections that settings may be in, "machine" ...; NULL past the end. */
const char *setup_section(size_t i);
bool setup_has_section(const char *name);

#endif
