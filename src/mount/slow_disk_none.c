// SPDX-License-Identifier: MIT
/* Where libfuse was not found when this was built, there are no mounts. */
#include "mount/slow_disk.h"
#include <errno.h>

int slow_disk_open(const struct slow_disk_config *c, struct slow_disk **out, struct err *e)
{
	(void)c;
	*out = NULL;
	err_set(e, NULL, 0, "this program was built without libfuse3, which it needs to mount");
	return -ENOSYS;
}

int slow_disk_detach(struct slow_disk *d)
{
	(void)d;
	return -ENOSYS;
}

int slow_disk_serve(struct slow_disk *d)
{
	(void)d;
	return -ENOSYS;
}

void slow_disk_stats(struct slow_disk *d, struct slow_disk_stats *out)
{
	(void)d;
	*out = (struct slow_disk_stats){ 0 };
}

u64 slow_disk_size(const struct slow_disk *d)
{
	(void)d;
	return 0;
}

void slow_disk_close(struct slow_disk *d)
{
	(void)d;
}
