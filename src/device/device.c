// SPDX-License-Identifier: MIT
/*
 * The queue before a device. An I/O is split at max_io_bytes into parts, the requests
 * that the device counts. Its submitter takes them in one after the other: it pays for the part
 * (COST_SUBMIT), then needs room: while queue_depth requests are in flight it parks, behind
 * those that came before it. So large I/Os of several submitters go in and come out side by side.
 * Room that a completion makes is given away there and then, in the order of the line, so nobody
 * who comes later can take it.
 *
 * Once in, the part arrives at the model, which says when it will be answered; one event
 * at that time frees its place, and that of the last one applies the I/O to its store and calls
 * end(). Events of one instant run in the order they were scheduled, so I/Os end in the order of
 * (time, submission). Completions run between tasks; their CPU time is the submitter's.
 *
 * A model of the real world has no answer in advance: it is told to start the I/O, and says
 * when it is done.
 *
 * A simulated task may run a little ahead of the world's clock, so the next one to submit
 * may have an earlier "now". The device takes I/Os in the order they are handed to it and
 * never lets its arrivals go back in time.
 */
#include "base/bits.h"
#include "device/model.h"
#include "device/store.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct device_ops *const models[] = { &rate_ops,   &ebs_ops,  &nvme_ops,
						   &memory_ops, &fuse_ops, &file_ops };

const struct device_ops *device_find_ops(const char *model)
{
	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		if (!strcmp(models[i]->name, model))
			return models[i];
	return NULL;
}

/* Requests for a queue of that depth, all free, in place of what there is. */
static int device_make_requests(struct device *d, u32 depth)
{
	struct device_request *requests;

	if (d->ops->immediate || d->ops->real)
		return 0;
	requests = calloc(depth, sizeof(*requests));
	if (!requests)
		return -ENOMEM;
	free(d->requests);
	d->requests = requests;
	d->free_request = NULL;
	for (u32 i = depth; i-- > 0;) {
		requests[i].next = d->free_request;
		d->free_request = &requests[i];
	}
	return 0;
}

int device_create(const struct device_config *c, struct device **out)
{
	const struct device_ops *ops = device_find_ops(c->model);
	struct device *d;
	int error = 0;

	if (!ops || !device_config_valid(c))
		return -EINVAL;
	if (!ops->immediate && ops->real == world_is_sim())
		return -ENOTSUP;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->config = *c;
	if (!d->config.name[0])
		memcpy(d->config.name, c->model, sizeof(c->model));
	d->ops = ops;
	spin_init(&d->lock, RANK_DEVICE);
	list_init(&d->waiting);
	wbt_init(&d->wbt, c->wbt_latency_ns, c->queue_depth, c->write_cache);
	if (ops->state_size) {
		d->state = calloc(1, ops->state_size);
		if (!d->state)
			error = -ENOMEM;
	}
	if (!error)
		error = device_make_requests(d, c->queue_depth);
	if (!error && ops->init)
		error = ops->init(d);
	if (error) {
		free(d->requests);
		free(d->state);
		free(d);
		return error;
	}
	*out = d;
	return 0;
}

void device_destroy(struct device *d)
{
	assert(device_idle(d));
	assert(!d->stores);
	if (d->ops->finish)
		d->ops->finish(d);
	free(d->requests);
	free(d->state);
	free(d);
}

int device_reconfigure(struct device *d, const struct device_config *c)
{
	struct device_config old = d->config;

	assert(device_idle(d));
	if (strcmp(c->model, d->config.model) != 0 || !device_config_valid(c))
		return -EINVAL;
	if (c->queue_depth != d->config.queue_depth) {
		int error = device_make_requests(d, c->queue_depth);

		if (error)
			return error;
	}
	if (d->ops->finish)
		d->ops->finish(d);
	if (d->ops->state_size)
		memset(d->state, 0, d->ops->state_size);
	d->config = *c;
	memcpy(d->config.name, old.name, sizeof(old.name));
	d->config.max_io_bytes = old.max_io_bytes;
	wbt_configure(&d->wbt, c->wbt_latency_ns, c->queue_depth, c->write_cache);
	return d->ops->init ? d->ops->init(d) : 0;
}

/* The lock of a device that the caller only looks at. */
static struct spinlock *device_lock(const struct device *d)
{
	return (struct spinlock *)&d->lock;
}

void device_stats(const struct device *d, struct device_stats *out)
{
	u64 now = world_now();

	spin_lock(device_lock(d));
	*out = d->stats;
	now = min_u64(now, d->busy_until);
	if (now > d->busy_from)
		out->busy_ns += now - d->busy_from;
	spin_unlock(device_lock(d));
}

bool device_flushes_files(const struct device *d)
{
	return d->ops == &file_ops;
}

bool device_idle(const struct device *d)
{
	bool idle;

	spin_lock(device_lock(d));
	idle = !d->stats.in_flight && list_empty(&d->waiting);
	spin_unlock(device_lock(d));
	return idle;
}

void device_set_fault(struct device *d, int (*fault)(void *ctx, const struct io *io), void *ctx)
{
	spin_lock(&d->lock);
	d->fault = fault;
	d->fault_ctx = ctx;
	spin_unlock(&d->lock);
}

void device_set_delay(struct device *d, u64 (*delay)(void *ctx, const struct io *io), void *ctx)
{
	spin_lock(&d->lock);
	d->delay = delay;
	d->delay_ctx = ctx;
	spin_unlock(&d->lock);
}

static u32 device_parts(const struct device *d, const struct io *io)
{
	if (!io->length_bytes || d->ops->real)
		return 1;
	return (u32)div_roundup(io->length_bytes, device_request_bytes(d, io->op));
}

u32 device_part_bytes(const struct device *d, const struct io *io, u32 i)
{
	u32 most = device_request_bytes(d, io->op);

	assert(i < io->parts);
	return (u32)min_u64(most, io->length_bytes - (u64)i * most);
}

static bool device_has_room(const struct device *d)
{
	assert(spin_is_held(&d->lock));
	return d->stats.in_flight < d->config.queue_depth;
}

static void device_let_in(struct device *d, struct io *io)
{
	struct device_stats *s = &d->stats;

	assert(spin_is_held(&d->lock));
	s->in_flight++;
	s->in_flight_max = max_u64(s->in_flight_max, s->in_flight);
	s->reads_in_flight += io->op == IO_READ;
	atomic_store_explicit(&io->admitted, 1, memory_order_release);
}

/* Whether writeback throttling counts the I/O. */
static bool device_wbt_counts(const struct device *d, const struct io *io)
{
	return io->writeback && wbt_is_on(&d->wbt);
}

static bool device_wbt_admits(struct device *d, struct io *io)
{
	assert(spin_is_held(&d->lock));
	if (d->wbt.in_flight && d->wbt.in_flight >= wbt_limit(&d->wbt, io, world_now()))
		return false;
	d->wbt.in_flight++;
	return true;
}

/* Waits until writeback throttling lets io pass. */
static void device_wbt_enter(struct device *d, struct io *io)
{
	atomic_store_explicit(&io->admitted, 0, memory_order_relaxed);
	list_init(&io->link);
	spin_lock(&d->lock);
	if (list_empty(&d->wbt.waiting) && device_wbt_admits(d, io))
		atomic_store_explicit(&io->admitted, 1, memory_order_relaxed);
	else
		list_add_tail(&d->wbt.waiting, &io->link);
	spin_unlock(&d->lock);
	while (!atomic_load_explicit(&io->admitted, memory_order_acquire))
		world_park(&io->admitted, 0, WORLD_NEVER);
}

/* The first that writeback throttling lets pass now, or NULL. */
static struct io *device_wbt_next(struct device *d)
{
	struct io *io = NULL;

	spin_lock(&d->lock);
	if (!list_empty(&d->wbt.waiting)) {
		io = list_entry(d->wbt.waiting.next, struct io, link);
		if (device_wbt_admits(d, io)) {
			list_del(&io->link);
			atomic_store_explicit(&io->admitted, 1, memory_order_release);
		} else {
			io = NULL;
		}
	}
	spin_unlock(&d->lock);
	return io;
}

/* A part of io, taken in at `submit_ns`, has completed: what that changes for those who wait. */
static void device_wbt_done(struct device *d, const struct io *io, u64 submit_ns)
{
	u64 now = world_now();
	struct io *next;
	bool wakes;

	spin_lock(&d->lock);
	if (io->writeback) {
		assert(d->wbt.in_flight);
		d->wbt.in_flight--;
	}
	wakes = wbt_note(&d->wbt, io->op == IO_READ, now - submit_ns, now) ||
		wbt_wakes(&d->wbt, now);
	spin_unlock(&d->lock);
	while (wakes && (next = device_wbt_next(d)))
		world_unpark(&next->admitted, 1);
}

void device_note_throttled(struct device *d)
{
	spin_lock(&d->lock);
	d->wbt.throttled_ns = world_now();
	spin_unlock(&d->lock);
}

/* Waits in line until the device has room for a part of io, which then is counted in flight. */
static void device_enter(struct device *d, struct io *io)
{
	atomic_store_explicit(&io->admitted, 0, memory_order_relaxed);
	list_init(&io->link);
	spin_lock(&d->lock);
	if (d->ops->immediate || (list_empty(&d->waiting) && device_has_room(d)))
		device_let_in(d, io);
	else
		list_add_tail(&d->waiting, &io->link);
	spin_unlock(&d->lock);
	while (!atomic_load_explicit(&io->admitted, memory_order_acquire))
		world_park(&io->admitted, 0, WORLD_NEVER);
}

/* Lets the first in line in if there is room: its I/O, or NULL. */
static struct io *device_next_in_line(struct device *d)
{
	struct io *io = NULL;

	spin_lock(&d->lock);
	if (!list_empty(&d->waiting) && device_has_room(d)) {
		io = list_entry(d->waiting.next, struct io, link);
		list_del(&io->link);
		device_let_in(d, io);
	}
	spin_unlock(&d->lock);
	return io;
}

static unsigned size_class(u32 bytes)
{
	u64 pages = div_roundup(bytes, PAGE_SIZE);

	return (unsigned)min_u64(pages > 1 ? ilog2(pages - 1) + 1u : 0, DEVICE_SIZES - 1);
}

/* Counts one request of io, of so many bytes. */
static void device_count(struct device_stats *s, const struct io *io, u32 bytes)
{
	switch (io->op) {
	case IO_READ:
		s->reads++;
		s->read_bytes += bytes;
		break;
	case IO_WRITE:
		s->writes++;
		s->write_bytes += bytes;
		s->write_sizes[size_class(bytes)]++;
		break;
	case IO_ASK:
		s->asks++;
		break;
	case IO_FLUSH:
		s->flushes++;
		break;
	}
}

/* Adds [from, until) to the busy time; `from` never goes back from call to call. */
static void device_busy(struct device *d, u64 from, u64 until)
{
	assert(from >= d->busy_from && until >= from);
	if (from > d->busy_until) {
		d->stats.busy_ns += d->busy_until - d->busy_from;
		d->busy_from = from;
	}
	d->busy_until = max_u64(d->busy_until, until);
}

/* Likewise where nobody knows the end beforehand: something is begun, something is over. */
static void device_busy_begin(struct device *d, u64 now)
{
	if (d->active++)
		return;
	d->busy_from = now;
	d->busy_until = WORLD_NEVER;
}

static void device_busy_end(struct device *d)
{
	assert(d->active);
	if (--d->active)
		return;
	d->busy_until = max_u64(world_now(), d->busy_from);
	d->stats.busy_ns += d->busy_until - d->busy_from;
	d->busy_from = d->busy_until;
}

/* A part of io arrives at a model that takes it as it comes; false: it is one that foretells. */
static bool device_begin(struct device *d, struct device_request *r, u32 bytes)
{
	assert(spin_is_held(&d->lock));
	if (!d->ops->begin)
		return false;
	d->arrival_ns = max_u64(d->arrival_ns, world_now());
	if (!d->ops->begin(d, r, bytes, d->arrival_ns))
		return false;
	device_count(&d->stats, r->io, bytes);
	device_busy_begin(d, d->arrival_ns);
	return true;
}

/* A part of io arrives at the model: returns when it will be answered. */
static u64 device_serve(struct device *d, struct io *io, u32 bytes)
{
	u64 answer;

	assert(spin_is_held(&d->lock));
	d->arrival_ns = max_u64(d->arrival_ns, world_now());
	device_count(&d->stats, io, bytes);
	answer = d->ops->serve(d, io, bytes, d->arrival_ns);
	if (d->delay && !d->ops->immediate)
		answer += d->delay(d->delay_ctx, io);
	assert(answer >= d->arrival_ns);
	device_busy(d, d->arrival_ns, answer);
	return answer;
}

/* What the fault that is set, if one is, does to io. */
static int device_ask_fault(struct device *d, const struct io *io)
{
	int (*fault)(void *ctx, const struct io *io);
	void *ctx;
	int error;

	spin_lock(&d->lock);
	fault = d->fault;
	ctx = d->fault_ctx;
	spin_unlock(&d->lock);
	error = fault ? fault(ctx, io) : 0;
	assert(error <= 0);
	return error;
}

/* A request of io, taken in at `submit_ns`, is over: makes room for those who wait. */
static void device_leave(struct device *d, struct io *io, u64 submit_ns)
{
	struct io *next;

	spin_lock(&d->lock);
	assert(d->stats.in_flight);
	d->stats.in_flight--;
	if (io->op == IO_READ) {
		d->stats.reads_in_flight--;
		d->stats.reads_done++;
		d->stats.read_ns += max_u64(world_now(), submit_ns) - submit_ns;
	}
	spin_unlock(&d->lock);
	while ((next = device_next_in_line(d)))
		world_unpark(&next->admitted, 1);
	if (wbt_is_on(&d->wbt))
		device_wbt_done(d, io, submit_ns);
}

/* All of io is over. */
static void device_end(struct io *io, int error)
{
	io->error = error;
	io->end(io, error);
}

static void device_complete(struct device *d, struct io *io)
{
	int error = device_ask_fault(d, io);

	error = error ? error : io->error;
	device_end(io, error || io->op == IO_ASK ? error : store_execute(io));
}

void device_request_done(struct device *d, struct device_request *r, int error)
{
	struct io *io = r->io;
	u64 submit_ns = r->submit_ns;

	io->error = io->error ? io->error : error;
	spin_lock(&d->lock);
	r->next = d->free_request;
	d->free_request = r;
	if (r->begun)
		device_busy_end(d);
	spin_unlock(&d->lock);
	device_leave(d, io, submit_ns);
	if (!--io->parts_left)
		device_complete(d, io);
}

static void device_answer(struct sim_event *e)
{
	struct device_request *r = container_of(e, struct device_request, event);

	device_request_done(store_device(r->io->store), r, 0);
}

/* Part i of io, which has been let in, goes to the model. */
static void device_start_part(struct device *d, struct io *io, u32 i)
{
	struct device_request *r;
	u64 answer = 0;

	spin_lock(&d->lock);
	r = d->free_request;
	assert(r); /* there are as many as can be in flight */
	d->free_request = r->next;
	r->io = io;
	sim_event_init(&r->event, device_answer);
	r->offset_bytes = io->offset_bytes + (u64)i * device_request_bytes(d, io->op);
	r->begun = device_begin(d, r, device_part_bytes(d, io, i));
	if (!r->begun)
		answer = device_serve(d, io, device_part_bytes(d, io, i));
	r->submit_ns = d->arrival_ns;
	io->submit_ns = i ? io->submit_ns : d->arrival_ns;
	spin_unlock(&d->lock);
	if (!r->begun)
		sim_event_at(&r->event, answer);
	else if (d->ops->wake)
		d->ops->wake(d);
}

/* A real model takes over. */
static void device_start(struct device *d, struct io *io, bool waited)
{
	io->done_bytes = 0;
	io->error = device_ask_fault(d, io);
	spin_lock(&d->lock);
	io->submit_ns = world_now();
	device_count(&d->stats, io, io->length_bytes);
	device_busy_begin(d, io->submit_ns);
	spin_unlock(&d->lock);
	d->ops->start(d, io, waited);
}

void device_done(struct device *d, struct io *io, int error)
{
	spin_lock(&d->lock);
	device_busy_end(d);
	spin_unlock(&d->lock);
	device_leave(d, io, io->submit_ns);
	device_end(io, error);
}

/* Takes one part of io in: pays for it, and waits until there is room. */
static void device_take_in(struct device *d, struct io *io)
{
	world_spend(COST_SUBMIT, 1);
	world_spend(COST_COMPLETE, 1); /* the interrupt's work has to be somebody's */
	if (device_wbt_counts(d, io))
		device_wbt_enter(d, io);
	device_enter(d, io);
}

static void device_submit_as(struct device *d, struct io *io, bool waited)
{
	u32 parts = device_parts(d, io);

	assert(io->store && store_device(io->store) == d && io->end);
	assert((io->op == IO_FLUSH || io->op == IO_ASK) == !io->length_bytes);
	io->parts = io->parts_left = parts;
	io->waited = waited;
	io->error = 0;
	if (d->ops->real) {
		device_take_in(d, io);
		device_start(d, io, waited);
	} else if (d->ops->immediate) {
		for (u32 i = 0; i < parts; i++) {
			device_take_in(d, io);
			spin_lock(&d->lock);
			io->submit_ns = device_serve(d, io, device_part_bytes(d, io, i));
			spin_unlock(&d->lock);
			device_leave(d, io, io->submit_ns);
		}
		device_complete(d, io);
	} else {
		assert(world_is_sim());
		for (u32 i = 0; i < parts; i++) { /* with the last one io may be gone */
			device_take_in(d, io);
			device_start_part(d, io, i);
		}
	}
}

void device_submit(struct device *d, struct io *io)
{
	device_submit_as(d, io, false);
}

/* A copy of somebody's I/O, with somebody who waits for it. */
struct waited_io {
	struct io io;
	struct completion done;
};

static void device_end_wait(struct io *io, int error)
{
	(void)error;
	completion_done(&container_of(io, struct waited_io, io)->done);
}

int device_submit_wait(struct device *d, struct io *io)
{
	struct waited_io w = { .io = *io };

	w.io.end = device_end_wait;
	completion_init(&w.done);
	device_submit_as(d, &w.io, true);
	completion_wait(&w.done);
	io->submit_ns = w.io.submit_ns;
	io->parts = w.io.parts;
	io->error = w.io.error;
	return w.io.error;
}
