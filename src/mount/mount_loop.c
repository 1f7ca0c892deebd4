// SPDX-License-Identifier: MIT
/*
 * The threads that serve. The kernel gives a request to the thread that has waited longest, so when
 * many wait, each request meets a thread whose stack and buffer the processor has long forgotten.
 * So only a few wait for requests, one more than there are processors; the others rest, and take a
 * place when nobody waits any more, since all have something to do. That may take them long, for
 * writers that are paced sleep in the threads that serve them: hence there may be many. None is
 * ever ended and made again.
 */
#include "mount/mount_inner.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define END_POLL (10 * NSEC_PER_MSEC)

struct server {
	struct crew *crew;
	struct task *task;
	pid_t id;
	bool waiting; /* for a request; under crew.lock, as `id` is */
};

struct crew {
	struct fuse_session *session; /* immutable, as is the next */
	u32 waiting_max;
	struct mutex lock; /* protects all below */
	struct cond rest;
	u32 waiting, resting, count;
	bool ended;
	int error;
	struct server servers[THREADS];
};

static void serve(void *server);

/* Somebody is to wait for the next request; with the lock held. */
static void relieve(struct crew *c)
{
	struct server *s = &c->servers[c->count];

	if (c->resting) {
		cond_signal(&c->rest);
	} else if (c->count < THREADS) {
		*s = (struct server){ .crew = c };
		s->task = world_spawn("server", serve, s);
		c->count += s->task != NULL; /* without memory it has to do with those there are */
	}
}

/* Takes a request, with the lock held but while it waits: false at the end. */
static bool take(struct server *s, struct fuse_buf *buf)
{
	struct crew *c = s->crew;
	int rc = 0;

	while (!c->ended) {
		if (c->waiting == c->waiting_max) {
			c->resting++;
			cond_wait(&c->rest, &c->lock);
			c->resting--;
			continue;
		}
		c->waiting++;
		s->waiting = true;
		mutex_unlock(&c->lock);
		rc = fuse_session_receive_buf(c->session, buf);
		mutex_lock(&c->lock);
		s->waiting = false;
		c->waiting--;
		if (rc > 0) {
			if (!c->waiting)
				relieve(c);
			return true;
		}
		if (rc == -EINTR && !fuse_session_exited(c->session))
			continue;
		c->error = rc == -EINTR ? 0 : rc;
		c->ended = true;
	}
	return false;
}

static void serve(void *server)
{
	struct server *s = server;
	struct crew *c = s->crew;
	struct fuse_buf buf = { 0 };

	mutex_lock(&c->lock);
	s->id = gettid();
	while (take(s, &buf)) {
		mutex_unlock(&c->lock);
		fuse_session_process_buf(c->session, &buf);
		mutex_lock(&c->lock);
	}
	cond_broadcast(&c->rest);
	mutex_unlock(&c->lock);
	free(buf.mem);
}

int mount_loop_begin(struct mount *m)
{
	struct crew *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->session = m->session;
	c->waiting_max = (u32)max_u64((u64)sysconf(_SC_NPROCESSORS_ONLN), 1) + 1;
	mutex_init(&c->lock, RANK_NONE);
	cond_init(&c->rest);
	m->crew = c;
	return 0;
}

/* Those that wait are woken again and again: one may just have been about to. */
void mount_loop_stop(struct mount *m)
{
	struct crew *c = m->crew;

	mutex_lock(&c->lock);
	c->ended = true;
	cond_broadcast(&c->rest);
	while (c->waiting) {
		for (u32 i = 0; i < c->count; i++)
			if (c->servers[i].waiting)
				tgkill(getpid(), c->servers[i].id, SIGUSR1);
		mutex_unlock(&c->lock);
		world_sleep_until(world_now() + END_POLL);
		mutex_lock(&c->lock);
	}
	mutex_unlock(&c->lock);
}

int mount_loop(struct mount *m)
{
	struct crew *c = m->crew;

	c->servers[0] = (struct server){ .crew = c }; /* this thread */
	c->count = 1;
	serve(&c->servers[0]);
	mount_loop_stop(m);
	for (u32 i = 1; i < c->count; i++)
		world_join(c->servers[i].task);
	return c->error;
}

void mount_loop_end(struct mount *m)
{
	fuse_session_reset(m->session);
	free(m->crew);
	m->crew = NULL;
}
