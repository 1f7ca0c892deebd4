/* SPDX-License-Identifier: MIT */
/*
 * What the file system under a file adds to the page cache, as data: a row for each. How the
 * kernel around it caches and paces is the policy's business; what of that a file system
 * cannot do, fs_apply() turns into what it does instead.
 */
#ifndef SLUICE_WRITEBACK_FS_H
#define SLUICE_WRITEBACK_FS_H

#include "writeback/policy.h"

/* FS_NONE: files whose metadata is nobody's concern. */
enum fs_kind { FS_NONE, FS_XFS, FS_EXT4, FS_KINDS };

struct fs {
	const char *name;
	bool buffer_heads;   /* the state of blocks hangs on buffer heads */
	bool pass_wraps;     /* write-out that reaches the end of a file goes on from its start */
	bool readers_wait;   /* for a writer of the file, who may sleep */
	u32 commit_ms;       /* changed metadata is committed after so long; 0: only by fsync */
	u32 log_bytes;       /* what a commit writes first, but for the blocks below */
	u32 inodes_a_block;  /* so many changed inodes share a block of the log; 0: it has none */
	u32 log_block_bytes; /* size of such a block */
	u32 seal_bytes;      /* what a commit writes last, once the rest is safe; 0: nothing */
};

const struct fs *fs_of(enum fs_kind kind);
/* The kind of that name, or FS_NONE. */
enum fs_kind fs_find(const char *name);
/* Makes of a policy what a file on that file system gets of it. */
void fs_apply(const struct fs *fs, struct policy *p);

#endif
