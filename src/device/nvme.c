// SPDX-License-Identifier: MIT
/*
 * Model "nvme": an SSD on the machine's own bus. It works on `channels` requests at once;
 * each takes a log-normal latency, around one median for reads and another for writes, on
 * the channel that is free first. Beside that, all bytes read pass one server of the
 * device's read bandwidth, all bytes written one of its write bandwidth, from the moment
 * their request starts on its channel; a request is answered when both are done. A flush
 * is a request that takes a write's latency and moves nothing.
 *
 * With `shared` there are no channels: all that is in flight, read or written, shares one server
 * equally (share.c), on which a request alone would take its bytes' time by the bandwidth of its
 * direction; its latency comes after that.
 */
#include "base/rng.h"
#include "device/lognormal.h"
#include "device/model.h"
#include "device/server.h"
#include <errno.h>
#include <stdlib.h>

struct nvme {
	struct rng rng;
	struct server bus[2]; /* bytes read, bytes written */
	fine_ns per_byte[2];
	u64 *free_at; /* when each channel ends its last request */
	struct share share;
};

static void nvme_shared_end(struct share *s, struct device_request *r, u64 now)
{
	(void)s;
	sim_event_at(&r->event, now + r->after_ns);
}

static bool nvme_begin(struct device *d, struct device_request *r, u32 bytes, u64 now)
{
	struct nvme *n = d->state;
	bool write = r->io->op != IO_READ;
	u64 median = write ? d->config.write_latency_ns : d->config.read_latency_ns;

	if (!d->config.shared)
		return false;
	r->after_ns = lognormal_draw(&n->rng, median, d->config.latency_sigma);
	share_add(&n->share, r, bytes * n->per_byte[write], now);
	return true;
}

static int nvme_init(struct device *d)
{
	struct nvme *n = d->state;

	rng_init(&n->rng, d->config.seed);
	n->per_byte[0] = fine_period(d->config.read_bytes_per_s);
	n->per_byte[1] = fine_period(d->config.write_bytes_per_s);
	share_init(&n->share, nvme_shared_end);
	n->free_at = calloc(d->config.channels, sizeof(*n->free_at));
	return n->free_at ? 0 : -ENOMEM;
}

static void nvme_finish(struct device *d)
{
	struct nvme *n = d->state;

	free(n->free_at);
}

static u64 *nvme_first_free(struct device *d)
{
	struct nvme *n = d->state;
	u64 *first = n->free_at;

	for (u32 c = 1; c < d->config.channels; c++)
		if (n->free_at[c] < *first)
			first = &n->free_at[c];
	return first;
}

static u64 nvme_serve(struct device *d, const struct io *io, u32 bytes, u64 now)
{
	struct nvme *n = d->state;
	bool write = io->op != IO_READ;
	u64 median = write ? d->config.write_latency_ns : d->config.read_latency_ns;
	fine_ns transfer = bytes * n->per_byte[write];
	u64 *channel = nvme_first_free(d);
	u64 start = max_u64(now, *channel);

	*channel = start + lognormal_draw(&n->rng, median, d->config.latency_sigma);
	return transfer ? max_u64(*channel, server_take(&n->bus[write], start, transfer))
			: *channel;
}

const struct device_ops nvme_ops = {
	.name = "nvme",
	.state_size = sizeof(struct nvme),
	.init = nvme_init,
	.begin = nvme_begin,
	.serve = nvme_serve,
	.finish = nvme_finish,
};
