// SPDX-License-Identifier: MIT
/*
 * Model "rate": one server of known speed. A request of n bytes that arrives at t starts
 * at s = max(t, end of the one before), ends at e = s + max(1/iops, n/bandwidth) and is
 * answered at e + latency. The latency does not occupy the server: it is the way there and
 * back. A flush finds nothing to do (what was answered is safe) and is answered at once.
 */
#include "device/rate.h"
#include "device/model.h"

void rate_init(struct rate *r, double iops, double bytes_per_s, u64 latency_ns)
{
	*r = (struct rate){ .per_io = fine_period(iops),
			    .per_byte = fine_period(bytes_per_s),
			    .latency_ns = latency_ns };
}

u64 rate_serve(struct rate *r, u64 now, u32 bytes)
{
	fine_ns cost = bytes * r->per_byte;

	return server_take(&r->server, now, cost > r->per_io ? cost : r->per_io) + r->latency_ns;
}

static int device_rate_init(struct device *d)
{
	rate_init(d->state, d->config.iops, d->config.bytes_per_s, d->config.latency_ns);
	return 0;
}

static u64 device_rate_serve(struct device *d, const struct io *io, u32 bytes, u64 now)
{
	if (io->op == IO_FLUSH)
		return now;
	return rate_serve(d->state, now, bytes) + d->config.path_ns;
}

const struct device_ops rate_ops = {
	.name = "rate",
	.state_size = sizeof(struct rate),
	.init = device_rate_init,
	.serve = device_rate_serve,
};
