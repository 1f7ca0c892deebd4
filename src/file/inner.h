/* SPDX-License-Identifier: MIT */
/* What the files of this folder share. */
#ifndef SLUICE_FILE_INNER_H
#define SLUICE_FILE_INNER_H

#include "cache/readahead.h"
#include "cache/state.h"
#include "file/file.h"
#include "writeback/wb.h"

#define FILE_MAX_BYTES STORE_SIZE_MAX /* what the cache takes, the device can hold */

static_assert(FILE_MAX_BYTES >> PAGE_SHIFT <= INDEX_MAX_PAGES, "every page has a number");

struct engine {
	struct cache cache;
	struct writeback all;
	struct mutex inodes_lock; /* protects the list; may be held while waiting for I/O */
	struct list_node inodes;
};

struct file {
	struct inode *inode;
	unsigned flags;
	struct mutex ra_lock; /* protects ra */
	struct readahead ra;
	bool noreuse; /* reads do not count as use */
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
	};
}

/* Pins and locks the folio at or after `page` that begins before `end`; NULL: there is none. */
struct folio *lock_folio_from(struct mapping *m, u64 page, u64 end);
static inline void put_locked(struct cache *c, struct folio *f)
{
	folio_unlock(f);
	folio_unpin(c, f);
}

/* Makes what the device has answered for safe in it too, and metadata with it. 0 or an error. */
int inode_flush_device(struct inode *inode);
/* The same for one file: its metadata, or only what its data needs, and what was answered. */
int inode_make_safe(struct inode *inode, bool data_only);

/* A call has changed the inode's times, and its size if it grew. */
void inode_changed(struct inode *inode, bool grew);

/* Drops clean folios that lie in [first, end) pages as a whole; returns the pages dropped. */
u64 inode_invalidate(struct inode *inode, u64 first, u64 end);

/* Past the cache, which agrees with the device over the range before and after. */
ssize_t direct_read(struct file *f, void *buf, size_t length, u64 offset);
ssize_t direct_write(struct file *f, const void *buf, size_t length, u64 offset);

#endif
