/* SPDX-License-Identifier: MIT */
/*
 * A file is written without a name where the file system can do that (O_TMPFILE), else under a
 * name beside its place, and renamed into it: it is there whole, or not at all. Who is killed
 * while writing a nameless one leaves nothing behind.
 *
 * What is to stand in it is made in memory first and then written at once, so that what is said of
 * a full disk is what the system says of it.
 */
#include "base/outfile.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* mkostemp() makes files for the owner only; a result is an ordinary file. */
static mode_t ordinary_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

/* What is to be written. */
struct contents {
	char *text;
	size_t size;
};

static int write_all(int fd, const struct contents *c)
{
	size_t at = 0;

	while (at < c->size) {
		ssize_t n = write(fd, c->text + at, c->size - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Closes the file and returns `error`, or that of closing: some file systems only then tell. */
static int close_all(int fd, int error)
{
	if (close(fd) && !error)
		error = -errno;
	return error;
}

/* A device or pipe is written into; renaming something over it would take it away. */
static int write_into(const char *path, const struct contents *c)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	return fd < 0 ? -errno : close_all(fd, write_all(fd, c));
}

/* A new file without a name in the folder of `path`; negative where there is no such thing. */
static int open_nameless(const char *path, mode_t mode)
{
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	int fd = folder ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode) : -1;

	free(folder);
	return fd;
}

/* Gives it a name beside `path`, to be freed by the caller; NULL with errno set. */
static char *give_name(int fd, const char *path)
{
	char self[64], *name = NULL;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	for (unsigned i = 0; i < 1000; i++) {
		if (asprintf(&name, "%s.%d.%u", path, (int)getpid(), i) < 0)
			return NULL;
		if (!linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW))
			return name;
		free(name);
		if (errno != EEXIST)
			return NULL;
	}
	return NULL;
}

/* As write_beside(), but nameless while it is written. -ENOTSUP: not here. */
static int write_nameless(const char *path, mode_t mode, const struct contents *c)
{
	int fd = open_nameless(path, mode), error;
	char *name = NULL;

	if (fd < 0)
		return -ENOTSUP;
	error = fchmod(fd, mode) ? -errno : write_all(fd, c);
	if (!error) {
		name = give_name(fd, path);
		if (!name)
			error = -errno;
	}
	error = close_all(fd, error);
	if (name && !error && rename(name, path))
		error = -errno;
	if (name && error)
		unlink(name);
	free(name);
	return error;
}

/* Writes a file beside `path` with this mode, and renames it into its place. */
static int write_beside(const char *path, mode_t mode, const struct contents *c)
{
	char *temporary;
	int fd, error = write_nameless(path, mode, c);

	if (error != -ENOTSUP)
		return error;
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(temporary, O_CLOEXEC);
	error = fd >= 0 && !fchmod(fd, mode) ? 0 : -errno;
	if (fd >= 0)
		error = close_all(fd, error ? error : write_all(fd, c));
	if (!error && rename(temporary, path))
		error = -errno;
	if (error && fd >= 0)
		unlink(temporary);
	free(temporary);
	return error;
}

static int make_contents(struct contents *c, int (*fill)(FILE *out, void *ctx), void *ctx)
{
	FILE *out = open_memstream(&c->text, &c->size);
	int error;

	if (!out)
		return -ENOMEM;
	error = fill(out, ctx);
	return fclose(out) ? -ENOMEM : error;
}

static int write_contents(const char *path, const struct contents *c)
{
	/* behind a symbolic link, the file it points to is replaced and not the link */
	char *real = realpath(path, NULL);
	struct stat there;
	int error;

	if (!real || stat(real, &there))
		error = write_beside(path, ordinary_mode(), c);
	else if (S_ISREG(there.st_mode))
		error = write_beside(real, there.st_mode & 07777, c);
	else
		error = write_into(real, c);
	free(real);
	return error;
}

int outfile_write(const char *path, int (*fill)(FILE *out, void *ctx), void *ctx, struct err *e)
{
	struct contents c = { NULL, 0 };
	int error = make_contents(&c, fill, ctx);

	if (!error)
		error = write_contents(path, &c);
	free(c.text);
	if (error)
		err_set(e, path, 0, "cannot be written: %s", strerror(-error));
	return error;
}
