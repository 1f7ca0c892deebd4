/* SPDX-License-Identifier: MIT */
/*
 * A named pipe that nobody writes to would be waited for for ever, and so it is opened without
 * waiting and refused when it turns out to be one. What came as an open file from the shell has
 * somebody at its other end.
 */
#include "base/infile.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int from_shell(const char *path)
{
	static const char *const places[] = { "/dev/stdin", "/dev/fd/", "/proc/self/fd/" };

	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!strncmp(path, places[i], strlen(places[i])))
			return 1;
	return 0;
}

int infile_open(const char *path)
{
	int shell = from_shell(path);
	int fd = open(path, O_RDONLY | O_CLOEXEC | (shell ? 0 : O_NONBLOCK)), error;
	struct stat s;

	if (fd < 0)
		return -errno;
	error = fstat(fd, &s) ? -errno : S_ISDIR(s.st_mode) ? -EISDIR : 0;
	if (!error && !S_ISREG(s.st_mode) && !shell)
		error = -ENXIO;
	if (!error)
		return fd;
	close(fd);
	return error;
}

const char *infile_error(int error)
{
	return error == -ENXIO ? INFILE_NOT_REGULAR : strerror(-error);
}
