/* SPDX-License-Identifier: MIT */
/*
 * The table of options. A line gives an option's name, type and field; what else it
 * has (alias, default, range, choices, a function of its own) follows by name. The
 * parser asks options_find(), reads the value by the type, and so never changes
 * when a line is added. Defaults go through the same reading as what people write.
 *
 * The second half holds options that are read and checked, but change nothing here;
 * whoever uses one is told once.
 */
#include "job/options.h"

static const struct option_choice rw_choices[] = {
	{ "read", RW_READ },
	{ "write", RW_WRITE },
	{ "randread", RW_READ | RW_RANDOM },
	{ "randwrite", RW_WRITE | RW_RANDOM },
	{ "rw", RW_READ | RW_WRITE },
	{ "readwrite", RW_READ | RW_WRITE },
	{ "randrw", RW_READ | RW_WRITE | RW_RANDOM },
	{ "trim", -1 },
	{ "randtrim", -1 },
	{ "trimwrite", -1 },
	{ "randtrimwrite", -1 },
	{ NULL, 0 },
};

static const struct option_choice sequencer_choices[] = {
	{ "sequential", 0 },
	{ "identical", 1 },
	{ NULL, 0 },
};

static const struct option_choice ioengine_choices[] = {
	{ "psync", IO_SYNC },
	{ "sync", IO_SYNC },
	{ "vsync", IO_SYNC },
	{ "pvsync", IO_SYNC },
	{ "pvsync2", IO_SYNC },
	{ "libaio", IO_LIBAIO },
	{ "io_uring", IO_URING },
	{ "posixaio", IO_POSIXAIO },
	{ "mmap", IO_MMAP },
	{ "null", IO_NULL },
	{ "splice", -1 },
	{ "sg", -1 },
	{ "net", -1 },
	{ "netsplice", -1 },
	{ "cpuio", -1 },
	{ "rbd", -1 },
	{ "rados", -1 },
	{ "rdma", -1 },
	{ "e4defrag", -1 },
	{ "falloc", -1 },
	{ "ftruncate", -1 },
	{ "gfapi", -1 },
	{ "gfapi_async", -1 },
	{ "pmemblk", -1 },
	{ "dev-dax", -1 },
	{ "filecreate", -1 },
	{ "filestat", -1 },
	{ "filedelete", -1 },
	{ "external", -1 },
	{ "libpmem", -1 },
	{ "nbd", -1 },
	{ "nfs", -1 },
	{ "http", -1 },
	{ "io_uring_cmd", -1 },
	{ "xnvme", -1 },
	{ "libblkio", -1 },
	{ "libhdfs", -1 },
	{ "solarisaio", -1 },
	{ "windowsaio", -1 },
	{ "exec", -1 },
	{ NULL, 0 },
};

static const struct option_choice hint_choices[] = {
	{ "0", HINT_NONE },
	{ "1", HINT_PATTERN },
	{ "none", HINT_NONE },
	{ "random", HINT_RANDOM },
	{ "sequential", HINT_SEQUENTIAL },
	{ NULL, 0 },
};

static const struct option_choice sync_choices[] = {
	{ "none", WRITE_SYNC_NONE }, { "0", WRITE_SYNC_NONE },     { "sync", WRITE_SYNC_ALL },
	{ "1", WRITE_SYNC_ALL },     { "dsync", WRITE_SYNC_DATA }, { NULL, 0 },
};

static const struct option_choice service_choices[] = {
	{ "roundrobin", SERVICE_ROUNDROBIN }, { "sequential", SERVICE_SEQUENTIAL },
	{ "random", SERVICE_RANDOM },         { "zipf", SERVICE_ZIPF },
	{ "pareto", SERVICE_PARETO },         { "normal", SERVICE_NORMAL },
	{ "gauss", SERVICE_NORMAL },          { NULL, 0 },
};

static const struct option_choice alloc_choices[] = {
	{ "none", ALLOC_NONE },         { "0", ALLOC_NONE },  { "native", ALLOC_NATIVE },
	{ "posix", ALLOC_POSIX },       { "1", ALLOC_POSIX }, { "keep", ALLOC_KEEP },
	{ "truncate", ALLOC_TRUNCATE }, { NULL, 0 },
};

#define AFTER_READ   (1 << ERROR_READ)
#define AFTER_WRITE  (1 << ERROR_WRITE)
#define AFTER_VERIFY (1 << ERROR_VERIFY)
static const struct option_choice continue_choices[] = {
	{ "none", 0 },
	{ "read", AFTER_READ },
	{ "write", AFTER_WRITE },
	{ "io", AFTER_READ | AFTER_WRITE },
	{ "verify", AFTER_VERIFY },
	{ "all", AFTER_READ | AFTER_WRITE | AFTER_VERIFY },
	{ "0", 0 },
	{ "1", AFTER_READ | AFTER_WRITE | AFTER_VERIFY },
	{ NULL, 0 },
};

static const struct option_choice exit_choices[] = {
	{ "group", EXIT_GROUP },
	{ "stonewall", EXIT_STONEWALL },
	{ "all", EXIT_EVERYTHING },
	{ NULL, 0 },
};

static const struct option_choice process_choices[] = {
	{ "linear", 0 },
	{ "poisson", 1 },
	{ NULL, 0 },
};

static const struct option_choice think_choices[] = {
	{ "complete", 0 },
	{ "issue", 1 },
	{ NULL, 0 },
};

static const struct option_choice zone_choices[] = {
	{ "none", ZONE_NONE },
	{ "strided", ZONE_STRIDED },
	{ "zbd", -1 },
	{ NULL, 0 },
};

static const struct option_choice verify_choices[] = {
	{ "0", VERIFY_NONE },        { "md5", VERIFY_SUMS },
	{ "crc64", VERIFY_SUMS },    { "crc32", VERIFY_SUMS },
	{ "crc32c", VERIFY_SUMS },   { "crc32c-intel", VERIFY_SUMS },
	{ "crc16", VERIFY_SUMS },    { "crc7", VERIFY_SUMS },
	{ "sha1", VERIFY_SUMS },     { "sha256", VERIFY_SUMS },
	{ "sha512", VERIFY_SUMS },   { "sha3-224", VERIFY_SUMS },
	{ "sha3-256", VERIFY_SUMS }, { "sha3-384", VERIFY_SUMS },
	{ "sha3-512", VERIFY_SUMS }, { "xxhash", VERIFY_SUMS },
	{ "meta", VERIFY_SUMS },     { "pattern", VERIFY_PATTERN },
	{ "null", VERIFY_NULL },     { NULL, 0 },
};

static const struct option_choice kilo_choices[] = {
	{ "1024", 1024 },
	{ "1000", 1000 },
	{ NULL, 0 },
};

static const struct option_choice generator_choices[] = {
	{ "tausworthe", 0 },
	{ "lfsr", 1 },
	{ "tausworthe64", 2 },
	{ NULL, 0 },
};

#define OPTION(name_, type_, field_, help_, ...)                                          \
	{                                                                                 \
		.name = name_, .type = OPTION_##type_,                                    \
		.field = offsetof(struct job_options, field_), .help = help_, __VA_ARGS__ \
	}
#define OWN(name_, function_, help_, ...)                                                       \
	{                                                                                       \
		.name = name_, .type = OPTION_OWN, .own = function_, .help = help_, __VA_ARGS__ \
	}
#define NOTHING(name_, type_, why_, ...)                                            \
	{                                                                           \
		.name = name_, .type = OPTION_##type_,                              \
		.field = offsetof(struct job_options, unused), .help = "no effect", \
		.no_effect = why_, __VA_ARGS__                                      \
	}

/* clang-format off */
const struct option options_table[] = {
	OPTION("name", TEXT, name, "name of the job, instead of its section's"),
	OPTION("description", TEXT, description, "what the job is for"),
	OPTION("cgroup", TEXT, cgroup, "tenant that the job's tasks act for"),
	OPTION("kb_base", CHOICE, kb_base, "what k means in sizes",
	       .normal = "1024", .choices = kilo_choices),

	OPTION("filename", TEXT, filename,
	       "files of the job, separated by colons, shared by its clones"),
	OPTION("filename_format", TEXT, filename_format,
	       "how files are named: $jobname, $jobnum, $filenum"),
	OPTION("directory", TEXT, directory, "where the files are"),
	OPTION("nrfiles", COUNT, nrfiles, "number of files of each clone",
	       .alias = "nr_files", .normal = "1", .min = 1, .max = 1 << 20),
	OPTION("openfiles", COUNT, openfiles, "files to keep open at a time; 0: all"),
	OPTION("file_service_type", CHOICE, file_service, "which file the next I/O goes to",
	       .normal = "roundrobin", .choices = service_choices, .own = set_service_suffix),
	OPTION("unlink", BOOL, unlink, "remove the files when the job is done"),
	OPTION("unlink_each_loop", BOOL, unlink_each_loop, "remove the files after each loop"),
	OPTION("pre_read", BOOL, pre_read, "read the files before the job begins"),
	OPTION("fallocate", CHOICE, fallocate, "how space is reserved for new files",
	       .normal = "native", .choices = alloc_choices),

	OPTION("rw", CHOICE, rw, "what the job does",
	       .alias = "readwrite", .normal = "read", .choices = rw_choices,
	       .own = set_rw_suffix),
	OPTION("rw_sequencer", CHOICE, rw_identical, "what rw=rand...:N does between draws",
	       .choices = sequencer_choices),
	OPTION("bs", BYTES_DIR, bs_bytes, "bytes of one I/O: reads,writes,trims",
	       .alias = "blocksize", .normal = "4k", .min = 1, .max = 1 << 30),
	OWN("bsrange", set_bsrange, "smallest and largest I/O: 1k-4k[,8k-64k]",
	    .alias = "blocksize_range"),
	OWN("bssplit", set_bssplit, "sizes of I/Os with their shares: 4k/60:64k/40"),
	OPTION("bs_unaligned", FLAG, bs_unaligned, "sizes of bsrange need no common factor",
	       .alias = "blocksize_unaligned"),
	OPTION("ba", BYTES_DIR, ba_bytes, "random offsets are multiples of this",
	       .alias = "blockalign", .min = 1, .max = 1 << 30),
	OPTION("size", AMOUNT, size, "bytes of all files of a clone"),
	OWN("filesize", set_filesize, "bytes of each file, or a range of them"),
	OPTION("io_size", AMOUNT, io_size, "bytes to read and write, if not size",
	       .alias = "io_limit"),
	OPTION("fill_device", BOOL, fill_device, "write until there is no space: no error then",
	       .alias = "fill_fs"),
	OPTION("offset", AMOUNT, offset, "where in each file to begin", .alias = "fileoffset"),
	OPTION("offset_align", BYTES, offset_align_bytes,
	       "an offset in percent is rounded up to a multiple of this", .max = 1ull << 62),
	OPTION("offset_increment", AMOUNT, offset_increment,
	       "how much further each clone begins"),
	OPTION("number_ios", COUNT, number_ios, "stop after so many I/Os"),
	OPTION("loops", COUNT, loops, "how often to do it all", .normal = "1", .max = 1 << 30),
	OPTION("zonemode", CHOICE, zonemode, "whether zonesize and zoneskip count",
	       .choices = zone_choices),
	OPTION("zonesize", BYTES, zonesize_bytes, "bytes to transfer before skipping",
	       .max = 1ull << 62),
	OPTION("zonerange", BYTES, zonerange_bytes, "bytes of a zone", .max = 1ull << 62),
	OPTION("zoneskip", BYTES, zoneskip_bytes, "bytes to skip after a zone", .max = 1ull << 62),
	OPTION("overwrite", BOOL, overwrite, "lay files out before writing to them"),
	OPTION("create_on_open", BOOL, create_on_open,
	       "create files as they are opened, not before"),
	OPTION("create_only", BOOL, create_only, "make the files, and nothing else"),

	OPTION("ioengine", CHOICE, ioengine, "how I/Os are issued",
	       .normal = "psync", .choices = ioengine_choices),
	OPTION("iodepth", COUNT, iodepth, "I/Os in flight, for libaio, io_uring and posixaio",
	       .normal = "1", .min = 1, .max = 1 << 16),
	OPTION("direct", BOOL, direct, "past the page cache"),
	OPTION("buffered", BOOL, direct, "through the page cache", .invert = true),
	OPTION("uncached", BOOL, uncached, "leave nothing in the page cache (DONTCACHE)"),
	OPTION("sync", CHOICE, sync, "each write returns when it is on the device",
	       .normal = "none", .choices = sync_choices),
	OPTION("invalidate", BOOL, invalidate, "drop the files from the cache first",
	       .normal = "1"),
	OPTION("fadvise_hint", CHOICE, fadvise_hint, "tell the cache the access pattern",
	       .normal = "1", .choices = hint_choices),
	OPTION("fsync", COUNT, fsync, "fsync after every so many writes"),
	OPTION("fdatasync", COUNT, fdatasync, "fdatasync after every so many writes"),
	OWN("sync_file_range", set_sync_range,
	    "sync_file_range after every so many writes: wait_before,write,wait_after:N"),
	OPTION("end_fsync", BOOL, end_fsync, "fsync the files at the end"),
	OPTION("fsync_on_close", BOOL, fsync_on_close, "fsync files as they are closed"),

	OPTION("rate", BYTES_DIR, rate_bytes, "bytes a second of each clone: reads,writes,trims"),
	OPTION("rate_iops", COUNT_DIR, rate_iops,
	       "I/Os a second of each clone: reads,writes,trims"),
	OPTION("rate_process", CHOICE, rate_process, "how I/Os of a rate are spread in time",
	       .normal = "linear", .choices = process_choices),
	OPTION("rate_ignore_thinktime", BOOL, rate_ignore_thinktime,
	       "do not catch up on what thinktime cost"),
	OPTION("thinktime", TIME, thinktime_ns, "pause between I/Os; a bare number is microseconds",
	       .bare_ns = NSEC_PER_USEC),
	OPTION("thinktime_spin", TIME, thinktime_spin_ns, "so much of the pause uses the CPU",
	       .bare_ns = NSEC_PER_USEC),
	OPTION("thinktime_blocks", COUNT, thinktime_blocks, "I/Os between two pauses",
	       .normal = "1"),
	OPTION("thinktime_blocks_type", CHOICE, thinktime_at_issue, "which I/Os are counted",
	       .normal = "complete", .choices = think_choices),
	OPTION("thinktime_iotime", TIME, thinktime_iotime_ns, "time between two pauses",
	       .bare_ns = NSEC_PER_SEC),
	OPTION("max_latency", TIME_DIR, max_latency_ns, "fail when an I/O takes longer",
	       .bare_ns = NSEC_PER_USEC),
	OPTION("latency_target", TIME, latency_target_ns, "find the depth with this latency",
	       .bare_ns = NSEC_PER_USEC),
	OPTION("latency_window", TIME, latency_window_ns, "how long each depth is tried",
	       .bare_ns = NSEC_PER_USEC),
	OWN("latency_percentile", set_latency_percentile,
	    "percentage of I/Os that must meet latency_target", .normal = "100"),
	OPTION("latency_run", BOOL, latency_run, "go on when the depth is found"),
	OPTION("runtime", TIME, runtime_ns, "stop after this time",
	       .alias = "timeout", .bare_ns = NSEC_PER_SEC),
	OPTION("time_based", FLAG, time_based, "go on until runtime is over"),
	OPTION("ramp_time", TIME, ramp_time_ns, "run so long before counting",
	       .bare_ns = NSEC_PER_SEC),
	OWN("startdelay", set_startdelay, "begin so long after the start of the run"),

	OPTION("rwmixread", COUNT, rwmixread, "percentage of reads", .normal = "50", .max = 100),
	OWN("rwmixwrite", set_rwmixwrite, "percentage of writes"),
	OPTION("percentage_random", COUNT_DIR, percentage_random,
	       "how many of a random job's offsets are", .normal = "100", .max = 100),
	OWN("random_distribution", set_spread, "how random offsets are spread",
	    .normal = "random"),
	OPTION("norandommap", FLAG, norandommap,
	       "random blocks may repeat before all were visited"),
	OPTION("randrepeat", BOOL, randrepeat, "the same random numbers each time", .normal = "1"),
	OPTION("allrandrepeat", BOOL, allrandrepeat, "as randrepeat"),
	OWN("randseed", set_randseed, "seed of the random numbers", .normal = "0x89"),

	OPTION("numjobs", COUNT, numjobs, "number of clones",
	       .normal = "1", .min = 1, .max = 1 << 16),
	OPTION("thread", FLAG, thread, "threads instead of processes"),
	OPTION("stonewall", FLAG, stonewall, "wait for all jobs before",
	       .alias = "wait_for_previous"),
	OPTION("wait_for", TEXT, wait_for, "wait for the job of this name"),
	OPTION("exitall", FLAG, exitall, "when one job ends, others do"),
	OPTION("exit_what", CHOICE, exit_what, "which jobs exitall ends",
	       .normal = "group", .choices = exit_choices),
	OPTION("exitall_on_error", FLAG, exitall_on_error, "when one job fails, others end"),
	OPTION("continue_on_error", CHOICE, continue_on_error, "go on after errors of I/Os",
	       .normal = "none", .choices = continue_choices),
	OWN("ignore_error", set_ignored_errors, "go on after these errors"),
	OPTION("flow", COUNT, flow, "share of the I/Os among jobs of one flow_id", .max = 1000),
	OPTION("flow_id", COUNT, flow_id, "which jobs share"),
	OPTION("flow_sleep", TIME, flow_sleep_ns, "how long to wait for the others",
	       .bare_ns = NSEC_PER_USEC),
	OPTION("new_group", FLAG, new_group, "begin a new reporting group"),
	OPTION("group_reporting", FLAG, group_reporting, "one result for the whole group"),

	OPTION("verify", CHOICE, verify, "check what was written",
	       .normal = "0", .choices = verify_choices, .own = set_verify_suffix),
	OPTION("do_verify", BOOL, do_verify, "read back and check after writing", .normal = "1"),
	OPTION("verify_interval", BYTES, verify_interval, "bytes under one check",
	       .min = 80, .max = 1 << 30),
	OWN("verify_pattern", set_verify_pattern, "what to write"),
	OPTION("verify_fatal", BOOL, verify_fatal, "stop at the first difference"),
	OPTION("verify_only", FLAG, verify_only, "write nothing, check what was written before"),
	OPTION("verify_backlog", COUNT, verify_backlog, "check after so many blocks"),
	OPTION("verify_backlog_batch", COUNT, verify_backlog_batch, "how many to check then"),

	OPTION("write_bw_log", TEXT_MAYBE, write_bw_log, "write a log of the bandwidth"),
	OPTION("write_iops_log", TEXT_MAYBE, write_iops_log, "write a log of the I/Os"),
	OPTION("write_lat_log", TEXT_MAYBE, write_lat_log, "write a log of the latencies"),
	OPTION("log_avg_msec", COUNT, log_avg_ms, "one line of a log for so many milliseconds"),
	OPTION("log_offset", BOOL, log_offset, "with offsets"),
	OPTION("log_max_value", BOOL, log_max_value, "the largest, not the mean"),
	OPTION("per_job_logs", BOOL, per_job_logs, "a file for each clone", .normal = "1"),
	OPTION("clat_percentiles", BOOL, clat_percentiles, "report percentiles of clat",
	       .normal = "1"),
	OPTION("lat_percentiles", BOOL, lat_percentiles, "report percentiles of lat instead"),
	OWN("percentile_list", set_percentiles, "which percentiles to report",
	    .normal = "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"),

	/* --- without effect */
#define STATISTICS "what is measured does not depend on it here"
#define CONTENTS   "data, where there is any, is pseudo-random"
#define PLACES     "tasks run on any CPU"
#define QUEUES     "I/Os are submitted and reaped one by one"
#define OUTPUT     "the report does not depend on it"
#define SCHEDULING "all jobs have the same priority"
#define SETUP      "files are laid out before the jobs begin"
#define MEMORY     "buffers are the engine's business"
#define VERIFYING  "it changes nothing about what is verified"
#define STEADY     "a job runs for its whole time"
#define REPLAYING  "no log of I/Os is replayed"
#define TRIMMING   "nothing is trimmed"
#define ZONES      "no device has zones"
	NOTHING("disk_util", BOOL, STATISTICS),
	NOTHING("gtod_reduce", BOOL, STATISTICS),
	NOTHING("gtod_cpu", COUNT, STATISTICS),
	NOTHING("disable_lat", BOOL, STATISTICS),
	NOTHING("disable_clat", BOOL, STATISTICS),
	NOTHING("disable_slat", BOOL, STATISTICS),
	NOTHING("disable_bw_measurement", BOOL, STATISTICS, .alias = "disable_bw"),
	NOTHING("clocksource", TEXT, STATISTICS),
	NOTHING("bwavgtime", COUNT, STATISTICS),
	NOTHING("iopsavgtime", COUNT, STATISTICS),
	NOTHING("slat_percentiles", BOOL, STATISTICS),
	NOTHING("stats", BOOL, OUTPUT),
	NOTHING("unified_rw_reporting", TEXT, OUTPUT),
	NOTHING("significant_figures", COUNT, OUTPUT, .min = 1, .max = 10),
	NOTHING("unit_base", TEXT, OUTPUT),
	NOTHING("log_entries", COUNT, OUTPUT),
	NOTHING("log_compression", TEXT, OUTPUT),
	NOTHING("log_store_compressed", BOOL, OUTPUT),
	NOTHING("log_unix_epoch", BOOL, OUTPUT),
	NOTHING("log_prio", BOOL, OUTPUT),
	NOTHING("log_hist_msec", COUNT, OUTPUT),
	NOTHING("log_hist_coarseness", COUNT, OUTPUT),
	NOTHING("write_hist_log", TEXT_MAYBE, OUTPUT),
	NOTHING("log_alternate_epoch", BOOL, OUTPUT),
	NOTHING("log_alternate_epoch_clock_id", COUNT, OUTPUT),
	NOTHING("log_compression_cpus", TEXT, OUTPUT),
	NOTHING("block_error_percentiles", BOOL, OUTPUT),
	NOTHING("error_dump", BOOL, OUTPUT),
	NOTHING("zero_buffers", FLAG, CONTENTS),
	NOTHING("refill_buffers", FLAG, CONTENTS),
	NOTHING("scramble_buffers", BOOL, CONTENTS),
	NOTHING("buffer_pattern", TEXT, CONTENTS),
	NOTHING("buffer_compress_percentage", COUNT, CONTENTS, .max = 100),
	NOTHING("buffer_compress_chunk", BYTES, CONTENTS),
	NOTHING("dedupe_percentage", COUNT, CONTENTS, .max = 100),
	NOTHING("dedupe_mode", TEXT, CONTENTS),
	NOTHING("dedupe_working_set_percentage", COUNT, CONTENTS, .max = 100),
	NOTHING("dedupe_global", BOOL, CONTENTS),
	NOTHING("iomem", TEXT, MEMORY, .alias = "mem"),
	NOTHING("iomem_align", BYTES, MEMORY, .alias = "mem_align"),
	NOTHING("hugepage-size", BYTES, MEMORY),
	NOTHING("lockmem", BYTES, MEMORY),
	NOTHING("cpus_allowed", TEXT, PLACES),
	NOTHING("cpus_allowed_policy", TEXT, PLACES),
	NOTHING("cpumask", COUNT, PLACES),
	NOTHING("numa_cpu_nodes", TEXT, PLACES),
	NOTHING("numa_mem_policy", TEXT, PLACES),
	NOTHING("nice", TEXT, SCHEDULING),
	NOTHING("prio", COUNT, SCHEDULING, .max = 7),
	NOTHING("prioclass", COUNT, SCHEDULING, .max = 3),
	NOTHING("cmdprio_percentage", TEXT, SCHEDULING),
	NOTHING("ioscheduler", TEXT, "the device keeps its own"),
	NOTHING("write_hint", TEXT, "the device is given no hints"),
	NOTHING("iodepth_batch", COUNT, QUEUES, .alias = "iodepth_batch_submit"),
	NOTHING("iodepth_batch_complete_min", COUNT, QUEUES, .alias = "iodepth_batch_complete"),
	NOTHING("iodepth_batch_complete_max", COUNT, QUEUES),
	NOTHING("iodepth_low", COUNT, QUEUES),
	NOTHING("io_submit_mode", TEXT, QUEUES),
	NOTHING("userspace_reap", FLAG, QUEUES),
	NOTHING("hipri", FLAG, QUEUES),
	NOTHING("hipri_percentage", COUNT, QUEUES, .max = 100),
	NOTHING("fixedbufs", FLAG, QUEUES),
	NOTHING("registerfiles", FLAG, QUEUES),
	NOTHING("nonvectored", FLAG, QUEUES),
	NOTHING("force_async", COUNT, QUEUES),
	NOTHING("sqthread_poll", FLAG, QUEUES),
	NOTHING("sqthread_poll_cpu", COUNT, QUEUES),
	NOTHING("create_serialize", BOOL, SETUP),
	NOTHING("create_fsync", BOOL, SETUP),
	NOTHING("unique_filename", BOOL, SETUP),
	NOTHING("allow_mounted_write", BOOL, SETUP),
	NOTHING("lockfile", TEXT, "files are not locked"),
	NOTHING("random_generator", CHOICE, "there is one generator, and it visits each block once",
		.choices = generator_choices),
	NOTHING("softrandommap", BOOL, "the map of visited blocks takes no memory"),
	NOTHING("write_barrier", COUNT, "no engine here has barriers"),
	NOTHING("verifysort", BOOL, VERIFYING),
	NOTHING("verifysort_nr", COUNT, VERIFYING),
	NOTHING("verify_dump", BOOL, VERIFYING),
	NOTHING("verify_async", COUNT, VERIFYING),
	NOTHING("verify_async_cpus", TEXT, VERIFYING),
	NOTHING("verify_offset", BYTES, VERIFYING),
	NOTHING("verify_state_save", BOOL, VERIFYING),
	NOTHING("verify_state_load", BOOL, VERIFYING),
	NOTHING("verify_write_sequence", BOOL, VERIFYING),
	NOTHING("experimental_verify", BOOL, VERIFYING),
	NOTHING("steadystate", TEXT, STEADY, .alias = "ss"),
	NOTHING("steadystate_duration", TEXT, STEADY, .alias = "ss_dur"),
	NOTHING("steadystate_ramp_time", TEXT, STEADY, .alias = "ss_ramp"),
	NOTHING("replay_align", TEXT, REPLAYING),
	NOTHING("replay_no_stall", TEXT, REPLAYING),
	NOTHING("replay_redirect", TEXT, REPLAYING),
	NOTHING("replay_scale", TEXT, REPLAYING),
	NOTHING("replay_skip", TEXT, REPLAYING),
	NOTHING("replay_time_scale", TEXT, REPLAYING),
	NOTHING("trim_backlog", TEXT, TRIMMING),
	NOTHING("trim_backlog_batch", TEXT, TRIMMING),
	NOTHING("trim_verify_zero", TEXT, TRIMMING),
	NOTHING("ignore_zone_limits", BOOL, ZONES),
	NOTHING("job_max_open_zones", TEXT, ZONES),
	NOTHING("max_open_zones", TEXT, ZONES),
	NOTHING("read_beyond_wp", BOOL, ZONES),
	NOTHING("zone_reset_frequency", TEXT, ZONES),
	NOTHING("zone_reset_threshold", TEXT, ZONES),
	NOTHING("zonecapacity", TEXT, ZONES),
	NOTHING("cgroup_nodelete", BOOL, "a cgroup is a tenant here"),
	NOTHING("cgroup_weight", TEXT, "a cgroup is a tenant here"),
	NOTHING("serialize_overlap", BOOL, "I/Os that overlap may be in flight together"),
	NOTHING("flow_watermark", TEXT, "fio has given it up"),
};
/* clang-format on */
const size_t options_count = ARRAY_SIZE(options_table);
_Static_assert(ARRAY_SIZE(options_table) <= OPTIONS_MAX, "room for every option");
