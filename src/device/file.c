// SPDX-License-Identifier: MIT
/*
 * Model "file": the real world's device, which executes I/Os. Who waits for an I/O executes it
 * himself, by preadv or pwritev: one system call, and no other thread has to wake up. What is
 * submitted goes to the pool.
 */
#include "device/file.h"
#include "device/store.h"
#include <errno.h>
#include <stdio.h>

#define THREADS_MAX 32

static int file_init(struct device *d)
{
	struct file_device *f = d->state;

	return io_pool_init(&f->pool, d, (u32)min_u64(d->config.queue_depth, THREADS_MAX));
}

static void file_finish(struct device *d)
{
	struct file_device *f = d->state;

	io_pool_finish(&f->pool);
}

static void file_start(struct device *d, struct io *io, bool waited)
{
	struct file_device *f = d->state;

	if (waited)
		device_done(d, io, io->error ? io->error : store_execute(io));
	else
		io_pool_submit(&f->pool, io);
}

static void file_describe(const struct device *d, char *text, size_t size)
{
	struct file_device *f = file_device_of(d);

	snprintf(text, size, "file by threads, %u stores with O_DIRECT, %u without",
		 atomic_load(&f->direct), atomic_load(&f->buffered));
}

int device_register_memory(struct device *d, void *base, size_t bytes)
{
	(void)d;
	(void)base;
	(void)bytes;
	return -ENOTSUP;
}

const struct device_ops file_ops = {
	.name = "file",
	.real = true,
	.state_size = sizeof(struct file_device),
	.init = file_init,
	.start = file_start,
	.describe = file_describe,
	.finish = file_finish,
};
