// SPDX-License-Identifier: MIT
/*
 * Model "fuse": a file system whose server is a process. The device only passes requests on:
 * how long one takes is the business of the tasks that serve it (fuse.h), which work on
 * the machine's own CPUs and perhaps on another device of it.
 *
 * A request carries at most max_write or max_read bytes and max_pages pages. Those that nobody
 * waits for (readahead, write-out) are background requests: max_background of them are with the
 * server at once, the rest wait here, in order. When congestion_threshold of them are under way or
 * waiting the device is congested: write-out that nobody waits for then returns at once, and a
 * window of readahead ahead of need is left out. Linux writeback reference, section 9.2.
 */
#include "device/fuse.h"
#include "base/bits.h"
#include "device/model.h"

struct fuse {
	struct list_node ready, held_back; /* struct device_request.link */
	u32 with_server, background;       /* background requests: with the server; all */
	bool stopping;
	_Atomic u32 turns; /* servers park on it; moves with every request and the end */
};

static int fuse_init(struct device *d)
{
	struct fuse *f = d->state;

	list_init(&f->ready);
	list_init(&f->held_back);
	return 0;
}

static void make_ready(struct fuse *f, struct device_request *r)
{
	list_add_tail(&f->ready, &r->link);
	atomic_fetch_add(&f->turns, 1);
}

static bool fuse_begin(struct device *d, struct device_request *r, u32 bytes, u64 now)
{
	struct fuse *f = d->state;

	(void)now;
	r->bytes = bytes;
	list_init(&r->link);
	r->background = !r->io->waited;
	f->background += r->background;
	if (r->background && f->with_server == d->config.max_background) {
		list_add_tail(&f->held_back, &r->link);
		return true;
	}
	f->with_server += r->background;
	make_ready(f, r);
	return true;
}

static void fuse_wake(struct device *d)
{
	world_unpark(&((struct fuse *)d->state)->turns, 1);
}

static bool fuse_congested(const struct device *d)
{
	const struct fuse *f = d->state;

	return f->background >= d->config.congestion_threshold;
}

bool device_is_fuse(const struct device *d)
{
	return d->ops == &fuse_ops;
}

bool device_is_congested(const struct device *d)
{
	return d->ops->congested && d->ops->congested(d);
}

u32 device_request_bytes(const struct device *d, enum io_op op)
{
	const struct device_config *c = &d->config;

	if (!device_is_fuse(d))
		return c->max_io_bytes;
	return (u32)min_u64(op == IO_WRITE ? c->max_write_bytes : c->max_read_bytes,
			    (u64)c->max_pages << PAGE_SHIFT);
}

int device_ask(struct store *s)
{
	struct device *d = store_device(s);
	struct io io = { .store = s, .op = IO_ASK };

	return device_is_fuse(d) && !d->config.killpriv ? device_submit_wait(d, &io) : 0;
}

bool device_caches_writes(const struct device *d)
{
	return !device_is_fuse(d) || d->config.writeback;
}

u32 device_folio_order(const struct device *d)
{
	u32 pages =
		(u32)min_u64(device_request_bytes(d, IO_READ), device_request_bytes(d, IO_WRITE)) >>
		PAGE_SHIFT;

	if (!device_is_fuse(d))
		return 31;
	return d->config.large_folios && pages ? ilog2(pages) : 0;
}

bool fuse_take(struct device *d, struct fuse_request *out)
{
	struct fuse *f = d->state;
	struct device_request *r;

	assert(d->ops == &fuse_ops);
	while (list_empty(&f->ready)) {
		u32 seen = atomic_load(&f->turns);

		if (f->stopping)
			return false;
		world_park_for(&f->turns, seen, WORLD_NEVER, "a request to serve");
	}
	r = list_entry(f->ready.next, struct device_request, link);
	list_del(&r->link);
	*out = (struct fuse_request){ .store = r->io->store,
				      .op = r->io->op,
				      .offset_bytes = r->offset_bytes,
				      .bytes = r->bytes,
				      .at = r };
	return true;
}

void fuse_answer(struct device *d, const struct fuse_request *q, int error)
{
	struct fuse *f = d->state;
	struct device_request *r = q->at, *next;

	if (r->background) {
		assert(f->background && f->with_server);
		f->background--;
		f->with_server--;
		if (!list_empty(&f->held_back)) {
			next = list_entry(f->held_back.next, struct device_request, link);
			list_del(&next->link);
			f->with_server++;
			make_ready(f, next);
			fuse_wake(d);
		}
	}
	device_request_done(d, r, error);
}

void fuse_stop(struct device *d)
{
	struct fuse *f = d->state;

	assert(device_idle(d));
	f->stopping = true;
	atomic_fetch_add(&f->turns, 1);
	world_unpark(&f->turns, ~0u);
}

const struct device_ops fuse_ops = {
	.name = "fuse",
	.state_size = sizeof(struct fuse),
	.init = fuse_init,
	.begin = fuse_begin,
	.wake = fuse_wake,
	.congested = fuse_congested,
};
