/* SPDX-License-Identifier: MIT */
/*
 * sluice umount: makes a mount safe, unmounts it, and waits until its daemon has ended and has said
 * how. umount(8) does the first two in the wrong order, and not the third; but if a link to this
 * program is where it looks for helpers, it runs that instead.
 */
#include "cli/control.h"
#include "mount/farewell.h"
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

struct request {
	bool force, lazy, quiet;
};

static const struct option options[] = {
	OPTION(struct request, force, FLAG, "force", 'f', NULL,
	       "even if something cannot be written"),
	OPTION(struct request, lazy, FLAG, "lazy", 'l', NULL,
	       "detach it, and do not wait for those who have files open"),
	OPTION_QUIET(struct request, "show no progress"),
	{ 0 },
};

/* Who is not root needs fusermount3, which says by itself what it does not like. */
static int unmount_as_user(const char *mountpoint, bool lazy)
{
	char *words[] = { (char *)"fusermount3", (char *)"-u", (char *)"--", (char *)mountpoint,
			  NULL };
	char *lazily[] = { (char *)"fusermount3", (char *)"-uz", (char *)"--", (char *)mountpoint,
			   NULL };
	pid_t child;
	int status;

	if (posix_spawnp(&child, words[0], NULL, NULL, lazy ? lazily : words, environ))
		return -EPERM;
	return waitpid(child, &status, 0) == child && !status ? 0 : -ECANCELED;
}

static int unmount(const struct command *self, const char *mountpoint, bool lazy)
{
	int rc = 0;

	if (umount2(mountpoint, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)))
		rc = errno == EPERM ? unmount_as_user(mountpoint, lazy) : -errno;
	if (rc == -EBUSY)
		usage_error(self, "%s: programs have files open there", mountpoint);
	else if (rc && rc != -ECANCELED)
		usage_error(self, "%s: %s", mountpoint, strerror(-rc));
	return rc ? EXIT_FAILED : EXIT_OK;
}

/* What the daemon said at its end: all but the last line are of losses. */
static int judge(const struct command *self, const char *mountpoint, const char *text)
{
	size_t length = text ? strlen(text) : 0, end = strlen(FAREWELL_SAFE);

	if (length >= end && !strcmp(text + length - end, FAREWELL_SAFE))
		return EXIT_OK;
	fputs(text ? text : "", stderr);
	usage_error(self, "%s: %s", mountpoint,
		    length ? "it is unmounted, and this is lost"
			   : "its daemon ended without saying that all is safe");
	return EXIT_FAILED;
}

static int unmount_and_wait(const struct command *self, const char *mountpoint, const char *name,
			    bool lazy)
{
	int fd = name ? farewell_connect(name) : -1;
	int status = unmount(self, mountpoint, lazy);
	char *text;

	if (fd < 0 || status || lazy) {
		if (fd >= 0)
			close(fd);
		return status;
	}
	text = farewell_hear(fd);
	status = judge(self, mountpoint, text);
	free(text);
	return status;
}

static int run_on(const struct command *self, const struct request *r, const char *mountpoint)
{
	static char text[STATS_MAX];
	json_t *root = control_ask(mountpoint, text);
	int rc, status;

	if (!root && errno == ENOTCONN) { /* a daemon that was killed */
		usage_error(self, "%s: its daemon has gone", mountpoint);
		unmount(self, mountpoint, r->lazy);
		return EXIT_FAILED;
	}
	if (!root)
		return control_fail(self, mountpoint, errno);
	rc = r->lazy ? 0 : control_sync(mountpoint, !r->quiet);
	if (rc && !r->force) {
		usage_error(self, "%s: not unmounted, since not all can be written: %s", mountpoint,
			    strerror(-rc));
		status = EXIT_FAILED;
	} else {
		status = unmount_and_wait(self, mountpoint,
					  json_string_value(json_object_get(root, FAREWELL_KEY)),
					  r->lazy);
	}
	json_decref(root);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct request r = { 0 };
	struct words plain = { 0 };
	const char *mountpoint;
	int status;

	if (!args_read(self, argc, argv, &r, &plain, &status))
		return status;
	status = words_one(self, &plain, "mountpoint", &mountpoint);
	return status ? status : run_on(self, &r, mountpoint);
}

int run_umount_helper(int argc, char **argv)
{
	const char *mountpoint = NULL;
	struct request r = { 0 };

	/* DIR [-flnrv] [-N NAMESPACE] [-t TYPE] */
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-t") || !strcmp(argv[i], "-N")) {
			i++;
		} else if (argv[i][0] == '-') {
			r.force |= strchr(argv[i], 'f') != NULL;
			r.lazy |= strchr(argv[i], 'l') != NULL;
		} else {
			mountpoint = argv[i];
		}
	}
	if (!mountpoint)
		return usage_error(&command_umount, "a mountpoint is needed");
	return run_on(&command_umount, &r, mountpoint);
}

const struct command command_umount = {
	.name = "umount",
	.arguments = "MOUNTPOINT",
	.about = "unmount, and return when all is safe",
	.text = "Writes everything that is dirty in a mount, unmounts it, and returns when its "
		"daemon\n"
		"has ended. If something cannot be written it stays mounted, and nothing is lost.",
	.examples = "  sluice umount /mnt/data\n",
	.options = options,
	.run = run,
};
