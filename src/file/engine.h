/* SPDX-License-Identifier: MIT */
/*
 * The engine: one page cache over any number of devices, under one policy. This is
 * the front that the job runner, the lab and (later) the library and the mount
 * use. See file.h for what can be done with files.
 */
#ifndef SLUICE_FILE_ENGINE_H
#define SLUICE_FILE_ENGINE_H

#include "cache/arena.h"
#include "device/device.h"
#include "writeback/fs.h"

/* Linux's vm.* knobs, under their names. bytes != 0 overrides the ratio. */
struct vm_settings {
	u32 dirty_ratio, dirty_background_ratio; /* percent of dirtyable memory */
	u64 dirty_bytes, dirty_background_bytes;
	u32 dirty_writeback_centisecs, dirty_expire_centisecs;
};
void vm_settings_init(struct vm_settings *vm); /* Linux's defaults */

struct engine_config {
	u64 memory_bytes;  /* page cache memory: free pages and cached ones */
	u64 reserve_bytes; /* of it, what the limits do not count (totalreserve_pages) */
	bool contents;     /* keep the bytes */
	enum fs_kind fs;   /* under all files; in the simulated world only, past FS_NONE */
	struct policy policy;
	struct vm_settings vm;
};

/* Everything the lab reports about a stretch of time; see engine_stats(). */
struct engine_stats {
	/* levels, pages */
	u64 dirty, writeback;        /* as the policy's accounting charges them */
	u64 debt, in_flight, pinned; /* always both ledgers */
	u64 cached, free;
	u64 cached_of_order[ARENA_ORDERS]; /* of those cached, by the order of their folio */
	u64 background_thresh, thresh, dirty_limit;
	u64 freerun, setpoint; /* up to where nobody is throttled; where dirty settles */
	/* largest levels since engine_stats_reset(), pages */
	u64 dirty_max, debt_max, pinned_max;
	/* totals since engine_create(), pages */
	u64 charged, written, cancelled;  /* as the policy's accounting counts them */
	u64 pages_dirtied, pages_written; /* pages with a newly dirtied / a written block */
	/* throttle */
	u64 throttle_sleep_ns, throttle_sleeps, throttle_calls;
	u64 folios_split, folios_evicted, folios_reclaimed;
	u64 folios_shed;       /* of those split: to let go of clean pages */
	u64 reclaim_waits;     /* tasks that waited for memory */
	u64 first_throttle_ns; /* world time of the first sleep since reset, or WORLD_NEVER */
	u64 background_ns;     /* ... when dirty first passed the background limit, likewise */
	/* what the throttle first allowed a writer: when (or WORLD_NEVER), pages a second, and how
	 * many pages were dirty or in flight on his device */
	u64 first_pace_ns, first_pace, first_pace_dirty;
	/* pages at these moments, as the policy counts and in fact: dirty or in flight at the
	 * sleep, dirty at the limit */
	u64 first_throttle_dirty, first_throttle_debt, background_dirty, background_debt;
};

struct engine;

int engine_create(const struct engine_config *c, struct engine **out);
/*
 * Writes everything back, stops the flushers and frees the engine. Every file is
 * closed. 0, or the first error of data that could not be written.
 */
int engine_destroy(struct engine *e);
/*
 * Frees the engine with all that is in it, dirty data too, without writing it back or looking at
 * every page: for the end of a simulation. No call is under way.
 */
void engine_discard(struct engine *e);

/* Changes the vm settings, as writing to /proc/sys/vm does; nobody writes meanwhile. */
void engine_set_vm(struct engine *e, const struct vm_settings *vm);

#define ENGINE_DEVICES_MAX 16
/* Attaches a device (at most ENGINE_DEVICES_MAX). read_ahead_kb as in /sys/class/bdi. The caller
 * keeps the device alive past engine_destroy(). */
int engine_add_device(struct engine *e, struct device *d, u32 read_ahead_kb, bool strict_limit);

/* A device's knobs in /sys/class/bdi, under their names. */
struct bdi_settings {
	u32 read_ahead_kb; /* of files opened from now on */
	bool strict_limit;
	u32 min_ratio, max_ratio; /* 1/10000 % of the limit, as min_ratio_fine and max_ratio_fine */
	/* in place of the ratio where not 0: turned into one by the limit of the moment */
	u64 min_bytes, max_bytes;
};
#define BDI_RATIO_ALL 1000000                   /* 100 % */
void bdi_settings_init(struct bdi_settings *s); /* what a disk has: all of the limit */
/* -EINVAL: more than the limit, min above max, or the devices' min ratios come to 100 %. */
int engine_set_bdi(struct engine *e, unsigned device, const struct bdi_settings *s);

void engine_stats(struct engine *e, struct engine_stats *out);
void engine_stats_reset(struct engine *e); /* maxima, first_throttle, background */

/* sync(2): returns when everything dirty at the call is on its device. */
int engine_sync(struct engine *e);
/* Drops all clean folios, as /proc/sys/vm/drop_caches does. Returns pages dropped. */
u64 engine_drop_caches(struct engine *e);
/* Audits: recomputes every ledger from the state words; false and a text if they differ. */
bool engine_audit(struct engine *e, char *why, size_t why_size);

#endif
