// SPDX-License-Identifier: MIT
/*
 * A daemon that was killed leaves a folder behind where everybody gets ENOTCONN until it is
 * unmounted. Who mounts there again does that first, if it is a mount of ours that is dead: the
 * kernel says whose it is in /proc/self/mounts, which can be read when the folder cannot. Who has
 * files open there keeps what he has, a file that answers ENOTCONN.
 */
#include "mount/mount_inner.h"
#include <libgen.h>
#include <mntent.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEEP 16 /* dead ones, one upon the other */

void mount_detach(const char *mountpoint)
{
	char *words[] = { (char *)"fusermount3", (char *)"-u",       (char *)"-z", (char *)"-q",
			  (char *)"--",          (char *)mountpoint, NULL };
	pid_t child;

	/* only root may unmount by himself */
	if (!umount2(mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW))
		return;
	if (!posix_spawnp(&child, words[0], NULL, NULL, words, environ))
		waitpid(child, NULL, 0);
}

/* The absolute name of a folder that cannot be asked. 0 or -errno. */
static int name_of(const char *mountpoint, char out[PATH_MAX])
{
	char text[PATH_MAX], above[PATH_MAX];
	int n;

	snprintf(text, sizeof(text), "%s", mountpoint);
	if (!realpath(dirname(text), above))
		return -errno;
	snprintf(text, sizeof(text), "%s", mountpoint);
	n = snprintf(out, PATH_MAX, "%s/%s", strcmp(above, "/") ? above : "", basename(text));
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Whether what is mounted there, last, is a sluice mount. */
static bool is_ours(const char *name)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *m;
	bool ours = false;

	while (mounts && (m = getmntent(mounts)))
		if (!strcmp(m->mnt_dir, name))
			ours = !strcmp(m->mnt_type, "fuse.sluice");
	if (mounts)
		endmntent(mounts);
	return ours;
}

void mount_bury(const char *mountpoint)
{
	char name[PATH_MAX];
	struct statfs fs;

	/* not stat(2): the kernel may answer that by itself for a while */
	for (unsigned i = 0; i < DEEP && statfs(mountpoint, &fs) && errno == ENOTCONN; i++) {
		if (name_of(mountpoint, name) || !is_ours(name))
			return;
		mount_detach(name);
	}
}
