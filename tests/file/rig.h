/* SPDX-License-Identifier: MIT */
/*
 * An engine in a simulated world where CPU time costs nothing, over a device that keeps a log of
 * its I/Os: tests see the engine's decisions and the device's times, and nothing else.
 */
#ifndef SLUICE_TESTS_FILE_RIG_H
#define SLUICE_TESTS_FILE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "file/inner.h"
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIB     1024ull
#define MIB     (1024 * KIB)
#define LOG_MAX 8192

struct logged {
	enum io_op op;
	u64 offset, length;
	u64 end_ns;
};

struct rig {
	struct engine_config config;
	struct device_config device_config;
	u32 read_ahead_kb;
	bool strict_limit;
	struct engine *e;
	struct device *d;
	/* the first I/Os in the order they ended, flushes excepted, and how many there were */
	struct logged log[LOG_MAX];
	u32 logged;
	/* what each I/O of that kind fails with, while `failures` lasts */
	int write_error, read_error;
	u32 failures;
};

/* Runs fn as the first task of a new world with 4 CPUs and HZ 250. */
static inline void rig_run(void (*fn)(void *arg), void *arg)
{
	struct sim_config c;
	struct world *w;
	char why[256] = "";

	sim_config_init(&c);
	c.cpus = 4;
	memset(c.cost_ns, 0, sizeof(c.cost_ns));
	w = sim_create(&c);
	assert_non_null(w);
	if (sim_run(w, fn, arg, why, sizeof(why)))
		fail_msg("%s", why);
	sim_destroy(w);
}

#define RIG_TEST(name)                     \
	static void name##_run(void *arg); \
	static void name(void **state)     \
	{                                  \
		(void)state;               \
		rig_run(name##_run, NULL); \
	}                                  \
	static void name##_run(void *arg __attribute__((unused)))

static inline int rig_observe(void *ctx, const struct io *io)
{
	struct rig *r = ctx;
	int error = io->op == IO_WRITE ? r->write_error : io->op == IO_READ ? r->read_error : 0;

	if (io->op == IO_FLUSH)
		return 0;
	if (r->logged < LOG_MAX)
		r->log[r->logged] =
			(struct logged){ io->op, io->offset_bytes, io->length_bytes, world_now() };
	r->logged++;
	if (!error || !r->failures)
		return 0;
	r->failures--;
	return error;
}

/*
 * A rig to be changed and then started: policy `name`, that much memory, contents, 1 GiB/s and
 * 100,000 I/Os a second.
 */
static inline struct rig *rig_new(const char *policy, u64 memory_bytes)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	assert_non_null(policy_find(policy));
	r->config.policy = *policy_find(policy);
	r->config.memory_bytes = memory_bytes;
	r->config.contents = true;
	vm_settings_init(&r->config.vm);
	r->read_ahead_kb = 128;
	assert_int_equal(device_config_init(&r->device_config, "rate"), 0);
	r->device_config.iops = 100000;
	r->device_config.bytes_per_s = 1024.0 * MIB;
	r->device_config.latency_ns = 0;
	r->device_config.max_io_bytes = 256 * KIB;
	return r;
}

static inline void rig_start(struct rig *r)
{
	assert_int_equal(device_create(&r->device_config, &r->d), 0);
	device_set_fault(r->d, rig_observe, r);
	assert_int_equal(engine_create(&r->config, &r->e), 0);
	assert_int_equal(engine_add_device(r->e, r->d, r->read_ahead_kb, r->strict_limit), 0);
}

static inline struct rig *rig_open(const char *policy)
{
	struct rig *r = rig_new(policy, 64 * MIB);

	rig_start(r);
	return r;
}

static inline void rig_audit(struct rig *r)
{
	char why[200] = "";

	if (!engine_audit(r->e, why, sizeof(why)))
		fail_msg("audit: %s", why);
}

static inline void rig_close(struct rig *r)
{
	rig_audit(r);
	engine_destroy(r->e);
	device_destroy(r->d);
	free(r);
}

static inline struct inode *rig_inode(struct rig *r, u32 block_bytes)
{
	struct inode *inode;

	assert_int_equal(inode_create(r->e, 0, block_bytes, &inode), 0);
	return inode;
}

static inline struct file *rig_file(struct inode *inode, unsigned flags)
{
	struct file *f;

	assert_int_equal(file_open(inode, flags, &f), 0);
	return f;
}

/* The byte of a file at an offset, by the number of the write that put it there. */
static inline u8 rig_byte(u64 offset, u8 version)
{
	return (u8)(offset * 31 + (offset >> 12) * 7 + version * 101 + 1);
}

static inline void rig_write(struct file *f, u64 offset, u64 length, u8 version)
{
	u8 *buf = malloc(length);

	for (u64 i = 0; i < length; i++)
		buf[i] = rig_byte(offset + i, version);
	assert_int_equal(file_pwrite(f, buf, length, offset), length);
	free(buf);
}

/* Reads and compares; version 0 is zeros. */
static inline void rig_expect_bytes(struct file *f, u64 offset, u64 length, u8 version)
{
	u8 *buf = malloc(length);

	memset(buf, 0xa5, length);
	assert_int_equal(file_pread(f, buf, length, offset), length);
	for (u64 i = 0; i < length; i++)
		assert_int_equal(buf[i], version ? rig_byte(offset + i, version) : 0);
	free(buf);
}

/* The same of what is on the device. */
static inline void rig_expect_stored(struct inode *inode, u64 offset, u64 length, u8 version)
{
	u8 *buf = malloc(length);

	store_peek(inode_store(inode), offset, buf, length);
	for (u64 i = 0; i < length; i++)
		assert_int_equal(buf[i], version ? rig_byte(offset + i, version) : 0);
	free(buf);
}

/* A file with contents of version 1 on the device, and nothing of it cached. */
static inline struct file *rig_laid_out(struct rig *r, u32 block_bytes, u64 size)
{
	struct inode *inode = rig_inode(r, block_bytes);
	struct file *f = rig_file(inode, FILE_DIRECT);

	rig_write(f, 0, size, 1);
	file_close(f);
	r->logged = 0;
	return rig_file(inode, 0);
}

static inline void rig_drop(struct file *f)
{
	struct inode *inode = f->inode;

	file_close(f);
	inode_destroy(inode);
}

static inline struct engine_stats rig_stats(struct rig *r)
{
	struct engine_stats s;

	engine_stats(r->e, &s);
	return s;
}

/* Dirties n pages by a write each, without bytes. */
static inline void rig_dirty(struct file *f, u64 page, u64 n)
{
	for (u64 i = 0; i < n; i++)
		assert_int_equal(file_pwrite(f, NULL, 4096, (page + i) * 4096), 4096);
}

/* The end of most tests: of the file, and then of the rig. */
static inline void rig_end(struct rig *r, struct file *f)
{
	rig_drop(f);
	rig_close(r);
}

/* The order of the cached folio at a page, or -1. */
static inline int rig_order(const struct file *f, u64 page)
{
	struct folio *folio = mapping_find(&f->inode->m, page);
	int order = folio ? folio->order : -1;

	if (folio)
		folio_unpin(f->inode->m.cache, folio);
	return order;
}

/* Expects folios of these orders side by side from `page` on; -1 ends the list. */
static inline void rig_expect_orders_at(const struct file *f, u64 page, const int *orders,
					const char *file, int line)
{
	for (; *orders >= 0; page += 1ull << *orders++) {
		int order = rig_order(f, page);

		if (order != *orders) {
			print_error("order %d at page %llu, not %d\n", order,
				    (unsigned long long)page, *orders);
			_fail(file, line);
		}
	}
}

#define rig_expect_orders(f, page, ...) \
	rig_expect_orders_at(f, page, (const int[]){ __VA_ARGS__, -1 }, __FILE__, __LINE__)

static inline u32 rig_logged_of(const struct rig *r, enum io_op op)
{
	u32 n = 0;

	assert_true(r->logged <= LOG_MAX);
	for (u32 i = 0; i < r->logged; i++)
		n += r->log[i].op == op;
	return n;
}

static inline void rig_expect_io_at(const struct rig *r, u32 i, enum io_op op, u64 offset,
				    u64 length, const char *file, int line)
{
	if (i >= r->logged) {
		print_error("only %u I/Os\n", r->logged);
		_fail(file, line);
	} else if (r->log[i].op != op || r->log[i].offset != offset || r->log[i].length != length) {
		print_error("I/O %u: %s of %llu bytes at %llu\n", i,
			    r->log[i].op == IO_READ ? "read" : "write",
			    (unsigned long long)r->log[i].length,
			    (unsigned long long)r->log[i].offset);
		_fail(file, line);
	}
}

#define rig_expect_io(r, i, op, offset, length) \
	rig_expect_io_at(r, i, op, offset, length, __FILE__, __LINE__)

#endif
