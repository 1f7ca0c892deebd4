// SPDX-License-Identifier: MIT
/*
 * Model "rate": one server of known speed. A request of n bytes that arrives at t starts
 * at s = max(t, end of the one before), ends at e = s + max(1/iops, n/bandwidth) and is
 * answered at e + latency. The latency does not occupy the server: it is the way there and
 * back. A flush finds nothing to do (what was answered is safe) and is answered at once.
 */
#include "device/model.h"
#include "device/server.h"

struct rate {
	struct server server;
	fine_ns per_io, per_byte;
};

static int rate_init(struct device *d)
{
	struct rate *r = d->state;

	r->per_io = fine_period(d->config.iops);
	r->per_byte = fine_period(d->config.bytes_per_s);
	return 0;
}

static u64 rate_serve(struct device *d, const struct io *io, u32 bytes, u64 now)
{
	struct rate *r = d->state;
	fine_ns cost = bytes * r->per_byte;

	if (io->op == IO_FLUSH)
		return now;
	return server_take(&r->server, now, cost > r->per_io ? cost : r->per_io) +
	       d->config.latency_ns + d->config.path_ns;
}

const struct device_ops rate_ops = {
	.name = "rate",
	.state_size = sizeof(struct rate),
	.init = rate_init,
	.serve = rate_serve,
};
