// SPDX-License-Identifier: MIT
/*
 * Foreign dirty flushing. Linux writeback reference, 10.5: who makes pages dirty in an inode that
 * is not his, is throttled for them, but his flusher does not write them. So he remembers, in four
 * slots, whose inodes those were and when; and when he is about to be throttled, the wbs of
 * these owners are asked to write, 1.25 times what their owner has dirty: not the pages in
 * question, just about everything. While that is under way, and until he dirties anew, he does not
 * ask again.
 *
 * Inodes that are everybody's (a file system's metadata) are always somebody else's to most; under
 * skip-shared what is dirtied there is not remembered.
 */
#include "base/alloc.h"
#include "writeback/tenant.h"

#define REFRESH_SHARE 8 /* a slot is refreshed after 1/8 of the expiry, and 1 s at most */

struct foreign_work {
	struct wb_work work;
	struct tenant *tenant;
	u64 serial; /* of the tenant */
	u32 slot;
};

static u64 expire_ticks(const struct writeback *all)
{
	return (u64)writeback_vm(all).dirty_expire_centisecs * world_hz() / 100;
}

/* The slot to note it in, or NULL: all are being flushed. Lock held. */
static struct tenant_foreign *slot_for(struct tenant *t, u32 device, u32 owner, u64 serial, u64 now)
{
	struct tenant_foreign *oldest = NULL;
	u64 oldest_at = now;

	for (unsigned i = 0; i < TENANT_FOREIGN; i++) {
		struct tenant_foreign *s = &t->foreign[i];

		if (s->used && s->device == device && s->owner == owner && s->serial == serial)
			return s;
		if (s->at < oldest_at && !s->flushing) {
			oldest = s;
			oldest_at = s->at;
		}
	}
	if (oldest)
		*oldest = (struct tenant_foreign){
			.used = true, .device = device, .owner = owner, .serial = serial, .at = now
		};
	return oldest;
}

void foreign_note(struct inode *inode, u32 id)
{
	struct writeback *all = inode->wb->all;
	const struct wb *home = atomic_load_explicit(&inode->home, memory_order_acquire);
	const struct tenant *owner =
		tenant_of(writeback_tenants(all), home->tenant ? home->tenant->id : 0);
	struct tenant *t = tenant_of(writeback_tenants(all), id);
	u64 now = world_jiffies(), refresh;
	struct tenant_foreign *s;

	if (owner == t || all->policy.foreign == FOREIGN_NONE ||
	    all->policy.foreign == FOREIGN_TARGETED ||
	    (all->policy.foreign == FOREIGN_SKIP_SHARED && atomic_load(&inode->shared)))
		return;
	refresh = min_u64(world_hz(), expire_ticks(all) / REFRESH_SHARE);
	spin_lock(&t->lock);
	s = slot_for(t, home->index, owner->id, owner->serial, now);
	if (s && s->at + refresh < now)
		s->at = now;
	spin_unlock(&t->lock);
}

static void flush_ended(struct wb_work *work)
{
	struct foreign_work *f = container_of(work, struct foreign_work, work);
	struct tenant *t = f->tenant;

	spin_lock(&t->lock);
	if (t->serial == f->serial)
		t->foreign[f->slot].flushing = false;
	spin_unlock(&t->lock);
	free(f);
}

/* What the owner has dirty; of number 0, which the others are part of, that is everything. */
static u64 dirty_of(const struct writeback *all, u32 owner)
{
	return owner ? tenant_dirty(all, tenant_of(writeback_tenants(all), owner))
		     : writeback_dirty(all);
}

/* Asks a wb to write for the tenant. */
static void ask(struct writeback *all, struct tenant *t, u32 slot, const struct tenant_foreign *s)
{
	struct wb *root = all->wb[s->device], *wb;
	struct foreign_work *f = alloc_bytes(sizeof(*f));

	wb = s->owner ? wb_of_tenant(root, s->owner) : root;
	if (f)
		*f = (struct foreign_work){ .work = { .pages = (s64)(dirty_of(all, s->owner) * 10 /
								     8),
						      .reason = WB_REASON_FOREIGN,
						      .end = flush_ended },
					    .tenant = t,
					    .serial = t->serial,
					    .slot = slot };
	if (f)
		list_init(&f->work.link);
	if (f && wb && wb_queue_work(wb, &f->work))
		return;
	free(f);
	spin_lock(&t->lock);
	t->foreign[slot].flushing = false;
	spin_unlock(&t->lock);
}

void foreign_flush(struct wb *wb)
{
	struct writeback *all = wb->all;
	struct tenants *ts = writeback_tenants(all);
	struct tenant *t = wb->tenant ? wb->tenant : tenant_of(ts, 0);
	u64 now = world_jiffies(), expire;

	if (ts->by_page || all->policy.foreign == FOREIGN_NONE)
		return;
	expire = expire_ticks(all);
	for (u32 i = 0; i < TENANT_FOREIGN; i++) {
		struct tenant_foreign s;
		bool due;

		spin_lock(&t->lock);
		s = t->foreign[i];
		due = s.used && !s.flushing && s.at && s.at + expire > now;
		if (due) {
			t->foreign[i].at = 0;
			t->foreign[i].flushing = true;
		}
		spin_unlock(&t->lock);
		if (due && tenant_of(ts, s.owner)->serial == s.serial)
			ask(all, t, i, &s);
		else if (due)
			t->foreign[i].flushing = false;
	}
}
