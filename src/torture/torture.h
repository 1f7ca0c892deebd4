/* SPDX-License-Identifier: MIT */
/*
 * Torture: the engine, with contents on, in a simulated world that goes wrong in every way a
 * seed can think of, against a model of plain byte arrays. A seed is one run: the machine, the
 * policy, the files, and a schedule of operations by several tasks and of faults. The same seed
 * is the same run on every machine.
 */
#ifndef SLUICE_TORTURE_TORTURE_H
#define SLUICE_TORTURE_TORTURE_H

#include "base/err.h"
#include "base/types.h"

#define TORTURE_STEPS_MAX 100000u

enum torture_fault {
	TORTURE_EIO = 1,     /* I/O fails: once, in a range, for a time, for ever */
	TORTURE_FULL = 2,    /* the device has too little space */
	TORTURE_HANG = 4,    /* a device answers nothing for a time */
	TORTURE_GONE = 8,    /* a device fails everything for a time */
	TORTURE_SLOW = 16,   /* answers come late and out of order */
	TORTURE_MEMORY = 32, /* allocations are refused */
	TORTURE_POWER = 64,  /* what is on the disks is looked at as after a power loss or a kill */
	TORTURE_SHORT = 128, /* transfers move less than they are asked to */
	TORTURE_DEATH = 256, /* the power goes, or the process is killed, and the run goes on */
	TORTURE_ALL = 511
};

/* What a run is made to do wrong, to show that it is noticed. */
enum torture_sabotage {
	SABOTAGE_NONE,
	SABOTAGE_FLUSH,  /* the disk forgets a write that was flushed */
	SABOTAGE_WRITE,  /* the disk drops a write that it has said is done */
	SABOTAGE_READ,   /* a read gives one wrong byte */
	SABOTAGE_FSYNC,  /* an fsync that failed is called a success */
	SABOTAGE_ANSWER, /* the disk never answers one I/O */
	SABOTAGE_OWED,   /* recovery passes over what is owed */
};

/* What is known of a run, in memory that the process which runs it shares with its parent. */
struct torture_report {
	u64 seed, runs; /* the one at work or that failed; finished before it */
	u32 ops;        /* of its schedule */
	u32 step;       /* operations begun */
	bool failed;
	char doing[600]; /* the one that failed, and others under way */
	char machine[400];
	char why[700];
};

struct torture_config {
	u64 seed;
	u32 steps;      /* operations, faults included */
	u32 faults;     /* enum torture_fault, as bits */
	const u8 *keep; /* [steps] 0: this operation is left out. NULL: all are kept */
	void (*show)(void *ctx, const char *line); /* told of each operation, if set */
	void *ctx;
	enum torture_sabotage sabotage;
};

/* "eio,power" as bits; "none" and "all" too. 0 or -EINVAL with a line in e. */
int torture_faults_parse(const char *text, u32 *faults, struct err *e);

/*
 * Runs a seed in the calling process, which a failure ends: with the report filled in and status
 * 1, or as an assertion or a signal does.
 */
void torture_run(const struct torture_config *c, struct torture_report *report);

/*
 * Runs `runs` seeds from c->seed on, in `jobs` processes; calls progress(ctx, done), if set, now
 * and then. 0; 1: one failed, that with the smallest number is in *report; or a negative errno.
 */
int torture_runs(const struct torture_config *c, u64 runs, unsigned jobs,
		 void (*progress)(void *ctx, u64 done), void *ctx, struct torture_report *report);

/*
 * Leaves out operations of a run that fails, as long as it still does: keep[c->steps] says what is
 * left, *report how it fails then. Returns how many are left; a negative errno.
 */
int torture_shrink(const struct torture_config *c, u8 *keep, struct torture_report *report);

#endif
