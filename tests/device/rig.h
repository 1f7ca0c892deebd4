/* SPDX-License-Identifier: MIT */
/* A simulated world without CPU costs, to see nothing but the device's times. */
#ifndef SLUICE_TESTS_DEVICE_RIG_H
#define SLUICE_TESTS_DEVICE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include <cmocka.h>
#include <string.h>

/* Runs fn as the first task of a new world in which one submission costs submit_ns. */
static inline void rig_run_paying(u64 submit_ns, void (*fn)(void *arg), void *arg)
{
	struct sim_config c;
	struct world *w;
	char why[256] = "";

	sim_config_init(&c);
	c.cpus = 4;
	c.seed = 1;
	memset(c.cost_ns, 0, sizeof(c.cost_ns));
	c.cost_ns[COST_SUBMIT] = submit_ns;
	w = sim_create(&c);
	assert_non_null(w);
	assert_int_equal(sim_run(w, fn, arg, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	sim_destroy(w);
}

static inline void rig_run(void (*fn)(void *arg), void *arg)
{
	rig_run_paying(0, fn, arg);
}

/* An I/O that remembers when it ended, and how many had ended before it. */
struct rig_io {
	struct io io;
	u64 end_ns;
	unsigned order;
	unsigned ends;
	int error;
};

static unsigned rig_ended; /* set to 0 before a run that looks at the order */

static inline void rig_end(struct io *io, int error)
{
	struct rig_io *r = container_of(io, struct rig_io, io);

	r->end_ns = world_now();
	r->order = rig_ended++;
	r->error = error;
	r->ends++;
}

static inline void rig_io_init(struct rig_io *r, struct store *s, enum io_op op, u64 offset,
			       u32 length)
{
	memset(r, 0, sizeof(*r));
	r->io.store = s;
	r->io.op = op;
	r->io.offset_bytes = offset;
	r->io.length_bytes = length;
	r->io.end = rig_end;
}

static inline void rig_submit(struct rig_io *r, struct store *s, enum io_op op, u64 offset,
			      u32 length)
{
	rig_io_init(r, s, op, offset, length);
	device_submit(store_device(s), &r->io);
}

/* The device of a configuration and a store on it. */
static inline struct store *rig_store(const struct device_config *c, bool contents)
{
	struct device *d;
	struct store *s;

	assert_int_equal(device_create(c, &d), 0);
	assert_int_equal(store_create(d, contents, &s), 0);
	return s;
}

/* Waits until the device is idle, then frees the store and the device. */
static inline void rig_close(struct store *s)
{
	struct device *d = store_device(s);

	while (!device_idle(d))
		world_sleep_until(world_now() + NSEC_PER_MSEC);
	store_destroy(s);
	device_destroy(d);
}

#endif
