/* SPDX-License-Identifier: MIT */
/* What becomes of limits and writers when a device fails for good; see outage.c. */
#ifndef SLUICE_WRITEBACK_OUTAGE_H
#define SLUICE_WRITEBACK_OUTAGE_H

#include "writeback/wb.h"

/* An I/O of write-out failed, the data stays dirty; was done. After retry.c was told. */
void outage_note_failure(struct inode *inode);
void outage_note_success(struct inode *inode);
/* The inode is being freed; nothing of it is in flight. */
void outage_end(struct inode *inode);

/* Pages that failing files owe, as the policy counts; 0: nothing fails. A tick old at most. */
u64 outage_pages(struct writeback *all);
/* Of them, about those of a tenant: a file counts for the one on whose lists it is. */
struct tenant;
u64 outage_pages_of(struct writeback *all, const struct tenant *t);
/*
 * Whether writers of the inode are to see them: it fails, or its device is down. *hopeless
 * becomes the error they get over the limit, or 0.
 */
bool outage_concerns(struct inode *inode, int *hopeless);
/* More than half of the cache waits for what is beyond hope: who needs memory waits in vain. */
bool outage_fills_memory(struct cache *c);

#endif
