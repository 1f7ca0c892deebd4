/* SPDX-License-Identifier: MIT */
/* What the files of this folder share. */
#ifndef SLUICE_FILE_INNER_H
#define SLUICE_FILE_INNER_H

#include "cache/readahead.h"
#include "cache/state.h"
#include "file/buffers.h"
#include "file/file.h"
#include "writeback/tenant.h"
#include <errno.h>

#define FILE_MAX_BYTES STORE_SIZE_MAX /* what the cache takes, the device can hold */

static_assert(FILE_MAX_BYTES >> PAGE_SHIFT <= INDEX_MAX_PAGES, "every page has a number");

struct engine {
	struct cache cache;
	struct writeback all;
	struct mutex inodes_lock; /* protects the lists, inodes' walkers and last_ino */
	struct list_node inodes, syncers;
	struct cond inodes_left; /* an inode has no walker any more */
	u64 last_ino;
	bool registers;         /* immutable: the devices know the cache's memory */
	_Atomic u64 lent_pages; /* of folios on loan */
};

struct file {
	struct inode *inode;
	unsigned flags;
	/* buffered, with contents, its readers take no lock, calls are not modelled; can be read */
	bool plain;
	/* ... or can be written in place, and nothing is asked of a write but to be in the cache */
	bool plain_write;
	struct mutex ra_lock; /* protects ra and error_since */
	struct readahead ra;
	u32 error_since;      /* the failures it was told of; see error_seq.h */
	_Atomic bool noreuse; /* reads do not count as use */
	_Atomic u64 tenant;   /* whom its writes are for, as tenant_word(); 0: the thread's */
};

#define FILE_IO_ALL ((unsigned)(FILE_IO_NOWAIT | FILE_IO_DSYNC | FILE_IO_DONTCACHE))

/* A read in progress: [position, end) bytes are still to be copied. */
struct read {
	struct file *file;
	struct buffers to;
	u64 position, end;
	unsigned flags; /* enum file_io_flags */
	bool goes_on;   /* the two pages behind what was read are known to be cached */
	bool missed;    /* the last folio was not cached, or not valid */
};

/* A write in progress; the step is [position, position + bytes). */
struct write {
	struct inode *inode;
	struct buffers from;
	bool zeros; /* instead of what `from` has */
	unsigned flags;
	u64 position, end;
	u64 bytes;
};

static inline const struct policy *inode_policy(const struct inode *inode)
{
	return &inode->wb->all->policy;
}

static inline u64 size_now(struct inode *inode)
{
	return atomic_load_explicit(&inode->size, memory_order_acquire);
}

static inline u64 pages_of(u64 bytes)
{
	return div_roundup(bytes, PAGE_SIZE);
}

static inline struct readahead_limits limits_for(struct inode *inode)
{
	return (struct readahead_limits){
		.eof_page = pages_of(size_now(inode)),
		.io_pages = inode->wb->io_pages,
		.file_order = inode_policy(inode)->readahead == READAHEAD_FILE_ORDER,
		.congested = device_is_congested(inode->wb->device),
	};
}

/* With register_memory: tells a device of all memory there is now, or that it must forget it. */
int engine_tell_memory(struct engine *e, struct device *d, bool forget);

/* Pins and locks the folio at or after `page` that begins before `end`; NULL: there is none. */
struct folio *lock_folio_from(struct mapping *m, u64 page, u64 end);
static inline void put_locked(struct cache *c, struct folio *f)
{
	folio_unlock(f);
	folio_unpin(c, f);
}

/*
 * The folio at a read's position, pinned, with what is wanted of it valid. NULL and *error, which
 * is -ESTALE if it is worth another look.
 */
struct folio *read_folio(struct read *r, int *error);
/* Readahead did not bring the page in: reads a single one, whatever it takes. 0 or an error. */
int read_single(struct mapping *m, u64 page, u32 folio_flags);
/* The way of those reads that do not hit. */
ssize_t read_slowly(struct file *f, void *buf, size_t length, u64 offset);
/* Tells readahead how far the read came. */
void read_note_end(struct read *r);

/* A write of any kind, for the tenant of the thread; *offset says where, or is told. */
ssize_t write_for_thread(struct file *f, const struct iovec *iov, unsigned count, size_t length,
			 u64 *offset, unsigned flags, bool append);
/* The same, for the tenant of the open file if it has one. */
ssize_t write_from(struct file *f, const struct iovec *iov, unsigned count, size_t length,
		   u64 *offset, unsigned flags, bool append);
/* Bytes of the next step: to the end of the largest possible folio, or of the page (6.1). */
u64 write_step_bytes(const struct write *w);
/* Makes the step's blocks dirty in its locked, pinned folio, and enters that everywhere. */
void write_make_dirty(struct write *w, struct folio *f);
/* Writes one step into its folio, or less. The inode is locked, alone if the file grows. */
int write_step(struct write *w);

/* Locks the inode alone; with FILE_IO_NOWAIT in the flags 0 or -EAGAIN. */
static inline int lock_inode(struct inode *inode, unsigned flags)
{
	if (!(flags & FILE_IO_NOWAIT))
		rwsem_lock(&inode->lock);
	else if (!rwsem_trylock(&inode->lock))
		return -EAGAIN;
	return 0;
}

/* --- survive.c; all do nothing where nothing is to outlive the process */

void inode_note_size(struct inode *inode, u64 size_bytes);
/*
 * Around a change of the file that throws accepted data away: it counts as made from the first on,
 * whatever becomes of us. The inode is locked alone.
 */
void inode_promise_size(struct inode *inode, u64 size_bytes);
void inode_promise_zeros(struct inode *inode, u64 from, u64 to);
void inode_promise_kept(struct inode *inode);
/* The end of the inode, which is clean. */
void inode_forget_survival(struct inode *inode);

/* Sets the size of an inode that is locked alone, here and for its store's tail. */
void inode_set_size(struct inode *inode, u64 size_bytes);
/*
 * Before the file grows: takes away what a failed write may have left past its end, where zeros are
 * to be. 0, or the store's error: then it must not grow. Locked alone.
 */
int inode_clear_litter(struct inode *inode);
/* inode_truncate() of an inode that is locked alone. */
int inode_resize(struct inode *inode, u64 size_bytes);
/*
 * Between the write-out of a sync and its flush: waits for a cut under way. Data that it has taken
 * out of the cache is not written any more, and what is older is on the device until the cut is.
 * Who holds the inode's lock never waits.
 */
void inode_wait_cut(struct inode *inode);
/* From now on writes below the size, too, ask for room, if the device may be full. */
void inode_note_holes(struct inode *inode);
/*
 * Makes room for a write of [from, end); the inode is locked, alone if the file grows. Where the
 * file grows, by more than is asked for, so that not each write has to ask. `nowait`: -EAGAIN if
 * the device has to be asked.
 */
int inode_reserve(struct inode *inode, u64 from, u64 end, bool nowait);
/* Starts write-out of what is dirty in [first, last] pages. 0 or -ENOMEM. */
int inode_start_write(struct inode *inode, u64 first, u64 last);

/* Under errors=linux: 0 or the error that this open file has not been told of yet. */
int file_untold_error(struct file *f);
/* The inode after `last` (NULL: the first), held in the engine's list; lets go of `last`. */
struct inode *next_inode(struct engine *e, struct inode *last);
/* Makes what the device has answered for safe in it too, and metadata with it. 0 or an error. */
int inode_flush_device(struct inode *inode);
/* The same for one file: its metadata, or only what its data needs, and what was answered. */
int inode_make_safe(struct inode *inode, bool data_only);

/* A call has changed the inode's times; `grew`: and what is needed to read its data back. */
void inode_changed(struct inode *inode, bool grew);
/* A write came up to `end`. */
void inode_wrote(struct inode *inode, u64 end);

/*
 * The last word on an inode whose last sync gave `error`: nobody writes it from here on, what was
 * on its way has landed, and what is not on its device then is lost and entered into the losses,
 * if there are any to be told. 0, or an error if data is lost or could not be made safe.
 */
int inode_end(struct inode *inode, int error, struct engine_losses *losses);

/* Whether a page is data, and not a hole: see seek.c. */
bool inode_has_data(struct inode *inode, u64 page);

/* Drops clean folios that lie in [first, end) pages as a whole; returns the pages dropped. */
u64 inode_invalidate(struct inode *inode, u64 first, u64 end);

/* Past the cache, which agrees with the device over the range before and after. */
ssize_t direct_read(struct file *f, const struct iovec *iov, unsigned count, size_t length,
		    u64 offset);
/* With `append` at the end of the file, which it tells in *offset. */
ssize_t direct_write(struct file *f, const struct iovec *iov, unsigned count, size_t length,
		     u64 *offset, bool append, unsigned flags);

#endif
