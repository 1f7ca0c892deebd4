/* SPDX-License-Identifier: MIT */
/* One clone of a job: its files, where it stands, and what came out. Inside src/job/ only. */
#ifndef SLUICE_JOB_CLONE_H
#define SLUICE_JOB_CLONE_H

#include "job/distribution.h"
#include "job/jobs.h"
#include "job/visited.h"
#include "world/lock.h"

/* Random blocks of one file. */
struct blocks {
	u64 count;
	bool once;                /* each block once a pass, ... */
	struct permute order;     /* in this order, ... */
	struct visited visited;   /* or as they are drawn, if I/Os take several of them */
	u64 unit_bytes;           /* of a visited block; 0: they are not kept */
	struct distribution skew; /* if not once */
	struct rng rng;
	u64 seed; /* of the next pass */
};

struct clone_file {
	struct file_plan *plan;
	struct job_file *handle; /* NULL until its first I/O of a pass */
	bool done;               /* in this pass */
	bool idle;               /* done with nothing since the pass began */
	/* All from plan->start: where the current zone begins (0 without zones), behind the
	 * last I/O of each direction, and at its start. */
	u64 zone, position[JOB_DIRS], last[JOB_DIRS];
	struct blocks *blocks;          /* random: one, or one for reads and one for writes */
	u64 unsynced_from, unsynced_to; /* written since the last sync_file_range */
};

enum io_kind {
	IO_READ = JOB_DIR_READ,
	IO_WRITE = JOB_DIR_WRITE,
	IO_FSYNC,
	IO_FDATASYNC,
	IO_SYNC_RANGE,
};

static inline bool io_is_sync(enum io_kind kind)
{
	return kind >= IO_FSYNC;
}

struct io {
	enum io_kind kind;
	struct clone_file *file;
	u64 offset, sequence;
	size_t length;
	u32 depth; /* I/Os in flight with it */
};

/* What was done in each window of half a second since the start of the run. */
struct series {
	struct window {
		u64 ios[2], bytes[2]; /* reads, writes */
	} * window;
	size_t count, room;
};

/* A line of a log: one I/O, or those of a span of time. */
struct log_entry {
	u64 time_ms, latency_ns;
	u64 ios, bytes, offset;
	u32 span_ms; /* 0: one I/O */
	u32 dir;
};

/* What was written and is to be read back. */
struct written {
	struct write_record {
		const struct clone_file *file;
		u64 offset, length, sequence;
		bool damaged; /* a later write took a part of it */
	} * record;
	size_t count, room;
};

struct job_log {
	const struct job *job;
	u32 number; /* of the clone, among all, from 1 */
	struct log_entry *entry;
	size_t count, room;
	/* the span at hand, of reads and writes */
	struct log_entry open[2];
	u64 span_start_ms;
};

/* Clones that share their I/Os by weight: fio's flow. */
struct flow {
	u64 id;
	struct mutex lock;    /* protects weight and ios */
	u64 weight, ios;      /* of the clones that run; fio counts from 1 */
	_Atomic u32 progress; /* changes when ios or weight do: those held back park on it */
};

struct run;

struct clone {
	struct run *run;
	const struct job *job;
	u32 number; /* among the clones of its job */
	u32 group;  /* of reporting */
	bool waits; /* for all clones before it: stonewall */
	u64 seed;
	u64 delay_ns; /* after the start of the run */
	struct file_plans plans;
	struct clone_file *files;
	struct blocks *blocks; /* of all files */
	struct flow *flow;     /* or NULL */
	_Atomic u32 terminate; /* 1: somebody else ended it; its sleeps park on this */

	/* All below changes under `lock` where several tasks issue for the clone. */
	struct mutex lock;
	struct cond slot; /* a slot of the queue may be free: for latency_target */
	bool shared;      /* by several tasks: the lock is needed */
	bool stop;        /* issue no more: an error, or the end */
	bool ramping;
	u64 start_ns;   /* when it may begin */
	u64 epoch_ns;   /* from where its rate and runtime count */
	u64 counted_ns; /* from where its figures count */
	u64 ended_ns;
	u64 limit_bytes; /* of all passes together */
	u64 issued_ios[JOB_DIRS], issued_bytes[JOB_DIRS];
	u64 rate_bps[JOB_DIRS];       /* bytes a second, 0: as fast as can be */
	u64 rate_next_us[JOB_DIRS];   /* the next I/O is due so long after epoch */
	u64 rate_shift_us;            /* what thinktime took, if it is not to be caught up on */
	u64 rate_random_us[JOB_DIRS]; /* sum of the gaps of a Poisson process */
	u64 sequence;
	u64 think_count, think_since_ns;
	u64 flow_ios;
	u64 burst_left;   /* I/Os until a random job draws again */
	u64 zone_bytes;   /* transferred in the current zone */
	u64 service_left; /* I/Os that the file of the last I/O gets yet */
	u32 next_file, current_file, done_files, open_files, passes;
	bool pass_issued, last_was_sync, rewinds;
	bool verifies_passes; /* what a pass wrote is read back before the next one */
	enum job_dir direction;
	struct rng mix; /* draws directions, and files where they are drawn */
	struct rng sizes, arrivals, randomness;
	struct distribution file_skew;
	u32 in_flight;
	/* latency_target: the depth now, and what is known of it (fio's search) */
	u32 depth, depth_low, depth_high, depth_steady;
	u64 depth_since_ns, depth_ios, depth_late;
	bool depth_found;
	u64 *punted; /* when each place in the queue was taken; NULL: see punted.c */
	u64 punted_next;

	int error;
	char error_text[160];
	/* those the job went on after */
	u64 total_errors;
	int first_error;
	char first_error_text[160];
	struct job_dir_stats dir[JOB_DIRS];
	struct hist sync_lat;
	u64 sync_ios;
	struct job_levels levels;
	struct series series;
	struct written written;
	u64 verify_ns, verify_errors; /* time of reading back, blocks that differed */
	u64 between_ns;               /* how much of it lies between the other I/Os */
	u64 issued_ns;                /* when the last I/O but those was over */
	char verify_text[160];        /* of the first difference */
	struct job_log log;

	struct task *task;
	_Atomic u32 state; /* enum clone_state */
};

enum clone_state { CLONE_WAITING, CLONE_RUNNING, CLONE_ENDED, CLONE_JOINED };

struct run {
	const struct jobs *jobs;
	struct job_engine *engine;
	const struct jobs_options *options;
	struct clone *clones;
	size_t clone_count;
	struct flow *flows;
	size_t flow_count;
	bool exitall;       /* some job said exitall, or exitall_on_error */
	bool interruptible; /* clones may be ended from outside: their sleeps look out for it */
	u64 genesis_ns;
	_Atomic u32 ended;    /* what *changes is where nobody may stop the run */
	_Atomic u32 *changes; /* counts clones that ended, and so on; the runner parks on it */
	_Atomic u32 finished; /* 1 when all have: the progress task parks on it */
};

/* run.c: somebody asked to end it all. */
bool run_is_stopped(const struct run *run);
/* Something changed that the runner should look at. */
void run_changed(struct run *run);

/* clone.c: makes clone `number` of j, with its files planned and made. Errors that concern
 * this clone alone are left in it; -ENOMEM otherwise. */
int clone_init(struct clone *c, struct run *run, const struct job *j, u32 number, u64 id);
void clone_finish(struct clone *c);
/* The body of a clone's task. */
void clone_main(void *clone);
/* Notes the first error and stops the clone. */
void clone_fail(struct clone *c, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* True if the job says that it goes on after such an error; then it is counted. */
bool clone_goes_on(struct clone *c, enum job_error_kind kind, int error, const char *text);

/* setup.c: makes the files a clone expects, as fio does before it starts anything. */
int clone_make_files(struct clone *c);
/* Opens a file for its first I/O of a pass, drops it from the cache and gives advice. */
int clone_open_file(struct clone *c, struct clone_file *f);
void clone_drop_cached(struct clone *c, struct clone_file *f);
void clone_close_file(struct clone *c, struct clone_file *f);
void clone_close_files(struct clone *c);
void clone_unlink_files(struct clone *c);
/* Reads all files into the cache. */
void clone_pre_read(struct clone *c);
u64 run_size_of(void *run, const char *path);

/* generate.c: the next I/O. 1, or 0 at the end, or when the clone failed. May sleep. */
int clone_next(struct clone *c, struct io *io);
/* True if all files are done and there is another pass, which then begins. clone_next() asks
 * itself, but for a clone that verifies its passes. */
bool clone_next_pass(struct clone *c);

/* pace.c: when. Sleeps end early when the clone is terminated. */
void clone_sleep_until(struct clone *c, u64 when);
/* Ends it from outside. */
void clone_terminate(struct clone *c);
/* The world time at which its runtime is over, or WORLD_NEVER. */
u64 clone_deadline(const struct clone *c);
/* When the next I/O is due, after the epoch; 0: now. May change its direction. */
u64 clone_due_ns(const struct clone *c, enum job_dir *dir, u64 now);
/* Waits until then. False when the time is over first. */
bool clone_wait_for_rate(struct clone *c, u64 due_ns);
/* An I/O was issued: when is the next one due? */
void clone_pace(struct clone *c, enum job_dir dir);
void clone_think_if_due(struct clone *c);
/* Time passed that is not to be caught up on. */
void clone_shift_rates(struct clone *c, u64 ns);
/* Holds the clone back while others of its flow are behind. False: time to look around. */
bool clone_flows(struct clone *c);
void clone_join_flow(struct clone *c);
void clone_leave_flow(struct clone *c);
/* latency_target: an I/O took so long; the depth may change. */
void clone_depth_init(struct clone *c);
void clone_depth_learn(struct clone *c, u64 latency_ns, u64 now);

/* blocks.c */
void blocks_init(struct blocks *b, const struct job_options *o, enum job_dir dir, u64 count,
		 u64 seed);
/* Then, if I/Os are of several sizes: 0 or -ENOMEM. */
int blocks_remember(struct blocks *b, const struct job_options *o, enum job_dir dir);
void blocks_finish(struct blocks *b);
/* So much of an I/O at a position can be done: up to what was visited before. Then it is visited,
 * too. */
u64 blocks_visit(struct blocks *b, u64 position, u64 length);
/* 0, or -ENODATA at the end of a pass. */
int blocks_next(struct blocks *b, u64 *block);
void blocks_restart(struct blocks *b);

/* samples.c: an I/O is over. Memory that is short costs samples, not the run. */
void series_add(struct series *s, u64 since_start_ns, enum job_dir dir, u64 bytes);
void series_merge(struct series *into, const struct series *from);
/* Over the windows that lie whole between two times. */
void series_samples(const struct series *s, enum job_dir dir, u64 from_ns, u64 to_ns,
		    struct job_samples *bw, struct job_samples *iops);
void levels_add(struct job_levels *l, u32 depth, u64 latency_ns);
void levels_merge(struct job_levels *into, const struct job_levels *from);

/* log.c */
bool log_wanted(const struct job_options *o);
void log_add(struct job_log *l, const struct io *io, u64 bytes, u64 now_ns, u64 latency_ns);
void log_close(struct job_log *l, u64 now_ns);

/* stats.c */
int run_results(const struct run *run, struct job_results *out);
void clone_forget_figures(struct clone *c, u64 now);

/* check.c: 0, or -ENOTSUP with `e` set. */
int check_engine(const struct jobs *jobs, const struct job *j, struct job_engine *engine,
		 struct err *e);

/* A number that depends on all bits of both. */
static inline u64 seed_mix(u64 a, u64 b)
{
	u64 x = a + 0x9e3779b97f4a7c15ull * (b + 1);

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* --- punted.c: buffered writes by io_uring, simulated */

/* Whether the clone's writes are done one at a time, by one task for all that are in flight. */
bool punted_wanted(const struct clone *c);
void punted_begin(struct clone *c); /* c->punted stays NULL without memory */
/* A write is done: when it was submitted. */
u64 punted_took(struct clone *c, u64 end_ns);
void punted_end(struct clone *c);

#endif
