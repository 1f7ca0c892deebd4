// SPDX-License-Identifier: MIT
/*
 * A queue of I/Os and threads that take them from it, oldest first, and execute them one by one.
 * There is always one thread; another is started when an I/O comes and no thread is idle for it,
 * up to a limit. An idle thread sleeps until there is work, the first one for ever, the others
 * for some seconds, then they end. So a device that is not used has one sleeping thread and
 * never wakes. A thread that has ended is joined by the next one to be started, or at the end.
 */
#include "device/io_pool.h"
#include "device/model.h"
#include "device/store.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#define IDLE_NS (5 * NSEC_PER_SEC)

struct worker {
	struct list_node link; /* of io_pool.ended or .running */
	struct io_pool *pool;
	struct task *task;
	bool first; /* the one that stays */
};

struct task *io_thread_spawn(struct world *w, const char *name, void (*fn)(void *arg), void *arg)
{
	struct task *task;
	sigset_t all, before;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	task = world_spawn_in(w, name, fn, arg);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return task;
}

/* The next I/O, or NULL when the thread shall end. The lock is held. */
static struct io *io_pool_next(struct io_pool *p, bool first)
{
	struct io *io;

	assert(mutex_is_held(&p->lock));
	while (list_empty(&p->queue)) {
		u64 until = first ? WORLD_NEVER : world_now() + IDLE_NS;
		int rc;

		if (p->stopping)
			return NULL;
		p->idle++;
		rc = cond_wait_until(&p->work, &p->lock, until);
		p->idle--;
		if (rc && list_empty(&p->queue))
			return NULL;
	}
	io = list_entry(p->queue.next, struct io, link);
	list_del(&io->link);
	p->queued--;
	return io;
}

static void worker_main(void *arg)
{
	struct worker *w = arg;
	struct io_pool *p = w->pool;
	struct io *io;

	mutex_lock(&p->lock);
	while ((io = io_pool_next(p, w->first))) {
		mutex_unlock(&p->lock);
		device_done(p->device, io, io->error ? io->error : store_execute(io));
		mutex_lock(&p->lock);
	}
	p->threads--;
	if (!p->stopping) {
		list_del(&w->link);
		list_add_tail(&p->ended, &w->link);
	}
	mutex_unlock(&p->lock);
}

static void join_all(struct list_node *workers)
{
	while (!list_empty(workers)) {
		struct worker *w = list_entry(workers->next, struct worker, link);

		list_del(&w->link);
		world_join(w->task);
		free(w);
	}
}

/* One more thread, which p->threads counts already: 0 or -EAGAIN. */
static int io_pool_spawn(struct io_pool *p, bool first)
{
	struct worker *w = calloc(1, sizeof(*w));
	struct list_node ended;

	list_init(&ended);
	mutex_lock(&p->lock);
	list_splice(&ended, &p->ended);
	if (w) {
		w->pool = p;
		w->first = first;
		w->task = io_thread_spawn(p->world, "io", worker_main, w);
	}
	if (w && w->task)
		list_add_tail(&p->running, &w->link);
	else
		p->threads--;
	mutex_unlock(&p->lock);
	join_all(&ended);
	if (w && w->task)
		return 0;
	free(w);
	return -EAGAIN;
}

int io_pool_init(struct io_pool *p, struct device *d, u32 max_threads)
{
	*p = (struct io_pool){
		.device = d, .world = world_current, .max = max_threads, .threads = 1
	};
	mutex_init(&p->lock, RANK_DEVICE);
	cond_init(&p->work);
	list_init(&p->queue);
	list_init(&p->ended);
	list_init(&p->running);
	return io_pool_spawn(p, true);
}

void io_pool_finish(struct io_pool *p)
{
	struct list_node all;

	list_init(&all);
	mutex_lock(&p->lock);
	assert(list_empty(&p->queue));
	p->stopping = true; /* so that they leave the lists alone */
	list_splice(&all, &p->ended);
	list_splice(&all, &p->running);
	mutex_unlock(&p->lock);
	cond_broadcast(&p->work);
	join_all(&all);
	assert(!p->threads);
}

void io_pool_submit(struct io_pool *p, struct io *io)
{
	bool wake, more;

	list_init(&io->link);
	mutex_lock(&p->lock);
	list_add_tail(&p->queue, &io->link);
	p->queued++;
	wake = p->idle > 0;
	more = p->queued > p->idle && p->threads < p->max;
	if (more)
		p->threads++;
	mutex_unlock(&p->lock);
	if (wake)
		cond_signal(&p->work);
	if (more)
		io_pool_spawn(p, false); /* without it, those that run have to do */
}
