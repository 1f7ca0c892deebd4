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
	/*
	 * Ours: how long after write-out failed it is tried again unasked, at first and at most; 0:
	 * without a pause. Syncs try at once.
	 */
	u32 retry_min_ms, retry_max_ms;
};
void vm_settings_init(struct vm_settings *vm); /* Linux's defaults; 100 ms and 10 s */

struct persist;

struct engine_config {
	u64 memory_bytes;     /* page cache memory: free pages and cached ones */
	u64 max_memory_bytes; /* to which engine_resize() may let it grow; 0: memory_bytes */
	u64 reserve_bytes;    /* of it, what the limits do not count (totalreserve_pages) */
	u64 ready_bytes;      /* of what is free, not taken back by a host; 0: all */
	bool contents;        /* keep the bytes */
	enum huge_pages huge_pages;
	bool register_memory;    /* lock it, and make it known to the devices' io_uring */
	struct persist *persist; /* keep the bytes there, to outlive the process; or NULL */
	enum fs_kind fs;         /* under all files; in the simulated world only, past FS_NONE */
	struct policy policy;
	struct vm_settings vm;
};

/* Everything the lab reports about a stretch of time; see engine_stats(). */
struct engine_stats {
	/* levels, pages */
	u64 dirty, writeback;        /* as the policy's accounting charges them */
	u64 debt, in_flight, pinned; /* always both ledgers */
	u64 drop;                    /* of the debt, what goes once it is written (DONTCACHE) */
	u64 memory;                  /* the size of the cache */
	u64 cached, free;
	u64 cached_of_order[ARENA_ORDERS]; /* of those cached, by the order of their folio */
	u64 background_thresh, thresh, dirty_limit;
	u64 freerun, setpoint; /* up to where nobody is throttled; where dirty settles */
	/* largest levels since engine_stats_reset(), pages */
	u64 dirty_max, debt_max, pinned_max, drop_max;
	/* totals since engine_create(), pages */
	u64 charged, written, cancelled;  /* as the policy's accounting counts them */
	u64 pages_dirtied, pages_written; /* pages with a newly dirtied / a written block */
	u64 write_failures;               /* I/Os of write-out that failed */
	/* levels: pages that could not be written and are not safe since, and of how many files;
	 * see engine_show_unsafe() */
	u64 unsafe, unsafe_files;
	/* throttle */
	u64 throttle_sleep_ns, throttle_sleeps, throttle_calls;
	u64 folios_split, folios_evicted, folios_reclaimed;
	u64 folios_shed;       /* of those split: to let go of clean pages */
	u64 read_misses;       /* pages that reads found neither cached nor valid */
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

struct inode;

/*
 * What an end could not write: filled in by engine_destroy_telling() and path_table_destroy(),
 * which add to the counts. Zero it, with `lost` and `ctx` set if wanted.
 */
struct engine_losses {
	/* Called for each inode with data that is not on its device, while it still exists. */
	void (*lost)(void *ctx, struct inode *inode, u64 bytes, int error);
	void *ctx;
	u64 files;
	u64 bytes; /* of pages that are lost, in whole pages */
	int error; /* the first, 0: nothing is lost and every device could be flushed */
};

int engine_create(const struct engine_config *c, struct engine **out);
/*
 * Writes everything back, stops the flushers and frees the engine and its inodes. Every file is
 * closed, every loan given back. 0, or the first error of data that could not be written.
 */
int engine_destroy(struct engine *e);
/* The same; says what is lost. `losses` may be NULL. */
int engine_destroy_telling(struct engine *e, struct engine_losses *losses);
/*
 * Frees the engine with all that is in it, dirty data too, without writing it back or looking at
 * every page: for the end of a simulation. No call is under way.
 */
void engine_discard(struct engine *e);

#define ENGINE_DEVICES_MAX 16
/* Attaches a device (at most ENGINE_DEVICES_MAX). read_ahead_kb as in /sys/class/bdi. The caller
 * keeps the device alive past engine_destroy(). */
int engine_add_device(struct engine *e, struct device *d, u32 read_ahead_kb, bool strict_limit);

/*
 * Changes page cache memory while it is in use. What lies past a smaller end is moved, evicted, or
 * written first. -EAGAIN if some of it is still in use after timeout_ns: *left_bytes says how
 * much; it goes when it is let go of, and is no longer allocated. -EINVAL for a size below 256
 * KiB, not above the reserve or above max_memory_bytes; -ENOMEM: nothing was changed.
 */
int engine_resize(struct engine *e, u64 memory_bytes, u64 timeout_ns, u64 *left_bytes);
/* What the cache takes of the system's memory at the moment, and how much of that on huge pages. */
struct engine_memory {
	u64 arena_bytes, arena_huge_bytes;
	u64 table_bytes; /* of folio descriptors */
	u64 index_bytes; /* of the files' indexes */
	u64 stuck_bytes; /* past the end of the arena, still in use */
};
void engine_memory(struct engine *e, struct engine_memory *out); /* reads files: slow */
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

/*
 * Names what could not be written and is not safe since: each run of such pages of each file, in
 * bytes, with the error that came first for the file. `inode` stays for the call of fn.
 */
void engine_show_unsafe(struct engine *e,
			void (*fn)(void *ctx, struct inode *inode, u64 offset, u64 length,
				   int error),
			void *ctx);

/*
 * Changes the limits of a running engine; the next look of each throttle and flusher goes by them.
 * -EINVAL, and nothing changed: a ratio above 100, or bytes of less than two pages. Takes no lock;
 * two callers at once may each set some of the values.
 */
int engine_set_vm(struct engine *e, const struct vm_settings *vm);
void engine_vm(struct engine *e, struct vm_settings *out);

/* sync(2): returns when everything dirty at the call is on its device. */
int engine_sync(struct engine *e);
/*
 * The same, and calls progress(ctx, pages) as it goes: at the start, every 20 ms, and at the end;
 * `pages` are those dirty or in flight at that moment, what others dirty meanwhile included. When
 * it returns anything but 0, no more is waited for, and that is the result; what has been started
 * goes on by itself. -ENOMEM: no memory for a task.
 */
int engine_sync_progress(struct engine *e, int (*progress)(void *ctx, u64 pages), void *ctx);
/* The writeback of an engine, for who traces it (writeback/trace.h). */
struct writeback;
struct writeback *engine_writeback(struct engine *e);

/* Drops all clean folios, as /proc/sys/vm/drop_caches does. Returns pages dropped. */
u64 engine_drop_caches(struct engine *e);
/* In a simulated world: looks at so many pages of memory and drops what is clean there. */
u64 engine_page_out(struct engine *e, u64 pages);
/*
 * Audits: recomputes every ledger from the state words; false and a text if they differ. Nobody may
 * change anything meanwhile, the flusher included: with real threads, sync first.
 */
bool engine_audit(struct engine *e, char *why, size_t why_size);

#endif
