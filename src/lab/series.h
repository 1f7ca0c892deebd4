/* SPDX-License-Identifier: MIT */
/*
 * What the measured phase of a case looked like over virtual time: the figures that
 * a report draws and an explanation is made of.
 */
#ifndef SLUICE_LAB_SERIES_H
#define SLUICE_LAB_SERIES_H

#include "device/device.h"
#include "file/engine.h"
#include "job/job.h"
#include "lab/setup.h"

/*
 * The columns. Levels are those at the point's time, rates and latencies those of the
 * interval that ends there.
 */
#define SERIES(X)                                                                              \
	X(T, t_s, "seconds since the measured phase began")                                    \
	X(DIRTY, dirty_bytes, "charged as dirty, as the policy counts")                        \
	X(WRITEBACK, writeback_bytes, "charged as in flight")                                  \
	X(DEBT, debt_bytes, "must be written")                                                 \
	X(IN_FLIGHT, in_flight_bytes, "being written")                                         \
	X(PINNED, pinned_bytes, "cannot be reclaimed")                                         \
	X(DROP, dontcache_bytes, "dirty for DONTCACHE")                                        \
	X(CACHED, cached_bytes, "cached")                                                      \
	X(FREE, free_bytes, "free")                                                            \
	X(BACKGROUND, background_bytes, "the flusher writes above it")                         \
	X(FREERUN, freerun_bytes, "nobody is throttled below it")                              \
	X(SETPOINT, setpoint_bytes, "where the throttle lets dirty settle")                    \
	X(LIMIT, limit_bytes, "writers stop here")                                             \
	X(READ_IOPS, read_iops, "reads a second")                                              \
	X(WRITE_IOPS, write_iops, "writes a second")                                           \
	X(READ_RATE, read_bytes_per_s, "bytes read a second")                                  \
	X(WRITE_RATE, write_bytes_per_s, "bytes written a second")                             \
	X(READ_P50, read_p50_ms, "median latency of a read")                                   \
	X(READ_P99, read_p99_ms, "99th percentile of the latency of reads")                    \
	X(READ_MAX, read_max_ms, "longest read")                                               \
	X(WRITE_P50, write_p50_ms, "median latency of a write")                                \
	X(WRITE_P99, write_p99_ms, "99th percentile of the latency of writes")                 \
	X(WRITE_MAX, write_max_ms, "longest write")                                            \
	X(SYNC_P50, fsync_p50_ms, "median latency of an fsync")                                \
	X(SYNC_P99, fsync_p99_ms, "99th percentile of the latency of fsyncs")                  \
	X(SYNC_MAX, fsync_max_ms, "longest fsync")                                             \
	X(ASLEEP, writers_asleep, "seconds of sleep that were given out a second")             \
	X(SLEEPS, sleeps_per_s, "pauses begun a second")                                       \
	X(PAUSE, mean_pause_ms, "mean length of these pauses")                                 \
	X(CHARGED, charged_bytes_per_s, "charged as dirty a second, as the policy counts")     \
	X(DIRTIED, dirtied_bytes_per_s, "really made dirty a second")                          \
	X(WRITTEN, written_bytes_per_s, "written back a second")                               \
	X(DEVICE_READS, device_reads_per_s, "reads the device served a second")                \
	X(DEVICE_WRITES, device_writes_per_s, "writes the device served a second")             \
	X(DEVICE_READ_RATE, device_read_bytes_per_s, "bytes read from the device a second")    \
	X(DEVICE_WRITE_RATE, device_write_bytes_per_s, "bytes written to the device a second") \
	X(DEVICE_BUSY, device_busy_percent, "time the device had something to do")             \
	X(DEVICE_WRITE_SIZE, device_write_bytes, "mean size of the writes the device served")  \
	X(DEVICE_DEPTH, device_in_flight, "requests at the device")                            \
	X(SIZE0, device_writes_4k_per_s, "writes of up to 4 KiB the device served a second")   \
	X(SIZE1, device_writes_8k_per_s, "... of up to 8 KiB")                                 \
	X(SIZE2, device_writes_16k_per_s, "... of up to 16 KiB")                               \
	X(SIZE3, device_writes_32k_per_s, "... of up to 32 KiB")                               \
	X(SIZE4, device_writes_64k_per_s, "... of up to 64 KiB")                               \
	X(SIZE5, device_writes_128k_per_s, "... of up to 128 KiB")                             \
	X(SIZE6, device_writes_256k_per_s, "... of up to 256 KiB")                             \
	X(SIZE7, device_writes_512k_per_s, "... of up to 512 KiB")                             \
	X(SIZE8, device_writes_1m_per_s, "... of up to 1 MiB")                                 \
	X(SIZE9, device_writes_larger_per_s, "... and of more than that")                      \
	X(ORDER0, order0_bytes, "cached in folios of 4 KiB")                                   \
	X(ORDER1, order1_bytes, "cached in folios of 8 KiB")                                   \
	X(ORDER2, order2_bytes, "cached in folios of 16 KiB")                                  \
	X(ORDER3, order3_bytes, "cached in folios of 32 KiB")                                  \
	X(ORDER4, order4_bytes, "cached in folios of 64 KiB")                                  \
	X(ORDER5, order5_bytes, "cached in folios of 128 KiB")                                 \
	X(ORDER6, order6_bytes, "cached in folios of 256 KiB")                                 \
	X(ORDER7, order7_bytes, "cached in folios of 512 KiB")                                 \
	X(ORDER8, order8_bytes, "cached in folios of 1 MiB")                                   \
	X(ORDER9, order9_bytes, "cached in folios of 2 MiB")

enum series_column {
#define SERIES_ENUM(name, key, text) SERIES_##name,
	SERIES(SERIES_ENUM)
#undef SERIES_ENUM
		SERIES_COLUMNS
};

static_assert(SERIES_ORDER9 - SERIES_ORDER0 + 1 == ARENA_ORDERS, "a column for each order");
static_assert(SERIES_SIZE9 - SERIES_SIZE0 + 1 == DEVICE_SIZES, "a column for each class of sizes");

/* Columns of each tenant: levels, and rates, as above. */
#define SERIES_TENANT(X)                                                \
	X(DIRTY, dirty_bytes, "charged as dirty, as the policy counts") \
	X(LIMIT, limit_bytes, "its writers stop here")                  \
	X(DIRTIED, dirtied_bytes_per_s, "made dirty a second")          \
	X(WRITTEN, written_bytes_per_s, "written back a second")        \
	X(ASLEEP, writers_asleep, "seconds that its writers slept a second")

enum series_tenant_column {
#define SERIES_ENUM(name, key, text) SERIES_TENANT_##name,
	SERIES_TENANT(SERIES_ENUM)
#undef SERIES_ENUM
		SERIES_TENANT_COLUMNS
};

struct series_latency {
	u64 samples, p50_ns, p99_ns, max_ns;
};

/* Kinds of calls whose latencies are recorded: reads, writes, trims, and fsyncs. */
#define SERIES_SYNC  JOB_DIRS
#define SERIES_CALLS (JOB_DIRS + 1)

/* One point: counters as they stood, levels, and latencies since the point before. */
struct series_point {
	u64 t_ns; /* since the measured phase began */
	struct engine_stats engine;
	struct device_stats device[ENGINE_DEVICES_MAX];
	u64 ios[JOB_DIRS], bytes[JOB_DIRS];
	struct series_latency latency[SERIES_CALLS];
};

struct series {
	struct series_point *points; /* the first is that of time 0 */
	size_t count;
	u32 device_count;
	/* of all tenants, point after point; NULL: there are none */
	struct tenant_stats *tenants;
	u32 tenant_count;
	u64 started_ns; /* world time */
	u64 interval_ns;
	/* of the whole phase: clones, those that did I/O of a direction, how long calls took */
	u32 clones_all, clones[JOB_DIRS];
	double in_calls_ns[JOB_DIRS], in_syncs_ns;
};

/* How often series_look() wants to be called. */
#define SERIES_STEP_NS (25 * NSEC_PER_MSEC)

/*
 * Makes a recorder of one measured phase in the calling task's world, with the devices and tenants
 * of the setup; NULL without memory.
 */
struct recorder;
struct recorder *recorder_create(struct engine *e, struct device *const *devices,
				 const struct setup *setup);
/* Where the jobs enter their I/Os and fsyncs; see struct jobs_options. */
struct job_dir_stats *recorder_live(struct recorder *r);
struct hist *recorder_live_syncs(struct recorder *r);
/* Takes the first point, takes one if it is due, and takes the last. */
void recorder_begin(struct recorder *r);
void recorder_look(struct recorder *r);
void recorder_end(struct recorder *r, const struct job_results *results);
/* Ends the recorder; the series, or NULL if memory ran out. */
struct series *recorder_finish(struct recorder *r);
void series_destroy(struct series *s);

const char *series_key(enum series_column c);
const char *series_about(enum series_column c);
/* NAN where there is nothing to say: rates at time 0, latencies without I/Os. */
double series_value(const struct series *s, enum series_column c, size_t point);
/* Whether the column speaks of devices; series_value() is then of all, busy of the busiest. */
bool series_of_device(enum series_column c);
double series_device_value(const struct series *s, enum series_column c, u32 device, size_t point);
const char *series_tenant_key(enum series_tenant_column c);
double series_tenant_value(const struct series *s, enum series_tenant_column c, u32 tenant,
			   size_t point);

#endif
