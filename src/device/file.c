// SPDX-License-Identifier: MIT
/*
 * Model "file": the real world's device, which executes I/Os, in one of three ways.
 *
 * Who waits for an I/O executes it himself, by preadv or pwritev: one system call, in which the
 * kernel wakes him when the device has answered. Any other way adds at least a second wake-up,
 * and a ring of his own the ring's bookkeeping (bench/device.c has the figures).
 *
 * What is submitted and not waited for, write-out and readahead, goes to the ring (uring.c) if
 * there is one and the I/O can be done in one go, past the page cache. All else goes to a pool
 * of threads (io_pool.c): stores of a caller's own, files without O_DIRECT, the last block of a
 * file, what a ring did in part, flushes. The pool has no threads but one until it is needed.
 *
 * "auto" tries to have a ring and does without if the kernel, or a container's rules, say no.
 */
#include "device/file.h"
#include "device/store.h"
#include <errno.h>
#include <stdio.h>

#define THREADS_MAX 32

static int file_init(struct device *d)
{
	struct file_device *f = d->state;
	int error = io_pool_init(&f->pool, d, (u32)min_u64(d->config.queue_depth, THREADS_MAX));

	if (error || d->config.io_engine == IO_ENGINE_THREADS)
		return error;
	error = uring_create(d, d->config.queue_depth, &f->uring);
	if (!error || d->config.io_engine == IO_ENGINE_AUTO)
		return 0;
	io_pool_finish(&f->pool);
	return error;
}

static void file_finish(struct device *d)
{
	struct file_device *f = d->state;

	if (f->uring)
		uring_destroy(f->uring); /* first: it may still be handing things to the pool */
	io_pool_finish(&f->pool);
}

static bool is_for_ring(const struct file_device *f, struct io *io)
{
	const struct store_ops *ops = io->store->ops;

	return f->uring && !io->error && ops->is_direct && ops->is_direct(io->store, io, &io->fd);
}

static void file_start(struct device *d, struct io *io, bool waited)
{
	struct file_device *f = d->state;

	if (waited)
		device_done(d, io, io->error ? io->error : store_execute(io));
	else if (is_for_ring(f, io))
		uring_submit(f->uring, io);
	else
		io_pool_submit(&f->pool, io);
}

void file_do_rest(struct device *d, struct io *io)
{
	io_pool_submit(&file_device_of(d)->pool, io);
}

static void file_describe(const struct device *d, char *text, size_t size)
{
	struct file_device *f = file_device_of(d);

	snprintf(text, size,
		 "file by %s, %zu MiB of memory registered, %u stores with O_DIRECT, %u without",
		 f->uring ? "io_uring" : "threads", f->uring ? uring_registered(f->uring) >> 20 : 0,
		 atomic_load(&f->direct), atomic_load(&f->buffered));
}

int device_register_memory(struct device *d, void *base, size_t bytes)
{
	struct file_device *f = d->ops == &file_ops ? d->state : NULL;

	return f && f->uring ? uring_register(f->uring, base, bytes) : -ENOTSUP;
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
