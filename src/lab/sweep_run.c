/* SPDX-License-Identifier: MIT */
/*
 * Rank 0 keeps the list of points, hands them out one by one to whoever has a free
 * worker (its own workers too), and takes the results. Who is fast gets more; it does
 * not matter who ran a point, because a point's result is the same everywhere.
 *
 * Lines of text between ranks:
 *
 *	hello NAME WORKERS HOST		to 0: what sweep it has read, what it can do
 *	cannot WHY			to 0: it has read none
 *	run POINT			from 0
 *	done RECORD			to 0
 *	alive				both ways, every second
 *	stop				from 0: that is all
 *
 * A rank that is silent for too long is lost, and what it was running is handed out
 * again. If it was only slow and its result comes after all, that is as good; the
 * second one is dropped. A rank that has read another sweep gets no work.
 */
#include "lab/sweep_peers.h"
#include "lab/sweep_pool.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_NS     (2 * NSEC_PER_MSEC)   /* between looks for messages */
#define PROGRESS_NS (100 * NSEC_PER_MSEC) /* between reports of progress */
#define BEAT_NS     NSEC_PER_SEC
#define FLUSH_NS    (2 * NSEC_PER_SEC) /* for the last messages to go out */
#define HOST_MAX    64

/* What rank 0 knows of another. */
struct peer {
	bool works; /* it has said hello and has read the same sweep */
	bool idle;  /* it cannot work, or has read another */
	bool lost;
	unsigned free; /* workers */
	u64 heard_ns;
	char host[HOST_MAX];
};

struct chief {
	struct sweep *sweep;
	struct peers *peers;
	const struct sweep_options *o;
	struct pool pool;
	struct peer *peer;  /* by rank; [0] is not used */
	unsigned *runs_on;  /* of each point: rank + 1, or 0 while nobody runs it */
	size_t next;        /* below it nothing is to be handed out */
	size_t done, first; /* points done; at the start */
	u64 started_ns, beat_ns, reported_ns;
	bool journal_failed;
};

static unsigned workers_here(const struct sweep_options *o, const struct peers *p)
{
	u64 cpus = max_u64(1, (u64)sysconf(_SC_NPROCESSORS_ONLN));

	return o->jobs ? o->jobs : (unsigned)max_u64(1, cpus / p->here);
}

static void note(const struct chief *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void note(const struct chief *c, const char *format, ...)
{
	char text[512];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (c->o->note)
		c->o->note(c->o->ctx, text);
}

static void entered(struct chief *c, size_t point)
{
	int error;

	c->done++;
	if (!c->o->journal || c->o->journal->fd < 0 || c->journal_failed)
		return;
	error = sweep_journal_add(c->o->journal, c->sweep, point);
	if (!error)
		return;
	c->journal_failed = true;
	note(c, "%s: cannot be written: %s; the sweep goes on without it", c->o->journal->path,
	     strerror(-error));
}

static void take_own(struct chief *c)
{
	struct lab_result result;
	size_t point;

	while (pool_take(&c->pool, &point, &result)) {
		if (c->sweep->done[point])
			continue;
		c->sweep->results[point] = result;
		c->sweep->done[point] = true;
		entered(c, point);
	}
}

static void take_record(struct chief *c, unsigned from, const char *record)
{
	long point;

	c->peer[from].free++;
	if (sscanf(record, "{\"point\":%ld", &point) == 1 && point >= 0 &&
	    (size_t)point < c->sweep->count && c->sweep->done[point])
		return;
	point = sweep_enter(c->sweep, record);
	if (point >= 0)
		entered(c, (size_t)point);
}

static void greet(struct chief *c, unsigned from, const char *text)
{
	struct peer *p = &c->peer[from];
	char name[32];

	if (sscanf(text, "%31s %u %63s", name, &p->free, p->host) != 3)
		return;
	p->works = !strcmp(name, c->sweep->code_name);
	p->idle = !p->works;
	if (p->idle)
		note(c,
		     "rank %u on %s gets no work: its experiment, its settings or its version "
		     "are others than here",
		     from, p->host);
}

static void hear(struct chief *c, unsigned from, const char *text)
{
	c->peer[from].heard_ns = world_now();
	if (c->peer[from].lost) {
		c->peer[from].lost = false;
		note(c, "rank %u is back", from);
	}
	if (!strncmp(text, "hello ", 6))
		greet(c, from, text + 6);
	else if (!strncmp(text, "done ", 5))
		take_record(c, from, text + 5);
	if (!strncmp(text, "cannot ", 7)) {
		c->peer[from].idle = true;
		note(c, "rank %u cannot work: %s", from, text + 7);
	}
}

/* A point that nobody runs and that is not done; false: there is none. */
static bool next_point(struct chief *c, size_t *point)
{
	while (c->next < c->sweep->count && (c->sweep->done[c->next] || c->runs_on[c->next]))
		c->next++;
	*point = c->next;
	return c->next < c->sweep->count;
}

static void hand_out(struct chief *c)
{
	char line[32];
	size_t point;

	while (pool_free(&c->pool) && next_point(c, &point)) {
		c->runs_on[point] = 1;
		pool_run(&c->pool, point);
	}
	for (unsigned rank = 1; rank < c->peers->size; rank++) {
		struct peer *p = &c->peer[rank];

		while (p->works && !p->lost && p->free && next_point(c, &point)) {
			snprintf(line, sizeof(line), "run %zu", point);
			if (peers_send(c->peers, rank, line))
				break;
			c->runs_on[point] = rank + 1;
			p->free--;
		}
	}
}

static void lose(struct chief *c, unsigned rank)
{
	struct peer *p = &c->peer[rank];
	size_t again = 0;

	p->lost = true;
	for (size_t i = 0; i < c->sweep->count; i++) {
		if (c->runs_on[i] != rank + 1 || c->sweep->done[i])
			continue;
		c->runs_on[i] = 0;
		again++;
	}
	c->next = 0;
	note(c, "rank %u%s%s is lost: not heard of for %.0f s; points to run again: %zu", rank,
	     p->host[0] ? " on " : "", p->host, (double)c->o->patience_ns / NSEC_PER_SEC, again);
}

static void look_after_peers(struct chief *c)
{
	u64 now_ns = world_now();
	bool beat = now_ns - c->beat_ns >= BEAT_NS;

	if (beat)
		c->beat_ns = now_ns;
	for (unsigned rank = 1; rank < c->peers->size; rank++) {
		struct peer *p = &c->peer[rank];

		if (beat) /* one that is thought lost may be there still */
			peers_send(c->peers, rank, "alive");
		if (!p->lost && !p->idle && now_ns - p->heard_ns > c->o->patience_ns)
			lose(c, rank);
	}
}

static void report(struct chief *c)
{
	struct sweep_progress p = { c->done, c->sweep->count, 1, 0, -1 };
	u64 now_ns = world_now();

	if (!c->o->progress || now_ns - c->reported_ns < PROGRESS_NS)
		return;
	c->reported_ns = now_ns;
	for (unsigned rank = 1; rank < c->peers->size; rank++)
		p.ranks += c->peer[rank].works && !c->peer[rank].lost;
	p.wall_s = (double)(now_ns - c->started_ns) / NSEC_PER_SEC;
	if (c->done > c->first)
		p.left_s = p.wall_s * (double)(p.total - p.done) / (double)(p.done - c->first);
	c->o->progress(c->o->ctx, &p);
}

void sweep_dismiss(struct peers *peers)
{
	u64 until_ns = world_now() + FLUSH_NS;

	for (unsigned rank = 1; rank < peers->size; rank++)
		peers_send(peers, rank, "stop");
	while (peers_sending(peers) && world_now() < until_ns)
		world_sleep_until(world_now() + POLL_NS);
}

static void lead(struct chief *c)
{
	bool alone = c->peers->size == 1;

	while (c->done < c->sweep->count) {
		u32 seen = c->pool.events;
		unsigned from;
		char *text;

		take_own(c);
		while (peers_receive(c->peers, &from, &text)) {
			hear(c, from, text);
			free(text);
		}
		look_after_peers(c);
		hand_out(c);
		report(c);
		if (c->done < c->sweep->count)
			pool_wait(&c->pool, seen, world_now() + (alone ? PROGRESS_NS : POLL_NS));
	}
	for (unsigned rank = 1; rank < c->peers->size; rank++)
		c->peers->lost |= c->peer[rank].lost;
	sweep_dismiss(c->peers);
}

static int run_chief(struct sweep *s, struct peers *peers, const struct sweep_options *o)
{
	struct chief c = { .sweep = s, .peers = peers, .o = o, .started_ns = world_now() };
	int error = -ENOMEM;

	c.peer = calloc(peers->size, sizeof(*c.peer));
	c.runs_on = calloc(s->count, sizeof(*c.runs_on));
	for (size_t i = 0; i < s->count; i++)
		c.done += s->done[i];
	c.first = c.done;
	for (unsigned rank = 0; c.peer && rank < peers->size; rank++)
		c.peer[rank].heard_ns = c.started_ns;
	if (c.peer && c.runs_on)
		error = pool_start(&c.pool, s, (unsigned)min_u64(workers_here(o, peers), s->count));
	if (!error) {
		lead(&c);
		pool_finish(&c.pool);
	}
	free(c.peer);
	free(c.runs_on);
	return error;
}

/* Another rank: what has come of rank 0. False: it said stop. */
static bool obey(struct sweep *s, struct peers *peers, struct pool *pool, u64 *heard_ns)
{
	unsigned from;
	char *text;

	while (peers_receive(peers, &from, &text)) {
		bool stop = !strcmp(text, "stop");
		size_t point;

		*heard_ns = world_now();
		if (pool && sscanf(text, "run %zu", &point) == 1 && point < s->count &&
		    pool_free(pool))
			pool_run(pool, point);
		free(text);
		if (stop)
			return false;
	}
	return true;
}

static int send_records(struct sweep *s, struct peers *peers, struct pool *pool)
{
	struct lab_result result;
	size_t point;

	while (pool_take(pool, &point, &result)) {
		char *record, *line;

		s->results[point] = result;
		s->done[point] = true;
		record = sweep_record(s, point);
		if (!record || asprintf(&line, "done %s", record) < 0) {
			free(record);
			return -ENOMEM;
		}
		free(record);
		peers_send(peers, 0, line);
		free(line);
	}
	return 0;
}

/* Works, or with no pool only waits, until rank 0 says stop or is not heard of any more. */
static int serve(struct sweep *s, struct peers *peers, struct pool *pool, u64 patience_ns)
{
	_Atomic u32 never = 0;
	u64 heard_ns = world_now(), beat_ns = 0;
	int error = 0;

	for (;;) {
		u32 seen = pool ? pool->events : 0;

		if (!obey(s, peers, pool, &heard_ns))
			break;
		if (pool)
			error = send_records(s, peers, pool);
		if (!error && world_now() - heard_ns > patience_ns)
			error = -ETIMEDOUT;
		if (error)
			break;
		if (world_now() - beat_ns >= BEAT_NS) {
			beat_ns = world_now();
			peers_send(peers, 0, "alive");
		}
		world_park(pool ? &pool->events : &never, seen, world_now() + POLL_NS);
	}
	peers->lost |= error == -ETIMEDOUT;
	return error;
}

static int run_helper(struct sweep *s, struct peers *peers, const struct sweep_options *o)
{
	char host[HOST_MAX] = "", line[160];
	struct pool pool;
	int error = pool_start(&pool, s, (unsigned)min_u64(workers_here(o, peers), s->count));

	if (error)
		return sweep_excuse(peers, "not enough memory", o->patience_ns);
	if (gethostname(host, sizeof(host) - 1) || !host[0])
		strcpy(host, "?");
	snprintf(line, sizeof(line), "hello %s %u %s", s->code_name, pool.count, host);
	error = peers_send(peers, 0, line);
	if (!error)
		error = serve(s, peers, &pool, o->patience_ns);
	pool_finish(&pool);
	return error;
}

int sweep_excuse(struct peers *peers, const char *why, u64 patience_ns)
{
	char line[600];

	snprintf(line, sizeof(line), "cannot %s", why);
	peers_send(peers, 0, line);
	return serve(NULL, peers, NULL, patience_ns);
}

int sweep_run(struct sweep *s, struct peers *peers, const struct sweep_options *o)
{
	assert(!world_is_sim());
	return peers->rank ? run_helper(s, peers, o) : run_chief(s, peers, o);
}
