/* SPDX-License-Identifier: MIT */
/* The server behind a simulated FUSE file system. */
#ifndef SLUICE_LAB_FUSE_SERVER_H
#define SLUICE_LAB_FUSE_SERVER_H

#include "device/fuse.h"
#include "file/engine.h"

struct fuse_server;

/*
 * Starts the threads of a server for a device of model "fuse". Its files are on the device of that
 * index of the engine, or, if it is negative, in its own memory. 0 or -ENOMEM.
 */
int fuse_server_start(struct engine *e, struct device *d, int backing, struct fuse_server **out);
/* Ends them and drops the server's files. The device is idle, and the files on it are gone. */
void fuse_server_stop(struct fuse_server *s);

#endif
