/* SPDX-License-Identifier: MIT */
/*
 * Writeback state: of the whole cache (struct writeback), of each device (struct wb)
 * and of each file (struct inode). Linux writeback reference, sections 4 to 6; its
 * names are kept where it has names.
 *
 * Lock order: inode.lock; wb.list_lock; mapping.tree_lock; writeback.lock (domain);
 * wb.bw_lock. See world/lock.h.
 */
#ifndef SLUICE_WRITEBACK_WB_H
#define SLUICE_WRITEBACK_WB_H

#include "cache/cache.h"
#include "ledger/bandwidth.h"
#include "ledger/limits.h"
#include "ledger/proportion.h"
#include "writeback/fs.h"
#include "writeback/trace.h"
#include "writeback/waits.h"

#define WB_MAX 16 /* devices of one cache */

/* Why a flusher works; the names of Linux's tracepoints. */
enum wb_reason {
	WB_REASON_BACKGROUND,
	WB_REASON_VMSCAN,
	WB_REASON_SYNC,
	WB_REASON_PERIODIC,
	WB_REASON_DONTCACHE,
	WB_REASON_FOREIGN,
};

struct vm_limits {
	struct limits_config config;
	u32 dirty_writeback_centisecs; /* 0: no periodic work */
	u32 dirty_expire_centisecs;
	u32 retry_min_ms, retry_max_ms; /* pauses after failed write-out; min 0: there are none */
};

/* The same in use: changed while it is read, one value at a time. */
struct vm_knobs {
	_Atomic u32 dirty_ratio, dirty_background_ratio;
	_Atomic u64 dirty_bytes, dirty_background_bytes;
	_Atomic u32 dirty_writeback_centisecs, dirty_expire_centisecs;
	_Atomic u32 retry_min_ms, retry_max_ms;
};

/* What one CPU's dirtiers have not been asked for yet; owned by the CPU, races are harmless. */
struct wb_cpu {
	_Alignas(64) _Atomic u32
		dirtied;    /* pages since somebody on this CPU last looked (bdp_ratelimits) */
	_Atomic u32 leaked; /* pages that tasks left unpaid when they ended */
};

/* A moment, and what was not on the device then: as the policy counts, and in fact. */
struct throttle_moment {
	_Atomic u64 when_ns; /* world time; WORLD_NEVER: not yet */
	u64 dirty, debt;
};

/* What the throttle first allowed a writer above free running. */
struct throttle_pace {
	u64 when_ns;  /* world time; WORLD_NEVER: not yet */
	u64 wb_dirty; /* pages dirty or in flight on his device then */
	u64 rate;     /* pages a second (task_ratelimit) */
};

struct throttle_stats {
	u64 sleep_ns, sleeps, calls; /* planned sleep, as the kernel's `pause` */
	/* since reset: the first sleep, and when dirty first passed background */
	struct throttle_moment first_sleep, background;
	struct throttle_pace first_pace;
};

struct wb;

/* All devices of one cache. */
struct writeback {
	struct cache *cache; /* immutable, as are fs and policy */
	const struct fs *fs;
	struct policy policy; /* as the file system takes it */
	struct vm_knobs vm;
	struct world *world;   /* immutable: of its tasks, whosever call makes them */
	struct wb *wb[WB_MAX]; /* set before use */
	_Atomic u32 count;
	struct wb *_Atomic first_wb; /* those of tenants too, by their next_wb */
	struct mutex making;         /* of tenants, and of their wbs */
	_Atomic u64 moves;           /* of inodes from wb to wb, that have ended */
	_Atomic u32 moving;          /* those that have not: each on no list for a moment */
	u32 cpus;
	struct wb_cpu *cpu;          /* [cpus] */
	_Atomic u32 ratelimit_pages; /* per-CPU poll limit */
	_Atomic u64 bg_thresh;       /* as last computed: a hint for statistics */
	struct trace_slot trace;     /* who watches decisions */
	_Atomic u32 failing;         /* files with data that could not be written; outage.c */
	_Atomic u64 owed, owed_when; /* pages that they owe, as of that tick; likewise */

	struct spinlock lock; /* protects the rest, and every wb's proportion */
	struct hard_limit hard;
	struct proportion_domain proportions;
	struct throttle_stats stats;
	struct waits waits;
};

/* One piece of work for a flusher. */
struct wb_work {
	s64 pages; /* budget left */
	s64 wrote; /* taken so far */
	bool sync, tagged, for_background, for_kupdate;
	enum wb_reason reason;
	struct completion *done;
	void (*end)(struct wb_work *work); /* or NULL: the last touch of it */
	struct list_node link;             /* wb.work, under its list_lock */
};

/* What DONTCACHE writes have left on one device: see dontcache.c. */
struct dontcache {
	_Atomic u32 asked; /* the flusher is asked to write it (WB_start_dontcache) */
	/* own: */
	struct list_node files; /* inodes with marked pages, next first; wb.list_lock */
	u32 queued;             /* of them; likewise */
	u64 due_ns;             /* when the flusher looks at them by itself; likewise */
	_Atomic u64 in_flight;  /* pages */
	_Atomic u64 rate;       /* pages a second that landed lately */
	_Atomic u64 bound;      /* pages, as it stands; 0: nothing has landed yet */
	_Atomic u64 counted;    /* pages that have landed since */
	_Atomic u64 since_ns;   /* this */
	_Atomic u64 promised;   /* pages of writers who were let in and are not done */
	struct mutex line;      /* held by the first writer who waits for room */
	_Atomic u32 landed;     /* he parks on it */
	_Atomic u32 waits;      /* how many wait */
	_Atomic u32 stuck;      /* nothing has landed for long: nobody waits */
};

/* How much of its write-out the flusher lets be in flight: see depth.c. */
struct depth {
	_Atomic u64 in_flight; /* bytes */
	_Atomic u32 landed;    /* the flusher parks on it */
	_Atomic u32 waits;     /* it does */
	_Atomic bool reading;  /* somebody reads; the flusher says so, writers look */
	/* the flusher's own: */
	u64 limit;               /* bytes, while somebody reads */
	u64 base_ns;             /* what a read takes without write-out; 0: not known */
	u64 probe_ns;            /* when that is to be looked at again */
	u64 probe_gap_ns;        /* so long after the last look */
	u64 next_ns;             /* no I/O before, while somebody reads */
	u64 window_ns;           /* when the window ends */
	u64 reads_done, read_ns; /* as it began */
};

struct journal;
struct stake;

/*
 * One device: its flusher, its dirty inodes, its estimates. The part of it that is a tenant's has
 * a wb of its own.
 */
struct wb {
	const struct fs *fs; /* of the files on it */
	struct writeback
		*all; /* immutable, as are device, journal, index, io_pages, flusher, runs */
	struct device *device;
	struct journal *journal;       /* NULL: metadata costs nothing; of the device's own wb */
	u32 index;                     /* of the device */
	struct wb *root;               /* the device's own wb; immutable, as is tenant */
	struct tenant *tenant;         /* NULL: the device's own */
	struct wb *_Atomic *of_tenant; /* [TENANT_MAX + 1], once there are some; set once */
	struct wb *_Atomic next_wb;    /* made after this one; set once */
	_Atomic u32 ra_pages;          /* what files opened from now on read ahead */
	u32 io_pages;
	_Atomic bool strict_limit;
	u32 min_ratio, max_ratio; /* 1/10000 %; writeback.lock */
	struct task *flusher;
	struct block_run *runs; /* the flusher's scratch */

	struct ledger ledger;

	struct spinlock list_lock; /* protects the lists, inodes' place and state, and work */
	struct list_node dirty;    /* newest in front, by dirtied_when (b_dirty) */
	struct list_node io;       /* being worked on, from the back (b_io) */
	struct list_node more_io;  /* used up their slice (b_more_io) */
	struct list_node work;     /* queued wb_works */
	struct list_node stakes;   /* of the tenant, oldest first; see stake.c */
	u64 stake_round;           /* the flusher's own */
	struct list_node failing;  /* inodes with data that could not be written; see outage.c */
	u64 last_success_ns;       /* when something last could, while any could not */
	_Atomic u64 dirty_inodes;
	bool start_all; /* memory is short: write about everything */
	bool stopping;
	u64 last_old_flush; /* jiffies */
	u64 wake_ns;        /* when the flusher wakes by itself; WORLD_NEVER */
	u64 retry_ns;       /* ... to try again what failed; likewise */

	_Atomic u32 wakeups; /* the flusher parks on it */
	_Atomic u32 kicked;  /* there is something to look at before wake_ns */
	_Atomic u32 running; /* it is at work (WB_writeback_running) */
	_Atomic u32 dirty_exceeded;
	struct rwsem line; /* held by the one task over the limit that looks; see throttle.c */
	struct dontcache dontcache;
	struct depth depth;

	struct spinlock bw_lock; /* protects the estimates and what follows */
	struct bandwidth bw;
	/* under policy.wb_counters per-cpu: dirty pages that each CPU keeps to itself ([cpus], else
	 * NULL), those that are seen, and all of them at the last look */
	s64 *unseen, seen, sampled;
	u64 bw_update_ns; /* when the throttle last began to update them */
	u64 inodes_in_flight;
	_Atomic u64 bw_due; /* jiffies of a delayed update; 0: none; changes under the lock */

	struct proportion proportion;        /* writeback.lock */
	struct proportion tenant_proportion; /* of the tenant's domain; tenant.lock */
};

enum inode_state {
	INODE_DIRTY = 1,   /* has, or is about to have, dirty pages */
	INODE_SYNC = 2,    /* a flusher is writing it */
	INODE_FREEING = 4, /* no new work */
};

struct inode {
	struct mapping m;
	struct wb *wb;     /* its device's own; immutable */
	u32 block_bytes;   /* immutable */
	u64 ino;           /* immutable: 1, 2, ... in the order the engine made them; for traces */
	struct rwsem lock; /* writers and truncation (exclusive), see policy.write_lock */
	_Atomic u64 size;  /* bytes; changes under the lock held exclusively */
	_Atomic u64 changed_tid,
		grown_tid;        /* the journal's newest transaction with a change of it */
	_Atomic u64 changed_tick; /* when its times last changed, plus 1; 0: never */
	_Atomic u32 opens;
	_Atomic u32 awaited;       /* those who wait for its pages in flight: inode_wait_pages() */
	_Atomic u32 landings;      /* I/Os whose end is being entered here; see writeout.c */
	_Atomic u32 direct_writes; /* in progress: what is clean may be older than the device */
	u64 written;       /* with a journal: how far writes have come; beyond, there is no data */
	u64 reserved;      /* bytes from the start of the file, at least the size, up to
				    * which the device has room but for holes; under the lock */
	_Atomic u64 limit; /* nothing may be written past it, as far as is known; bytes */
	_Atomic bool littered; /* a write that failed may have left bytes past the size on the
				    * device; under the lock, held alone */
	_Atomic bool sparse;   /* there may be holes below `reserved`, whose room has to be
				    * asked for; under the lock */
	_Atomic bool cutting;  /* it is being made shorter: what is cut off may have left the cache,
				 * and not yet the store; changes under the lock, held alone */
	void *owner;           /* whoever made the inode: his own */
	_Atomic u64 landed_ns; /* when the last page in flight landed; 0: never */
	_Atomic bool unflushed; /* the store has taken what the device was not told to keep */
	struct list_node all;   /* of the engine's inodes; under its inodes_lock */
	u32 walkers;            /* that stand at it in that list; likewise */

	/*
	 * INODE_DIRTY is set, and before it goes this goes and the pages are looked at: who has
	 * made one dirty and then reads 1 has nothing to do.
	 */
	_Atomic u32 known_dirty;

	/*
	 * On whose lists it is, and whose book its pages are in. Changes under that one's list_lock
	 * and the tree_lock; without tenants it is `wb`.
	 */
	struct wb *_Atomic home;
	_Atomic bool attached;        /* home was chosen: at its first write */
	_Atomic bool shared;          /* of all tenants, as a file system's metadata */
	struct stake *_Atomic stakes; /* of tenants; see stake.c */
	struct ownership {
		u16 history;  /* of rounds; bits that are set: another tenant had the majority */
		u32 avg_time; /* of a round, in 1/8192 s */
		u32 winner;   /* of the last round: tenant */
		_Atomic u32 heir; /* tenant whose it shall be, + 1; 0: nobody new */
	} ownership;              /* see ownership.c; under the tree_lock */

	/* home's list_lock: */
	u32 state;
	u64 dirtied_when;           /* jiffies */
	struct list_node link;      /* dirty, io or more_io; empty when clean */
	_Atomic u64 retry_ns;       /* write-out that nobody asked for waits until then; 0: not */
	_Atomic u64 retry_pause_ns; /* the last pause after a failure; 0: nothing failed */
	struct list_node failing;   /* of its wb, under wb.list_lock; see outage.c */
	u64 failing_since_ns;       /* likewise */
	_Atomic u32 sync_waiters;   /* parked until INODE_SYNC goes: sequence word */
	struct list_node drop_link; /* dontcache.files; empty when not in it */
	_Atomic u32 known_drop;     /* as known_dirty, of its place in that queue */
	u64 drop_cursor; /* page at which the flusher goes on with what is to be dropped */
};

/* --- the two ledgers, as a policy reads them */

static inline u64 account_dirty(const struct policy *p, const struct ledger *l)
{
	return ledger_level(l, p->accounting == ACCOUNT_FOLIO ? LEVEL_FOLIO_DIRTY : LEVEL_DEBT);
}

/* Under page accounting Linux would still count flight by folios (reference 3.2). */
static inline u64 account_writeback(const struct policy *p, const struct ledger *l)
{
	return ledger_level(l, p->accounting == ACCOUNT_DEBT ? LEVEL_IN_FLIGHT
							     : LEVEL_FOLIO_WRITEBACK);
}

static inline u64 account_dirtied(const struct policy *p, const struct ledger *l)
{
	return ledger_total(l, p->accounting == ACCOUNT_FOLIO ? TOTAL_FOLIO_DIRTIED
							      : TOTAL_PAGES_DIRTIED);
}

static inline enum ledger_total account_written_total(const struct policy *p)
{
	return p->accounting == ACCOUNT_DEBT ? TOTAL_PAGES_WRITTEN : TOTAL_FOLIO_WRITTEN;
}

static inline u64 account_written(const struct policy *p, const struct ledger *l)
{
	return ledger_total(l, account_written_total(p));
}

/* --- wb.c */

int writeback_init(struct writeback *all, struct cache *cache, const struct policy *policy,
		   enum fs_kind fs, const struct vm_limits *vm);
void writeback_finish(struct writeback *all);
/* Puts other limits in force: the next look of each task and flusher is by them. */
void writeback_set_vm(struct writeback *all, const struct vm_limits *vm);
struct vm_limits writeback_vm(const struct writeback *all);

/* Adds a device and starts its flusher. 0 or -ENOMEM, -ENOSPC past WB_MAX. */
int wb_create(struct writeback *all, struct device *device, u32 read_ahead_kb, bool strict_limit,
	      struct wb **out);
/*
 * Sets the device's part of the limit, in 1/10000 %, and whether it is a limit of its own. -EINVAL:
 * more than 100 %, min above max, or the min_ratios of all devices come to 100 %.
 */
int wb_limit(struct wb *wb, bool strict_limit, u64 min_ratio, u64 max_ratio);
/* Ends the flusher after the slice at hand; nothing is written by itself any more. */
void wb_stop(struct wb *wb);
/* Only its flusher, if there is one: nobody but the caller takes inodes off its lists any more. */
void wb_stop_flusher(struct wb *wb);
/* Frees a stopped wb with nothing in flight; the last one created first. */
void wb_destroy(struct wb *wb);

/* Dirtyable memory and what follows from it (reference 4.1, 4.2). */
struct limits writeback_limits(struct writeback *all);
u64 writeback_dirty(const struct writeback *all);     /* NR_FILE_DIRTY, in the policy's ledger */
u64 writeback_in_flight(const struct writeback *all); /* NR_WRITEBACK, likewise */
/*
 * Notes that the moment is now, if it was not before; with what is in flight, if that was
 * compared with a limit. With the domain's lock held.
 */
void writeback_note(struct writeback *all, struct throttle_moment *moment, bool in_flight_too);

/* The device's part of a threshold (4.7); `dirty` is the number the caller compares. */
u64 wb_threshold(struct wb *wb, u64 thresh, u64 dirty);
/* Whether background write-out has something to do (6.3). */
bool wb_over_background(struct wb *wb);
/* The calling CPU enters what has become dirty or clean since the last call, of any CPU. */
void wb_count(struct wb *wb);
/* Pages that a batch of per-CPU counting has (WB_STAT_BATCH), and the slack of all CPUs. */
u64 wb_stat_batch(const struct writeback *all);
u64 wb_stat_error(const struct writeback *all);
/* What the flusher believes to be dirty on its device. */
u64 wb_dirty_seen(struct wb *wb);
/* For wb.c and tenant.c: a wb without a task, in no list; NULL: no memory. */
struct wb *wb_new(struct writeback *all, struct device *device);
void wb_free(struct wb *wb);
void wb_publish(struct wb *wb); /* into the list of all; with all->making held */
/* Updates the bandwidth estimate if 200 ms have passed (5.4 b). */
void wb_update_bandwidth(struct wb *wb);
/* Does the delayed update (5.4 c) if it is due, however short ago the last was; when it will be. */
u64 wb_delayed_update(struct wb *wb);
u64 wb_avg_bandwidth(struct wb *wb);

/* The wb that was made after `wb`, of a device or a tenant; NULL: it is the last. */
static inline struct wb *wb_after(const struct wb *wb)
{
	return atomic_load_explicit(&wb->next_wb, memory_order_acquire);
}
#define for_each_wb(i, all)                                                                     \
	for (struct wb * (i) = atomic_load_explicit(&(all)->first_wb, memory_order_acquire); i; \
	     (i) = wb_after(i))
/* As wb_threshold(), in the tenant's domain. */
u64 wb_tenant_threshold(struct wb *wb, u64 thresh, u64 dirty);

/* Locks the list_lock of the inode's home, and returns that. */
static inline struct wb *inode_lock_home(struct inode *inode)
{
	for (;;) {
		struct wb *wb = atomic_load_explicit(&inode->home, memory_order_acquire);

		spin_lock(&wb->list_lock);
		if (likely(wb == atomic_load_explicit(&inode->home, memory_order_relaxed)))
			return wb;
		spin_unlock(&wb->list_lock);
	}
}

extern const struct mapping_ops inode_mapping_ops;

/* --- throttle.c: balance_dirty_pages, reference section 5 */

/* Enters what a write dirtied on the account of the calling task. */
void throttle_charge(struct writeback *all, u32 pages);
/*
 * The poll before each step of a write to the inode: may sleep. With `nowait` -EAGAIN instead of a
 * sleep. Over the limit, and if what the inode has dirty is beyond hope (outage.c), its error.
 */
int throttle_poll(struct inode *inode, bool nowait);
/*
 * Whether the poll may be left out because the task has dirtied nothing since its last one. Real
 * world only: in the simulated one each poll counts as it does in Linux.
 */
bool throttle_owes_nothing(const struct wb *wb);
/* Before the first write: threads that end by themselves leave their unpaid pages to others. */
int throttle_init(void);
/* A task that dirtied pages ends. */
void throttle_task_exit(struct writeback *all);

/* --- queue.c: inodes on the lists of their wb */

/* A page of the inode became dirty. */
void inode_mark_dirty(struct inode *inode);
/* Takes the inode off all lists and waits until no flusher works on it. */
void inode_detach(struct inode *inode);
void wb_wake(struct wb *wb);
/* Makes the flusher look at its deadlines anew, not work. Callable from events, under locks. */
void wb_rearm(struct wb *wb);
/* When the flusher wakes by itself if its timer is set now; WORLD_NEVER if it never does. */
u64 wb_periodic_ns(const struct writeback *all);
/*
 * Something is on a list of its that was not. Sets the timer if it is not; true if wb_rearm() is to
 * be called once list_lock, which is held, is let go of.
 */
bool wb_arm(struct wb *wb);
/* False: its flusher is about to end, and does no more work. */
bool wb_queue_work(struct wb *wb, struct wb_work *work);
/*
 * Moves expired inodes to `io`: those dirtied at or before `cutoff` (jiffies). Returns how many.
 * list_lock held.
 */
u64 wb_queue_io(struct wb *wb, u64 cutoff);
/* Puts an inode where it belongs after a pass over it. list_lock held. */
struct pass;
void wb_requeue(struct wb *wb, struct inode *inode, const struct pass *pass, u64 cutoff);
/* The same after a pass over pages to be dropped: with others dirty too it keeps its place. */
void wb_recheck(struct wb *wb, struct inode *inode);

/* --- writeout.c: one pass over one file */

struct pass {
	bool sync;       /* wait for pages in flight, write all that is tagged */
	bool background; /* nobody waits for it */
	bool tagged;     /* only what was dirty when the pass began */
	bool cyclic;     /* from where the last pass stopped to the end of the file */
	bool paced;      /* the flusher's own: see depth.c */
	bool drop;       /* only pages that go once they are written; `first` is moved along */
	u64 first, last; /* pages, when not cyclic */
	s64 budget;      /* folio pages left to take; SLICE_UNLIMITED */
	struct wb *wb;   /* at work; NULL: the inode's home */
	bool only;       /* what is dirty of one tenant's; see stake.c */
	u32 tenant;
	bool missed;       /* out: something was left because it was in flight */
	u64 stopped_at;    /* out: the page it came to */
	struct vote *vote; /* whose pages were written, or NULL; see ownership.c */
};

/* Sends the dirty pages of the pass to the device; does not wait for them. `runs`: scratch. */
void inode_write_pages(struct inode *inode, struct pass *pass, struct block_run *runs);
/* Waits until no page in [first, last] that is in flight now still is. */
void inode_wait_pages(struct inode *inode, u64 first, u64 last);
/* With no page in flight: waits until nobody who brought some down looks at the inode any more. */
void inode_wait_landings(struct inode *inode);
/*
 * Writes what is dirty in [first, last] pages and waits for it: 0 or the error of the write-out,
 * which stays until the data is safe.
 */
int inode_sync_range(struct inode *inode, u64 first, u64 last);

/* --- dontcache.c */

void dontcache_init(struct dontcache *d);
/* Marked pages that are dirty, in the unit in which the policy counts dirty pages. */
u64 dontcache_dirty(const struct policy *p, const struct ledger *l);
/*
 * own: before a DONTCACHE write to so many pages, waits for room; what it returns is to be
 * given back when the write is over.
 */
u64 dontcache_enter(struct inode *inode, u64 first, u64 pages);
void dontcache_leave(struct wb *wb, u64 promised);
/* A DONTCACHE write is over: policies kick and own. */
void dontcache_wrote(struct inode *inode);
/* kick: takes the request back; how many pages are to be written for it. */
s64 dontcache_take_kick(struct wb *wb);
/* own: writes what is in the queue; pages taken. */
s64 dontcache_write_own(struct wb *wb);
/* own: pages that may be dirty or in flight; bytes in flight while nobody reads. */
u64 dontcache_bound(struct wb *wb);
u64 dontcache_in_flight_max(struct wb *wb);
/* own: I/O of such a pass starts or has ended. */
void dontcache_launched(struct wb *wb, u32 pages);
void dontcache_landed(struct wb *wb, u32 pages);
/* Pages landed that should have gone, but somebody held them. */
void dontcache_missed(struct inode *inode);
/* Takes the inode out of the queue. list_lock held. */
void dontcache_dequeue(struct inode *inode);

/* --- depth.c */

#define DEPTH_IO_BYTES (1u << 20) /* an I/O whose place in flight is limited is not larger */

void depth_init(struct depth *d);
/*
 * Before the flusher starts an I/O of write-out, and when that has ended. May park; also while
 * nobody reads, if `quiet` bytes are in flight.
 */
void depth_enter(struct wb *wb, u64 bytes, u64 quiet);
void depth_leave(struct wb *wb, u64 bytes);
/* Whether somebody read from the device in the last window. Anybody may ask. */
bool depth_reading(const struct wb *wb);
/* The limit after a window in which reads took `mean`, and `base` without write-out. */
u64 depth_next(u64 limit, u64 in_flight_bytes, u64 mean, u64 base);

/* --- retry.c: pauses after failed write-out */

/* An I/O of write-out failed; was done. */
void retry_note_failure(struct inode *inode);
void retry_note_success(struct inode *inode);
bool retry_is_pausing(const struct inode *inode);
/* Whether the flusher may write the inode of its own accord. */
bool retry_may_be_tried(const struct inode *inode);
/* A pause is over: the flusher tries again, and then sets its alarm for those that are not. */
bool retry_is_due(struct wb *wb);
void retry_arm(struct wb *wb);

/* --- flusher.c */

void flusher_run(void *wb); /* the task */
/*
 * Starts writing all that is dirty now on all devices, and waits until it has been submitted.
 * False: inodes may have been passed over, for they changed their flushers, or theirs is ending.
 */
bool writeback_sync(struct writeback *all);

#endif
