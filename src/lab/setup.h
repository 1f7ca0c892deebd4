/* SPDX-License-Identifier: MIT */
/*
 * The setup of one simulated machine, read from settings in layers. A setting is one
 * `section.key = value` with the place where somebody wrote it; a later setting of
 * the same key wins. The layers, first to last: the machine file, the experiment's
 * own sections, the case, the command line.
 *
 * A machine has one device, [device], or more: each [device NAME] is another, and says in which
 * folder it is mounted.
 */
#ifndef SLUICE_LAB_SETUP_H
#define SLUICE_LAB_SETUP_H

#include "device/device.h"
#include "file/tenant.h"
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

/* A device and what the page cache is told of it. */
struct setup_device {
	char name[32];           /* of [device NAME]; of the first "", and its model's for people */
	const char *mount;       /* its files are in this folder; NULL for the first: all others */
	const char *shared_file; /* a file of all tenants, as the file system's metadata; or NULL */
	struct device_config config;
	struct bdi_settings bdi;
	u64 size_bytes;  /* 0: no limit */
	u32 block_bytes; /* of the files */
};

/* [tenant NAME] */
#define SETUP_TENANTS_MAX 16
struct setup_tenant {
	char name[32];
	struct tenant_settings settings;
};

struct setup {
	struct sim_config sim;
	u64 memory_bytes, reserve_bytes, ready_bytes;
	u64 page_out_bytes; /* a second; 0: cold memory stays */
	enum fs_kind fs;    /* under the files */
	struct vm_settings vm;
	struct setup_device device[ENGINE_DEVICES_MAX];
	u32 device_count;
	struct setup_tenant tenant[SETUP_TENANTS_MAX];
	u32 tenant_count;
};

/* The dirty limit of its empty page cache, pages. */
u64 setup_limit(const struct setup *s);
/* The index of the device that a FUSE server keeps its files on; -1: in its own memory. */
int setup_backing(const struct setup *s, const struct device_config *config);
/* -EINVAL: there is no such device, or it has a server itself. */
int setup_check_backing(const struct setup *s, u32 device, const struct origin *at, struct err *e);
/* What people call a device: its section's name, or that of the first one's configuration. */
const char *setup_device_name(const struct setup_device *d);
/* The device that a file is on: that with the longest mount its name is in. */
const struct setup_device *setup_device_of(const struct setup *s, const char *path);

/*
 * Reads a setup. 0, or -EINVAL with `e` naming the setting that is wrong; what is
 * missing altogether is reported against `path`.
 */
int setup_read(struct setup *out, const struct settings *s, const char *path, struct err *e);

/* Applies settings of section vm, all there are, to the knobs. 0, or -EINVAL likewise. */
int setup_read_vm(struct vm_settings *vm, const struct settings *s, struct err *e);

/* The sections that settings may be in, "machine" ...; NULL past the end. */
const char *setup_section(size_t i);
/* Whether a section's name is one of them, or that of another device: "device NAME". */
bool setup_has_section(const char *name);
/* What [tenant NAME] without a line in it says: a floor of 0. No key: another section. */
struct setting setup_bare_tenant(const char *section, const char *file, int line);
/* -EINVAL: the name of a device's section cannot be. */
int setup_check_section(const char *section, const struct origin *at, struct err *e);
/* Whether a device, by the name of its section, is in the settings. */
bool setup_has_device(const struct settings *s, const char *section);
/*
 * Takes "vm.dirty_ratio", or "device.NAME.iops", of a device in `s`, apart: *section is to be
 * freed, *name lies in `key`. -EINVAL with `e` saying, of the origin, what is wrong; -ENOMEM.
 */
int setting_address(const struct settings *s, const char *key, const struct origin *at,
		    char **section, const char **name, struct err *e);

#endif
