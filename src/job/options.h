/* SPDX-License-Identifier: MIT */
/*
 * The options of a job, and the table they come from. Everything the language
 * knows stands in that table: name and alias, how the value is written, its range,
 * its default (as a person would write it), the field it goes to, one line of
 * help. To teach the runner a new option is to add a field and a line.
 */
#ifndef SLUICE_JOB_OPTIONS_H
#define SLUICE_JOB_OPTIONS_H

#include "base/err.h"
#include "job/job.h"

enum job_rw { RW_READ = 1, RW_WRITE = 2, RW_RANDOM = 4 };

enum job_io_engine { IO_SYNC, IO_LIBAIO, IO_URING, IO_POSIXAIO, IO_MMAP, IO_NULL };

enum job_hint { HINT_NONE, HINT_PATTERN, HINT_RANDOM, HINT_SEQUENTIAL };

enum job_write_sync { WRITE_SYNC_NONE, WRITE_SYNC_DATA, WRITE_SYNC_ALL };

enum job_service {
	SERVICE_ROUNDROBIN,
	SERVICE_SEQUENTIAL,
	SERVICE_RANDOM,
	SERVICE_ZIPF,
	SERVICE_PARETO,
	SERVICE_NORMAL,
};

enum job_spread { SPREAD_UNIFORM, SPREAD_ZIPF, SPREAD_PARETO, SPREAD_NORMAL, SPREAD_ZONED };

enum job_alloc { ALLOC_NONE, ALLOC_NATIVE, ALLOC_POSIX, ALLOC_KEEP, ALLOC_TRUNCATE };

enum job_exit_what { EXIT_GROUP, EXIT_STONEWALL, EXIT_EVERYTHING };

enum job_verify { VERIFY_NONE, VERIFY_SUMS, VERIFY_PATTERN, VERIFY_NULL };

/* What an error was met in; continue_on_error is a set of these bits. */
enum job_error_kind { ERROR_READ, ERROR_WRITE, ERROR_VERIFY, ERROR_KINDS };

enum job_zone_mode { ZONE_UNSET, ZONE_NONE, ZONE_STRIDED };

#define ZONES_MAX       64
#define SPLITS_MAX      64
#define PERCENTILES_MAX 20
#define PATTERN_MAX     512
#define IGNORED_MAX     32

/* A size that may be written as a share of the file instead. */
struct amount {
	u64 bytes;
	u64 percent; /* 0: by bytes */
};

struct zone {
	u32 access_percent;
	u64 size; /* percent, or bytes if the zones are absolute */
};

struct zones {
	u32 count;
	struct zone zone[ZONES_MAX];
};

/* How random numbers are spread: fio's random_distribution, and file_service_type. */
struct spread {
	enum job_spread kind;
	double value;          /* zipf theta, pareto h, normal deviation in percent */
	double center;         /* where the middle of it all is, 0 to 1; negative: not given */
	bool absolute;         /* zones in bytes */
	struct zones zones[2]; /* of reads, of writes */
};

/* Block sizes with their shares in percent: bssplit. */
struct split {
	u64 bytes, percent;
};

struct splits {
	u32 count;
	struct split part[SPLITS_MAX];
};

struct percentiles {
	u32 count;
	double percent[PERCENTILES_MAX];
};

/* Bytes to fill blocks with, over and over; at the marked places stands the block's offset. */
struct pattern {
	u32 length;
	u8 byte[PATTERN_MAX];
	bool offset_at[PATTERN_MAX]; /* 8 bytes, little-endian, begin here */
};

/* Errors that continue_on_error goes on after; none: those fio takes, EIO and EILSEQ. */
struct ignored_errors {
	u32 count;
	int error[IGNORED_MAX];
};

struct job_options {
	const char *name, *description;
	const char *cgroup; /* the tenant that its tasks act for, or NULL */
	const char *filename, *filename_format, *directory;
	u64 kb_base;
	u64 rw;
	s64 rw_skip;                /* sequential: bytes between two blocks, negative: backwards */
	u64 rw_burst;               /* random: an offset is drawn once every so many I/Os */
	u64 rw_identical;           /* rw_burst repeats its offset instead of going on */
	u64 bs_bytes[JOB_DIRS];     /* smallest block */
	u64 bs_max_bytes[JOB_DIRS]; /* largest */
	u64 bsrange_min[JOB_DIRS], bsrange_max[JOB_DIRS];
	struct splits splits[JOB_DIRS];
	u64 ba_bytes[JOB_DIRS];
	bool bs_unaligned;
	struct amount size, offset, offset_increment, io_size;
	u64 filesize_bytes, filesize_max_bytes;
	u64 nrfiles, openfiles, numjobs, loops, iodepth, number_ios;
	u64 rate_bytes[JOB_DIRS], rate_iops[JOB_DIRS];
	u64 rate_process;
	u64 runtime_ns, ramp_time_ns, startdelay_ns, startdelay_max_ns;
	u64 thinktime_ns, thinktime_spin_ns, thinktime_iotime_ns;
	u64 thinktime_blocks, thinktime_at_issue;
	u64 max_latency_ns[JOB_DIRS];
	u64 latency_target_ns, latency_window_ns;
	struct percentiles latency_percentile;
	u64 ioengine, fadvise_hint, sync, file_service, file_service_nr, fallocate;
	struct spread file_spread;
	u64 fsync, fdatasync, sync_range, sync_range_flags;
	u64 rwmixread;
	u64 percentage_random[JOB_DIRS];
	u64 randseed;
	struct spread spread;
	u64 zonemode, zonesize_bytes, zonerange_bytes, zoneskip_bytes;
	u64 offset_align_bytes; /* 0: the smallest block */
	const char *wait_for;
	u64 exit_what;
	u64 flow, flow_id, flow_sleep_ns;
	u64 verify, verify_interval, verify_backlog, verify_backlog_batch;
	struct pattern verify_pattern;
	const char *write_bw_log, *write_iops_log, *write_lat_log; /* NULL: no log; "": unnamed */
	u64 log_avg_ms;
	struct percentiles percentiles;
	u64 continue_on_error; /* bit 1 << ERROR_READ, ... */
	struct ignored_errors ignored[ERROR_KINDS];
	u64 unused; /* where options go that have no effect */
	bool time_based, direct, invalidate, end_fsync, fsync_on_close, norandommap;
	bool randrepeat, allrandrepeat, stonewall, new_group, group_reporting;
	bool overwrite, create_on_open, create_only, thread, uncached, fill_device;
	bool unlink, unlink_each_loop, pre_read;
	bool rate_ignore_thinktime, latency_run, exitall, exitall_on_error;
	bool do_verify, verify_fatal, verify_only;
	bool log_offset, log_max_value, per_job_logs;
	bool clat_percentiles, lat_percentiles;
};

enum option_type {
	OPTION_TEXT,       /* const char * */
	OPTION_TEXT_MAYBE, /* const char *, "" if the option stands alone */
	OPTION_AMOUNT,     /* struct amount: "4k" or "20%" */
	OPTION_BYTES,      /* u64 */
	OPTION_BYTES_DIR,  /* u64[JOB_DIRS]: "read,write,trim" */
	OPTION_COUNT,      /* u64 */
	OPTION_COUNT_DIR,  /* u64[JOB_DIRS] */
	OPTION_TIME,       /* u64 nanoseconds; a bare number counts in `bare_ns` */
	OPTION_TIME_DIR,   /* u64[JOB_DIRS] */
	OPTION_BOOL,       /* bool, 0 or 1 */
	OPTION_FLAG,       /* bool, alone or with a number */
	OPTION_CHOICE,     /* u64, by name */
	OPTION_OWN,        /* by its own function */
};

struct option_choice {
	const char *name;
	s64 value; /* negative: fio's, but not supported here */
};

struct option {
	const char *name, *alias;
	enum option_type type;
	size_t field;
	const char *normal; /* the default, as text; NULL: zero */
	u64 min, max;       /* of counts and sizes; max 0: no bound */
	u64 bare_ns;
	bool invert;
	const struct option_choice *choices;
	/* NULL, or what is wrong with `value`; of a choice, with what follows its colon */
	const char *(*own)(struct job_options *o, const char *value);
	const char *help;
	const char *no_effect; /* not NULL: taken, but does nothing here, for this reason */
};

extern const struct option options_table[];
extern const size_t options_count;
#define OPTIONS_MAX 256 /* room for per-option arrays; checked against the table */

/* By name or alias; NULL if there is none. */
const struct option *options_find(const char *name);
/* True for an option of fio's own language that is not in the table. */
bool options_is_fios(const char *name);
/* The name in the table nearest to `name`, or NULL. */
const char *options_nearest(const char *name);
/* The longest name in the table that `name` begins with, or NULL: bs for bs_is_seq_rand. */
const char *options_related(const char *name);
/* What fio uses when nothing is said. */
void options_defaults(struct job_options *o);
/* `value` NULL: the option stands alone. Texts are kept by reference, not copied.
 * On failure `e` says what would be right. */
int options_set(struct job_options *o, const struct option *option, const char *value,
		const char *file, int line, struct err *e);

/* --- options_own.c: options with a syntax of their own */
const char *set_rw_suffix(struct job_options *o, const char *text);
const char *set_service_suffix(struct job_options *o, const char *text);
const char *set_rwmixwrite(struct job_options *o, const char *value);
const char *set_bsrange(struct job_options *o, const char *value);
const char *set_bssplit(struct job_options *o, const char *value);
const char *set_spread(struct job_options *o, const char *value);
const char *set_randseed(struct job_options *o, const char *value);
const char *set_filesize(struct job_options *o, const char *value);
const char *set_startdelay(struct job_options *o, const char *value);
const char *set_sync_range(struct job_options *o, const char *value);
const char *set_percentiles(struct job_options *o, const char *value);
const char *set_latency_percentile(struct job_options *o, const char *value);
const char *set_verify_pattern(struct job_options *o, const char *value);
const char *set_verify_suffix(struct job_options *o, const char *text);
/* --- options_errors.c */
const char *set_ignored_errors(struct job_options *o, const char *value);

#endif
