/* SPDX-License-Identifier: MIT */
/* Tenants in writeback: what only a cache that has some needs. */
#ifndef SLUICE_WRITEBACK_TENANT_H
#define SLUICE_WRITEBACK_TENANT_H

#include "writeback/position.h"
#include "writeback/wb.h"

static inline struct tenants *writeback_tenants(const struct writeback *all)
{
	return atomic_load_explicit(&all->cache->tenants, memory_order_acquire);
}

/* The table of tenants, made if there is none. NULL: no memory. */
struct tenants *writeback_make_tenants(struct writeback *all);
/*
 * A tenant goes away: nobody acts for it from now on, and its inodes go to the devices' own
 * wbs one by one, with others let in between. What it has dirty is written in its time.
 */
#define TENANT_CLOSE_STEP 64
struct tenant_closing {
	u64 inodes;     /* that changed hands, or were not its any more */
	u64 longest_ns; /* of the steps between which others are let in */
};
void writeback_close_tenant(struct writeback *all, struct tenant *t, struct tenant_closing *out);

/* --- tenant.c: the domain as throttle and flusher see it */

struct domain_look {
	struct limits limits;
	u64 nr_dirty; /* without writeback */
	struct position at;
	u64 pos_ratio;
};

/* The wb of the calling task's tenant on a device; the device's own if it has none. May sleep. */
struct wb *wb_of_task(struct wb *root);
/* A tenant's wb on a device if it has one, or NULL. */
static inline struct wb *wb_of_tenant(const struct wb *root, u32 id)
{
	struct wb *_Atomic *of = root->of_tenant;

	return of ? atomic_load_explicit(&of[id], memory_order_acquire) : NULL;
}

/* The same of a tenant that is open: not that of one who had its place before. */
static inline struct wb *wb_of_open_tenant(const struct wb *root, struct tenant *t)
{
	return atomic_load_explicit(&t->device_book[root->index], memory_order_acquire)
		       ? wb_of_tenant(root, t->id)
		       : NULL;
}

/* Limits of a tenant, and what it has dirty and in flight as the policy counts. */
struct limits tenant_limits(struct writeback *all, struct tenant *t);
u64 tenant_dirty(const struct writeback *all, const struct tenant *t);
u64 tenant_in_flight(const struct writeback *all, const struct tenant *t);

/* A look at a tenant's domain, from one at the whole cache's. */
void tenant_look(struct wb *wb, const struct position *cache, struct domain_look *d);
/* The device's side of it; whether the wb has more dirty than its part (dirty_exceeded). */
bool tenant_look_at_wb(struct wb *wb, const struct position *cache, struct domain_look *d);
void tenant_update_limit(struct wb *wb, const struct domain_look *d, u64 now);
/* What is noted of a write that made pages of a folio of tenant `id` dirty. */
void tenant_note_dirtied(struct inode *inode, u32 id, bool folio_was_clean);
/*
 * Whether a tenant's task is free: below its ceiling, if the cache is below its own, or below its
 * floor, whatever the others do. *interval: when to look again.
 */
bool tenant_is_free(struct wb *wb, struct domain_look *d, bool cache_is_free, u64 *interval);
bool tenant_over_background(struct wb *wb);
void tenant_note_sleep(struct wb *wb, u64 ns);

/* --- ownership.c: whose an inode is */

#define VOTES 3 /* for who owns it now, for who won the last round, for the candidate */
struct vote {
	u32 id[VOTES];
	u64 pages[VOTES];
};

/* Before a page of the inode becomes dirty: gives it a home if it has none that is open. */
void inode_settle(struct inode *inode);
/* The inode has left the cache: its next write finds it a home anew. It is clean. */
void inode_unsettle(struct inode *inode);
void vote_begin(struct vote *v, struct inode *inode);
void vote_add(struct vote *v, u32 id, u64 pages);
/* Ends a round; may name an heir. */
void vote_end(struct vote *v, struct inode *inode);
/*
 * Moves the inode to its heir if it has one: true if it did. `held`: the caller is the flusher who
 * is at it; he is not any more if it moved. Else one that a flusher is at stays, and he moves it.
 */
bool inode_inherit(struct inode *inode, bool held);
/* The inode ends: nobody is at it any more. */
void inode_leave_tenants(struct inode *inode);
/* Moves it to a wb of the same device. False: a flusher is at it. */
bool inode_move(struct inode *inode, struct wb *to);
/* Moves one of those on the lists of a wb without a flusher to the device's own; false: none is. */
bool wb_hand_over_one(struct wb *wb);

/* --- foreign.c: reference 10.5 */

/* A folio of tenant `id` became dirty in the inode. */
void foreign_note(struct inode *inode, u32 id);
/* A task of the wb's tenant is about to be throttled. */
void foreign_flush(struct wb *wb);

/* --- stake.c: foreign=targeted */

/* Pages of the inode became dirty, of the calling task's tenant. */
void stake_note(struct inode *inode);
/* Writes a tenant's own pages while it has more of them dirty than it should. */
s64 stakes_write(struct wb *wb);
/* Forgets all stakes of a wb, a few at a time. */
void stakes_drop(struct wb *wb, struct tenant_closing *c);
/* Ends a step that began then. */
void tenant_closing_step(struct tenant_closing *c, u64 inodes, u64 began_ns);
/* The inode ends. */
void stakes_free(struct inode *inode);
/* The same when all flushers have ended, and their lists with them. */
void stakes_discard(struct inode *inode);

#endif
