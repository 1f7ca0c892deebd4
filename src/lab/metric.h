/* SPDX-License-Identifier: MIT */
/*
 * What an experiment measures. One list names every figure, as it stands in JSON, in
 * [reference] and [tolerance] sections and in tables; all else loops over it.
 */
#ifndef SLUICE_LAB_METRIC_H
#define SLUICE_LAB_METRIC_H

#include "base/types.h"

/*	name, key, unit, what it is */
#define METRICS(X)                                                                                 \
	X(READ_IOPS, read_iops, RATE, "reads a second")                                            \
	X(READ_MIBS, read_mib_s, RATE, "MiB read a second")                                        \
	X(READ_MB, read_mb_per_s, RATE, "million bytes read a second")                             \
	X(READ_P50, read_p50_ms, MS, "median latency of a read")                                   \
	X(READ_P99, read_p99_ms, MS, "99th percentile of the latency of reads")                    \
	X(READ_P999, read_p999_ms, MS, "99.9th percentile of the latency of reads")                \
	X(READ_MAX, read_max_ms, MS, "longest read")                                               \
	X(READ_HITS, read_hit_percent, RATIO, "percent of what was read that came from the cache") \
	X(WRITE_IOPS, write_iops, RATE, "writes a second")                                         \
	X(WRITE_MIBS, write_mib_s, RATE, "MiB written a second")                                   \
	X(WRITE_MB, write_mb_per_s, RATE, "million bytes written a second")                        \
	X(WRITE_P50, write_p50_ms, MS, "median latency of a write")                                \
	X(WRITE_P99, write_p99_ms, MS, "99th percentile of the latency of writes")                 \
	X(WRITE_P999, write_p999_ms, MS, "99.9th percentile of the latency of writes")             \
	X(WRITE_MAX, write_max_ms, MS, "longest write")                                            \
	X(FSYNC_P99, fsync_p99_ms, MS, "99th percentile of the latency of fsyncs")                 \
	X(FSYNC_MAX, fsync_max_ms, MS, "longest fsync")                                            \
	X(SLEEP, throttle_sleep_s, SECONDS, "sleep of throttled writers, summed over them")        \
	X(MAX_DIRTY, max_dirty_bytes, BYTES, "most that was charged as dirty at once")             \
	X(MAX_DEBT, max_debt_bytes, BYTES, "most that had to be written at once")                  \
	X(MAX_PINNED, max_pinned_bytes, BYTES, "most that could not be reclaimed at once")         \
	X(MAX_DROP, max_dontcache_bytes, BYTES, "most that was dirty for DONTCACHE at once")       \
	X(CHARGED, pages_charged, COUNT, "pages charged as dirty")                                 \
	X(WRITTEN, pages_written, COUNT, "pages written to the device")                            \
	X(DEVICE_READS, device_reads, COUNT, "reads the device served")                            \
	X(DEVICE_WRITES, device_writes, COUNT, "writes the device served")                         \
	X(DEVICE_READ_BYTES, device_read_bytes, BYTES, "bytes read from the device")               \
	X(DEVICE_WRITE_BYTES, device_write_bytes, BYTES, "bytes written to the device")            \
	X(DEVICE_BUSY, device_busy_percent, RATIO, "time the busiest device had something to do")  \
	X(DEVICE_WRITES_4K, device_writes_4k, COUNT, "writes to a fuse device of up to 4 KiB")     \
	X(DEVICE_WRITES_8K, device_writes_8k, COUNT, "... of up to 8 KiB")                         \
	X(DEVICE_WRITES_16K, device_writes_16k, COUNT, "... of up to 16 KiB")                      \
	X(DEVICE_WRITES_32K, device_writes_32k, COUNT, "... of up to 32 KiB")                      \
	X(DEVICE_WRITES_64K, device_writes_64k, COUNT, "... of up to 64 KiB")                      \
	X(DEVICE_WRITES_128K, device_writes_128k, COUNT, "... of up to 128 KiB")                   \
	X(DEVICE_WRITES_256K, device_writes_256k, COUNT, "... of up to 256 KiB")                   \
	X(DEVICE_WRITES_512K, device_writes_512k, COUNT, "... of up to 512 KiB")                   \
	X(DEVICE_WRITES_1M, device_writes_1m, COUNT, "... of up to 1 MiB")                         \
	X(DEVICE_WRITES_LARGER, device_writes_larger, COUNT, "... and of more than that")          \
	X(WRITE_FACTOR, write_factor, RATIO, "bytes to write a byte that the jobs wrote")          \
	X(FIRST_THROTTLE, first_throttle_s, SECONDS, "when the first writer was put to sleep")     \
	X(BACKGROUND, background_s, SECONDS, "when dirty first passed the background threshold")   \
	X(LAST_WRITE, last_write_s, SECONDS, "when the last write of the jobs had returned")       \
	X(ENDED, ended_s, SECONDS, "when the last job had ended")                                  \
	X(CLOSE, close_s, SECONDS, "time a tenant took to go away")                                \
	X(CLOSE_STEP, close_step_ms, MS, "longest step of that")                                   \
	X(PACE, first_pace_kb, RATIO, "KiB a second that the throttle first allowed a writer")     \
	X(PACE_DIRTY, first_pace_dirty_bytes, BYTES, "dirty on the writer's device at that moment")

enum metric {
#define METRIC_ENUM(name, key, unit, text) METRIC_##name,
	METRICS(METRIC_ENUM)
#undef METRIC_ENUM
		METRIC_MAX
};

enum metric_unit { UNIT_RATE, UNIT_MS, UNIT_SECONDS, UNIT_BYTES, UNIT_COUNT, UNIT_RATIO };

/* ABSENT: not a question here; NEVER: it did not happen (null in JSON). */
enum metric_state { METRIC_ABSENT, METRIC_NEVER, METRIC_KNOWN };

struct metrics {
	double value[METRIC_MAX];
	enum metric_state state[METRIC_MAX];
};

const char *metric_key(enum metric m);
enum metric_unit metric_unit(enum metric m);
const char *metric_about(enum metric m);
/* METRIC_MAX when no figure has that key. */
enum metric metric_find(const char *key);
/* The key nearest to a mistyped one, or NULL. */
const char *metric_nearest(const char *key);

/* Whether it is a figure of single devices too, and its key without "device_", or NULL. */
const char *metric_device_key(enum metric m);
void metric_put(struct metrics *into, enum metric m, double value);
/* Reads a figure as people write it: "23.5G" for bytes, plain numbers otherwise. */
int metric_parse(enum metric m, const char *text, double *out);
/* The figure in at most three significant digits (rates and counts whole). Returns buf. */
#define METRIC_TEXT_MAX 32
const char *metric_print(char buf[METRIC_TEXT_MAX], enum metric m, double value);

#endif
