/* SPDX-License-Identifier: MIT */
/*
 * A directory, served at another place through a cache: a FUSE file system. Names and attributes
 * are the source's; the data of regular files goes through a cache of its own, so that what
 * is dirty of it is counted, limited and paced here.
 */
#ifndef SLUICE_MOUNT_MOUNT_H
#define SLUICE_MOUNT_MOUNT_H

#include "base/err.h"

/* Extended attributes of the root that are a control: these two are asked for by getxattr(2), */
#define MOUNT_STATS_NAME "user.sluice.stats" /* the statistics, as JSON */
#define MOUNT_SYNC_NAME  "user.sluice.sync"  /* empty; the answer comes when all is safe */
/* and these two are set, by root and by the daemon's user. */
#define MOUNT_TENANTS_NAME "user.sluice.tenants"       /* settings of tenants, with commas */
#define MOUNT_END_NAME     "user.sluice.tenants.close" /* the name of one that goes away */

struct mount_config {
	const char *source, *mountpoint;
	const char *const *settings; /* of the cache, up to a NULL; see lib/config.h */
	const char *fuse_options;    /* "ro,nosuid", or "" */
	bool direct;                 /* the kernel keeps no data at all */
	bool lazy_replace;           /* files that replace others are written in their time */
};

struct mount;

/*
 * Mounts. 0, or a negative errno with `e` set: -EBUSY, the source is served by another process;
 * -ENOSYS, the program was built without libfuse.
 */
int mount_open(const struct mount_config *c, struct mount **out, struct err *e);
/* Calls fn for each file that a killed daemon owed bytes, and that got them: setting persist. */
struct sluice_recovered;
void mount_recovered(struct mount *m, void (*fn)(void *ctx, const struct sluice_recovered *r),
		     void *ctx);
/*
 * Serves until it is unmounted, or SIGTERM, SIGINT or SIGHUP come, which unmount it; who has files
 * open then is served until he closes them, or until a second signal. 0 or a negative errno.
 */
int mount_serve(struct mount *m);
/*
 * Unmounts if that was not done, writes everything and frees it. Calls `lost` for each file with
 * data that could not be written. 0 or the first error.
 */
int mount_close(struct mount *m, void (*lost)(void *ctx, const char *path, u64 bytes, int error),
		void *ctx);

#endif
