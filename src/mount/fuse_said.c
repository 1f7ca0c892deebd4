/* SPDX-License-Identifier: MIT */
/*
 * libfuse tells why a mount fails on the terminal and nowhere else. Here it is caught, so that it
 * can stand in the one line of an error. libfuse has one such log for the whole program.
 */
#include "mount/fuse_said.h"
#include "base/err.h"
#include <fuse_log.h>
#include <stdio.h>
#include <string.h>

static struct err said;

static void listen(enum fuse_log_level level, const char *format, va_list args)
{
	char text[256];

	if (level > FUSE_LOG_ERR)
		return;
	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = 0;
	err_set(&said, NULL, 0, "%s", text);
}

void fuse_said_listen(void)
{
	said = (struct err){ "" };
	fuse_set_log_func(listen);
}

const char *fuse_said_why(void)
{
	return said.text[0] ? said.text : "libfuse does not say why";
}
