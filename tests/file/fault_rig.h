/* SPDX-License-Identifier: MIT */
/* An engine with one file on one device in a simulated world; the device fails when told to. */
#ifndef SLUICE_TESTS_FILE_FAULT_RIG_H
#define SLUICE_TESTS_FILE_FAULT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "file/inner.h"
#include "world/sim.h"
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RIG_IO_NS (10 * NSEC_PER_MSEC) /* each I/O takes so long; they do not wait for each other */

struct rig {
	struct policy policy; /* to be changed before rig_run() */
	u64 memory_pages;
	u32 block_bytes, read_ahead_kb, queue_depth;
	bool fail_writes, fail_reads;
	void (*fn)(struct rig *r);
	struct engine *engine;
	struct device *device;
	struct inode *inode;
	struct file *file;
	u8 buf[64 * PAGE_SIZE];
};

static inline struct rig rig_init(const char *policy, void (*fn)(struct rig *r))
{
	return (struct rig){ .policy = *policy_find(policy),
			     .memory_pages = 1024,
			     .block_bytes = PAGE_SIZE,
			     .read_ahead_kb = 128,
			     .queue_depth = 128,
			     .fn = fn };
}

static inline int rig_fault(void *ctx, const struct io *io)
{
	struct rig *r = ctx;

	return (io->op == IO_WRITE && r->fail_writes) || (io->op == IO_READ && r->fail_reads) ? -EIO
											      : 0;
}

static inline void rig_main(void *arg)
{
	struct rig *r = arg;
	struct engine_config c = { .memory_bytes = r->memory_pages * PAGE_SIZE,
				   .contents = true,
				   .policy = r->policy };
	struct device_config d;

	vm_settings_init(&c.vm);
	assert_int_equal(device_config_init(&d, "rate"), 0);
	d.iops = 1e9;
	d.bytes_per_s = 1e12;
	d.latency_ns = RIG_IO_NS;
	d.queue_depth = r->queue_depth;
	assert_int_equal(device_create(&d, &r->device), 0);
	device_set_fault(r->device, rig_fault, r);
	assert_int_equal(engine_create(&c, &r->engine), 0);
	assert_int_equal(engine_add_device(r->engine, r->device, r->read_ahead_kb, false), 0);
	assert_int_equal(inode_create(r->engine, 0, r->block_bytes, &r->inode), 0);
	assert_int_equal(file_open(r->inode, 0, &r->file), 0);
	r->fn(r);
	if (r->file)
		file_close(r->file);
	assert_int_equal(engine_destroy(r->engine), 0);
	device_destroy(r->device);
}

/* Runs r->fn in a new world. CPU time costs next to nothing there, so that I/O sets the times. */
static inline void rig_run(struct rig *r)
{
	struct sim_config c;
	struct world *w;
	char why[256] = "";

	sim_config_init(&c);
	c.cpus = 4;
	c.hz = 1000;
	for (unsigned i = 0; i < COST_MAX; i++)
		c.cost_ns[i] = 1;
	w = sim_create(&c);
	assert_non_null(w);
	assert_int_equal(sim_run(w, rig_main, r, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	sim_destroy(w);
}

static inline void rig_sleep(u64 ns)
{
	world_sleep_until(world_now() + ns);
}

static inline void rig_write(struct rig *r, u8 byte, u64 offset, size_t length)
{
	assert_true(length <= sizeof(r->buf));
	memset(r->buf, byte, length);
	assert_int_equal(file_pwrite(r->file, r->buf, length, offset), length);
}

static inline void rig_expect(struct rig *r, u8 byte, u64 offset, size_t length)
{
	assert_true(length <= sizeof(r->buf));
	memset(r->buf, ~byte, length);
	assert_int_equal(file_pread(r->file, r->buf, length, offset), length);
	for (size_t i = 0; i < length; i++)
		assert_int_equal(r->buf[i], byte);
}

static inline void rig_expect_stored(struct rig *r, u8 byte, u64 offset, size_t length)
{
	assert_true(length <= sizeof(r->buf));
	store_peek(inode_store(r->inode), offset, r->buf, length);
	for (size_t i = 0; i < length; i++)
		assert_int_equal(r->buf[i], byte);
}

static inline void rig_expect_sound(struct rig *r)
{
	char why[256] = "";

	if (!engine_audit(r->engine, why, sizeof(why)))
		fail_msg("%s", why);
}

/* Starts write-out of what is dirty, without waiting. */
static inline void rig_launch(struct rig *r)
{
	assert_int_equal(file_advise(r->file, 0, 0, FILE_ADV_DONTNEED), 0);
}

#endif
