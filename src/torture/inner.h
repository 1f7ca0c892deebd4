/* SPDX-License-Identifier: MIT */
/* What the files of this folder share. */
#ifndef SLUICE_TORTURE_INNER_H
#define SLUICE_TORTURE_INNER_H

#include "file/file.h"
#include "torture/disk.h"
#include "torture/model.h"
#include "torture/torture.h"

#define TASKS_MAX   6
#define FILES_MAX   4
#define DEVICES_MAX 2
#define RULES_MAX   4
#define CUTS_MAX    4 /* pieces of a buffer */
#define LOOKERS     64
#define POOL_BYTES  (256u << 10)

enum op_kind {
	OP_WRITE,
	OP_READ,
	OP_APPEND,
	OP_TRUNCATE,
	OP_FALLOCATE,
	OP_SEEK,
	OP_FSYNC,
	OP_SYNC_RANGE,
	OP_ADVISE,
	OP_BORROW,
	OP_SYNC,
	OP_DROP,
	OP_RESIZE,
	OP_SET_VM,
	OP_REOPEN,
	OP_POWER, /* from here on those of the task that does harm */
	OP_FAULT,
	OP_HEAL,
	OP_KINDS
};

/* How an I/O may go wrong, and for how long. */
struct rule {
	u32 kind;           /* enum torture_fault; 0: none */
	u32 ops;            /* 1 << enum io_op */
	u32 device, one_in; /* of so many I/Os */
	u64 from, to;       /* bytes of a file */
	u64 left;           /* so many times */
	u64 until_ns;       /* or until then; of a drawn one: for so long */
};

struct op {
	enum op_kind kind;
	u32 task, file;
	unsigned flags; /* of the call: enum file_io_flags, a mode, an advice, ... */
	bool direct;
	u64 offset, length, pause_ns;
	u64 value; /* where in the pool its bytes are, or another number */
	u32 cuts;
	struct rule rule;
};

struct tfile {
	u32 number, block_bytes, device;
	struct inode *inode;
	struct model model;
	struct rwsem lock; /* alone: who may make the file shorter or knows where it will end */
	u32 appends;       /* under way, and the size when the first of them began */
	u64 append_base;
	struct file *open[TASKS_MAX][2]; /* [1]: direct */
	bool sync[TASKS_MAX];
};

/* A read under way: the sizes the file had meanwhile, and from where on appends were at work. */
struct reading {
	struct tfile *file;
	u64 least, most, wild;
};

struct torture;

struct ttask {
	struct torture *t;
	u32 number;
	struct task *task;
	u64 id; /* world_task_id() */
	u32 op; /* its operation at hand */
	bool busy;
	struct reading reading;
	u8 *buf;
	u64 injected, refused; /* when its operation began */
	bool failing;          /* any file had data that could not be written then, or has */
};

struct torture {
	const struct torture_config *config;
	struct torture_report *report;
	struct rng rng;
	struct sim_config sim;
	struct engine_config engine_config;
	struct engine *engine;
	u32 tasks, files, devices, working;
	u64 capacity, op_bytes, max_memory_bytes;
	struct disk disk[DEVICES_MAX];
	struct tfile file[FILES_MAX];
	struct ttask task[TASKS_MAX + 1]; /* the last does harm */
	struct op *op;
	u8 *pool, *image;
	u64 clock;
	struct rule rule[RULES_MAX];
	struct rng fault_rng;
	u64 jitter_ns;        /* answers are late by up to this much, all the time */
	u64 injected;         /* I/Os that failed */
	bool lossy;           /* a write failed under errors=linux: bytes may be anything now */
	u64 refused;          /* allocations */
	u32 refuse_at;        /* the so-manieth from now on is the first to be refused ... */
	u32 refuse_run;       /* ... of so many */
	u64 power_in;         /* I/Os until the disks are looked at */
	bool strict;          /* a device is held to its own share of the limit */
	u64 freerun[LOOKERS]; /* of the last look of a task at the limits, by its number */
	u64 watched_step;
	struct sim_event watchdog;
};

void torture_fail(struct torture *t, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* draw.c: everything that is drawn from the seed */
void draw_machine(struct torture *t);
void draw_schedule(struct torture *t);
void draw_device(struct torture *t, struct device_config *c);
void describe_machine(struct torture *t);
void describe_op(const struct torture *t, u32 number, char *text, size_t size);
u64 draw_scaled(struct rng *r, u64 least, u64 most);
static inline bool draw_one_in(struct rng *r, u64 n)
{
	return rng_below(r, n) == 0;
}

/* faults.c */
void faults_attach(struct torture *t, u32 device);
void faults_do(struct torture *t, const struct op *op);
void faults_end(struct torture *t);
/* Looks at what the disks hold, as after a power loss and after a kill. */
void faults_power(struct torture *t);

/* ops.c, ops_space.c */
void op_do(struct ttask *task, const struct op *op);
void op_space(struct ttask *task, struct tfile *f, const struct op *op);
void op_open(struct torture *t, struct tfile *f, u32 task, bool sync);
void op_check_whole(struct ttask *task, struct tfile *f);
/* Fails unless an error has a reason. */
void op_cause(struct ttask *task, s64 rc, unsigned flags, const char *what);
void op_set_size(struct torture *t, struct tfile *f, u64 least, u64 most);
/* The size of a file that nobody else changes is what it should be. */
void op_check_size(struct torture *t, struct tfile *f);
/* What a failed operation has left of the size: between these two. */
void op_settle_size(struct torture *t, struct tfile *f, u64 least, u64 most);
void op_enter(struct tfile *f);
void op_leave(struct tfile *f);

#endif
