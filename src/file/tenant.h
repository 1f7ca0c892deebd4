/* SPDX-License-Identifier: MIT */
/*
 * Tenants of an engine: those among whom its dirty memory is divided (ledger/tenant.h). A write is
 * for the tenant of its open file, if that has one, else of the thread that makes it, else
 * for nobody in particular. What is read counts as the thread's tenant's memory.
 */
#ifndef SLUICE_FILE_TENANT_H
#define SLUICE_FILE_TENANT_H

#include "file/file.h"

struct tenant;

/* Of one tenant; zeros: the engine's own limits, all of memory, no floor. */
struct tenant_settings {
	u32 dirty_ratio, dirty_background_ratio; /* percent */
	u64 dirty_bytes, dirty_background_bytes; /* where not 0: instead of the ratio */
	u64 memory_bytes;                        /* that counts as its: memory.max */
	u64 floor_bytes;                         /* it is not throttled while it has less dirty */
};

/* Levels and totals in pages, as engine_stats has them of all. */
struct tenant_stats {
	u64 dirty, writeback;
	u64 debt, in_flight, cached;
	u64 thresh, background_thresh, floor;
	u64 dirty_max;
	u64 charged, written;
	u64 pages_dirtied, pages_written;
	u64 throttle_sleep_ns, throttle_sleeps;
};

/*
 * 0, -EEXIST, -EINVAL (no name or a long one, a ratio above 100, bytes of less than two pages),
 * -ENOSPC: there are 1,023, or what those that went away left is not gone; -ENOMEM.
 */
int engine_add_tenant(struct engine *e, const char *name, const struct tenant_settings *s,
		      struct tenant **out);
/* Changes the limits; 0 or -EINVAL. */
int engine_set_tenant(struct engine *e, struct tenant *t, const struct tenant_settings *s);
/*
 * It goes away: its inodes go to nobody in particular, a few at a time; what is dirty stays
 * charged to it until it is written. Who acts for it acts for nobody from now on.
 */
void engine_close_tenant(struct engine *e, struct tenant *t);
/* The same; says how many inodes that were, and how long the longest step took of those between
 * which others may go on. */
void engine_close_tenant_telling(struct engine *e, struct tenant *t, u64 *inodes, u64 *longest_ns);
/* That of the name, or NULL. */
struct tenant *engine_tenant(struct engine *e, const char *name);
/* The i-th that is open, or NULL. */
struct tenant *engine_tenant_at(struct engine *e, size_t i);
const char *engine_tenant_name(const struct tenant *t);
/* The name of one by its word (tenant_word()); "": it went away, and nothing of it is left. */
void engine_tenant_name_of(struct engine *e, u64 word, char *name, size_t size);
void engine_tenant_stats(struct engine *e, struct tenant *t, struct tenant_stats *out);
void engine_tenant_reset(struct engine *e, struct tenant *t); /* dirty_max */

/* The calling thread acts for t from now on, or for nobody. Returns what engine_restore() takes. */
u64 engine_act_for(struct tenant *t);
void engine_restore(u64 before);
/* Writes to the file are for t, whoever makes them; NULL: for the thread's. */
void file_set_tenant(struct file *f, struct tenant *t);
/* file_pwritev() for t, whatever file or thread say; NULL: for nobody in particular. */
ssize_t file_pwritev_for(struct file *f, struct tenant *t, const struct iovec *iov, unsigned count,
			 u64 offset, unsigned flags);
/* The inode is everybody's, as a file system's metadata is. */
void inode_set_shared(struct inode *inode, bool shared);

/* Audits what is whose: as engine_audit(), which calls it. */
bool engine_audit_tenants(struct engine *e, char *why, size_t why_size);

#endif
