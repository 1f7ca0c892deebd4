/* SPDX-License-Identifier: MIT */
/*
 * The server's side of a simulated device of model "fuse": whoever plays the server takes requests
 * here and answers them. Simulated world only.
 */
#ifndef SLUICE_DEVICE_FUSE_H
#define SLUICE_DEVICE_FUSE_H

#include "device/device.h"

/* One request with the server. */
struct fuse_request {
	struct store *store;
	enum io_op op; /* IO_FLUSH: FSYNC; IO_ASK: a question that moves no data */
	u64 offset_bytes;
	u32 bytes;
	/* --- the device's */
	struct device_request *at;
};

/* The next request for the server, in order; parks until there is one. False: it is to stop. */
bool fuse_take(struct device *d, struct fuse_request *out);
/* It has been carried out, with that result. */
void fuse_answer(struct device *d, const struct fuse_request *r, int error);
/* Makes all servers' fuse_take() return false from now on. The device is idle. */
void fuse_stop(struct device *d);

#endif
