/* SPDX-License-Identifier: MIT */
/*
 * File systems, as rows of a table. What they write for their metadata was read off the
 * requests (tracepoint block_rq_issue) of Linux 6.18 on a device with a write cache, with 16 files
 * and with 1:
 *
 * XFS	for an fsync: flush, 1 KiB of log, flush.
 *
 * ext4	for an fsync, and every 5 s while anything is written, since that changes times: a
 *	descriptor and the blocks of changed inodes in one write, flush, the commit block, flush.
 *	16 inodes have a block; the first file's is the twelfth, so 16 new files have two.
 *
 * Neither for an fdatasync, unless the file has grown. A pass of ext4 wraps (tracepoints
 * ext4_writepages and ext4_writepages_result), where one of iomap ends with the file (reference
 * 6.5). XFS has readers share the lock of writers (reference 2.1), ext4 has them take none.
 */
#include "writeback/fs.h"
#include <string.h>

static const struct fs rows[FS_KINDS] = {
	[FS_NONE] = { .name = "none", .readers_wait = true },
	[FS_XFS] = { .name = "xfs", .readers_wait = true, .log_bytes = 1024 },
	[FS_EXT4] = { .name = "ext4",
		      .buffer_heads = true,
		      .pass_wraps = true,
		      .commit_ms = 5000,
		      .log_bytes = 8192,
		      .inodes_a_block = 16,
		      .log_block_bytes = 4096,
		      .seal_bytes = 4096 },
};

const struct fs *fs_of(enum fs_kind kind)
{
	assert(kind < FS_KINDS);
	return &rows[kind];
}

enum fs_kind fs_find(const char *name)
{
	for (enum fs_kind kind = FS_NONE + 1; kind < FS_KINDS; kind++)
		if (!strcmp(rows[kind].name, name))
			return kind;
	return FS_NONE;
}

void fs_apply(const struct fs *fs, struct policy *p)
{
	if (!fs->buffer_heads)
		return;
	if (p->accounting == ACCOUNT_PAGE) /* that patch counts in iomap's folios (reference 3.2) */
		p->accounting = ACCOUNT_FOLIO;
	if (p->small_write == SMALL_WRITE_SPLIT || p->small_write == SMALL_WRITE_EVICT)
		p->small_write = SMALL_WRITE_KEEP; /* so do these (section 12) */
	p->writeout = WRITEOUT_BLOCK;
	if (p->ext4_folios == EXT4_FOLIOS_SINGLE)
		p->max_order = 0;
}
