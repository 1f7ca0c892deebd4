/* SPDX-License-Identifier: MIT */
/*
 * A file is written without a name where the file system can do that (O_TMPFILE), else under a
 * name beside its place, and renamed into it: it is there whole, or not at all. Who is killed
 * while writing a nameless one leaves nothing behind.
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

/* Closes `out` and returns `error`, or the first error of what was still to be written. */
static int close_all(FILE *out, int error)
{
	if (fflush(out) && !error)
		error = -errno;
	if (fclose(out) && !error)
		error = -errno;
	return error;
}

/* A device or pipe is written into; renaming something over it would take it away. */
static int write_into(const char *path, int (*fill)(FILE *out, void *ctx), void *ctx)
{
	FILE *out = fopen(path, "we");

	return out ? close_all(out, fill(out, ctx)) : -errno;
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
static int write_nameless(const char *path, mode_t mode, int (*fill)(FILE *out, void *ctx),
			  void *ctx)
{
	int fd = open_nameless(path, mode), error;
	char *name = NULL;
	FILE *out;

	if (fd < 0)
		return -ENOTSUP;
	out = fdopen(fd, "w");
	if (!out) {
		close(fd);
		return -errno;
	}
	error = fchmod(fd, mode) ? -errno : fill(out, ctx);
	if (!error && fflush(out))
		error = -errno;
	if (!error) {
		name = give_name(fd, path);
		if (!name)
			error = -errno;
	}
	error = close_all(out, error);
	if (name && !error && rename(name, path))
		error = -errno;
	if (name && error)
		unlink(name);
	free(name);
	return error;
}

/* Writes a file beside `path` with this mode, and renames it into its place. */
static int write_beside(const char *path, mode_t mode, int (*fill)(FILE *out, void *ctx), void *ctx)
{
	char *temporary;
	FILE *out;
	int fd, error = write_nameless(path, mode, fill, ctx);

	if (error != -ENOTSUP)
		return error;
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(temporary, O_CLOEXEC);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	error = out && !fchmod(fd, mode) ? 0 : -errno;
	if (out)
		error = close_all(out, error ? error : fill(out, ctx));
	else if (fd >= 0)
		close(fd);
	if (!error && rename(temporary, path))
		error = -errno;
	if (error && fd >= 0)
		unlink(temporary);
	free(temporary);
	return error;
}

int outfile_write(const char *path, int (*fill)(FILE *out, void *ctx), void *ctx, struct err *e)
{
	/* behind a symbolic link, the file it points to is replaced and not the link */
	char *real = realpath(path, NULL);
	struct stat there;
	int error;

	if (!real || stat(real, &there))
		error = write_beside(path, ordinary_mode(), fill, ctx);
	else if (S_ISREG(there.st_mode))
		error = write_beside(real, there.st_mode & 07777, fill, ctx);
	else
		error = write_into(real, fill, ctx);
	free(real);
	if (error)
		err_set(e, path, 0, "cannot be written: %s", strerror(-error));
	return error;
}
