/* SPDX-License-Identifier: MIT */
/*
 * libsluice: a page cache in your program, with honest dirty accounting.
 *
 * A cache (struct sluice) holds pages of any number of files in a fixed amount of memory. Writes
 * are answered when they are in the cache and written to their file later, as Linux does it and
 * under Linux's names; what may be dirty is limited, and who writes faster than the disk is put to
 * sleep. An open file (struct sluice_file) is one open of a file of the system's, or of a store
 * of the caller's own. All opens of one file share its cached pages.
 *
 *	struct sluice *cache;
 *	struct sluice_file *f;
 *	const char *settings[] = { "memory=1G", "vm.dirty_bytes=200M", NULL };
 *	char why[SLUICE_ERROR_MAX];
 *
 *	if (sluice_create(settings, why, sizeof(why), &cache))
 *		die(why);
 *	sluice_open(cache, "data.db", O_RDWR | O_CREAT, 0644, &f);
 *	sluice_pwrite(f, "hello", 5, 0, 0);
 *	sluice_fsync(f);
 *	sluice_close(f);
 *	sluice_destroy(cache, NULL, NULL);
 *
 * What holds for every call, unless it says otherwise:
 *
 * Threads	Any thread may make any call at any time, on anything that is not being closed or
 *		destroyed; no thread needs to be registered. Calls block the calling thread. None
 *		may be made from a signal handler, or in the child of a fork() but exec().
 * Results	0 or a count when all went well, else a negative errno: -EIO is "return -EIO", and
 *		errno itself means nothing. -ENOMEM can come from every call that says "memory".
 * Pointers	What a call is given is the caller's, needed only while the call lasts, and may
 *		not be NULL unless the call says so. What it returns in an `out` parameter is
 *		set only on success.
 * Units	bytes, nanoseconds of CLOCK_MONOTONIC; names say what else.
 * Versions	A struct with a `size` is one that may grow at its end. Whoever makes the struct
 *		sets `size` to its sizeof, and the other side touches nothing past that. So a
 *		program runs with any libsluice.so.0 newer than the one it was compiled for.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_API __attribute__((visibility("default")))

struct sluice;      /* a cache */
struct sluice_file; /* an open file */

/* The library's version, "1.2.3"; a string that stays. */
SLUICE_API const char *sluice_version(void);

/* --- the cache --- */

#define SLUICE_ERROR_MAX 512 /* holds any message of sluice_create() */

/*
 * Makes a cache from `settings`, strings of the form "KEY=VALUE" with a NULL behind the last; NULL
 * instead of the array is no settings. The keys, under the names that Linux and `sluice lab` have
 * for them (a later one of the same key wins; sizes take K, M, G, T, powers of 1024):
 *
 *	memory			size, whole pages of 4096, 16M to 15T (256M): never more than this
 *				is used for cached bytes; about 1 % more for the index
 *	max_memory		size (as memory): to which sluice_resize() may make it grow; address
 *				space is reserved for that much
 *	huge_pages		auto, never or always (auto): keep bytes in pages of 2 MiB, where
 *				the system grants them; always: of those set aside, or -ENOMEM
 *	register_memory		yes or no (no): make the memory resident and lock it at once, and
 *				register it with io_uring: large I/Os then take about half the CPU
 *				time. -ENOTSUP without io_uring, -ENOMEM past RLIMIT_MEMLOCK
 *	reserve			size (0): of `memory`, what dirty limits do not count
 *	policy			name of a preset (sluice): see sluice-policies(1)
 *	KEY			a choice of the policy, as accounting=page; likewise
 *	vm.dirty_ratio		percent of the memory that dirty data may be, 0 to 100 (20)
 *	vm.dirty_bytes		size, at least 8192: the same in bytes, in place of the ratio
 *	vm.dirty_background_ratio
 *				percent above which it is written in the background (10)
 *	vm.dirty_background_bytes
 *				size, the same in bytes
 *	vm.dirty_writeback_centisecs
 *				how often old data is looked for, 1/100 s (500); 0: never
 *	vm.dirty_expire_centisecs
 *				how old dirty data may become, 1/100 s (3000)
 *	vm.retry_min_ms		how long after write-out failed it is tried again, ms (100); 0: at
 *				once. The pause doubles each time; syncs do not wait for it
 *	vm.retry_max_ms		the longest such pause, ms (10000)
 *	read_ahead_kb		KiB, a multiple of 4, at most 1048576 (128)
 *	strict_limit		yes or no (no): hold the device to its own share of the limit
 *	block_bytes		512, 1024, 2048 or 4096 (4096): the unit in which it is remembered
 *				what of a page is dirty
 *	io_engine		auto, uring or threads (auto): io_uring where the kernel lets us
 *	queue_depth		I/Os in flight at most, 1 to 4096 (128)
 *	max_io_kb		KiB of one I/O at most, 4 to 1048576 (1024)
 *	direct			1 or 0 (1): past the kernel's own cache where files can do that
 *	idle_files		files kept in the cache after their last close, 0 to 1048576 (1024)
 *	persist			path of a file, on tmpfs (none): keep the memory in it, so that what
 *				was written survives when the program is killed. The next cache
 *				of that path writes it to its files first: sluice_recovered()
 *	recovered		path of a folder (that of persist, with .recovered): for bytes whose
 *				file is gone or was replaced, with lists of where they belong
 *	recovery		refuse or set_aside (refuse): when a file that is there does not
 *				take its bytes, make no cache and keep them; or set them aside
 *
 * A key may be written with or without its section: vm.dirty_ratio, machine.memory,
 * device.io_engine.
 * `error` (may be NULL with error_size 0) gets one line that names the setting and what would be
 * right, or "" on success. -EINVAL: a setting is wrong. -ENOMEM. -EAGAIN: no thread can be started.
 * -EMFILE. -EBUSY: persist=PATH is in use. -ENOSYS, -EPERM: io_engine=uring, and the kernel has
 * none for us. With persist also what recovery met, -EIO, -EACCES, -ENOSPC and the like: then
 * nothing was given up. The caller owns *out until sluice_destroy().
 */
SLUICE_API int sluice_create(const char *const *settings, char *error, size_t error_size,
			     struct sluice **out);

/* What became of bytes that a killed program had written to its cache and the cache to nobody. */
struct sluice_recovered {
	uint64_t size; /* of this struct, set by the library */
	int how;       /* one of the next three */
	uint64_t bytes;
	const char *path;  /* of the file when it was opened; gone when the callback returns */
	const char *why;   /* why they could not be written there, in words; else NULL */
	const char *where; /* the file they were set aside in, else NULL */
};
#define SLUICE_RECOVERED_WRITTEN 0 /* to their file, and safe there */
#define SLUICE_RECOVERED_ASIDE   1 /* to the recovery folder */
#define SLUICE_RECOVERED_DROPPED 2 /* nowhere: the file had been removed */

/*
 * Tells what was recovered from persist=PATH when this cache was made: one call of fn for each
 * file, none if nothing was left. sluice_stats() has the sums.
 */
SLUICE_API void sluice_recovered(struct sluice *c,
				 void (*fn)(void *ctx, const struct sluice_recovered *r),
				 void *ctx);

/*
 * Changes the memory of a running cache, as the setting `memory`, up to `max_memory`; the limits
 * follow. Shrinking moves or drops what is clean, writes what is dirty and waits for that. -EINVAL:
 * not a size the setting could have. -EAGAIN: the new size holds, but after 10 s some pages beyond
 * it were still in use (lent, or not to be written); they go when they are let go of. -ENOMEM:
 * nothing has changed.
 */
SLUICE_API int sluice_resize(struct sluice *c, uint64_t memory_bytes);

/* Data that a cache gave up, because its store would not take it: one piece of a file. */
struct sluice_loss {
	uint64_t size;     /* of this struct, set by the library */
	const char *path;  /* under which the file was opened first, or NULL: a custom store */
	void *store_ctx;   /* the `ctx` of the custom store, else NULL */
	uint64_t offset;   /* in the file, bytes */
	uint64_t length;   /* bytes, at least 1 */
	const void *data;  /* those bytes; gone when the callback returns */
	int error;         /* negative errno of the write that failed */
	uint32_t reserved; /* 0 */
};

/*
 * Writes everything that is dirty, makes it safe, and frees the cache. Every file of it is closed
 * and nothing is lent. Whatever could not be written is passed piece by piece to `lost` (may be
 * NULL), in the calling thread, in the order of the offsets of each file; `lost` may make no call
 * to this cache. The cache is gone then: to try again first, call sluice_sync(). 0, or the first
 * error of data that was lost or that the device did not make safe. With persist=PATH nothing is
 * lost: what could not be written stays there, for the next cache. -EBUSY: a file is open, or
 * something lent; nothing was done.
 */
SLUICE_API int sluice_destroy(struct sluice *c,
			      void (*lost)(void *ctx, const struct sluice_loss *loss), void *ctx);

/*
 * Writes all data that is dirty at the call, of all files, and makes it safe. `progress` (may be
 * NULL) is called now and then in the calling thread with the bytes written so far and those there
 * were to write; neither goes back, and the last call has both equal if all went well. 0, or the
 * first error of data that could not be written; it stays dirty, and is tried again.
 */
SLUICE_API int sluice_sync(struct sluice *c,
			   void (*progress)(void *ctx, uint64_t done_bytes, uint64_t all_bytes),
			   void *ctx);

/*
 * What goes on in a cache. Levels are of now; totals count from sluice_create() and only rise. The
 * two ledgers, always exact: `debt` is what must be written, `pinned` is what memory that holds
 * up. `dirty` and `writeback` are what the policy reads as that, what the limits are compared
 * with.
 */
struct sluice_stats {
	uint64_t size; /* sizeof of the caller's struct; set to what of it was filled */
	/* memory, bytes */
	uint64_t memory_bytes;   /* as configured or resized */
	uint64_t cached_bytes;   /* of it, in cached pages */
	uint64_t free_bytes;     /* of it, unused */
	uint64_t resident_bytes; /* of it, given to us by the system, now: huge pages whole */
	uint64_t huge_bytes;     /* of those, in huge pages */
	uint64_t overhead_bytes; /* index and folio descriptors, beside it */
	/* the two ledgers, bytes */
	uint64_t debt_bytes;            /* in pages with data that must be written */
	uint64_t in_flight_bytes;       /* in pages being written */
	uint64_t folio_dirty_bytes;     /* in folios that have a dirty page */
	uint64_t folio_writeback_bytes; /* in folios that have a page being written */
	uint64_t pinned_bytes;          /* in folios that have either: not to be reclaimed */
	uint64_t dirty_bytes;           /* debt or folio_dirty, by the policy's accounting */
	uint64_t writeback_bytes;       /* in_flight or folio_writeback, likewise */
	/* limits on dirty + writeback, bytes */
	uint64_t background_thresh_bytes; /* above this the flusher writes */
	uint64_t freerun_bytes;           /* up to here no writer is looked at */
	uint64_t setpoint_bytes;          /* where a paced load settles */
	uint64_t dirty_thresh_bytes;      /* writers stop here */
	uint64_t dirty_limit_bytes;       /* the same, smoothed when it falls */
	/* totals, bytes */
	uint64_t dirtied_bytes;   /* in pages newly dirtied */
	uint64_t written_bytes;   /* in pages written */
	uint64_t cancelled_bytes; /* in pages truncated while they were dirty */
	uint64_t charged_bytes;   /* that writers were charged for, by the policy's accounting */
	/* throttle, totals */
	uint64_t throttle_calls;    /* looks at a writer while dirty was above freerun */
	uint64_t throttle_sleeps;   /* of these, which made it sleep */
	uint64_t throttle_sleep_ns; /* sum of those sleeps */
	/* reclaim, totals */
	uint64_t folios_reclaimed; /* folios given up for others */
	uint64_t folios_split;     /* folios split, for whatever reason */
	uint64_t folios_shed;      /* of these, to let go of clean pages around dirty ones */
	uint64_t reclaim_waits;    /* times a thread waited for memory */
	/* the device */
	char device[96];             /* in words: io_uring or threads, files with O_DIRECT */
	uint64_t device_reads;       /* I/Os, total */
	uint64_t device_writes;      /* I/Os, total */
	uint64_t device_flushes;     /* total */
	uint64_t device_read_bytes;  /* total */
	uint64_t device_write_bytes; /* total */
	uint64_t device_in_flight;   /* I/Os, now */
	uint64_t write_bandwidth;    /* as estimated, bytes a second */
	uint64_t write_errors;       /* I/Os of write-out that failed, total */
	/* files, now */
	uint64_t files_open; /* opens that are not closed */
	uint64_t files_idle; /* files kept in the cache after their last close */
	/* what was recovered when the cache was made: see sluice_recovered() */
	uint64_t recovered_files; /* that got back what they were owed */
	uint64_t recovered_bytes; /* written to them */
	uint64_t aside_files;     /* that did not */
	uint64_t aside_bytes;     /* set aside in the recovery folder */
	uint64_t dropped_files;   /* that had been removed */
	uint64_t dropped_bytes;   /* of theirs */
	/* what could not be written and is not safe since; see sluice_show_unsafe() */
	uint64_t unsafe_bytes; /* in such pages, now */
	uint64_t unsafe_files; /* files with such pages, now */
};

/*
 * Fills *out, as much of it as out->size says. -EINVAL: `size` is less than 16, or no multiple of
 * 8. A newer program's fields that this library does not know are left as they are; `size` then
 * says how far it came. Reads files of /proc, so it takes some 100 us.
 */
SLUICE_API int sluice_stats(struct sluice *c, struct sluice_stats *out);

/* Dirty data whose write-out failed, and that is not safe since: a run of pages of one file. */
struct sluice_unsafe {
	uint64_t size;     /* of this struct, set by the library */
	const char *path;  /* under which the file was opened first, or NULL: a custom store */
	void *store_ctx;   /* the `ctx` of the custom store, else NULL */
	uint64_t ino;      /* the file's number in events of the trace */
	uint64_t offset;   /* in the file, bytes: whole pages */
	uint64_t length;   /* bytes, likewise; may reach past the end of the file */
	int error;         /* negative errno: of the first write-out of the file that failed */
	uint32_t reserved; /* 0 */
};

/*
 * Calls show() for each such run, in the calling thread, file by file, in order. It is tried again
 * (vm.retry_min_ms), and every sync of the file fails until it is safe, cut off or given up
 * (sluice_discard()). `show` may make no call to this cache; what it gets is gone afterwards. 0.
 */
SLUICE_API int sluice_show_unsafe(struct sluice *c,
				  void (*show)(void *ctx, const struct sluice_unsafe *what),
				  void *ctx);

/* --- tenants --- */

/*
 * A tenant has limits of its own on dirty data, and only its own writers are put to sleep for
 * them. Whom a write is for: the one given to the call (sluice_pwritev_for()), else that of the
 * open file, else that of the thread, else nobody. A tenant who is throttled has his own data
 * written, in whatever file, and nothing else (policy choice `foreign`, sluice-policies(1)).
 */
struct sluice_tenant;

/* What it may have dirty. Zeros: as much as anybody, of all memory, and no floor. */
struct sluice_tenant_limits {
	uint64_t size;                   /* sizeof of the caller's struct */
	uint64_t dirty_bytes;            /* at least 8192, or 0: by the ratio */
	uint64_t dirty_background_bytes; /* written in the background above; 0: by the ratio */
	uint64_t memory_bytes; /* of which the ratios are; nothing is kept from the tenant */
	uint64_t floor_bytes;  /* while it has less dirty, its writers never sleep for that */
	uint32_t dirty_ratio;  /* percent; 0: as the cache */
	uint32_t dirty_background_ratio; /* percent; 0: as the cache */
};

/*
 * Makes a tenant. `limits` may be NULL: zeros. The caller owns *out until sluice_tenant_close().
 * -EINVAL: no name, one of 64 bytes or more, or limits that cannot be; -EEXIST: there is one of
 * that name; -ENOSPC: there are 1,023, counting closed ones with data in the cache; -ENOMEM.
 */
SLUICE_API int sluice_tenant_create(struct sluice *c, const char *name,
				    const struct sluice_tenant_limits *limits,
				    struct sluice_tenant **out);
/* Changes its limits; the next look at each of its writers is by them. -EINVAL as above. */
SLUICE_API int sluice_tenant_limit(struct sluice *c, struct sluice_tenant *t,
				   const struct sluice_tenant_limits *limits);
/* It goes away: what is dirty is written in its time. Some 50 ns for each file with dirty data. */
SLUICE_API void sluice_tenant_close(struct sluice *c, struct sluice_tenant *t);

/* The calling thread acts for it from now on, in this cache; NULL: for nobody. */
SLUICE_API void sluice_thread_tenant(struct sluice *c, struct sluice_tenant *t);
/* Writes to this open file are for it, whoever makes them; NULL: for the thread's. */
SLUICE_API void sluice_file_tenant(struct sluice_file *f, struct sluice_tenant *t);

/* What goes on with a tenant, as struct sluice_stats has it of all. */
struct sluice_tenant_stats {
	uint64_t size;                    /* as in struct sluice_stats */
	uint64_t debt_bytes;              /* in its pages with data that must be written */
	uint64_t in_flight_bytes;         /* in its pages being written */
	uint64_t dirty_bytes;             /* by the policy's accounting, as are the next two */
	uint64_t writeback_bytes;         /* in flight */
	uint64_t dirty_max_bytes;         /* the most that was dirty */
	uint64_t background_thresh_bytes; /* above this its flusher writes */
	uint64_t dirty_thresh_bytes;      /* its writers stop here */
	uint64_t cached_bytes;            /* in folios that it brought into the cache */
	uint64_t dirtied_bytes;           /* total, in pages newly dirtied */
	uint64_t written_bytes;           /* total, in pages written */
	uint64_t throttle_sleeps;         /* total */
	uint64_t throttle_sleep_ns;       /* total */
};

/* Fills *out, as much of it as out->size says. -EINVAL as of sluice_stats(). */
SLUICE_API int sluice_tenant_stats(struct sluice *c, struct sluice_tenant *t,
				   struct sluice_tenant_stats *out);

/* --- opening files --- */

/*
 * Opens a file by its path. `flags` are open(2)'s: O_RDONLY, O_WRONLY or O_RDWR, and of O_CREAT
 * (with `mode` less the umask), O_EXCL, O_TRUNC, O_NOFOLLOW, O_APPEND (sluice_pwrite() appends),
 * O_DSYNC and O_SYNC (each write as with SLUICE_DSYNC), O_DIRECT (past the cache: offsets,
 * lengths are multiples of block_bytes); O_CLOEXEC, O_LARGEFILE, O_NOATIME, O_NOCTTY, O_NONBLOCK
 * go without saying; others are refused. With O_WRONLY, too, the right to read is needed: parts of
 * blocks are read before they are written.
 * Opens of the same file share its pages, whatever paths lead to it. A file that other programs
 * write to meanwhile is seen as it was when its pages were read. -EINVAL: a flag is refused, or
 * it is neither a regular file nor a block device; -EMFILE: too many are open; else the error of
 * open(2). The caller owns *out until sluice_close().
 */
SLUICE_API int sluice_open(struct sluice *c, const char *path, int flags, mode_t mode,
			   struct sluice_file **out);

/*
 * A store of the caller's own: where a file's bytes are, if not in a file of the system's. Calls
 * come from threads of the library and of the callers of the cache, several at once, for ranges
 * that do not overlap. They may block, and must not call the cache. Each returns 0 or a count, or a
 * negative errno, which then goes where a device's would; what is neither counts as -EIO.
 */
struct sluice_store {
	uint64_t size; /* sizeof(struct sluice_store) */
	/* As preadv(2), and may be as short; 0: the end of the store. Needed. */
	ssize_t (*read)(void *ctx, const struct iovec *iov, int iov_count, uint64_t offset);
	/* As pwritev(2), and may be as short; makes the store longer. NULL: open it O_RDONLY. */
	ssize_t (*write)(void *ctx, const struct iovec *iov, int iov_count, uint64_t offset);
	/*
	 * Makes safe what was written so far, as fdatasync(2). Once it has failed nobody knows what
	 * is safe: then syncs go on to fail until sluice_discard(). NULL: writes are safe at once.
	 */
	int (*flush)(void *ctx);
	/* Sets the size. NULL: the store cannot become shorter. */
	int (*truncate)(void *ctx, uint64_t size);
	/*
	 * Makes room, so that a write to the range will not find the store full: -ENOSPC here makes
	 * sluice_pwrite() fail in place of a later write-out. NULL: there is always room.
	 */
	int (*reserve)(void *ctx, uint64_t offset, uint64_t length);
	/* The library is done with the store: the last call. May be NULL. */
	void (*release)(void *ctx);
};

/*
 * Opens a store, `size` bytes long, as a file; `flags` as of sluice_open() but without O_CREAT,
 * O_EXCL, O_NOFOLLOW. `ctx` goes to the functions, must stay until release(), and tells stores
 * apart: opens with the same `ctx` share one file, and table and size of the first count. The
 * table is copied. -EINVAL: a flag is refused, the table lacks read() or asks for what this library
 * does not know. -EROFS: opened for writing without write(). -EFBIG: `size` is above 8 TiB. Memory.
 * On failure release() is not called.
 */
SLUICE_API int sluice_open_store(struct sluice *c, const struct sluice_store *store, void *ctx,
				 uint64_t size, int flags, struct sluice_file **out);

/*
 * Closes an open file; no call on it is under way. Dirty data of a file with a path stays in the
 * cache and is written in its time. The last close of a store first writes what is dirty, makes it
 * safe, and then calls release(); if that fails the error is returned and the file remains open,
 * with its data: try again, or sluice_discard() it. Else 0.
 */
SLUICE_API int sluice_close(struct sluice_file *f);

/*
 * Forgets, on purpose, what of the file is not on its device: for data that can not be written. All
 * its cached pages go, its size becomes the device's, errors of earlier writes end. What is given
 * up is passed to `lost` (may be NULL) first, as by sluice_destroy(). 0.
 */
SLUICE_API int sluice_discard(struct sluice_file *f,
			      void (*lost)(void *ctx, const struct sluice_loss *loss), void *ctx);

/* --- reading and writing --- */

/* Flags of reads and writes, or'ed. */
#define SLUICE_NOWAIT    1 /* wait for nothing: -EAGAIN, or a short count */
#define SLUICE_DSYNC     2 /* writes: return when the data is safe, as with O_DSYNC */
#define SLUICE_DONTCACHE 4 /* do not keep pages that this call brought in, as RWF_DONTCACHE */

/*
 * Reads up to `length` bytes at `offset`. The count is smaller only at the end of the file (0 past
 * it), or after an error or with SLUICE_NOWAIT when something was read already. -EBADF: not open
 * for reading. -EINVAL: a flag that is no flag of reads; the range wraps; O_DIRECT and not aligned.
 * -EAGAIN (see SLUICE_NOWAIT). -EOPNOTSUPP: SLUICE_NOWAIT where there is no way not to wait. -EIO,
 * or what else the store says. Memory.
 */
SLUICE_API ssize_t sluice_pread(struct sluice_file *f, void *buf, size_t length, uint64_t offset,
				unsigned flags);

/* The same into the pieces of `iov` in turn. -EINVAL also: iov_count is not 0..1024. */
SLUICE_API ssize_t sluice_preadv(struct sluice_file *f, const struct iovec *iov, int iov_count,
				 uint64_t offset, unsigned flags);

/*
 * Writes `length` bytes at `offset`, making the file longer if need be; may put the thread to sleep
 * when there is too much dirty data. Readers see each page of it whole. The count is smaller only
 * after an error or with SLUICE_NOWAIT, when something was written already. With O_APPEND the
 * offset is not looked at. -EBADF: not open for writing. -EINVAL as of reads. -EFBIG: past 8 TiB,
 * past RLIMIT_FSIZE in whole pages (one that is lowered is noticed by the first write-out past it,
 * which fails until it is raised), or past a store's size that cannot change. -ENOSPC: there is no
 * room on the device. -EAGAIN (see SLUICE_NOWAIT). With SLUICE_DSYNC also the errors of
 * sluice_fdatasync(). Memory. When the device or the file's part of it fails for good: the error of
 * earlier data that could not be written, in place of a sleep that might have no end.
 */
SLUICE_API ssize_t sluice_pwrite(struct sluice_file *f, const void *buf, size_t length,
				 uint64_t offset, unsigned flags);

/* The same from the pieces of `iov`. -EINVAL also: iov_count is not 0..1024. */
SLUICE_API ssize_t sluice_pwritev(struct sluice_file *f, const struct iovec *iov, int iov_count,
				  uint64_t offset, unsigned flags);

/* The same for a tenant; NULL: for nobody in particular. */
SLUICE_API ssize_t sluice_pwritev_for(struct sluice_file *f, struct sluice_tenant *t,
				      const struct iovec *iov, int iov_count, uint64_t offset,
				      unsigned flags);

/*
 * Writes at the end of the file; appends never overlap, and each is in one piece. *offset (may be
 * NULL) is where it went. Results as of sluice_pwritev().
 */
SLUICE_API ssize_t sluice_append(struct sluice_file *f, const struct iovec *iov, int iov_count,
				 unsigned flags, uint64_t *offset);

struct sluice_loan; /* bytes of a file that are lent in place */

/*
 * Lends up to `length` bytes at `offset` in place, reading them first if need be: no copy is made.
 * `iov`, with room for `iov_count` pieces, becomes the bytes in file order, only to be read.
 * They stay where they are until given back, and the file may be closed meanwhile. It is a view, no
 * snapshot: when the range is written to or cut off, the bytes may change. Less than `length` is
 * lent at the end of the file, if the pieces do not reach, or if too much is lent: all loans
 * together get an eighth of the memory. Returns the bytes lent; 0 at or past the end of the file,
 * and then *out is NULL. `flags`: SLUICE_NOWAIT. -ENOBUFS: an eighth is lent. -EINVAL as of
 * sluice_preadv(). -EBADF, -EAGAIN, -EIO as of sluice_pread(). Memory. What is lent may be written
 * elsewhere; written over itself, shifted, it is undefined what the file then has.
 */
SLUICE_API ssize_t sluice_borrow(struct sluice_file *f, struct iovec *iov, int iov_count,
				 size_t length, uint64_t offset, unsigned flags,
				 struct sluice_loan **out);

/* Gives a loan back; any thread, once. NULL is nothing. */
SLUICE_API void sluice_give_back(struct sluice_loan *loan);

/* --- sizes and space --- */

/* The size of the file, bytes. */
SLUICE_API uint64_t sluice_size(struct sluice_file *f);

/*
 * Sets the size; what is cut off is gone, what is added reads as zeros. -EBADF: not open for
 * writing. -EFBIG: above 8 TiB. -EOPNOTSUPP: shorter, and the store has no truncate(). Else the
 * store's error.
 */
SLUICE_API int sluice_truncate(struct sluice_file *f, uint64_t size);

/* Modes of sluice_fallocate(), or'ed; as FALLOC_FL_*. */
#define SLUICE_KEEP_SIZE  1  /* the size stays as it is */
#define SLUICE_PUNCH_HOLE 2  /* with SLUICE_KEEP_SIZE: the range reads as zeros, takes no room */
#define SLUICE_ZERO_RANGE 16 /* the range reads as zeros */

/*
 * As fallocate(2): makes room on the device for `length` > 0 bytes at `offset`, so that writes
 * there do not fail for want of it, or what `mode` says. -EBADF: not open for writing. -EINVAL: no
 * length, or the range wraps. -EFBIG. -ENOSPC. -EOPNOTSUPP: another mode, or the file system or
 * store cannot. Else the store's error.
 */
SLUICE_API int sluice_fallocate(struct sluice_file *f, int mode, uint64_t offset, uint64_t length);

#define SLUICE_SEEK_DATA 3
#define SLUICE_SEEK_HOLE 4

/*
 * The first byte at or after `offset` that is data (was ever written), or in a hole, as lseek(2);
 * the end of the file counts as a hole. -ENXIO: at or past the end, or no data follows. -EINVAL:
 * another `whence`.
 */
SLUICE_API int64_t sluice_seek(struct sluice_file *f, uint64_t offset, int whence);

/* --- making safe --- */

/*
 * Writes what is dirty of the file, and makes it and the size safe: when 0 is returned, all that
 * was written before the call will be there after a crash. The error of data that could not be
 * written is returned to every open file, each time, until it is safe or discarded; the data stays
 * dirty and is tried again each time.
 */
SLUICE_API int sluice_fsync(struct sluice_file *f);

/* The same without times and what else is not needed to read the data back. */
SLUICE_API int sluice_fdatasync(struct sluice_file *f);

/* Flags of sluice_sync_file_range(), or'ed; as SYNC_FILE_RANGE_*. */
#define SLUICE_WAIT_BEFORE 1 /* wait for pages of the range being written */
#define SLUICE_WRITE       2 /* start writing its dirty pages */
#define SLUICE_WAIT_AFTER  4 /* wait for them */

/*
 * As sync_file_range(2): starts and waits for the writing of the pages in `length` bytes at
 * `offset` (length 0: to the end), as `flags` say. Makes nothing safe in a device with a cache.
 * -EINVAL: other flags, or the range wraps. With both SLUICE_WRITE and SLUICE_WAIT_AFTER the error
 * of data that could not be written.
 */
SLUICE_API int sluice_sync_file_range(struct sluice_file *f, uint64_t offset, uint64_t length,
				      unsigned flags);

/* Advice on a range, or (the first three, and NOREUSE) on the open file; as POSIX_FADV_*. */
#define SLUICE_NORMAL     0 /* nothing special: the default */
#define SLUICE_RANDOM     1 /* no readahead */
#define SLUICE_SEQUENTIAL 2 /* twice the readahead */
#define SLUICE_WILLNEED   3 /* start reading the range into the cache */
#define SLUICE_DONTNEED   4 /* start writing what is dirty of the range, drop what is clean */
#define SLUICE_NOREUSE    5 /* reads through this open do not count as use */

/* As posix_fadvise(2); length 0: to the end. 0 or -EINVAL: no such advice, or the range wraps. */
SLUICE_API int sluice_advise(struct sluice_file *f, uint64_t offset, uint64_t length, int advice);

/* --- tracing --- */

#define SLUICE_EVENT_FIELDS 14

/*
 * A decision of the throttle or the flusher, under the name and with the fields of the kernel's
 * tracepoint (sluice_event_name(), sluice_event_field()). Sizes are in pages of 4096 bytes, rates
 * in KiB/s, times in ms, as there. This struct never grows.
 */
struct sluice_event {
	uint64_t time_ns;                   /* CLOCK_MONOTONIC */
	uint32_t kind;                      /* 0, 1, ...: which tracepoint */
	uint32_t thread;                    /* gettid() of the thread that came by */
	int64_t field[SLUICE_EVENT_FIELDS]; /* in the order of sluice_event_field(); then unset */
};

/*
 * Starts to record events of the cache, into rings of at least `events` events a thread (0: 4096;
 * at most 2^18). When a ring is full the oldest give way. -EBUSY: it is on. -EINVAL. Memory.
 */
SLUICE_API int sluice_trace_start(struct sluice *c, size_t events);

/*
 * Moves up to `count` events, oldest first, into `out`, and returns how many; does not wait for
 * any. *lost (may be NULL) becomes the number of events that gave way before they were read, since
 * the start. -ENODATA: tracing is off. One thread reads at a time.
 */
SLUICE_API ssize_t sluice_trace_read(struct sluice *c, struct sluice_event *out, size_t count,
				     uint64_t *lost);

/* Ends recording and drops what was not read. 0 or -ENODATA: it is off. */
SLUICE_API int sluice_trace_stop(struct sluice *c);

/* The name of a kind of event, "balance_dirty_pages"; NULL: there is none. Strings that stay. */
SLUICE_API const char *sluice_event_name(unsigned kind);
/* The name of its field i, "nr_dirty"; NULL: it has none. */
SLUICE_API const char *sluice_event_field(unsigned kind, unsigned i);
/*
 * Writes the event as the kernel would ("NAME: FIELD=VALUE ..."), cut to `size` with the NUL, and
 * returns the length it would have, as snprintf(3). -EINVAL: no such kind.
 */
SLUICE_API int sluice_event_print(const struct sluice_event *e, char *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
