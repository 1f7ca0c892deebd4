/* SPDX-License-Identifier: MIT */
/*
 * Devices and the stores on them.
 *
 * A device is a queue that serves I/Os: it has limits (largest I/O, queue depth)
 * and a model of how long things take. A store is one file's place on a device: a
 * size, which pages of it were ever written (so that reads of holes cost nothing),
 * and, where contents are real, the bytes. Above a store live the cache and, past
 * it, direct I/O.
 *
 * device_submit() may park while the queue is full; the end callback comes later,
 * from an event (simulated world) or an I/O thread (real world), and must not park,
 * so it submits nothing that could find the queue full. The model "memory" works in
 * both worlds and knows no waiting: it calls end() before device_submit() returns.
 */
#ifndef SLUICE_DEVICE_DEVICE_H
#define SLUICE_DEVICE_DEVICE_H

#include "base/err.h"
#include "base/ini.h"
#include "base/list.h"
#include "world/lock.h"
#include "world/sim.h"
#include <sys/uio.h>

enum io_op { IO_READ, IO_WRITE, IO_FLUSH };

struct store;

/*
 * One I/O of a store. Caller-owned; every field above the line is set by the caller
 * and stays as it is until end() is called, which is the device's last touch.
 */
struct io {
	struct store *store;
	u64 offset_bytes;
	u32 length_bytes; /* 0 for IO_FLUSH; any length: the device splits at its limit */
	enum io_op op;
	bool writeback;          /* part of write-out: wbt may hold it back */
	bool background;         /* ... that nobody waits for */
	bool sync;               /* ... that somebody waits for */
	const struct iovec *vec; /* the bytes, or NULL in a world without contents */
	u32 vec_count;
	void (*end)(struct io *io, int error); /* error: 0 or a negative errno */
	/* --- the device's */
	struct sim_event event;
	u64 submit_ns;        /* when it got into the queue */
	u32 parts;            /* requests it was split into */
	_Atomic u32 admitted; /* 0 while its submitter is parked for room */
	int error;
	struct list_node link;
};

struct device_stats {
	u64 reads, writes, flushes; /* requests that reached the device, after splitting */
	u64 read_bytes, write_bytes;
	u64 busy_ns; /* time with at least one request between arrival and answer */
	u64 in_flight, in_flight_max; /* requests */
};

struct device_config {
	char model[16]; /* "rate", "ebs", "nvme", "memory" */
	char name[32];
	u32 max_io_bytes;   /* max_sectors_kb: larger I/Os are split */
	u32 queue_depth;    /* nr_requests: a submitter parks while so many are in flight */
	u64 wbt_latency_ns; /* wbt_lat_usec: writeback throttling; 0: off */
	u32 write_cache;    /* 1: the device has a volatile write cache; matters to wbt */
	double iops;        /* rate, ebs: I/Os a second */
	double bytes_per_s; /* rate, ebs */
	u64 latency_ns;     /* rate, ebs: added to each I/O, does not occupy the server */
	u32 io_unit_bytes;  /* ebs: an I/O counts once per started unit */
	u32 channels;       /* nvme */
	double read_bytes_per_s, write_bytes_per_s; /* nvme: of the whole device */
	u64 read_latency_ns, write_latency_ns;      /* nvme: median of one operation */
	double latency_sigma;                       /* nvme: sigma of the log-normal latency */
	u64 seed;
};

struct device;

/* Fills c with the model's defaults (docs/devices.md). -EINVAL: there is no such model. */
int device_config_init(struct device_config *c, const char *model);
/*
 * Fills c from an INI section ([device]); refuses what the model does not know or
 * cannot be. Entries that somebody else has read before (ini_get) are left to them.
 * The seed is not an INI key: it is 0 until the caller sets it.
 */
int device_config_read(struct device_config *c, const struct ini *ini, struct ini_section *section,
		       struct err *e);

/*
 * -EINVAL: a value is out of its range; -ENOTSUP: the calling thread is in the real
 * world and the model only lives in the simulated one (all but "memory").
 */
int device_create(const struct device_config *c, struct device **out);
void device_destroy(struct device *d); /* idle; stores on it are gone */
/*
 * Makes an idle device as fast or slow as another configuration of its model says; limits on
 * I/O size stay. -EINVAL: a value is out of range or the model another one.
 */
int device_reconfigure(struct device *d, const struct device_config *c);
/* The configuration it was made of, with its name filled in. */
const struct device_config *device_config(const struct device *d);
void device_stats(const struct device *d, struct device_stats *out);
/* True while nothing is in flight. */
bool device_idle(const struct device *d);
/* A writer is put to sleep for the device: for a second, write-out counts as waited for. */
void device_note_throttled(struct device *d);

/* Queues io. May park until the queue has room; end() is called exactly once. */
void device_submit(struct device *d, struct io *io);
/* Submits and waits: 0 or a negative errno. */
int device_submit_wait(struct device *d, struct io *io);

/*
 * Faults, for tests: `fault(ctx, io)` is asked once per I/O at completion and
 * returns 0 or the negative errno it shall fail with (a failed write leaves the
 * store as it was). NULL takes it away.
 */
void device_set_fault(struct device *d, int (*fault)(void *ctx, const struct io *io), void *ctx);

/* Stores. `contents`: keep the bytes (tests), or only sizes and written maps (lab). */
#define STORE_SIZE_MAX (1ull << 43) /* bytes; writes beyond it fail with -EFBIG */
int store_create(struct device *d, bool contents, struct store **out);
void store_destroy(struct store *s);
struct device *store_device(const struct store *s);
u64 store_size(const struct store *s); /* bytes on the device */
/* Shortening forgets everything past the new size; lengthening adds a hole. 0 or an error. */
int store_truncate(struct store *s, u64 size_bytes);
/*
 * The size of the file, which may be ahead of what is on the device: from now on writes that
 * reach past it, because they are of whole blocks, are cut there.
 */
void store_set_end(struct store *s, u64 size_bytes);
/* Makes room, so that writes to the range cannot find the device full. 0, -ENOSPC ... */
int store_reserve(struct store *s, u64 offset_bytes, u64 length_bytes);
/* Pages [page, page + n) that were ever written: true if any was. */
bool store_any_written(const struct store *s, u64 page, u64 n);
/*
 * The first page of [page, end) that was ever written, or with `written` false the first that was
 * not; `end` if there is none.
 */
u64 store_next(const struct store *s, u64 page, u64 end, bool written);
/*
 * Makes `size_bytes` exist and count as written, zeros where nothing was, without any
 * I/O; never shortens. 0, -EFBIG or -ENOMEM.
 */
int store_lay_out(struct store *s, u64 size_bytes);
/* Punches a hole: whole pages in the range are as never written. 0, -EOPNOTSUPP, or an error. */
int store_punch(struct store *s, u64 page, u64 n);
/* Reads bytes straight out of the store, without the queue: for checks. Holes are zero. */
void store_peek(const struct store *s, u64 offset_bytes, void *buf, size_t length_bytes);

#endif
