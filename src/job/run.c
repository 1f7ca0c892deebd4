/* SPDX-License-Identifier: MIT */
/*
 * Running all jobs. First every clone of every job is made, with its files. Then the
 * runner goes through the clones that have not started, in order, as fio does: one
 * whose startdelay (counted from the start of the run) is not over is passed over; at
 * one with a stonewall the walk stops while any clone before it has not ended. That
 * order of the two tests is fio's: a job behind a delayed one may overtake it. One that
 * waits for another by name is passed over, too. Between walks the runner sleeps until a
 * clone ends or a delay is over. With exitall, the end of a clone ends others.
 *
 * Clones that start together start SPAWN_NS apart, the time fio takes from releasing
 * one to releasing the next, so that their rates are not in step.
 */
#include "job/clone.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPAWN_NS (20 * NSEC_PER_USEC)

void jobs_stop(struct jobs_stop *s)
{
	atomic_store(&s->asked, 1);
	atomic_fetch_add(&s->changes, 1);
	world_unpark(&s->changes, 1);
}

bool run_is_stopped(const struct run *run)
{
	return run->options && run->options->stop && atomic_load(&run->options->stop->asked);
}

void run_changed(struct run *run)
{
	atomic_fetch_add(run->changes, 1);
	world_unpark(run->changes, 1);
}

/* The flow of a clone; there is room for one of each. */
static struct flow *find_flow(struct run *run, const struct job_options *o)
{
	struct flow *f = run->flows;

	if (!o->flow)
		return NULL;
	while (f < run->flows + run->flow_count && f->id != o->flow_id)
		f++;
	if (f == run->flows + run->flow_count) {
		*f = (struct flow){ .id = o->flow_id, .ios = 1 };
		mutex_init(&f->lock, RANK_NONE);
		run->flow_count++;
	}
	return f;
}

static int make_clones(struct run *run)
{
	const struct jobs *jobs = run->jobs;
	size_t count = 0;
	u32 group = 0;

	for (size_t i = 0; i < jobs->count; i++)
		count += jobs->list[i].o.numjobs;
	run->clones = calloc(count, sizeof(*run->clones));
	run->flows = calloc(jobs->count, sizeof(*run->flows));
	if (!run->clones || !run->flows)
		return -ENOMEM;
	for (size_t i = 0; i < jobs->count; i++) {
		const struct job *j = &jobs->list[i];

		if (i && (j->o.stonewall || j->o.new_group))
			group++;
		run->exitall |= j->o.exitall || j->o.exitall_on_error;
		for (u32 n = 0; n < j->o.numjobs; n++) {
			struct clone *c = &run->clones[run->clone_count];
			int rc = clone_init(c, run, j, n, run->clone_count);

			run->clone_count++;
			if (rc)
				return rc;
			c->group = group;
			c->flow = find_flow(run, &j->o);
			c->waits = j->o.stonewall && !n;
			if (c->error)
				atomic_store(&c->state, CLONE_JOINED);
		}
	}
	return 0;
}

static void start_clone(struct run *run, struct clone *c, u64 when)
{
	char name[32];

	c->start_ns = when;
	snprintf(name, sizeof(name), "%.20s/%u", c->job->o.name, c->number);
	atomic_store(&c->state, CLONE_RUNNING);
	c->task = world_spawn(name, clone_main, c);
	if (!c->task) {
		clone_fail(c, -ENOMEM, "no memory for a task");
		atomic_store(&c->state, CLONE_JOINED);
		atomic_fetch_add(run->changes, 1);
	}
}

/* Ends it if it runs, and never starts it if it does not. */
static void end_clone(struct clone *c)
{
	u32 state = atomic_load(&c->state);

	if (state == CLONE_RUNNING)
		clone_terminate(c);
	else if (state == CLONE_WAITING)
		atomic_store(&c->state, CLONE_JOINED);
}

/* One clone has ended: those that are to end with it. */
static void end_others(struct run *run, const struct clone *ended)
{
	const struct job_options *o = &ended->job->o;
	bool any = false, on_error = false;

	for (size_t i = 0; i < run->jobs->count; i++) {
		any |= run->jobs->list[i]
			       .o.exitall; /* whoever says it, says it for all, as in fio */
		on_error |= run->jobs->list[i].o.exitall_on_error;
	}
	if (!any && !(on_error && ended->error))
		return;
	for (size_t i = 0; i < run->clone_count; i++) {
		struct clone *c = &run->clones[i];
		bool running = atomic_load(&c->state) == CLONE_RUNNING;

		if (o->exit_what == EXIT_STONEWALL && !running)
			continue;
		if (o->exit_what == EXIT_GROUP && c->group != ended->group)
			continue;
		end_clone(c);
	}
}

/* Joins what has ended; returns how many clones are running. */
static size_t count_running(struct run *run)
{
	size_t running = 0;

	for (size_t i = 0; i < run->clone_count; i++) {
		struct clone *c = &run->clones[i];

		if (atomic_load(&c->state) != CLONE_ENDED)
			continue;
		world_join(c->task);
		atomic_store(&c->state, CLONE_JOINED);
		if (run->exitall)
			end_others(run, c);
	}
	for (size_t i = 0; i < run->clone_count; i++)
		running += atomic_load(&run->clones[i].state) == CLONE_RUNNING ||
			   atomic_load(&run->clones[i].state) == CLONE_ENDED;
	return running;
}

/* True while the job that this one waits for by name has clones that have not ended. */
static bool waits_for_job(const struct run *run, const struct clone *c)
{
	const struct job *waitee = c->job->waitee;

	for (size_t i = 0; i < run->clone_count && waitee; i++) {
		u32 state = atomic_load(&run->clones[i].state);

		if (run->clones[i].job == waitee && state != CLONE_JOINED)
			return true;
	}
	return false;
}

/* Starts what may start. False when nothing runs or waits; *wake: the next delay's end. */
static bool walk(struct run *run, u64 *wake)
{
	size_t running = count_running(run);
	u64 now = world_now(), when = now;
	bool waiting = false;

	*wake = WORLD_NEVER;
	for (size_t i = 0; i < run->clone_count; i++) {
		struct clone *c = &run->clones[i];
		u64 may = run->genesis_ns + c->delay_ns;

		if (atomic_load(&c->state) != CLONE_WAITING)
			continue;
		if (may > now) {
			*wake = min_u64(*wake, may);
			waiting = true;
			continue;
		}
		if (c->waits && running)
			return true;
		if (waits_for_job(run, c)) {
			waiting = true;
			continue;
		}
		start_clone(run, c, when);
		when += SPAWN_NS;
		running++;
	}
	return running || waiting;
}

struct progress {
	struct run *run;
	struct task *task;
};

static void progress_main(void *arg)
{
	struct run *run = ((struct progress *)arg)->run;
	const struct jobs_options *o = run->options;
	u64 next = run->genesis_ns;

	while (!atomic_load(&run->finished)) {
		next += o->progress_ns;
		while (!atomic_load(&run->finished) && world_now() < next)
			world_park(&run->finished, 0, next);
		if (!atomic_load(&run->finished))
			o->progress(o->progress_ctx, world_now());
	}
}

static void run_clones(struct run *run)
{
	for (;;) {
		u32 seen = atomic_load(run->changes);
		u64 wake;

		for (size_t i = 0; i < run->clone_count && run_is_stopped(run); i++)
			end_clone(&run->clones[i]);
		if (!walk(run, &wake))
			return;
		world_park(run->changes, seen, wake);
	}
}

static void run_finish(struct run *run)
{
	for (size_t i = 0; i < run->clone_count; i++)
		clone_finish(&run->clones[i]);
	free(run->clones);
	free(run->flows);
}

int jobs_run(const struct jobs *j, struct job_engine *engine, const struct jobs_options *o,
	     struct job_results *out)
{
	struct run run = { .jobs = j, .engine = engine, .options = o };
	struct progress progress = { .run = &run };
	int rc;

	run.changes = o && o->stop ? &o->stop->changes : &run.ended;
	rc = make_clones(&run);
	run.interruptible = run.exitall || (o && o->stop);

	assert(!o || !o->live || world_is_sim());
	*out = (struct job_results){ 0 };
	if (rc) {
		run_finish(&run);
		return rc;
	}
	run.genesis_ns = world_now();
	out->started_ns = run.genesis_ns;
	if (o && o->progress && o->progress_ns) {
		progress.task = world_spawn("progress", progress_main, &progress);
		if (!progress.task) {
			run_finish(&run);
			return -ENOMEM;
		}
	}
	run_clones(&run);
	out->ended_ns = world_now();
	out->date_ns = world_is_sim() ? 0 : world_wall_ns();
	out->stopped = run_is_stopped(&run);
	atomic_store(&run.finished, 1);
	world_unpark(&run.finished, 1);
	if (progress.task)
		world_join(progress.task);
	rc = run_results(&run, out);
	run_finish(&run);
	return rc;
}
