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
#define TENANTS_MAX 3
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
	OP_FORGET,
	OP_TELL,
	OP_TENANT,
	OP_POWER, /* from here on those of the task that does harm */
	OP_CRASH, /* the power goes, and comes back */
	OP_KILL,  /* the process is killed, and another one begins */
	OP_FAULT,
	OP_HEAL,
	OP_KINDS
};

#define RULE_CALLS 8 /* a bit of rule.ops: calls that are no I/O, as of truncation */

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
	enum disk_kind kind;
	struct store *store; /* the inode's */
	struct inode *inode;
	struct model model;
	struct rwsem lock; /* alone: who may make the file shorter or knows where it will end */
	u32 appends;       /* under way, and the size when the first of them began */
	u64 append_base;
	bool forgets; /* what is not on the disk is being given up */
	u64 cuts;     /* times that it was cut, or a hole was made, begun and ended; odd: now */
	u64 safe_least, safe_most;       /* sizes it may come back with after a power loss */
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
	u32 next;              /* the operation to go on with in another life */
	bool writing;          /* in a write of the engine's: watch.c */
	u32 watched, idle_looks;
	bool failing; /* any file had data that could not be written then, or has */
};

struct torture {
	const struct torture_config *config;
	struct torture_report *report;
	struct rng rng;
	struct sim_config sim;
	struct engine_config engine_config;
	struct engine *engine;
	u32 tasks, files, devices, working, tenants;
	struct tenant *tenant[TENANTS_MAX]; /* NULL: it could not be made */
	u32 drops; /* so many of 8 reads and writes do not care for the cache */
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
	u64 late_ns;          /* until then I/Os are out that a fault has delayed */
	u64 injected;         /* I/Os that failed */
	u64 flushes_failed;   /* of them */
	u64 shown;            /* bytes of a file of which its end said that they are lost */
	bool lossy;           /* a write failed under errors=linux: bytes may be anything now */
	u64 refused;          /* allocations */
	u32 refuse_at;        /* the so-manieth from now on is the first to be refused ... */
	u32 refuse_run;       /* ... of so many */
	u64 power_in;         /* I/Os until the disks are looked at */
	bool strict;          /* a device is held to its own share of the limit */
	u64 freerun[LOOKERS]; /* of the last look of a task at the limits, by its number */
	u32 refuse_what;      /* 0: allocations of memory, 1: frames and descriptors of folios */
	u64 watched_step, moved_ns;
	u64 quiet_ns; /* since then nothing is wrong with any device */
	struct engine_stats seen;
	struct sim_event watchdog;
	bool killed;             /* when `power_in` has come, the process ends, or the power */
	bool ends;               /* ... instead of a look at the disks */
	struct afterlife *after; /* NULL: the run has one life */
	bool persists;           /* its memory outlives the process */
	struct persist *persist; /* of this life, if so */
	bool looking;            /* at an arena: nobody refuses memory for that */
};

void torture_fail(struct torture *t, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* draw.c: everything that is drawn from the seed */
void draw_machine(struct torture *t);
void draw_schedule(struct torture *t);
void draw_device(struct torture *t, struct device_config *c);
enum disk_kind draw_kind_of_file(struct rng *r);
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
/* No more harm is done; with `harmed` what was made to fail goes on to. */
void faults_end(struct torture *t, bool harmed);
/* Looks at what the disks hold, as after a power loss and after a kill. */
void faults_power(struct torture *t);
/* The same for one file and one image, which is left in t->image. */
void faults_look(struct torture *t, struct tfile *f, bool killed);
/* A moment at which the disks may be looked at, or this life may end. */
void faults_step(struct torture *t);
/* Something is made to go wrong at the moment. */
bool faults_at_work(const struct torture *t);

/* tenants.c */
void tenants_begin(struct torture *t);
/* Whom a task acts for at first. */
void tenants_enter(struct ttask *task);
void op_tenant(struct ttask *task, struct tfile *f, const struct op *op);

/* watch.c */
struct trace_event;
void watch_begin(struct torture *t);
void watch_end(struct torture *t);
void watch_audit(struct torture *t);
void watch_throttle(void *ctx, const struct trace_event *e);
void watch_unsafe(struct torture *t);

/* life.c */
/* Runs live() once, or once for each life. */
void life_all(struct torture *t, void (*live)(struct torture *t));
bool life_after(const struct torture *t); /* it is not the first */
u32 life_number(const struct torture *t); /* 0, 1, ... */
u32 life_next_op(const struct torture *t, u32 task);
/* Gives a new store what it had at the end of the last life. */
void life_restore(struct torture *t, struct tfile *f, struct store *store);
/* Makes the model of a file from what its disk has, which is all there is of it. */
void life_model(struct torture *t, struct tfile *f);
/* Fails if a file may not come back with that size. */
void life_check_size(struct torture *t, const struct tfile *f, u64 size);
/* Ends this life here. */
void life_end(struct torture *t, bool killed) __attribute__((noreturn));
/* The same of one that is killed while it recovers, and has no engine yet. */
void life_end_unborn(struct torture *t) __attribute__((noreturn));
void life_recover(struct torture *t);

/* outlive.c */
struct legacy;
struct legacy *outlive_share(void);
void outlive_unshare(struct legacy *l);
void outlive_begin(struct torture *t);
void outlive_enter(struct torture *t, struct tfile *f);
/*
 * What a file would be if the process were killed now: its size is returned, its bytes are left in
 * t->image, which has what its disk would have. Fails if it may not be that.
 */
u64 outlive_look(struct torture *t, struct tfile *f);
/* The process was killed, and its disks were saved: the arena, too. Or it went with the power. */
void outlive_leave(struct torture *t, struct legacy *l, const struct disk_saved *disk);
void outlive_lose(struct legacy *l);
/* Gives stores, there are no inodes yet, what the last life owed them. */
void outlive_recover(struct torture *t, struct legacy *l);
/* The engine has ended; `written`: and had all written. */
void outlive_end(struct torture *t, bool written);

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
