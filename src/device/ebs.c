// SPDX-License-Identifier: MIT
/*
 * Model "ebs": a cloud volume that sells I/Os and bandwidth (Amazon EBS, "Amazon EBS
 * volume types": an I/O of an SSD volume counts once per started 256 KiB). One server as
 * in rate.c, but a request of n bytes takes max(units/iops, n/bandwidth), where units is
 * n over the I/O unit, rounded up. Credit for idle times is not modelled: volumes of
 * provisioned performance have none. Data is safe when a write is answered, so a flush is
 * no I/O: it only takes the latency.
 */
#include "base/bits.h"
#include "device/model.h"
#include "device/server.h"

struct ebs {
	struct server server;
	fine_ns per_unit, per_byte;
};

static int ebs_init(struct device *d)
{
	struct ebs *b = d->state;

	b->per_unit = fine_period(d->config.iops);
	b->per_byte = fine_period(d->config.bytes_per_s);
	return 0;
}

static u64 ebs_serve(struct device *d, const struct io *io, u32 bytes, u64 now)
{
	struct ebs *b = d->state;
	fine_ns units = div_roundup(bytes, d->config.io_unit_bytes) * b->per_unit;
	fine_ns transfer = bytes * b->per_byte;

	if (io->op == IO_FLUSH)
		return now + d->config.latency_ns;
	return server_take(&b->server, now, units > transfer ? units : transfer) +
	       d->config.latency_ns;
}

const struct device_ops ebs_ops = {
	.name = "ebs",
	.state_size = sizeof(struct ebs),
	.init = ebs_init,
	.serve = ebs_serve,
};
