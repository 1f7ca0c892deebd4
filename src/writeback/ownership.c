// SPDX-License-Identifier: MIT
/*
 * Whose an inode is. Linux writeback reference, 10.2 to 10.4: an inode belongs to one wb of its
 * device, that of the tenant whose task wrote to it first; all its pages are in that wb's book
 * and are written by that wb's flusher, whoever makes them dirty. If others do most of it, it
 * changes hands: each pass of write-out is a vote, pages counting for the tenant whose memory they
 * are. Three numbers are kept in a vote: the present owner's, the last winner's, and those of
 * a candidate that Boyer and Moore's majority vote finds without a table ("MJRTY", 1981). The
 * outcome fills as many of 16 bits of history as the pass took eighths of a second, and with
 * more than half of them against the owner the inode goes to the winner.
 *
 * An inode moves with its levels, which its own book has: so it costs the same however much is
 * dirty in it (Linux walks its folios). Totals stay where they were earned.
 *
 * While it moves it looks as if a flusher were at it, so that nobody puts it on a list.
 */
#include "base/bits.h"
#include "writeback/tenant.h"

#define TIME_SECOND     8192u /* the unit of times here is 1/8192 s */
#define TIME_MAX        UINT16_MAX
#define TIME_IGNORED    8    /* rounds shorter than 1/8 of the average do not count */
#define SLOT            1024 /* 125 ms */
#define SLOTS_MAX       5    /* of one round */
#define SLOTS_TO_SWITCH 8    /* against the owner, or more: it changes hands */

static struct ledger_entry levels_of(const struct mapping *m, s32 sign)
{
	struct ledger_entry e = { 0 };

	for (unsigned i = 0; i < LEVEL_MAX; i++)
		e.level[i] = sign * (s32)ledger_level(&m->ledger, i);
	return e;
}

static void count_in_flight(struct wb *wb, s32 n)
{
	spin_lock(&wb->bw_lock);
	wb->inodes_in_flight = (u64)((s64)wb->inodes_in_flight + n);
	spin_unlock(&wb->bw_lock);
}

static void count_inode(const struct wb *wb, s64 n)
{
	if (wb->tenant)
		atomic_fetch_add_explicit(&wb->tenant->inodes, n, memory_order_relaxed);
}

/* Moves what the books say, and makes `to` the home. With from's list_lock held. */
static void move_books(struct inode *inode, struct wb *from, struct wb *to)
{
	struct mapping *m = &inode->m;
	struct ledger_entry out, in;

	spin_lock(&m->tree_lock);
	out = levels_of(m, -1);
	in = levels_of(m, 1);
	ledger_post_one(&from->ledger, &out, &m->cache->books_lock);
	ledger_post_one(&to->ledger, &in, &m->cache->books_lock);
	if (m->in_flight) {
		count_in_flight(from, -1);
		count_in_flight(to, 1);
	}
	m->books[1] = &to->ledger;
	inode->ownership.history = 0;
	atomic_store_explicit(&inode->ownership.heir, 0, memory_order_relaxed);
	atomic_store_explicit(&inode->home, to, memory_order_release);
	spin_unlock(&m->tree_lock);
	count_inode(from, -1);
	count_inode(to, 1);
}

/* Puts a moved inode on the lists of its new home; false: that has no flusher any more. */
static bool move_in(struct inode *inode, struct wb *to)
{
	bool arm = false, open;

	spin_lock(&to->list_lock);
	open = !to->stopping || !to->tenant;
	inode->state &= ~(u32)INODE_SYNC;
	if (inode->state & INODE_DIRTY && open) {
		inode->dirtied_when = world_jiffies(); /* its age starts over (10.4) */
		list_add(&to->dirty, &inode->link);
		arm = wb_arm(to);
		if (retry_is_pausing(inode)) {
			to->retry_ns = min_u64(to->retry_ns, inode->retry_ns);
			arm = true;
		}
	}
	spin_unlock(&to->list_lock);
	if (arm)
		wb_rearm(to);
	atomic_fetch_add(&inode->sync_waiters, 1);
	world_unpark(&inode->sync_waiters, ~0u);
	return open;
}

/* Takes it out of its home, whose list_lock is held, and is not any more when this returns. */
static void move_out(struct inode *inode, struct wb *from, struct wb *to)
{
	/* a sync that finds it on no list has to know why */
	atomic_fetch_add(&to->all->moving, 1);
	list_del(&inode->link);
	inode->state |= INODE_SYNC;
	move_books(inode, from, to);
	if (inode->state & INODE_DIRTY) {
		assert(from->dirty_inodes > 0);
		from->dirty_inodes--;
		to->dirty_inodes++;
	}
	spin_unlock(&from->list_lock);
}

static void move_on(struct inode *inode, struct wb *from, struct wb *to)
{
	bool open;

	assert(to->root == from->root);
	move_out(inode, from, to);
	open = move_in(inode, to);
	if (!open)
		inode_move(inode, to->root);
	atomic_fetch_add(&to->all->moves, 1);
	atomic_fetch_sub(&to->all->moving, 1);
}

/* `held`: the caller has INODE_SYNC; then he loses it if it moved. */
static bool move(struct inode *inode, struct wb *to, bool held)
{
	struct wb *from = inode_lock_home(inode);
	bool busy = inode->state & INODE_FREEING || (!held && inode->state & INODE_SYNC);

	if (from == to || busy) {
		spin_unlock(&from->list_lock);
		return !busy && !held;
	}
	move_on(inode, from, to);
	return true;
}

bool wb_hand_over_one(struct wb *wb)
{
	struct list_node *const lists[] = { &wb->dirty, &wb->io, &wb->more_io };

	spin_lock(&wb->list_lock);
	for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
		if (!list_empty(lists[i])) {
			move_on(list_entry(lists[i]->prev, struct inode, link), wb, wb->root);
			return true;
		}
	spin_unlock(&wb->list_lock);
	return false;
}

bool inode_move(struct inode *inode, struct wb *to)
{
	return move(inode, to, false);
}

static bool has_open_home(struct inode *inode)
{
	const struct wb *home = atomic_load_explicit(&inode->home, memory_order_acquire);

	return atomic_load_explicit(&inode->attached, memory_order_relaxed) &&
	       (!home->tenant || atomic_load_explicit(&home->tenant->open, memory_order_relaxed));
}

/* Where the device's own flusher has to find them, inodes stay with it. */
static bool has_owner(const struct writeback *all)
{
	return !writeback_tenants(all)->by_page && all->policy.dontcache != DONTCACHE_OWN;
}

void inode_settle(struct inode *inode)
{
	if (likely(has_open_home(inode)))
		return;
	if (has_owner(inode->wb->all) && !inode_move(inode, wb_of_task(inode->wb)))
		return;
	atomic_store(&inode->attached, true);
}

void inode_unsettle(struct inode *inode)
{
	if (inode_move(inode, inode->wb))
		atomic_store(&inode->attached, false);
}

void inode_leave_tenants(struct inode *inode)
{
	count_inode(inode->home, -1);
	stakes_free(inode);
}

/* --- votes */

enum { VOTE_OWNER, VOTE_LAST, VOTE_CANDIDATE };

static u32 id_of(const struct wb *wb)
{
	return wb->tenant ? wb->tenant->id : 0;
}

void vote_begin(struct vote *v, struct inode *inode)
{
	u32 winner;

	spin_lock(&inode->m.tree_lock);
	winner = inode->ownership.winner;
	spin_unlock(&inode->m.tree_lock);
	*v = (struct vote){ .id = { id_of(inode->home), winner } };
}

void vote_add(struct vote *v, u32 id, u64 pages)
{
	if (id == v->id[VOTE_OWNER]) {
		v->pages[VOTE_OWNER] += pages;
		return;
	}
	if (id == v->id[VOTE_LAST])
		v->pages[VOTE_LAST] += pages;
	if (!v->pages[VOTE_CANDIDATE])
		v->id[VOTE_CANDIDATE] = id;
	if (id == v->id[VOTE_CANDIDATE])
		v->pages[VOTE_CANDIDATE] += pages;
	else
		v->pages[VOTE_CANDIDATE] -= min_u64(pages, v->pages[VOTE_CANDIDATE]);
}

void vote_end(struct vote *v, struct inode *inode)
{
	struct ownership *o = &inode->ownership;
	unsigned winner = VOTE_OWNER;
	u64 time, slots;

	for (unsigned i = VOTE_LAST; i < VOTES; i++)
		if (v->pages[i] > v->pages[winner])
			winner = i;
	if (!v->pages[winner])
		return;
	time = div_roundup(v->pages[winner] * TIME_SECOND, wb_avg_bandwidth(inode->home));
	spin_lock(&inode->m.tree_lock);
	time = min_u64(time, TIME_MAX);
	o->avg_time =
		o->avg_time ? (u32)(o->avg_time + (time >> 3) - (o->avg_time >> 3)) : (u32)time;
	if (time >= o->avg_time / TIME_IGNORED) {
		slots = min_u64(div_roundup(time, SLOT), SLOTS_MAX);
		o->history = (u16)(o->history << slots);
		if (winner != VOTE_OWNER)
			o->history |= (u16)bits_mask(0, (unsigned)slots);
		if (bits_count(o->history) > SLOTS_TO_SWITCH)
			atomic_store(&o->heir, v->id[winner] + 1);
	}
	o->avg_time = (u32)min_u64(o->avg_time, TIME_MAX);
	o->winner = v->id[winner];
	spin_unlock(&inode->m.tree_lock);
}

/*
 * An heir for whom somebody wrote has a wb. It is not made here: that would wait for the end of a
 * tenant who goes away, which waits for his flusher, which may be the one that asks.
 */
bool inode_inherit(struct inode *inode, bool held)
{
	u32 heir = atomic_load_explicit(&inode->ownership.heir, memory_order_relaxed);
	struct tenants *ts = writeback_tenants(inode->wb->all);
	struct wb *to = inode->wb;

	if (likely(!heir) || !has_owner(inode->wb->all))
		return false;
	if (heir > 1) {
		struct tenant *t = tenant_of(ts, heir - 1);

		if (!atomic_load(&t->open))
			return false;
		to = wb_of_open_tenant(inode->wb, t);
	}
	return to && move(inode, to, held);
}
