/* SPDX-License-Identifier: MIT */
/* Inside the device: the state of a device of model "file". */
#ifndef SLUICE_DEVICE_FILE_H
#define SLUICE_DEVICE_FILE_H

#include "device/io_pool.h"
#include "device/model.h"

struct file_device {
	struct io_pool pool;
	struct uring *uring;          /* NULL: the pool executes all */
	_Atomic u32 direct, buffered; /* open files, by O_DIRECT and without */
};

static inline struct file_device *file_device_of(const struct device *d)
{
	assert(d->ops == &file_ops);
	return d->state;
}

#endif
