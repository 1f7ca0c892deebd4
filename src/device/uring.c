// SPDX-License-Identifier: MIT
/*
 * One ring and one thread, which owns it: it alone submits and reaps. Whoever has an I/O puts it
 * on a list and, if the thread sleeps in the kernel, wakes it through an eventfd that the ring
 * reads from. The thread turns all that is on the list into entries of the ring, and one system
 * call both submits them and waits for the next completion; under load, when there is always
 * something on the list, nobody is woken and nobody calls the kernel for a single I/O.
 *
 * Why not a ring for each submitter: the kernel finishes a request in the task that submitted it,
 * so a flusher asleep for another reason would be woken for each of its I/Os only to hand the
 * result on to the thread that reaps. With the submitter reaping, completions are taken in
 * batches by the task that waits for them (IORING_SETUP_SINGLE_ISSUER and DEFER_TASKRUN: Linux
 * 6.1; older kernels do without), and the file system's part of a submission runs beside the
 * flusher instead of in it. Readers need no ring: who waits for one I/O is served best by
 * preadv (see file.c).
 *
 * Memory the device was told about is registered as buffers of at most 1 GiB, and I/Os of
 * one piece that lie in one of them spare the kernel the look-up of their pages.
 *
 * A ring takes only what it can do in one go, direct and aligned. If that comes back short or
 * was refused for the moment, the thread pool does the rest, as it does everything else. Flushes
 * too: io_uring would only hand an fdatasync to a thread of its own, as it would what cannot be
 * done in one go if it were not told to refuse that (RWF_NOWAIT). And the last of those threads
 * never ends: it wakes up every five seconds, for as long as the ring is there.
 */
#include "device/uring.h"
#include "device/file.h"
#include "device/store.h"
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#define BUFFER_SHIFT 30
#define BUFFERS_MAX  1024

struct registration {
	void *base;
	size_t bytes;
	int result;
	struct completion done;
};

struct uring {
	struct device *device;
	struct task *thread;
	u32 entries;
	int wake_fd;
	struct completion ready; /* the ring is set up, or setup_error says why not */
	int setup_error;
	/* the thread's own: */
	struct io_uring ring;
	u64 wakes; /* what was read from wake_fd: of no interest */
	u32 in_flight;
	/* Protects all below; nothing is taken under it. */
	struct spinlock lock;
	struct list_node queue;      /* I/Os to be submitted, oldest first */
	struct registration *wanted; /* memory to be registered, or NULL */
	bool asleep;                 /* the thread is in the kernel, or about to go there */
	bool stopping;
	/* what is registered; written by the thread */
	_Atomic size_t registered;
	u8 *base;
};

/* The ring, by its best features that this kernel has. */
static int set_up(struct uring *u)
{
	static const unsigned flags[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CLAMP,
		IORING_SETUP_CLAMP,
		0,
	};
	int rc = -EINVAL;

	for (size_t i = 0; i < ARRAY_SIZE(flags) && rc == -EINVAL; i++)
		rc = io_uring_queue_init(u->entries, &u->ring, flags[i]);
	return rc;
}

static void register_wanted(struct uring *u, struct registration *r)
{
	struct iovec chunks[BUFFERS_MAX];
	size_t bytes = r->bytes;
	unsigned n = 0;

	if (atomic_load(&u->registered))
		io_uring_unregister_buffers(&u->ring);
	atomic_store(&u->registered, 0);
	if (bytes > (size_t)BUFFERS_MAX << BUFFER_SHIFT)
		r->result = -EINVAL;
	for (u8 *at = r->base; bytes && !r->result; n++) {
		size_t here = min_u64(bytes, 1ull << BUFFER_SHIFT);

		chunks[n] = (struct iovec){ at, here };
		at += here;
		bytes -= here;
	}
	if (n)
		r->result = io_uring_register_buffers(&u->ring, chunks, n);
	if (n && !r->result) {
		u->base = r->base;
		atomic_store(&u->registered, r->bytes);
	}
	completion_done(&r->done);
}

static struct io_uring_sqe *next_entry(struct uring *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	assert(sqe); /* the ring has as many as there can be I/Os, and one */
	return sqe;
}

static void listen_for_wakes(struct uring *u)
{
	struct io_uring_sqe *sqe = next_entry(u);

	io_uring_prep_read(sqe, u->wake_fd, &u->wakes, sizeof(u->wakes), 0);
	io_uring_sqe_set_data(sqe, NULL);
}

/* The registered buffer that all of io is in, or -1. */
static int buffer_of(const struct uring *u, const struct io *io)
{
	size_t from = (size_t)((u8 *)io->vec[0].iov_base - u->base);
	size_t last = from + io->length_bytes - 1;

	if (io->vec_count != 1 || from >= atomic_load(&u->registered) ||
	    last >= atomic_load(&u->registered) || from >> BUFFER_SHIFT != last >> BUFFER_SHIFT)
		return -1;
	return (int)(from >> BUFFER_SHIFT);
}

static void prepare(struct uring *u, struct io *io)
{
	struct io_uring_sqe *sqe = next_entry(u);
	const struct iovec *v = io->vec;
	int buffer = buffer_of(u, io);

	if (io->op == IO_READ && buffer >= 0)
		io_uring_prep_read_fixed(sqe, io->fd, v->iov_base, io->length_bytes,
					 io->offset_bytes, buffer);
	else if (io->op == IO_READ)
		io_uring_prep_readv(sqe, io->fd, v, io->vec_count, io->offset_bytes);
	else if (buffer >= 0)
		io_uring_prep_write_fixed(sqe, io->fd, v->iov_base, io->length_bytes,
					  io->offset_bytes, buffer);
	else
		io_uring_prep_writev(sqe, io->fd, v, io->vec_count, io->offset_bytes);
	sqe->rw_flags = RWF_NOWAIT;
	io_uring_sqe_set_data(sqe, io);
	u->in_flight++;
}

/* Takes what others have left for the thread. False: it shall end, and nothing is in flight. */
static bool collect(struct uring *u)
{
	struct registration *wanted;
	struct list_node batch;
	bool go_on;

	list_init(&batch);
	spin_lock(&u->lock);
	list_splice(&batch, &u->queue);
	wanted = u->wanted;
	u->wanted = NULL;
	go_on = !u->stopping || u->in_flight || !list_empty(&batch);
	u->asleep = true;
	spin_unlock(&u->lock);
	if (wanted)
		register_wanted(u, wanted);
	while (!list_empty(&batch)) {
		struct io *io = list_entry(batch.next, struct io, link);

		list_del(&io->link);
		prepare(u, io);
	}
	return go_on;
}

static void landed(struct uring *u, struct io *io, s64 result)
{
	struct store *s = io->store;
	int error;

	assert(u->in_flight);
	u->in_flight--;
	if (s->ops->landed(s, io, result, &error))
		device_done(u->device, io, error);
	else
		file_do_rest(u->device, io);
}

static void reap(struct uring *u)
{
	struct io_uring_cqe *cqe;

	while (!io_uring_peek_cqe(&u->ring, &cqe)) {
		struct io *io = io_uring_cqe_get_data(cqe);
		s64 result = cqe->res;

		io_uring_cqe_seen(&u->ring, cqe);
		if (io)
			landed(u, io, result);
		else
			listen_for_wakes(u);
	}
}

static void ring_main(void *arg)
{
	struct uring *u = arg;

	u->setup_error = set_up(u);
	completion_done(&u->ready);
	if (u->setup_error)
		return;
	listen_for_wakes(u);
	while (collect(u)) {
		int rc = io_uring_submit_and_wait(&u->ring, 1);

		/* no memory for so many, or interrupted: what was not taken stays in the ring */
		assert(rc >= 0 || rc == -EINTR || rc == -EAGAIN || rc == -EBUSY || rc == -ENOMEM);
		if (rc == -EAGAIN || rc == -ENOMEM)
			world_sleep_until(world_now() + NSEC_PER_MSEC);
		spin_lock(&u->lock);
		u->asleep = false;
		spin_unlock(&u->lock);
		reap(u);
	}
	io_uring_queue_exit(&u->ring);
}

/* Wakes the thread if it sleeps. The lock is held, and is given up. */
static void unlock_and_wake(struct uring *u)
{
	bool wake = u->asleep;
	u64 one = 1;
	ssize_t written;

	u->asleep = false;
	spin_unlock(&u->lock);
	if (!wake)
		return;
	do
		written = write(u->wake_fd, &one, sizeof(one));
	while (written < 0 && errno == EINTR);
	assert(written == sizeof(one));
}

void uring_submit(struct uring *u, struct io *io)
{
	list_init(&io->link);
	spin_lock(&u->lock);
	list_add_tail(&u->queue, &io->link);
	unlock_and_wake(u);
}

int uring_register(struct uring *u, void *base, size_t bytes)
{
	struct registration r = { .base = base, .bytes = bytes };

	completion_init(&r.done);
	spin_lock(&u->lock);
	if (u->wanted) {
		spin_unlock(&u->lock);
		return -EBUSY;
	}
	u->wanted = &r;
	unlock_and_wake(u);
	completion_wait(&r.done);
	return r.result;
}

size_t uring_registered(const struct uring *u)
{
	return atomic_load(&u->registered);
}

int uring_create(struct device *d, u32 depth, struct uring **out)
{
	struct uring *u = calloc(1, sizeof(*u));
	int error;

	if (!u)
		return -ENOMEM;
	u->device = d;
	u->entries = depth + 1;
	spin_init(&u->lock, RANK_DEVICE);
	list_init(&u->queue);
	completion_init(&u->ready);
	u->wake_fd = eventfd(0, EFD_CLOEXEC);
	error = u->wake_fd < 0 ? -errno : 0;
	if (!error && !(u->thread = io_thread_spawn(world_current, "ring", ring_main, u)))
		error = -EAGAIN;
	if (!error) {
		completion_wait(&u->ready);
		error = u->setup_error;
	}
	if (!error) {
		*out = u;
		return 0;
	}
	if (u->thread)
		world_join(u->thread);
	if (u->wake_fd >= 0)
		close(u->wake_fd);
	free(u);
	return error;
}

void uring_destroy(struct uring *u)
{
	spin_lock(&u->lock);
	assert(list_empty(&u->queue));
	u->stopping = true;
	unlock_and_wake(u);
	world_join(u->thread);
	close(u->wake_fd);
	free(u);
}
