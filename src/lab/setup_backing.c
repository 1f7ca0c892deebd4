/* SPDX-License-Identifier: MIT */
/* Which device of a machine a FUSE server keeps its files on. */
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
