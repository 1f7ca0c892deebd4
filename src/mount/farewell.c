// SPDX-License-Identifier: MIT
/*
 * Who unmounts wants to hear that all is safe, but the kernel does not wait for a daemon, and by
 * then the mount cannot be asked any more. So the daemon listens on a socket, whose name is among
 * its statistics: who connects before he unmounts is told at the very end what became of it, in
 * a line for each file that lost data, and a last line that says how it ended. An end without
 * that line is a daemon that was killed.
 *
 * The socket is an abstract one: it needs no place, and goes with the daemon. Nobody accepts until
 * the end; the system keeps those who have connected.
 */
#include "mount/farewell.h"
#include "base/bits.h"
#include "world/world.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WAITING_MAX 64
#define STEP        4096

/* Its length. */
static socklen_t address_of(const char *name, struct sockaddr_un *out)
{
	size_t length = min_u64(strlen(name), sizeof(out->sun_path) - 1);

	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(out->sun_path + 1, name, length); /* after a zero: it is no path */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

int farewell_open(struct farewell *f)
{
	struct sockaddr_un address;
	socklen_t length;
	int rc;

	snprintf(f->name, sizeof(f->name), "sluice-mount-%d-%llx", getpid(),
		 (unsigned long long)world_now());
	length = address_of(f->name, &address);
	f->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->fd < 0)
		return -errno;
	if (!bind(f->fd, (struct sockaddr *)&address, length) && !listen(f->fd, WAITING_MAX))
		return 0;
	rc = -errno;
	close(f->fd);
	f->fd = -1;
	return rc;
}

void farewell_say(struct farewell *f, const char *text)
{
	int to;

	if (f->fd < 0)
		return;
	while ((to = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		const char *at = text;
		ssize_t n;

		while (*at && (n = send(to, at, strlen(at), MSG_NOSIGNAL | MSG_DONTWAIT)) > 0)
			at += n;
		close(to);
	}
	close(f->fd);
	f->fd = -1;
}

int farewell_connect(const char *name)
{
	struct sockaddr_un address;
	socklen_t length = address_of(name, &address);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&address, length))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

char *farewell_hear(int fd)
{
	size_t used = 0;
	char *text = malloc(STEP), *more;
	ssize_t n;

	while (text && (n = read(fd, text + used, STEP - 1)) != 0) {
		if (n < 0 && errno != EINTR)
			break; /* it was killed */
		used += n > 0 ? (size_t)n : 0;
		more = realloc(text, used + STEP);
		if (!more)
			free(text);
		text = more;
	}
	if (text)
		text[used] = 0;
	close(fd);
	return text;
}
