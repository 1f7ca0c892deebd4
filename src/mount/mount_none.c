// SPDX-License-Identifier: MIT
/* Where libfuse was not found when this was built, there are no mounts. */
#include "mount/mount.h"
#include <errno.h>

int mount_open(const struct mount_config *c, struct mount **out, struct err *e)
{
	(void)c;
	*out = NULL;
	err_set(e, NULL, 0, "this program was built without libfuse3, which it needs to mount");
	return -ENOSYS;
}

void mount_recovered(struct mount *m, void (*fn)(void *ctx, const struct sluice_recovered *r),
		     void *ctx)
{
	(void)m;
	(void)fn;
	(void)ctx;
}

int mount_serve(struct mount *m)
{
	(void)m;
	return -ENOSYS;
}

int mount_close(struct mount *m, void (*lost)(void *ctx, const char *path, u64 bytes, int error),
		void *ctx)
{
	(void)m;
	(void)lost;
	(void)ctx;
	return -ENOSYS;
}
