/* SPDX-License-Identifier: MIT */
/*
 * What a job drives: an engine is a small table of file operations. `sluice` is
 * ours, in either world; `posix` is the system's, in the real one.
 * Calls block the calling task, return 0 or a count or a negative errno, and may
 * be made by many tasks at once, also on one file.
 */
#ifndef SLUICE_JOB_ENGINE_H
#define SLUICE_JOB_ENGINE_H

#include "base/types.h"
#include <sys/types.h>

enum job_open_flags {
	JOB_READ = 1,
	JOB_WRITE = 2,
	JOB_CREATE = 4, /* make it, empty, if it is not there */
	JOB_DIRECT = 8, /* past the cache */
	JOB_SYNC = 16,  /* each write returns when its data is on the device */
	JOB_TRUNCATE = 32,
	JOB_DONTCACHE = 64, /* through the cache, but leave nothing there */
	JOB_DSYNC = 128,    /* as JOB_SYNC, but of the file's times only what reading it needs */
};

enum job_range_flags { JOB_RANGE_WAIT_BEFORE = 1, JOB_RANGE_WRITE = 2, JOB_RANGE_WAIT_AFTER = 4 };

/* What an engine can do that not all can. */
enum job_features { JOB_CAN_DONTCACHE = 1 };

enum job_advice {
	JOB_ADV_NORMAL,
	JOB_ADV_SEQUENTIAL,
	JOB_ADV_RANDOM,
	JOB_ADV_WILLNEED,
	JOB_ADV_DONTNEED,
	JOB_ADV_NOREUSE,
};

struct job_file; /* an open file of the engine's */

struct job_engine {
	const char *name;
	int (*open)(struct job_engine *e, const char *path, unsigned flags, struct job_file **out);
	void (*close)(struct job_file *f);
	/* buf may be NULL where contents do not matter; `len` is in bytes. */
	ssize_t (*pread)(struct job_file *f, void *buf, size_t len, u64 offset);
	ssize_t (*pwrite)(struct job_file *f, const void *buf, size_t len, u64 offset);
	int (*fsync)(struct job_file *f, bool data_only);
	int (*advise)(struct job_file *f, u64 offset, u64 len, enum job_advice advice);
	int (*truncate)(struct job_file *f, u64 size);
	u64 (*size)(struct job_file *f);
	int (*unlink)(struct job_engine *e, const char *path);
	/* Makes the file exist with at least `size` bytes, all written, before time is measured:
	 * for files that a job expects to find (fio lays them out before it starts). What the
	 * file has already stays. In a simulated world it takes no time. */
	int (*lay_out)(struct job_engine *e, const char *path, u64 size);
	void (*task_exit)(struct job_engine *e); /* called by each task of a job as it ends */

	/* May be missing: an I/O there comes after a pause; nothing happens that could be seen. */
	void (*expect)(struct job_file *f, u64 offset);

	/* What follows may be missing; jobs that need it are then refused before they run. */
	unsigned features;
	/* As sync_file_range(2), flags of enum job_range_flags; len 0: to the end. */
	int (*sync_range)(struct job_file *f, u64 offset, u64 len, unsigned flags);
	/* 0 if files can be made in a folder; missing: there are none. */
	int (*folder)(struct job_engine *e, const char *path);
	/* The calling task acts for the tenant of that name from now on; 0 or -ENOENT. */
	int (*act_for)(struct job_engine *e, const char *tenant);
	/* 0 if there is a tenant of that name. */
	int (*find_tenant)(struct job_engine *e, const char *tenant);
	/* As fallocate(2), with FALLOC_FL_KEEP_SIZE if keep_size. */
	int (*allocate)(struct job_file *f, u64 offset, u64 len, bool keep_size);
	/*
	 * Maps that part of the file: reads, writes and syncs of it are loads, stores and msync(2)
	 * from here on, and one task makes them. Advice is for the map, too. Missing: ioengine=mmap
	 * then reads and writes as psync does.
	 */
	int (*map)(struct job_file *f, u64 offset, u64 len);
};

#endif
