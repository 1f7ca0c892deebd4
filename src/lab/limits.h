/* SPDX-License-Identifier: MIT */
/*
 * The limits of dirty memory that follow from a machine's memory and its vm settings,
 * for people: how much may be dirty, where the flusher starts, where writers begin to
 * be slowed and where they are stopped, and which settings cannot work.
 */
#ifndef SLUICE_LAB_LIMITS_H
#define SLUICE_LAB_LIMITS_H

#include "lab/setup.h"

/* One device: what it may have of the limit. */
struct limits_device {
	char name[32];
	u32 read_ahead_kb;
	double min_ratio, max_ratio; /* percent of the limit, as in /sys/class/bdi */
	bool strict;
	u64 bandwidth_bytes; /* it writes in a second; 0: unknown */
	u64 most;            /* pages of it that may be dirty */
};

/* What the throttle allows a writer at some number of dirty pages. */
struct limits_pace {
	u64 freerun;       /* pages: up to here nobody is asked */
	u64 pos_ratio;     /* 1024: his rate as it is */
	u64 rate, allowed; /* pages a second: of a new device, and what of it is allowed */
};

#define LIMITS_DEVICES_MAX  256
#define LIMITS_WARNINGS_MAX 32

struct limits_view {
	/* what is given */
	struct vm_settings vm;
	unsigned cpus;
	unsigned hz;                  /* 0: unknown */
	u64 free, file, reserve;      /* pages */
	u64 kernel_thresh, kernel_bg; /* pages, by the running kernel's own word */
	bool kernel_says;             /* whether it says that */
	struct limits_device *devices;
	size_t device_count;
	/* what follows: pages */
	u64 avail, bg, freerun, setpoint, limit;
	u64 poll; /* pages a CPU may dirty before somebody looks */
	char *warnings[LIMITS_WARNINGS_MAX];
	size_t warning_count;
};

/* What a machine file's setup gives: an empty page cache. 0 or -ENOMEM. */
int limits_of_setup(struct limits_view *v, const struct setup *setup);
/* What the running system gives; its /proc and /sys are looked for under `root` ("" for the real
 * ones). 0, or a negative errno with `e` set. */
int limits_of_system(struct limits_view *v, const char *root, struct err *e);
/* Works out what follows. 0 or -ENOMEM. */
int limits_work_out(struct limits_view *v);
/*
 * What a device's writers are allowed when `dirty` pages are dirty or in flight, all on this
 * device, and nothing is written elsewhere: the rules since Linux 6.14.
 */
struct limits_pace limits_pace(const struct limits_view *v, const struct limits_device *d,
			       u64 dirty);
void limits_finish(struct limits_view *v);

#endif
