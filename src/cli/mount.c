/* SPDX-License-Identifier: MIT */
/*
 * sluice mount: options, the way to the background, and what is said at the end. As a daemon it is
 * a child from the start, since threads do not survive a fork; its parent ends as soon as it
 * hears that the folder is served. Under the name mount.sluice it takes what mount(8) gives.
 */
#include "mount/mount.h"
#include "cli/cli.h"
#include "sluice.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

struct request {
	struct words options;
	bool foreground;
	/* from the options: */
	char *lists[WORDS_MAX]; /* in which the words below lie */
	const char *settings[WORDS_MAX + 1];
	size_t settings_count;
	char fuse[512];
	bool direct, lazy_replace;
};

static const struct option options[] = {
	OPTION(struct request, options, WORDS, "options", 'o', "KEY=VALUE,...",
	       "settings of the cache, reads=kernel|direct, ro, noexec"),
	OPTION(struct request, foreground, FLAG, "foreground", 'f', NULL,
	       "stay, and say there what could not be written"),
	{ 0 },
};

/* --- options */

/* Of mount(8), for itself or for others: nothing for us to do. */
static bool is_for_mount(const char *word)
{
	static const char *const words[] = { "rw",      "auto",  "noauto", "defaults", "nofail",
					     "_netdev", "user",  "nouser", "users",    "owner",
					     "group",   "async", "atime",  "relatime", "dev",
					     "suid",    "exec" };

	if (!strncmp(word, "x-", 2) || !strncmp(word, "X-", 2) || !strncmp(word, "comment=", 8))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

static bool is_for_fuse(const char *word)
{
	static const char *const words[] = { "ro",      "nodev", "nosuid", "noexec",
					     "noatime", "sync",  "dirsync" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

static int take_option(const struct command *self, struct request *r, const char *word)
{
	size_t length = strlen(r->fuse);

	if (is_for_fuse(word)) {
		if (length + strlen(word) + 2 > sizeof(r->fuse))
			return usage_error(self, "too many options");
		snprintf(r->fuse + length, sizeof(r->fuse) - length, "%s%s", length ? "," : "",
			 word);
	} else if (!strncmp(word, "reads=", 6)) {
		r->direct = !strcmp(word + 6, "direct");
		if (!r->direct && strcmp(word + 6, "kernel") != 0)
			return usage_error(self, "reads cannot be \"%s\", only kernel or direct",
					   word + 6);
	} else if (!strcmp(word, "auto_da_alloc") || !strcmp(word, "noauto_da_alloc")) {
		r->lazy_replace = *word == 'n';
	} else if (!is_for_mount(word)) {
		if (r->settings_count == WORDS_MAX)
			return usage_error(self, "more than %d settings", WORDS_MAX);
		r->settings[r->settings_count++] = word;
	}
	return 0;
}

/* The lists become single options. */
static int take_options(const struct command *self, struct request *r)
{
	for (size_t i = 0; i < r->options.count; i++) {
		char *list = r->lists[i] = strdup(r->options.word[i]), *word;

		while (list && (word = strsep(&list, ",")))
			if (*word && take_option(self, r, word))
				return EXIT_USAGE;
	}
	return 0;
}

/* --- serving */

static void say_lost(void *ctx, const char *path, u64 bytes, int error)
{
	const bool *to_syslog = ctx;

	if (*to_syslog)
		syslog(LOG_ERR, "%s: %" PRIu64 " bytes could not be written: %s", path, bytes,
		       strerror(-error));
	else
		fprintf(stderr, "sluice mount: %s: %" PRIu64 " bytes could not be written: %s\n",
			path, bytes, strerror(-error));
}

/* Of a daemon that was killed, when this one begins: to the terminal and for later. */
static void say_recovered(void *ctx, const struct sluice_recovered *r)
{
	const bool *to_syslog = ctx;
	char text[2 * PATH_MAX + 256];

	if (r->how == SLUICE_RECOVERED_WRITTEN)
		snprintf(text, sizeof(text), "recovered: %s: %" PRIu64 " bytes written", r->path,
			 r->bytes);
	else if (r->how == SLUICE_RECOVERED_ASIDE)
		snprintf(text, sizeof(text),
			 "not recovered: %s: %s; its %" PRIu64 " bytes are in %s", r->path, r->why,
			 r->bytes, r->where);
	else
		snprintf(text, sizeof(text), "dropped: %s: %" PRIu64 " bytes; %s", r->path,
			 r->bytes, r->why);
	fprintf(stderr, "sluice mount: %s\n", text);
	if (*to_syslog)
		syslog(r->how == SLUICE_RECOVERED_ASIDE ? LOG_WARNING : LOG_NOTICE, "%s", text);
}

static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	if (chdir("/"))
		syslog(LOG_WARNING, "/: %s", strerror(errno));
}

/* `ready`: whom to tell that the folder is served, or -1 in the foreground. */
static int serve(const struct command *self, const struct mount_config *c, int ready)
{
	bool to_syslog = ready >= 0;
	struct err e = { "" };
	struct mount *m;
	int rc = mount_open(c, &m, &e), closed;

	if (rc) {
		usage_error(self, "%s", e.text);
		return rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	openlog("sluice mount", LOG_PID, LOG_DAEMON);
	mount_recovered(m, say_recovered, &to_syslog);
	if (to_syslog) {
		leave_terminal();
		if (write(ready, "", 1) != 1)
			syslog(LOG_WARNING, "nobody waited for it to be served");
		close(ready);
	}
	rc = mount_serve(m);
	closed = mount_close(m, say_lost, &to_syslog);
	rc = rc ? rc : closed;
	if (rc && to_syslog)
		syslog(LOG_ERR, "%s: %s", c->mountpoint, strerror(-rc));
	else if (rc)
		usage_error(self, "%s: %s", c->mountpoint, strerror(-rc));
	return rc ? EXIT_FAILED : EXIT_OK;
}

/* What the parent does: waits until the folder is served, or the child failed and said why. */
static int wait_for(pid_t child, int ready)
{
	char byte;
	int status;

	if (read(ready, &byte, 1) == 1)
		return EXIT_OK;
	if (waitpid(child, &status, 0) == child && WIFEXITED(status))
		return WEXITSTATUS(status);
	return EXIT_FAILED;
}

static int serve_in_background(const struct command *self, const struct mount_config *c)
{
	pid_t child;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) || (child = fork()) < 0) {
		usage_error(self, "%s", strerror(errno));
		return EXIT_FAILED;
	}
	if (child) {
		close(ends[1]);
		return wait_for(child, ends[0]);
	}
	close(ends[0]);
	setsid();
	return serve(self, c, ends[1]);
}

static int serve_as_asked(const struct command *self, struct request *r, const struct words *plain)
{
	const struct mount_config c = { .source = plain->word[0],
					.mountpoint = plain->word[1],
					.settings = r->settings,
					.fuse_options = r->fuse,
					.direct = r->direct,
					.lazy_replace = r->lazy_replace };

	return r->foreground ? serve(self, &c, -1) : serve_in_background(self, &c);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct request r = { 0 };
	struct words plain = { 0 };
	int status;

	if (!args_read(self, argc, argv, &r, &plain, &status))
		return status;
	if (plain.count != 2)
		return usage_error(self, "a source and a folder to mount on are needed");
	status = take_options(self, &r);
	if (!status)
		status = serve_as_asked(self, &r, &plain);
	for (size_t i = 0; i < r.options.count; i++)
		free(r.lists[i]);
	return status;
}

int run_mount_helper(int argc, char **argv)
{
	char *words[WORDS_MAX];
	int count = 0;

	/* SOURCE DIR [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE] */
	for (int i = 1; i < argc && count < WORDS_MAX; i++) {
		if (!strcmp(argv[i], "-t") || !strcmp(argv[i], "-N"))
			i++;
		else if (!strcmp(argv[i], "-f"))
			return EXIT_OK; /* only to see whether it would be tried */
		else if (strcmp(argv[i], "-s") != 0 && strcmp(argv[i], "-n") != 0 &&
			 strcmp(argv[i], "-v") != 0)
			words[count++] = argv[i];
	}
	return run(&command_mount, count, words);
}

const struct command command_mount = {
	.name = "mount",
	.arguments = "SOURCE MOUNTPOINT",
	.about = "serve a directory through the cache",
	.text = "Serves the directory SOURCE at MOUNTPOINT: any program that works there has its\n"
		"writes accepted, counted, limited and paced by this cache instead of the "
		"kernel's.\n"
		"It goes to the background once the folder is served. When it is unmounted, and "
		"on\n"
		"SIGTERM, everything is written; what could not be is said.",
	.examples = "  sluice mount -o memory=1G,dirty_ratio=40 /srv/data /mnt/data\n"
		    "  sluice stat /mnt/data\n"
		    "  sluice umount /mnt/data\n",
	.options = options,
	.run = run,
};
