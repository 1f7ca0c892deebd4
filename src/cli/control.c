/* SPDX-License-Identifier: MIT */
/*
 * sluice stat and sluice sync: what a mount says of itself, and making it safe. Both ask
 * for extended attributes of its root. A sync is asked for by a child, while its parent
 * looks at the statistics now and then and shows what is left.
 */
#include "cli/control.h"
#include "base/units.h"
#include "mount/mount.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PROGRESS_MS 200

struct request {
	bool json, quiet;
};

static const struct option stat_options[] = {
	OPTION(struct request, json, FLAG, "json", 0, NULL, "as JSON"),
	{ 0 },
};

static const struct option sync_options[] = {
	OPTION_QUIET(struct request, "show no progress"),
	{ 0 },
};

static int read_request(const struct command *self, int argc, char **argv, struct request *r,
			const char **mountpoint, int *status)
{
	struct words plain = { 0 };

	if (!args_read(self, argc, argv, r, &plain, status))
		return -1;
	*status = words_one(self, &plain, "mountpoint", mountpoint);
	return *status ? -1 : 0;
}

int control_fail(const struct command *self, const char *mountpoint, int error)
{
	if (error == ENODATA || error == EOPNOTSUPP)
		usage_error(self, "%s: is not where a sluice mount is", mountpoint);
	else
		usage_error(self, "%s: %s", mountpoint, strerror(error));
	return EXIT_FAILED;
}

json_t *control_ask(const char *mountpoint, char text[STATS_MAX])
{
	ssize_t n = getxattr(mountpoint, MOUNT_STATS_NAME, text, STATS_MAX - 1);
	json_t *root;

	if (n < 0)
		return NULL;
	text[n] = 0;
	root = json_loads(text, 0, NULL);
	if (!root)
		errno = EPROTO;
	return root;
}

static void print_row(const char *name, const json_t *value)
{
	char size[UNITS_TEXT_MAX];
	const char *suffix = strstr(name, "_bytes");

	if (json_is_string(value))
		printf("%-24s %s\n", name, json_string_value(value));
	else if (suffix && !suffix[6])
		printf("%-24s %" JSON_INTEGER_FORMAT " (%s)\n", name, json_integer_value(value),
		       units_print_bytes(size, (u64)json_integer_value(value)));
	else
		printf("%-24s %" JSON_INTEGER_FORMAT "\n", name, json_integer_value(value));
}

static int run_stat(const struct command *self, int argc, char **argv)
{
	struct request r = { 0 };
	static char text[STATS_MAX];
	const char *mountpoint, *name;
	json_t *root, *value;
	int status;

	if (read_request(self, argc, argv, &r, &mountpoint, &status))
		return status;
	root = control_ask(mountpoint, text);
	if (!root)
		return control_fail(self, mountpoint, errno);
	if (r.json) {
		puts(text);
	} else {
		json_object_foreach(root, name, value) if (!json_is_array(value))
			print_row(name, value);
		print_tenants(json_object_get(root, "tenants"));
		print_waits(json_object_get(root, "waits"));
	}
	json_decref(root);
	return EXIT_OK;
}

/* --- sync */

/* What the child does; its status is the errno. */
static int sync_it(const char *mountpoint)
{
	int fd = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char byte;

	/* first what shared mappings have dirtied: that is still with the kernel */
	if (fd < 0 || syncfs(fd))
		return errno;
	return fgetxattr(fd, MOUNT_SYNC_NAME, &byte, 1) < 0 ? errno : 0;
}

static void show_left(const char *mountpoint)
{
	static char text[STATS_MAX];
	json_t *root = control_ask(mountpoint, text);
	char size[UNITS_TEXT_MAX];
	u64 left = 0;

	if (!root)
		return;
	left = (u64)json_integer_value(json_object_get(root, "debt_bytes")) +
	       (u64)json_integer_value(json_object_get(root, "in_flight_bytes"));
	json_decref(root);
	fprintf(stderr, "\r%s left to write    ", units_print_bytes(size, left));
}

/* Waits for the end of the child, which the pipe tells; shows what is left meanwhile. */
static void wait_showing(int end, const char *mountpoint, bool show)
{
	struct pollfd p = { .fd = end };
	bool shown = false;

	while (!poll(&p, 1, show ? PROGRESS_MS : -1)) {
		show_left(mountpoint);
		shown = true;
	}
	if (shown)
		fputs("\r                              \r", stderr);
}

int control_sync(const char *mountpoint, bool show)
{
	int status, ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) || (child = fork()) < 0)
		return -errno;
	if (!child)
		_exit(sync_it(mountpoint));
	close(ends[1]);
	wait_showing(ends[0], mountpoint, show && isatty(STDERR_FILENO));
	close(ends[0]);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -EINTR;
	return -WEXITSTATUS(status);
}

static int run_sync(const struct command *self, int argc, char **argv)
{
	struct request r = { 0 };
	const char *mountpoint;
	int status, rc;

	if (read_request(self, argc, argv, &r, &mountpoint, &status))
		return status;
	rc = control_sync(mountpoint, !r.quiet);
	return rc ? control_fail(self, mountpoint, -rc) : EXIT_OK;
}

const struct command command_stat = {
	.name = "stat",
	.arguments = "MOUNTPOINT",
	.about = "print the statistics of a mount",
	.text = "Prints what the cache behind a mount says of itself: both ledgers, the limits, "
		"what\n"
		"was written, and how often and how long writers were made to wait.",
	.examples = "  sluice stat /mnt/data\n  sluice stat --json /mnt/data\n",
	.options = stat_options,
	.run = run_stat,
};

const struct command command_sync = {
	.name = "sync",
	.arguments = "MOUNTPOINT",
	.about = "make a mount safe",
	.text = "Writes everything that is dirty in a mount, and returns when it is safe. On a "
		"terminal\n"
		"it shows what is left to write.",
	.examples = "  sluice sync /mnt/data\n",
	.options = sync_options,
	.run = run_sync,
};
