/* SPDX-License-Identifier: MIT */
/*
 * The property test of the engine: random operations by several tasks of a simulated
 * world on files whose contents a plain array of bytes foretells.
 *
 * A profile bounds what a run may look like; a seed picks one run of it: the machine,
 * the policy, the limits, the files, and each task's operations. The same seed gives the
 * same run. On failure the seed, the step, what was drawn and the last operations are
 * printed, and the process aborts. To look into it, in the environment:
 *
 *	SLUICE_SEED=n	only that seed (with SLUICE_SOAK: the first of many)
 *	SLUICE_PROFILE=x	only that profile of a program that has several
 *	SLUICE_SOAK=1	ten times as many runs
 *	SLUICE_TRACE=1	print every operation
 *	SLUICE_STEPS=n SLUICE_TASKS=n SLUICE_FILES=n SLUICE_NOISE=n SLUICE_CPUS=n
 *	SLUICE_FAULTS=0	a smaller run of the same seed: what is drawn stays the same otherwise
 *
 * Who may do what at once: every file has a lock of the test's. A task that holds it alone
 * does anything and checks everything. Tasks that share it keep to stripes of the file
 * that are theirs alone, at least a block long, so that writers meet in folios and pages
 * but never in blocks. "Noise" takes no lock, changes no contents, and checks
 * nothing: it reads, syncs, drops and gives advice in the midst of the others.
 */
#ifndef SLUICE_TESTS_FILE_PROPERTY_H
#define SLUICE_TESTS_FILE_PROPERTY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "device/device.h"
#include "file/file.h"
#include "world/sim.h"
#include <cmocka.h>

#define PROP_TASKS   8
#define PROP_NOISE   3
#define PROP_TENANTS 4
#define PROP_FILES   6
#define PROP_DEVICES 3
#define PROP_TRACE   48

/* Bounds of what is drawn, both inclusive. */
struct prop_range {
	u64 least, most;
};

struct prop_profile {
	const char *name;
	u32 runs;  /* of the default test */
	u32 steps; /* operations a run, noise not counted */
	struct prop_range tasks, files, noise, devices;
	struct prop_range memory_pages;
	struct prop_range file_bytes;  /* largest size of a file */
	struct prop_range op_bytes;    /* largest read or write */
	struct prop_range dirty_pages; /* dirty_bytes / 4096 where limits are set in bytes */
	u32 audit_every;               /* steps between walks over all state */
	bool only_memory;              /* devices of model "memory" only */
	bool faults;                   /* I/O fails now and then */
	bool refusals;                 /* malloc fails now and then (the program wraps it) */
	bool fsync_often;
};

struct prop;

struct prop_file {
	u32 number, block_bytes, device;
	struct inode *inode;
	struct file *buffered[PROP_TASKS + PROP_NOISE], *direct[PROP_TASKS + PROP_NOISE];
	bool sync[PROP_TASKS + PROP_NOISE]; /* buffered[] was opened with FILE_SYNC */
	struct rwsem lock;                  /* protects the two below, and the file's contents */
	u8 *bytes;                          /* what the file holds; zeros past the size */
	u64 size;
	u64 capacity;
	u64 hot;          /* offset of somebody's last operation */
	u64 stripe_bytes; /* 0: never shared */
};

struct prop_task {
	struct prop *p;
	u32 number;
	struct rng rng;
	struct task *task;
	u8 *buf;
	u64 widest_interval; /* pages between two looks of the throttle, at most */
	bool alone;          /* the lock is held exclusively */
	u64 started_ns;      /* the operation at hand */
};

/* What the devices fail, and since when nothing more. */
struct prop_faults {
	struct rng rng;
	bool writes, reads, flushes;
	u64 first_byte, end_byte; /* where in a file */
	u32 one_in;               /* of so many, 1: all */
	u64 injected;
	u64 last_ns; /* when the last was */
};

struct prop {
	const struct prop_profile *profile;
	u64 seed;
	u32 steps, step, tasks, noise, files, devices, audit_every;
	u32 running; /* tasks that are not noise */
	u64 op_bytes;
	struct sim_config sim;
	struct engine_config config;
	struct engine *engine;
	struct tenant *tenant[PROP_TENANTS]; /* those that could be made */
	u32 tenants;
	struct rng tenant_rng;
	struct device *device[PROP_DEVICES];
	struct prop_file file[PROP_FILES];
	struct prop_task task[PROP_TASKS + PROP_NOISE];
	struct prop_faults faults;
	struct rng rng; /* of the run as a whole */
	u8 *pool;       /* random bytes that writes take theirs from */
	u64 pool_bytes;
	u64 watched_step;
	struct sim_event watchdog;
	u64 traced;
	char trace[PROP_TRACE][128];
};

/* Memory is refused while set, one call in so many; for programs that wrap malloc. */
extern u32 prop_refuse_one_in;
/* Whether this call is to be refused; counts it. */
bool prop_refuses(void);

/* Runs all seeds of a profile. */
void prop_run(const struct prop_profile *profile);

/* Prints what is known of the run, and aborts. */
void prop_fail(struct prop *p, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));
void prop_trace(struct prop *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Half of the runs have tenants, drawn with numbers of their own. */
void prop_add_tenants(struct prop *p);
/* The calling task acts for a tenant drawn at random, or nobody; now and then one goes. */
void prop_act(struct prop *p);
/* One random operation; property_ops.c. */
void prop_step(struct prop_task *t);
void prop_noise_step(struct prop_task *t);
/* Compares a file with what it should hold: sizes, reads, and, when synced, its store. */
void prop_check_file(struct prop_task *t, struct prop_file *f);
void prop_check_store(struct prop *p, struct prop_file *f, u64 offset, u64 length);
void prop_open(struct prop *p, struct prop_file *f, u32 task, bool sync);
void prop_close(struct prop_file *f, u32 task);
int prop_create(struct prop *p, struct prop_file *f);

/* What property_ops.c and property_more.c share. */
#define PROP_CUTS 6 /* pieces of a buffer */

struct prop_span {
	u64 offset, length;
};

unsigned prop_cut(struct prop_task *t, const u8 *buf, u64 length, u32 unit, struct iovec *iov);
unsigned prop_flags(struct prop_task *t, bool direct, bool writes, bool sync);
struct prop_span prop_span_anywhere(struct prop_task *t, struct prop_file *f);
bool prop_span_allowed(struct prop_task *t, struct prop_file *f, struct prop_span *s);
void prop_expect_cause(struct prop_task *t, s64 rc, u64 injected, const char *what);
void prop_check_size(struct prop_task *t, struct prop_file *f);
void prop_wrote(struct prop_file *f, const u8 *from, u64 offset, u64 n);
void prop_settle(struct prop_task *t, struct prop_file *f, const u8 *from, struct prop_span s);
void prop_append(struct prop_task *t, struct prop_file *f);
void prop_fallocate(struct prop_task *t, struct prop_file *f);
void prop_seek(struct prop_task *t, struct prop_file *f);
void prop_borrow(struct prop_task *t, struct prop_file *f);
void prop_unaligned(struct prop_task *t, struct prop_file *f);

/* Uniform in the range; the second one as often small as large, by powers of two. */
u64 prop_between(struct rng *r, u64 least, u64 most);
u64 prop_scaled(struct rng *r, u64 least, u64 most);
static inline bool prop_chance(struct rng *r, u32 one_in)
{
	return rng_below(r, one_in) == 0;
}

#endif
