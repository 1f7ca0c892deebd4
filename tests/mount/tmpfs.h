/* SPDX-License-Identifier: MIT */
/* A file in a folder of the test's own, in memory; need_tmpfs() skips where there is none. */
#ifndef SLUICE_TESTS_MOUNT_TMPFS_H
#define SLUICE_TESTS_MOUNT_TMPFS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

static char folder[] = "/dev/shm/sluice-test-XXXXXX", path[64];

static int make_folder(void **state)
{
	struct statfs fs;

	(void)state;
	if (statfs("/dev/shm", &fs) || fs.f_type != TMPFS_MAGIC || !mkdtemp(folder))
		return 0;
	snprintf(path, sizeof(path), "%s/b", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return path[0] ? rmdir(folder) : 0;
}

static void need_tmpfs(void)
{
	if (path[0])
		return;
	puts("# skip: no tmpfs to write in at /dev/shm");
	skip();
}

#endif
