/* SPDX-License-Identifier: MIT */
/*
 * A clone at work: take the next I/O, do it, count it. Engines of the synchronous
 * kind, and buffered libaio (whose submission does the work), have one task per
 * clone. With more in flight (direct libaio, io_uring, posixaio), iodepth tasks take I/Os from
 * the same generator under the clone's lock; a task stands for a slot of the queue,
 * and its latency is the time from submission to completion. The lock is also held
 * while the generator sleeps for the rate: nothing may be issued then anyway.
 *
 * Latencies are the time of the call. The first I/O found completed after ramp_time ends
 * the ramp: it and all before it are forgotten, and rate and runtime begin anew with its
 * end, so that the next one is due at once (as fio 3.33 can be seen to do).
 */
#include "base/bits.h"
#include "job/verify.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void clone_fail(struct clone *c, int error, const char *format, ...)
{
	va_list args;

	c->stop = true;
	if (c->error)
		return;
	c->error = error;
	va_start(args, format);
	vsnprintf(c->error_text, sizeof(c->error_text), format, args);
	va_end(args);
}

/* Every word depends on the file, its place and the number of the I/O. */
static void fill(u64 *buffer, const struct io *io)
{
	u64 seed = io->sequence;

	for (const char *p = io->file->plan->path; *p; p++)
		seed = seed_mix(seed, (u8)*p);
	for (size_t i = 0; i < div_roundup(io->length, sizeof(u64)); i++)
		buffer[i] = seed_mix(seed, io->offset + i * sizeof(u64));
}

bool clone_goes_on(struct clone *c, enum job_error_kind kind, int error, const char *text)
{
	static const struct ignored_errors normal = { 2, { EIO, EILSEQ } };
	const struct job_options *o = &c->job->o;
	const struct ignored_errors *list = o->ignored[kind].count ? &o->ignored[kind] : &normal;
	u32 i = 0;

	while (i < list->count && list->error[i] != -error)
		i++;
	if (!(o->continue_on_error & 1u << kind) || i == list->count)
		return false;
	if (!c->total_errors++) {
		c->first_error = error;
		snprintf(c->first_error_text, sizeof(c->first_error_text), "%s", text);
	}
	return true;
}

static void io_failed(struct clone *c, const struct io *io, u64 offset, int error, const char *why)
{
	static const char *const verbs[] = {
		[IO_READ] = "read",
		[IO_WRITE] = "write",
		[IO_FSYNC] = "fsync",
		[IO_FDATASYNC] = "fdatasync",
		[IO_SYNC_RANGE] = "sync_file_range",
	};
	char text[160];

	if (io_is_sync(io->kind))
		snprintf(text, sizeof(text), "%s %s: %s", verbs[io->kind], io->file->plan->path,
			 why);
	else
		snprintf(text, sizeof(text), "%s %s at %llu: %s", verbs[io->kind],
			 io->file->plan->path, (unsigned long long)offset, why);
	if (!clone_goes_on(c, io->kind == IO_READ ? ERROR_READ : ERROR_WRITE, error, text))
		clone_fail(c, error, "%s", text);
}

/* What one I/O came to. */
struct outcome {
	u64 start_ns, end_ns;
	u64 bytes;
	u32 short_ios;
	int error; /* 0, or a negative errno; -ENODATA: a read found nothing */
};

/* An engine that moves no data; the call itself takes its time, so that time goes on. */
static void do_nothing(const struct io *io, struct outcome *out)
{
	world_spend(COST_SYSCALL, 1);
	if (world_is_sim() && world_now() == out->start_ns)
		world_sleep_until(out->start_ns + NSEC_PER_USEC);
	out->bytes = io_is_sync(io->kind) ? 0 : io->length;
	out->end_ns = world_now();
}

static int do_sync(struct job_engine *e, const struct clone *c, const struct io *io)
{
	struct job_file *f = io->file->handle;

	if (io->kind != IO_SYNC_RANGE)
		return e->fsync(f, io->kind == IO_FDATASYNC);
	if (!io->length) /* 0 would be all of the file */
		return 0;
	return e->sync_range(f, io->offset, io->length, (unsigned)c->job->o.sync_range_flags);
}

static void do_io(struct clone *c, const struct io *io, u8 *buffer, struct outcome *out)
{
	struct job_engine *e = c->run->engine;
	struct job_file *f = io->file->handle;

	if (buffer && io->kind == IO_WRITE && verify_wanted(c))
		verify_fill(c, io, buffer);
	else if (buffer && io->kind == IO_WRITE)
		fill((u64 *)buffer, io);
	*out = (struct outcome){ .start_ns = world_now() };
	if (c->job->o.ioengine == IO_NULL) {
		do_nothing(io, out);
		return;
	}
	if (io_is_sync(io->kind)) {
		out->error = do_sync(e, c, io);
		out->end_ns = world_now();
		return;
	}
	while (out->bytes < io->length) {
		u8 *at = buffer ? buffer + out->bytes : NULL;
		u64 offset = io->offset + out->bytes;
		size_t length = io->length - out->bytes;
		ssize_t done = io->kind == IO_READ ? e->pread(f, at, length, offset)
						   : e->pwrite(f, at, length, offset);

		if (done <= 0) {
			out->error = done ? (int)done : -ENODATA;
			break;
		}
		assert((size_t)done <= length);
		out->bytes += (u64)done;
		if ((size_t)done == length)
			break;
		out->short_ios++;
		if (offset + (u64)done == io->file->plan->size)
			break;
	}
	out->end_ns = world_now();
}

static void end_ramp(struct clone *c, u64 now)
{
	c->ramping = false;
	c->epoch_ns = c->counted_ns = now;
	c->rate_shift_us = c->between_ns = 0;
	for (int dir = 0; dir < JOB_DIRS; dir++) {
		c->issued_ios[dir] = c->issued_bytes[dir] = 0;
		c->rate_next_us[dir] = c->rate_random_us[dir] = 0;
	}
}

static void take_error(struct clone *c, const struct io *io, const struct outcome *out)
{
	const char *why = out->error == -ENODATA ? "the file ended" : strerror(-out->error);

	if (out->error == -ENOSPC && c->job->o.fill_device && io->kind == IO_WRITE)
		c->stop = true;
	else
		io_failed(c, io, io->offset + out->bytes,
			  out->error == -ENODATA ? -EIO : out->error, why);
}

/* Latencies that somebody set a limit to. */
static void watch_latency(struct clone *c, const struct io *io, u64 latency, u64 now)
{
	const struct job_options *o = &c->job->o;

	if (o->max_latency_ns[io->kind] && latency > o->max_latency_ns[io->kind])
		clone_fail(c, -ETIMEDOUT, "max_latency of %llu us is exceeded: an I/O took %llu us",
			   (unsigned long long)(o->max_latency_ns[io->kind] / NSEC_PER_USEC),
			   (unsigned long long)(latency / NSEC_PER_USEC));
	if (o->latency_target_ns)
		clone_depth_learn(c, latency, now);
}

static void enter(struct job_dir_stats *s, const struct outcome *out, u64 latency)
{
	s->ios++;
	s->bytes += out->bytes;
	s->short_ios += out->short_ios;
	s->last_ns = max_u64(s->last_ns, out->end_ns);
	hist_add(&s->clat, latency);
}

static void account(struct clone *c, const struct io *io, const struct outcome *out)
{
	u64 latency = out->end_ns - out->start_ns;

	if (out->error) {
		take_error(c, io, out);
		return;
	}
	if (unlikely(c->ramping)) {
		if (out->end_ns - c->epoch_ns >= c->job->o.ramp_time_ns)
			end_ramp(c, out->end_ns);
		return;
	}
	if (io_is_sync(io->kind)) {
		hist_add(&c->sync_lat, latency);
		c->sync_ios++;
		if (c->run->options && c->run->options->live_syncs)
			hist_add(c->run->options->live_syncs, latency);
		return;
	}
	enter(&c->dir[io->kind], out, latency);
	if (c->run->options && c->run->options->live)
		enter(&c->run->options->live[io->kind], out, latency);
	levels_add(&c->levels, io->depth, latency);
	series_add(&c->series, out->end_ns - c->run->genesis_ns, (enum job_dir)io->kind,
		   out->bytes);
	if (log_wanted(&c->job->o))
		log_add(&c->log, io, out->bytes, out->end_ns - c->epoch_ns, latency);
	watch_latency(c, io, latency, out->end_ns);
}

/* Reads of jobs that do not write are checked; what is written is remembered, to be read back. */
static void verify(struct clone *c, const struct io *io, const struct outcome *out, u8 *buffer)
{
	const struct job_options *o = &c->job->o;
	bool reader = !(o->rw & RW_WRITE) || o->verify_only;
	struct err e = { "" };

	if (out->error || io_is_sync(io->kind) || !verify_wanted(c))
		return;
	if (io->kind == IO_WRITE) {
		verify_remember(c, io);
		verify_backlog(c, buffer);
	} else if (reader &&
		   verify_check(c, io->file, buffer, io->offset, out->bytes, VERIFY_ANY, &e)) {
		verify_failed(c, -EILSEQ, e.text);
	}
}

/* latency_target allows fewer I/Os in flight than there are tasks to do them. */
static bool next_in_turn(struct clone *c, struct io *io)
{
	while (c->in_flight >= c->depth && !c->stop)
		cond_wait(&c->slot, &c->lock);
	return clone_next(c, io);
}

static void work(struct clone *c)
{
	const struct job_options *o = &c->job->o;
	bool contents = c->run->options && c->run->options->contents && o->ioengine != IO_NULL;
	bool gated = c->shared && o->latency_target_ns;
	u64 room = round_up(job_max_bs(o), PAGE_SIZE);
	struct outcome out;
	u8 *buffer = NULL;
	struct io io;

	if (contents) {
		buffer = aligned_alloc(PAGE_SIZE, room);
		if (buffer)
			memset(buffer, 0, room);
	}
	if (c->shared)
		mutex_lock(&c->lock);
	if (contents && !buffer)
		clone_fail(c, -ENOMEM, "no memory for blocks of %llu bytes",
			   (unsigned long long)room);
	while (gated ? next_in_turn(c, &io) : clone_next(c, &io)) {
		io.depth = ++c->in_flight;
		if (io.kind == IO_WRITE && o->verify_only)
			io.kind = IO_READ;
		if (c->shared)
			mutex_unlock(&c->lock);
		do_io(c, &io, buffer, &out);
		if (c->shared)
			mutex_lock(&c->lock);
		if (c->punted && io.kind == IO_WRITE)
			out.start_ns = punted_took(c, out.end_ns);
		account(c, &io, &out);
		verify(c, &io, &out, buffer);
		c->in_flight--;
		if (gated)
			cond_broadcast(&c->slot);
		if (o->thinktime_ns && !o->thinktime_at_issue && !io_is_sync(io.kind)) {
			c->think_count++;
			clone_think_if_due(c);
		}
	}
	if (gated) {
		c->stop = true; /* for those that wait for a slot */
		cond_broadcast(&c->slot);
	}
	if (c->shared)
		mutex_unlock(&c->lock);
	free(buffer);
}

/* Each task of the job acts for its tenant. */
static void enter_tenant(struct clone *c)
{
	struct job_engine *e = c->run->engine;
	const char *tenant = c->job->o.cgroup;
	int rc;

	if (!tenant || c->job->o.ioengine == IO_NULL)
		return;
	rc = e->act_for ? e->act_for(e, tenant) : -ENOTSUP;
	if (rc)
		clone_fail(c, rc, "cgroup: no tenant %s", tenant);
}

static void worker_main(void *clone)
{
	struct clone *c = clone;

	enter_tenant(c);
	work(c);
	c->run->engine->task_exit(c->run->engine);
}

/* fio's libaio and io_uring do what they can while they submit; buffered libaio does all. */
static u64 queue_depth(const struct job_options *o)
{
	switch (o->ioengine) {
	case IO_URING:
	case IO_POSIXAIO:
		return o->iodepth;
	case IO_LIBAIO:
		return o->direct ? o->iodepth : 1;
	default:
		return 1;
	}
}

static void work_together(struct clone *c, u64 tasks)
{
	struct task **task = calloc(tasks, sizeof(*task));
	u64 count = 0;

	while (task && count < tasks && (task[count] = world_spawn(c->job->o.name, worker_main, c)))
		count++;
	if (count < tasks) {
		mutex_lock(&c->lock);
		clone_fail(c, -ENOMEM, "no memory for %llu tasks", (unsigned long long)tasks);
		mutex_unlock(&c->lock);
	}
	for (u64 i = 0; i < count; i++)
		world_join(task[i]);
	free(task);
}

/* It belongs to the runtime, but fio does not count it among the syncs. */
static void sync_at_end(struct clone *c)
{
	for (u32 i = 0; i < c->plans.count && !c->error; i++) {
		struct io io = { .kind = IO_FSYNC, .file = &c->files[i] };
		struct outcome out;

		if (!c->files[i].handle || c->job->o.ioengine == IO_NULL)
			continue;
		do_io(c, &io, NULL, &out);
		if (out.error)
			io_failed(c, &io, 0, out.error, strerror(-out.error));
	}
}

static void issue_all(struct clone *c)
{
	const struct job_options *o = &c->job->o;
	u64 tasks = punted_wanted(c) ? 1 : queue_depth(o);

	c->epoch_ns = c->counted_ns = c->think_since_ns = world_now();
	c->depth_since_ns = c->epoch_ns;
	clone_join_flow(c);
	c->shared = tasks > 1;
	c->verifies_passes = verify_wanted(c) && o->do_verify && !o->latency_target_ns;
	if (punted_wanted(c))
		punted_begin(c);
	do {
		if (c->shared)
			work_together(c, tasks);
		else
			work(c);
	} while (verify_pass(c));
	punted_end(c);
	clone_leave_flow(c);
	if (o->end_fsync && (o->rw & RW_WRITE))
		sync_at_end(c);
	c->issued_ns = world_now();
}

/* Reading back is a time of its own. */
static u64 runtime_of(const struct clone *c, enum job_dir dir)
{
	const struct job_options *o = &c->job->o;

	if (!c->dir[dir].ios)
		return 0;
	if (dir == JOB_DIR_READ && !(o->rw & RW_READ) && !o->verify_only)
		return c->verify_ns;
	return c->issued_ns - c->counted_ns - c->between_ns;
}

void clone_main(void *clone)
{
	struct clone *c = clone;
	struct run *run = c->run;
	const struct job_options *o = &c->job->o;

	clone_sleep_until(c, c->start_ns);
	enter_tenant(c);
	c->epoch_ns = c->counted_ns = world_now();
	if (o->pre_read)
		clone_pre_read(c);
	c->issued_ns = c->epoch_ns;
	if (!o->create_only) {
		issue_all(c);
		verify_written(c);
	}
	verify_end(c);
	c->ended_ns = world_now();
	if (log_wanted(o))
		log_close(&c->log, c->ended_ns - c->epoch_ns);
	for (int dir = 0; dir < JOB_DIRS; dir++)
		c->dir[dir].runtime_ns = runtime_of(c, (enum job_dir)dir);
	clone_close_files(c);
	if (o->unlink)
		clone_unlink_files(c);
	run->engine->task_exit(run->engine);
	atomic_store(&c->state, CLONE_ENDED);
	run_changed(run);
}

/* A random block begins at a multiple of ba, where the smallest one fits. */
static u64 count_blocks(u64 length, u64 bs, u64 ba)
{
	length -= bs > ba ? min_u64(length, bs - ba) : 0;
	return length / ba;
}

/* True if reads and writes visit blocks of their own. */
static bool zones_differ(const struct zones *a, const struct zones *b)
{
	if (a->count != b->count)
		return true;
	for (u32 i = 0; i < a->count; i++)
		if (a->zone[i].access_percent != b->zone[i].access_percent ||
		    a->zone[i].size != b->zone[i].size)
			return true;
	return false;
}

static bool draws_apart(const struct job_options *o)
{
	const struct zones *zones = o->spread.zones;

	if (!(o->rw & RW_READ) || !(o->rw & RW_WRITE))
		return false;
	return o->bs_bytes[JOB_DIR_READ] != o->bs_bytes[JOB_DIR_WRITE] ||
	       o->ba_bytes[JOB_DIR_READ] != o->ba_bytes[JOB_DIR_WRITE] ||
	       zones_differ(&zones[JOB_DIR_READ], &zones[JOB_DIR_WRITE]);
}

static int make_blocks(struct clone *c)
{
	const struct job_options *o = &c->job->o;
	bool apart = draws_apart(o);
	enum job_dir only = o->rw & RW_READ ? JOB_DIR_READ : JOB_DIR_WRITE;

	c->blocks = calloc(c->plans.count, 2 * sizeof(*c->blocks));
	if (!c->blocks)
		return -ENOMEM;
	for (u32 i = 0; i < c->plans.count; i++) {
		struct clone_file *f = &c->files[i];

		f->blocks = &c->blocks[2ull * i];
		for (u32 n = 0; n < (apart ? 2 : 1); n++) {
			enum job_dir dir = apart ? (enum job_dir)n : only;
			u64 count =
				count_blocks(f->plan->length, o->bs_bytes[dir], o->ba_bytes[dir]);

			blocks_init(&f->blocks[n], o, dir, count,
				    seed_mix(c->seed, 16 + 2 * i + n));
			if (blocks_remember(&f->blocks[n], o, dir))
				return -ENOMEM;
		}
	}
	return 0;
}

static void seed_streams(struct clone *c, u64 id)
{
	const struct job_options *o = &c->job->o;
	const struct jobs_options *options = c->run->options;
	struct rng delay;

	c->seed = seed_mix(seed_mix(options ? options->seed : 0, o->randseed), id);
	if (!o->randrepeat && !o->allrandrepeat)
		c->seed = seed_mix(c->seed, world_random());
	rng_init(&c->mix, c->seed);
	rng_init(&c->sizes, seed_mix(c->seed, 1));
	rng_init(&c->arrivals, seed_mix(c->seed, 2));
	rng_init(&c->randomness, seed_mix(c->seed, 3));
	rng_init(&delay, seed_mix(c->seed, 4));
	c->delay_ns = o->startdelay_ns;
	if (o->startdelay_max_ns > o->startdelay_ns)
		c->delay_ns += rng_below(&delay, o->startdelay_max_ns - o->startdelay_ns + 1);
}

static void clone_reset(struct clone *c, u64 id)
{
	const struct job_options *o = &c->job->o;

	mutex_init(&c->lock, RANK_NONE);
	cond_init(&c->slot);
	for (int dir = 0; dir < JOB_DIRS; dir++) {
		hist_init(&c->dir[dir].clat);
		c->rate_bps[dir] = o->rate_bytes[dir] ? o->rate_bytes[dir]
						      : o->rate_iops[dir] * o->bs_bytes[dir];
	}
	hist_init(&c->sync_lat);
	c->ramping = o->ramp_time_ns;
	c->burst_left = o->rw_burst;
	clone_depth_init(c);
	seed_streams(c, id);
}

/* What all passes together transfer at most. */
static void set_limit(struct clone *c)
{
	const struct job_options *o = &c->job->o;
	u64 size = o->io_size.bytes ? o->io_size.bytes : c->plans.length;

	if (o->io_size.percent)
		size = (u64)((unsigned __int128)size * o->io_size.percent / 100);
	if (__builtin_mul_overflow(size, o->loops, &c->limit_bytes))
		c->limit_bytes = ~0ull;
}

int clone_init(struct clone *c, struct run *run, const struct job *j, u32 number, u64 id)
{
	struct err e = { "" };
	int rc;

	c->run = run;
	c->job = j;
	c->number = number;
	c->log = (struct job_log){ .job = j, .number = (u32)id + 1 };
	clone_reset(c, id);
	if (check_engine(run->jobs, j, run->engine, &e)) {
		clone_fail(c, -ENOTSUP, "%s", e.text);
		return 0;
	}
	rc = clone_make_files(c);
	if (rc || c->error)
		return rc;
	set_limit(c);
	/* By time, a random file begins anew on its own, and a sequential one if it is the only. */
	c->rewinds = j->o.time_based && ((j->o.rw & RW_RANDOM) || c->plans.count == 1);
	c->files = calloc(c->plans.count, sizeof(*c->files));
	if (!c->files)
		return -ENOMEM;
	for (u32 i = 0; i < c->plans.count; i++) {
		c->files[i].plan = &c->plans.plan[i];
		c->files[i].idle = true;
	}
	if (j->o.file_service >= SERVICE_ZIPF)
		distribution_init(&c->file_skew, &j->o.file_spread, JOB_DIR_READ, c->plans.count, 1,
				  seed_mix(c->seed, 5));
	return j->o.rw & RW_RANDOM ? make_blocks(c) : 0;
}

void clone_finish(struct clone *c)
{
	free(c->series.window);
	free(c->written.record);
	free(c->log.entry);
	for (u32 i = 0; i < 2 * c->plans.count && c->blocks; i++)
		blocks_finish(&c->blocks[i]);
	free(c->blocks);
	free(c->files);
	files_plan_finish(&c->plans);
}
