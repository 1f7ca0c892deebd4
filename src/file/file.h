/* SPDX-License-Identifier: MIT */
/*
 * Inodes and open files. An inode is one file: a store on a device and the pages
 * cached of it. A file is one open of it, with its readahead state. All calls block
 * the calling task, are safe from any task, take offsets and lengths in bytes, and
 * return 0 or a count or a negative errno.
 *
 * Locks: under write_lock=folio, writes within the size share the inode's lock one step of at most
 * a folio at a time; writes that grow the file, appends, truncation and fallocate hold it
 * alone. Reads take none. So a read that meets a write of several folios may see some of them
 * old and some new, and one that meets a write of the same folio may see part of the bytes
 * of that; under write_lock=inode reads and writes exclude each other as whole calls.
 *
 * Errors that any call on a file may give: -EBADF, the file was not opened for this; -EINVAL, a
 * range that wraps around or an unknown flag; -EIO and what else the device answers; -ENOMEM, no
 * memory for descriptors of pages. They are not named again below.
 */
#ifndef SLUICE_FILE_FILE_H
#define SLUICE_FILE_FILE_H

#include "file/engine.h"
#include <sys/types.h>
#include <sys/uio.h>

struct inode;
struct file;

enum file_flags {
	/*
	 * Reads and writes go past the cache (written back and dropped first). One that meets a
	 * write through the cache of a part of the same block may be undone by it in that block.
	 */
	FILE_DIRECT = 1,
	FILE_SYNC = 2,     /* each write is on the device when it returns */
	FILE_APPEND = 4,   /* each write goes to the end of the file, wherever it says */
	FILE_NO_READ = 8,  /* reads give -EBADF */
	FILE_NO_WRITE = 16 /* writes, truncation and fallocate give -EBADF */
};

/* Flags of one read or write. */
enum file_io_flags {
	/*
	 * -EAGAIN instead of any wait: for a lock, for a page that is not cached or being filled,
	 * for memory, in the throttle. What was done before counts: a partial count is no error.
	 * With FILE_DIRECT, with FILE_IO_DSYNC and on FILE_SYNC files there is no way not to wait:
	 * -EOPNOTSUPP.
	 */
	FILE_IO_NOWAIT = 1,
	/* Writes: on return the data is on the device, and what is needed to read it back. */
	FILE_IO_DSYNC = 2,
	/*
	 * Leaves nothing in the cache. A write starts write-out of its range before it returns, and
	 * its pages go as soon as they are written; a read drops what it brought in, but not
	 * what was cached before. It is a service, not a promise: folios that others use stay; a
	 * page that was still being written by the write before goes with the next one that
	 * continues it, or in its time; and with NOWAIT all go in their time.
	 */
	FILE_IO_DONTCACHE = 4,
};

enum file_range_flags { FILE_WAIT_BEFORE = 1, FILE_WRITE = 2, FILE_WAIT_AFTER = 4 };

enum file_advice {
	FILE_ADV_NORMAL,
	FILE_ADV_SEQUENTIAL,
	FILE_ADV_RANDOM,
	FILE_ADV_WILLNEED,
	FILE_ADV_DONTNEED,
	FILE_ADV_NOREUSE,
};

/* Modes of file_fallocate(); see there for which may meet. */
enum file_allocate_flags { FILE_KEEP_SIZE = 1, FILE_PUNCH_HOLE = 2, FILE_ZERO_RANGE = 4 };

enum file_seek_what { FILE_SEEK_DATA, FILE_SEEK_HOLE };

/* --- inodes */

/* A new inode, empty, on device `device` (0: the first added), blocks of block_bytes. */
int inode_create(struct engine *e, unsigned device, u32 block_bytes, struct inode **out);
/*
 * The same over a store that is there already, on that device: the inode's size is the store's. On
 * success the inode owns the store and destroys it at its end; on an error it stays the caller's.
 * -EINVAL: no such device, a block size that is not a power of two in 512..4096, or a store of
 * another device. -EFBIG: larger than the cache can address.
 */
int inode_create_on(struct engine *e, unsigned device, u32 block_bytes, struct store *store,
		    struct inode **out);
/* Drops it with all cached pages, dirty ones too (their debt is cancelled). No file is open. */
void inode_destroy(struct inode *inode);
/*
 * In an engine that outlives its process: before the inode is written to, how it is found again.
 * The first is for a file of the system's that is open; the second for a store of somebody's own,
 * which he alone could find: its data can only be set aside. 0, -ENOSPC: there is no room for it in
 * the arena's file; -ENFILE.
 */
int inode_survive_as_file(struct inode *inode, int fd);
int inode_survive_as_store(struct inode *inode);
/* Its last name is gone: what is unwritten of it need not be kept. */
void inode_note_unlinked(struct inode *inode);
u64 inode_size(struct inode *inode);
struct store *inode_store(struct inode *inode);
/* A word for whoever made the inode: to find his own by it, in engine_losses.lost for one. */
void inode_set_owner(struct inode *inode, void *owner);
void *inode_owner(const struct inode *inode);
/* Bytes that are not safe: of pages dirty or in flight, in whole pages. */
u64 inode_unwritten_bytes(struct inode *inode);
/*
 * Sets the size; what is cut off is gone. 0, -EFBIG, -EOPNOTSUPP (to make a caller's own store
 * shorter that has no truncate), or the store's error: then the file keeps its size, but
 * what was to be cut off may be older data, or zeros.
 */
int inode_truncate(struct inode *inode, u64 size_bytes);
/* Makes `size_bytes` exist and count as written on the device, without any I/O. */
int inode_lay_out(struct inode *inode, u64 size_bytes);
/*
 * Shows the dirty bytes below the size, in file order, in pieces that lie in one place in memory
 * until fn returns; fn calls nothing of the engine. In an engine with contents.
 */
void inode_show_unwritten(struct inode *inode,
			  void (*fn)(void *ctx, u64 offset, const void *data, u64 length),
			  void *ctx);
/* That of the first write-out that failed, of data that is not safe yet; or 0. */
int inode_error(struct inode *inode);
/*
 * Gives up, on purpose, all that is cached of it, dirty or not; the size becomes the store's, and
 * the error of what could not be written ends. Waits for what is in flight.
 */
int inode_forget(struct inode *inode);
/* The same; shows what is given up, and not on the device, as inode_show_unwritten() does. */
int inode_forget_telling(struct inode *inode,
			 void (*fn)(void *ctx, u64 offset, const void *data, u64 length),
			 void *ctx);

/* --- files */

/* -EINVAL: flags that exclude each other (NO_READ with NO_WRITE); -ENOMEM. */
int file_open(struct inode *inode, unsigned flags, struct file **out);
void file_close(struct file *f);
struct inode *file_inode(struct file *f);

/*
 * Reads what there is up to the end of the file: the count, less than asked for at the end of
 * file or when an error or NOWAIT ends it early, 0 at or past the end. buf may be NULL in an
 * engine without contents.
 */
ssize_t file_pread(struct file *f, void *buf, size_t length, u64 offset);
/*
 * Writes; the count is less than asked for when an error or NOWAIT ends it early. Space is
 * reserved on the device before the data is accepted, so a device that is full says so here:
 * -ENOSPC, and the file is as it was from there on. -EFBIG past 8 TiB.
 */
ssize_t file_pwrite(struct file *f, const void *buf, size_t length, u64 offset);
/*
 * Has fetched from memory, if it is cached, what a read or write there will look at first: for
 * those who know where they go next and do something else before. Nothing that could be seen.
 */
void file_expect(const struct file *f, u64 offset);

/*
 * The same from and to several buffers in turn, with flags (enum file_io_flags) for this call.
 * Direct I/O wants the parts aligned like the whole. -EINVAL also: lengths that add up to more
 * than SSIZE_MAX. The iovecs are only read, and not needed after the call.
 */
ssize_t file_preadv(struct file *f, const struct iovec *iov, unsigned count, u64 offset,
		    unsigned flags);
ssize_t file_pwritev(struct file *f, const struct iovec *iov, unsigned count, u64 offset,
		     unsigned flags);
/*
 * Writes at the end of the file, which is chosen with the file locked: of several appenders each
 * gets a place of its own, without gaps, even if one has to sleep in between (it does so before
 * the place is chosen). *offset: where it went. A partial count is possible as for any
 * write; the next append then goes right behind it.
 */
ssize_t file_append(struct file *f, const struct iovec *iov, unsigned count, unsigned flags,
		    u64 *offset);

/* inode_truncate() for a file that is open for writing. */
int file_truncate(struct file *f, u64 size_bytes);
/*
 * As fallocate(2). Mode
 *	0			space for the range; the file grows to its end if that lies beyond
 *	KEEP_SIZE		space for the range, the size stays
 *	PUNCH_HOLE|KEEP_SIZE	whole pages of the range are given back and read as zeros; the
 *				parts of pages at its edges are zeroed
 *	ZERO_RANGE[|KEEP_SIZE]	the range reads as zeros and has its space; may grow the file
 * Anything cached of the range, dirty or being written, is zeroed or gone with it. -EINVAL:
 * length 0; -EOPNOTSUPP: other modes, and what the store cannot do (a caller's store without
 * `reserve`: modes 0 and KEEP_SIZE); -ENOSPC; -EFBIG. The file is locked alone meanwhile. When the
 * store would not give a range back, dirty data there stays; the rest may be zeros.
 */
int file_fallocate(struct file *f, unsigned mode, u64 offset, u64 length);
/*
 * As lseek(2) with SEEK_DATA and SEEK_HOLE, over cache and device together: the first offset at or
 * after `offset` that is in data, or in a hole (the end of the file is one). Dirty data is data,
 * wherever it lies; the grain is a page. -ENXIO: `offset` is at or past the end of
 * the file, or no data follows. It is a snapshot: others may write meanwhile.
 */
s64 file_seek(struct file *f, u64 offset, enum file_seek_what what);

/* --- safety */

/*
 * Returns when everything that was written before is on the device. An error is that of data
 * that could not be written; it stays dirty, is tried again, and the error is reported
 * until the data is safe.
 */
int file_fsync(struct file *f, bool data_only);
/*
 * As sync_file_range(2): waits for pages of the range in flight, starts the write-out of dirty
 * ones, waits for it, as `flags` say. Length 0: to the end. The device is not flushed. 0, or,
 * if it both writes and waits, the error of data that could not be written.
 */
int file_sync_range(struct file *f, u64 offset, u64 length, unsigned flags);

/* --- hints and loans */

/*
 * As posix_fadvise(2); length 0: to the end of the file.
 *	NORMAL		readahead as the device was added with
 *	SEQUENTIAL	twice that; and with it NORMAL and RANDOM, for this file, from now on
 *	RANDOM		none: what is read is read
 *	WILLNEED	starts reading what is not cached, as far as the larger of the readahead
 *			window and the largest I/O of the device; waits for none of it, nor for
 *			memory: what there is no free or clean memory for is left out
 *	DONTNEED	starts write-out of dirty pages without waiting, drops clean whole pages
 *	NOREUSE		reads of this file do not count as use (until NORMAL)
 */
int file_advise(struct file *f, u64 offset, u64 length, enum file_advice advice);

/*
 * Lends cached bytes in place, without a copy: reads what is not cached first, as file_pread()
 * does, and gives up to `count` pieces in iov. Returns the bytes lent: less than `length` at
 * the end of the file, when `count` pieces do not reach further, or when the share of the
 * cache that may be lent at once is used up; 0 at or past the end of the file: nothing is lent,
 * *out is NULL.
 *
 * The bytes may be read until file_give_back(), from any task, and stay where they are: no reclaim,
 * truncation or split moves them. They are the cache's own memory: when somebody
 * writes the range, or cuts the file there, they may change under the reader's eyes, or may
 * stay as they were. So they are a view and no snapshot. They may not be written to.
 *
 * At most an eighth of the cache's memory may be on loan: -ENOBUFS, nothing could be lent for
 * that reason. -EOPNOTSUPP: the engine keeps no contents. Flags: FILE_IO_NOWAIT. The file
 * may be closed and the inode destroyed before the loan ends; the engine may not.
 */
struct file_loan;
ssize_t file_borrow(struct file *f, u64 offset, size_t length, struct iovec *iov, unsigned count,
		    unsigned flags, struct file_loan **out);
void file_give_back(struct file_loan *loan);
bool engine_has_loans(struct engine *e);

/* Each task that wrote calls this as it ends (it leaves unpaid dirtying to others). */
void engine_task_exit(struct engine *e);

#endif
