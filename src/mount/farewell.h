/* SPDX-License-Identifier: MIT */
/* What a mount says at its end, to those who wait for it. */
#ifndef SLUICE_MOUNT_FAREWELL_H
#define SLUICE_MOUNT_FAREWELL_H

#include "base/types.h"
#include <sys/types.h>

#define FAREWELL_KEY  "end_socket"    /* among the statistics: the name of the socket */
#define FAREWELL_SAFE "all is safe\n" /* the last line, if nothing is lost */

struct farewell {
	int fd; /* -1: nobody can ask */
	char name[64];
};

/* 0 or a negative errno: then nobody can ask. */
int farewell_open(struct farewell *f);
/* Says it to all who have connected, and closes. */
void farewell_say(struct farewell *f, const char *text);

/* A descriptor to hear it by, or a negative errno. */
int farewell_connect(const char *name);
/*
 * Waits for it, and closes the descriptor. The text, without a last line if the daemon was killed,
 * to be freed; NULL without memory.
 */
char *farewell_hear(int fd);

#endif
