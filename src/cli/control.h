/* SPDX-License-Identifier: MIT */
/* How the commands talk to a mount. */
#ifndef SLUICE_CLI_CONTROL_H
#define SLUICE_CLI_CONTROL_H

#include "cli/cli.h"
#include <jansson.h>

#define STATS_MAX 65536

/* The statistics, to be given up, and their text; NULL with errno. */
json_t *control_ask(const char *mountpoint, char text[STATS_MAX]);
/* Makes it safe; `show`: what is left, if somebody is there to see it. 0 or a negative errno. */
int control_sync(const char *mountpoint, bool show);
/* EXIT_FAILED after a complaint. */
int control_fail(const struct command *self, const char *mountpoint, int error);

/* tenants.c: a table of the tenants, an array among the statistics; nothing if there are none. */
void print_tenants(const json_t *tenants);
/* why.c: sentences on the last waits of writers, an array among the statistics. */
void print_waits(const json_t *waits);

#endif
