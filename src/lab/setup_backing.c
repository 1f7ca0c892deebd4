/* SPDX-License-Identifier: MIT */
/* What devices are called, which one a file is on, and on which a FUSE server keeps its files. */
#include "job/engine_sluice.h"
#include "lab/setup.h"
#include <string.h>

int setup_backing(const struct setup *s, const struct device_config *config)
{
	for (u32 i = 0; i < s->device_count; i++)
		if (config->backing[0] && !strcmp(s->device[i].name, config->backing))
			return (int)i;
	return -1;
}

int setup_check_backing(const struct setup *s, u32 device, const struct origin *at, struct err *e)
{
	const char *name = s->device[device].config.backing;
	int backing = setup_backing(s, &s->device[device].config);

	if (!name[0])
		return 0;
	if (backing < 0)
		return err_set(e, at->file, at->line, "backing = %s: there is no [device %s]", name,
			       name);
	if (!strcmp(s->device[backing].config.model, "fuse"))
		return err_set(e, at->file, at->line,
			       "backing = %s: a server's files cannot be on a device of model "
			       "\"fuse\"",
			       name);
	return 0;
}

const char *setup_device_name(const struct setup_device *d)
{
	return d->name[0] ? d->name : d->config.name[0] ? d->config.name : d->config.model;
}

const struct setup_device *setup_device_of(const struct setup *s, const char *path)
{
	const char *mounts[ENGINE_DEVICES_MAX];

	for (u32 i = 1; i < s->device_count; i++)
		mounts[i] = s->device[i].mount;
	return &s->device[engine_sluice_mount_of(path, mounts, s->device_count)];
}
