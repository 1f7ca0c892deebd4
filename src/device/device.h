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
 *
 * The model "file" exists in the real world only. Its stores are files (file descriptors,
 * past the kernel's page cache where the file system lets us) or what a caller's own
 * functions keep; its I/Os are executed, by io_uring or by threads.
 */
#ifndef SLUICE_DEVICE_DEVICE_H
#define SLUICE_DEVICE_DEVICE_H

#include "base/err.h"
#include "base/ini.h"
#include "base/list.h"
#include "world/lock.h"
#include "world/sim.h"
#include <sys/uio.h>

/* IO_ASK: a question to the server of a device of model "fuse", which moves no data. */
enum io_op { IO_READ, IO_WRITE, IO_FLUSH, IO_ASK };

struct store;

/*
 * One I/O of a store. Caller-owned; every field above the line is set by the caller
 * and stays as it is until end() is called, which is the device's last touch.
 */
struct io {
	struct store *store;
	u64 offset_bytes;
	u32 length_bytes; /* 0 for IO_FLUSH, IO_ASK; any length: the device splits at its limit */
	enum io_op op;
	bool writeback;          /* part of write-out: wbt may hold it back */
	bool background;         /* ... that nobody waits for */
	bool sync;               /* ... that somebody waits for */
	const struct iovec *vec; /* the bytes, or NULL in a world without contents */
	u32 vec_count;
	void (*end)(struct io *io, int error); /* error: 0 or a negative errno */
	/* --- the device's */
	u64 submit_ns;        /* when it got into the queue */
	u32 parts;            /* requests it was split into */
	u32 parts_left;       /* of these, not yet answered */
	u32 done_bytes;       /* file: transferred so far */
	int fd;               /* file: what the ring transfers by */
	_Atomic u32 admitted; /* 0 while its submitter is parked for room */
	bool waited;          /* its submitter waits for it */
	int error;
	struct list_node link;
};

#define DEVICE_SIZES 10 /* classes of request sizes: up to 4 KiB, 8 KiB ... 1 MiB, and larger */

struct device_stats {
	u64 reads, writes, flushes; /* requests that reached the device, after splitting */
	u64 asks;                   /* fuse: questions */
	u64 write_sizes[DEVICE_SIZES];
	u64 read_bytes, write_bytes;
	u64 busy_ns; /* time with at least one request between arrival and answer */
	u64 in_flight, in_flight_max; /* requests */
	u64 reads_in_flight;          /* of them */
	u64 reads_done, read_ns;      /* reads answered, and how long they took in sum */
};

enum io_engine { IO_ENGINE_AUTO, IO_ENGINE_URING, IO_ENGINE_THREADS };

struct device_config {
	char model[16]; /* "rate", "ebs", "nvme", "memory", "fuse", "file" */
	char name[32];
	u32 max_io_bytes;   /* max_sectors_kb, max_io_kb: larger I/Os are split (file: not) */
	u32 queue_depth;    /* nr_requests: a submitter parks while so many are in flight */
	u64 wbt_latency_ns; /* wbt_lat_usec: writeback throttling; 0: off */
	u32 write_cache;    /* 1: the device has a volatile write cache; matters to wbt */
	double iops;        /* rate, ebs: I/Os a second */
	double bytes_per_s; /* rate, ebs */
	u64 latency_ns;     /* rate, ebs: added to each I/O, does not occupy the server */
	u64 path_ns;        /* rate: likewise, what the host needs for the way there and back */
	u32 io_unit_bytes;  /* ebs: an I/O counts once per started unit */
	u32 channels;       /* nvme */
	u32 shared;         /* nvme: 1: all in flight share the flash equally */
	double read_bytes_per_s, write_bytes_per_s; /* nvme: of the whole device */
	u64 read_latency_ns, write_latency_ns;      /* nvme: median of one operation */
	double latency_sigma;                       /* nvme: sigma of the log-normal latency */
	u32 io_engine;                              /* file: enum io_engine */
	u32 direct;                                 /* file: 0: leave O_DIRECT alone */
	/* fuse: of its server, and of what the kernel has agreed on with it */
	char backing[32]; /* the device its files are on; "": its own memory */
	u32 threads;      /* of the server */
	u32 max_write_bytes, max_read_bytes, max_pages; /* of a request */
	u32 max_background, congestion_threshold;
	u32 large_folios; /* 1: folios of up to a request */
	u32 writeback;    /* 1: writes are cached; 0: each goes through to the server */
	u32 killpriv;     /* 0: each write first asks for security.capability */
	u32 splice;       /* 0: the server copies data once more */
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
 * Sets one key of a configuration, whose model is set: for those who have their keys from
 * elsewhere than a file. -EINVAL with a line in e.
 */
int device_config_set(struct device_config *c, const char *key, const char *value, struct err *e);

/*
 * -EINVAL: a value is out of its range; -ENOTSUP: the calling thread is in the real
 * world and the model only lives in the simulated one (all but "memory" and "file"), or
 * the other way round ("file"). file: also what the kernel says when threads or the
 * io_uring that was asked for by name are not to be had.
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
/*
 * What it is in a few words, for people: the model, and of "file" the engine in use, what of
 * its memory is registered and how many stores are open, by O_DIRECT and without.
 */
void device_describe(const struct device *d, char *text, size_t size);
/*
 * file: tells the device where most I/Os will have their bytes, so that the kernel need not
 * look the pages up for each. Instead of what it was told before; with 0 bytes, nowhere. The
 * memory is made resident and locked, and none of it may be unmapped or given back (madvise)
 * while it is registered: I/O would go on using the old pages. 0; or a negative errno (-ENOMEM:
 * more than RLIMIT_MEMLOCK; -ENOTSUP: the device's engine cannot), and then nothing is
 * registered and I/Os are merely slower.
 */
int device_register_memory(struct device *d, void *base, size_t bytes);
/* True if a flush makes only its store's data safe, false if it does so for the whole device. */
bool device_flushes_files(const struct device *d);
/* fuse: so much is under way that what nobody waits for had better be left for later. */
bool device_is_congested(const struct device *d);
/* The largest request of that kind. */
u32 device_request_bytes(const struct device *d, enum io_op op);
/*
 * The order of the largest folio its files can have: one that fits a request (fuse, reference
 * 9.6), 0 if its files have none that are large, else no limit.
 */
u32 device_folio_order(const struct device *d);
/* fuse: asks the server what the kernel asks it at each write. 0, at once if there is nothing. */
int device_ask(struct store *s);
/* False: each write is to be with the server when it returns (fuse without a writeback cache). */
bool device_caches_writes(const struct device *d);
/* True if the device is of model "fuse". */
bool device_is_fuse(const struct device *d);
/* True while nothing is in flight. */
bool device_idle(const struct device *d);
/* A writer is put to sleep for the device: for a second, write-out counts as waited for. */
void device_note_throttled(struct device *d);

/* Queues io. May park until the queue has room; end() is called exactly once. */
void device_submit(struct device *d, struct io *io);
/* Submits and waits: 0 or a negative errno. file: the calling thread executes it. */
int device_submit_wait(struct device *d, struct io *io);

/*
 * Faults, for tests: `fault(ctx, io)` is asked once per I/O, at completion (file: when it is
 * submitted), and returns 0 or the negative errno it shall fail with (a failed write leaves
 * the store as it was). NULL takes it away.
 */
void device_set_fault(struct device *d, int (*fault)(void *ctx, const struct io *io), void *ctx);
/*
 * Likewise: `delay(ctx, io)` is asked per request, as one of an I/O reaches a simulated device,
 * and says by how many nanoseconds its answer comes later. Others may overtake it. It takes no
 * lock. Not asked by "memory".
 */
void device_set_delay(struct device *d, u64 (*delay)(void *ctx, const struct io *io), void *ctx);

/*
 * Stores, of three kinds: simulated ones, files, and those of a caller's own making. What
 * fails returns a negative errno; a simulated store fails with -EFBIG or -ENOMEM only.
 */
#define STORE_SIZE_MAX (1ull << 43) /* bytes; writes beyond it fail with -EFBIG */

/* A simulated one. `contents`: keep the bytes (tests), or only sizes and written maps (lab). */
int store_create(struct device *d, bool contents, struct store **out);
/*
 * A regular file or block device, on a device of model "file". The descriptor, open for
 * reading, is the store's from now on, also when this fails; O_APPEND is taken away from it.
 * Whether O_DIRECT works is probed. -EINVAL: it is neither a file nor a block device.
 */
int store_open_fd(struct device *d, int fd, struct store **out);

/*
 * What a store of a caller's own making can do. The functions may block, are called by any
 * thread, several at a time, and return a negative errno when they fail. Those of which it
 * says that they may be absent may be NULL.
 */
struct store_backing {
	/*
	 * As preadv(2) and pwritev(2): return how many bytes were moved; fewer than there is
	 * room for is no error, they are called again for the rest (0 from read: the end of the
	 * store; 0 from write is taken for -EIO). `count` is at least 1, no vector is empty.
	 * write may be absent: then writes fail with -EROFS.
	 */
	ssize_t (*read)(void *ctx, const struct iovec *vec, unsigned count, u64 offset_bytes);
	ssize_t (*write)(void *ctx, const struct iovec *vec, unsigned count, u64 offset_bytes);
	/* Makes what was written safe: 0. May be absent: what write took is safe. */
	int (*flush)(void *ctx);
	/*
	 * Sets the size: 0. May be absent: then shortening fails with -EOPNOTSUPP, and what is
	 * between the end of what was written and the size reads as zeros.
	 */
	int (*truncate)(void *ctx, u64 size_bytes);
	/* Makes room, as store_reserve(): 0. May be absent: writes find room, or fail. */
	int (*reserve)(void *ctx, u64 offset_bytes, u64 length_bytes);
	/* The size now, asked once. May be absent: the store is empty. */
	int (*size)(void *ctx, u64 *size_bytes);
	/* The store is being destroyed; the last call. May be absent. */
	void (*close)(void *ctx);
};
/* On a device of model "file". *ops is copied; ctx is given to every call. */
int store_open_custom(struct device *d, const struct store_backing *ops, void *ctx,
		      struct store **out);

/*
 * The same file, opened anew: what goes by its descriptor goes by this one from now on. For a file
 * that was opened for reading and is to be written. `fd` is taken, also when this fails: then the
 * store is as it was. -EINVAL: the store is no file.
 */
int store_reopen_fd(struct store *s, int fd);

void store_destroy(struct store *s); /* no I/O of it is in flight */
struct device *store_device(const struct store *s);
/*
 * Bytes on the device, as far as we know: a file that somebody else has made longer or shorter
 * since it was opened has another size, which is noticed where it is read.
 */
u64 store_size(const struct store *s);
/* Shortening forgets everything past the new size; lengthening adds a hole. */
int store_truncate(struct store *s, u64 size_bytes);
/* Whether it can be made shorter at all: not a caller's own store without truncate. */
bool store_can_shorten(const struct store *s);
/* The byte past which nothing may be written at the moment: of files, RLIMIT_FSIZE. */
u64 store_limit(const struct store *s);
/* True if it is a caller's own, whose truncate() may fail for reasons of its own. */
bool store_may_refuse(const struct store *s);
/*
 * Where the file really ends: real stores never write bytes past it, though I/Os consist of
 * whole blocks, and read zeros there. To be said before I/O that goes past the old end is
 * submitted. Until it is first said, writes go as they are. store_truncate() and store_lay_out()
 * keep it right. Simulated stores write whole blocks.
 */
void store_set_end(struct store *s, u64 size_bytes);
/* Pages [page, page + n) that were ever written: true if any was (or might have been). */
bool store_any_written(const struct store *s, u64 page, u64 n);
/*
 * The first page of [page, end) that was ever written, or with `written` false the first that was
 * not; `end` if there is none.
 */
u64 store_next(const struct store *s, u64 page, u64 end, bool written);
/*
 * Makes `size_bytes` exist and count as written, zeros where nothing was, without any
 * I/O; never shortens.
 */
int store_lay_out(struct store *s, u64 size_bytes);
/*
 * Whether it makes a difference to ask for room: not on simulated devices, nor in a caller's own
 * store without reserve.
 */
bool store_may_be_full(const struct store *s);
/*
 * Makes room on the device, so that a later write to the range cannot find it full. The size
 * stays. Room past the end that was never used is given back when the store is destroyed.
 * -ENOSPC, -EDQUOT; 0 also where the device cannot promise (file systems without fallocate, or
 * that copy on write).
 */
int store_reserve(struct store *s, u64 offset_bytes, u64 length_bytes);
/*
 * For which user the calling thread makes room from now on, 0: for root. File systems keep some of
 * their room from others than root. To be told by programs of root that act for others.
 */
void store_act_for(uid_t uid);
/* There is room past the end that somebody wants to stay there, until the file is cut off. */
void store_keep_room(struct store *s);
bool store_keeps_room(const struct store *s);
/* True if it is known that store_reserve() has nothing to do. Takes no lock, calls nobody. */
bool store_has_room(const struct store *s, u64 offset_bytes, u64 length_bytes);
/* Punches a hole: whole pages in the range are as never written, and read as zeros. */
int store_punch(struct store *s, u64 page, u64 n);
/*
 * Forgets that a flush failed. Until then flushes of a real store go on to fail, since what was
 * written before the first one that did may be lost: for when that is given up on purpose.
 */
void store_forgive(struct store *s);
/* Reads bytes straight out of the store, without the queue: for checks. Holes are zero. */
void store_peek(const struct store *s, u64 offset_bytes, void *buf, size_t length_bytes);

#endif
