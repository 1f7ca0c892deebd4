// SPDX-License-Identifier: MIT
/*
 * Model "memory": takes no time and never waits. It is what tests and the first steps of
 * a program run on, in either world.
 */
#include "device/model.h"

static u64 memory_serve(struct device *d, const struct io *io, u32 bytes, u64 now)
{
	(void)d;
	(void)io;
	(void)bytes;
	return now;
}

const struct device_ops memory_ops = {
	.name = "memory",
	.immediate = true,
	.serve = memory_serve,
};
