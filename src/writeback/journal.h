/* SPDX-License-Identifier: MIT */
/* The journal of a file system, as far as a device sees it; see journal.c. */
#ifndef SLUICE_WRITEBACK_JOURNAL_H
#define SLUICE_WRITEBACK_JOURNAL_H

#include "writeback/fs.h"
#include "writeback/wb.h"

struct journal;

/* NULL in *out if the file system has none. 0 or a negative errno. */
int journal_create(struct device *device, const struct fs *fs, struct journal **out);
/* Ends its task; what is under way is waited for. */
void journal_stop(struct journal *j);
void journal_destroy(struct journal *j);

/* Metadata of the inode changes: times, and its size if it grows. */
void journal_note(struct journal *j, struct inode *inode, bool grows);
/*
 * The transaction that a sync of the inode has to commit, or 0: of its data only, one in which it
 * has grown.
 */
u64 journal_owed(struct journal *j, const struct inode *inode, bool data_only);
/* Commits that transaction, data that was written before included. 0 or an error. */
int journal_commit(struct journal *j, u64 tid);
/* Makes everything safe that was written or has changed. 0 or an error. */
int journal_sync(struct journal *j);

#endif
