// SPDX-License-Identifier: MIT
/*
 * Tenants in writeback. A tenant is throttled by the law of the whole cache, applied twice: with
 * the limits, the dirty pages and the shares of the cache, and with its own; the slower answer
 * counts (reference 5.8). On each device it writes to it has a wb of its own, made when it first
 * writes there: a flusher, lists, estimates of its bandwidth.
 *
 * What it may have dirty is the policy's choice tenant_limits:
 *
 *	memcg	Linux's rule (reference 4.3): a share of the memory it uses in files and could
 *		still get; bytes are turned into such a share first
 *	plain	bytes are bytes, and a ratio is one of the cache's dirtyable memory, or of the
 *		memory it may use if that is less; with neither it has the cache's limits
 *
 * Memory is not kept from a tenant here: memory_pages only says how much of it counts.
 */
#include "writeback/tenant.h"
#include "writeback/pause.h"
#include <errno.h>
#include <stdlib.h>

struct tenants *writeback_make_tenants(struct writeback *all)
{
	struct tenants *ts;

	mutex_lock(&all->making);
	ts = writeback_tenants(all);
	if (!ts) {
		ts = tenants_create(all->policy.foreign == FOREIGN_TARGETED, world_jiffies());
		atomic_store_explicit(&all->cache->tenants, ts, memory_order_release);
	}
	mutex_unlock(&all->making);
	return ts;
}

/* Room for the wbs of tenants on a device. */
static bool make_room(struct wb *root)
{
	if (!root->of_tenant)
		root->of_tenant = calloc(TENANT_MAX + 1, sizeof(*root->of_tenant));
	return root->of_tenant != NULL;
}

/* A place that had another tenant's wb starts over. */
static void start_over(struct wb *wb)
{
	/* it is seen by others all the time, as one that is stopping */
	ledger_init(&wb->ledger);
	spin_lock(&wb->bw_lock);
	bandwidth_init(&wb->bw, world_jiffies(), 0, 0);
	spin_unlock(&wb->bw_lock);
	spin_lock(&wb->all->lock);
	proportion_init(&wb->proportion, &wb->all->proportions);
	spin_unlock(&wb->all->lock);
	wb->last_old_flush = world_jiffies();
	wb->bw_due = 0;
	wb->dirty_exceeded = 0;
	spin_lock(&wb->list_lock);
	wb->stopping = false;
	wb->wake_ns = wb->retry_ns = WORLD_NEVER;
	spin_unlock(&wb->list_lock);
}

/* It has no flusher after all: whoever has come meanwhile is answered here. */
static void stay_closed(struct wb *wb)
{
	spin_lock(&wb->list_lock);
	wb->stopping = true;
	spin_unlock(&wb->list_lock);
	flusher_run(wb);
	while (wb_hand_over_one(wb))
		;
}

/* Makes the wb of a tenant on a device. NULL: no memory, or it went away. */
static struct wb *create_wb(struct wb *root, struct tenant *t)
{
	struct writeback *all = root->all;
	struct wb *wb = NULL;
	bool made = false;

	mutex_lock(&all->making);
	if (atomic_load(&t->open) && make_room(root))
		wb = root->of_tenant[t->id];
	if (wb && wb->flusher)
		goto done;
	if (!wb && atomic_load(&t->open) && root->of_tenant) {
		wb = wb_new(all, root->device);
		made = wb != NULL;
	}
	if (!wb)
		goto done;
	if (!made)
		start_over(wb);
	wb->index = root->index;
	wb->root = root;
	wb->ra_pages = root->ra_pages;
	wb->tenant = t;
	spin_lock(&t->lock);
	proportion_init(&wb->tenant_proportion, &t->proportions);
	spin_unlock(&t->lock);
	wb->flusher = world_spawn_in(all->world, "flusher", flusher_run, wb);
	if (!wb->flusher) {
		if (made)
			wb_free(wb);
		else
			stay_closed(wb);
		wb = NULL;
		goto done;
	}
	if (made) {
		atomic_store_explicit(&root->of_tenant[t->id], wb, memory_order_release);
		wb_publish(wb);
	}
	atomic_store_explicit(&t->device_book[root->index], &wb->ledger, memory_order_release);
done:
	mutex_unlock(&all->making);
	return wb;
}

struct wb *wb_of_task(struct wb *root)
{
	struct tenants *ts = writeback_tenants(root->all);
	struct tenant *t = ts ? tenant_self(ts) : NULL;
	struct wb *wb;

	if (!t || !t->id)
		return root;
	wb = wb_of_open_tenant(root, t);
	if (unlikely(!wb))
		wb = create_wb(root, t);
	return wb ? wb : root;
}

/* --- limits */

/* The memory that counts as a tenant's: it may have more cached, for nobody keeps it from that. */
static u64 pages_counted(const struct tenant *t, const struct tenant_config *c)
{
	s64 pages = atomic_load_explicit(&t->pages, memory_order_relaxed);
	u64 n = pages > 0 ? (u64)pages : 0;

	return c->memory_pages ? min_u64(n, c->memory_pages) : n;
}

/* What it was not told it has from the cache: Linux's cgroups have no ratios of their own. */
static struct limits_config limits_config_of(const struct tenant_config *c,
					     const struct limits_config *cache)
{
	struct limits_config l = c->limits;

	if (!l.dirty_bytes && !l.dirty_ratio) {
		l.dirty_bytes = cache->dirty_bytes;
		l.dirty_ratio = cache->dirty_ratio;
	}
	if (!l.dirty_background_bytes && !l.dirty_background_ratio) {
		l.dirty_background_bytes = cache->dirty_background_bytes;
		l.dirty_background_ratio = cache->dirty_background_ratio;
	}
	return l;
}

struct limits tenant_limits(struct writeback *all, struct tenant *t)
{
	struct tenant_config c = tenant_config(t);
	struct vm_limits vm = writeback_vm(all);
	struct limits_config l = limits_config_of(&c, &vm.config);
	u64 avail = cache_dirtyable_pages(all->cache), pages = pages_counted(t, &c), headroom;

	if (all->policy.tenant_limits == TENANT_LIMITS_PLAIN)
		return limits_of(&l, c.memory_pages ? min_u64(avail, c.memory_pages) : avail, false,
				 0);
	headroom = c.memory_pages ? c.memory_pages - pages : UINT64_MAX;
	avail = max_u64(avail, 1);
	return limits_of_tenant(&l,
				limits_tenant_avail(pages, headroom, tenant_dirty(all, t), avail,
						    writeback_dirty(all)),
				avail, false, 0);
}

u64 tenant_dirty(const struct writeback *all, const struct tenant *t)
{
	return account_dirty(&all->policy, &t->ledger);
}

u64 tenant_in_flight(const struct writeback *all, const struct tenant *t)
{
	return account_writeback(&all->policy, &t->ledger);
}

/* --- looks */

void tenant_look(struct wb *wb, const struct position *cache, struct domain_look *d)
{
	struct tenant *t = wb->tenant;

	d->limits = tenant_limits(wb->all, t);
	d->nr_dirty = tenant_dirty(wb->all, t);
	d->at = *cache;
	d->at.thresh = d->limits.thresh;
	d->at.bg = d->limits.bg;
	d->at.dirty = d->nr_dirty + tenant_in_flight(wb->all, t);
}

bool tenant_look_at_wb(struct wb *wb, const struct position *cache, struct domain_look *d)
{
	struct tenant *t = wb->tenant;

	d->at.wb_thresh = wb_tenant_threshold(wb, d->at.thresh, d->at.dirty);
	d->at.wb_bg_thresh = wb_bg_thresh(d->at.wb_thresh, d->at.thresh, d->at.bg);
	d->at.wb_dirty = cache->wb_dirty;
	d->at.avg_write_bw = cache->avg_write_bw;
	spin_lock(&t->lock);
	d->at.limit = hard_limit_of(&t->hard, d->at.thresh);
	spin_unlock(&t->lock);
	d->pos_ratio = position_ratio(&d->at);
	return d->at.wb_dirty > d->at.wb_thresh &&
	       (d->at.dirty > d->at.thresh || d->at.strictlimit);
}

void tenant_update_limit(struct wb *wb, const struct domain_look *d, u64 now)
{
	struct tenant *t = wb->tenant;

	spin_lock(&t->lock);
	hard_limit_update(&t->hard, d->at.thresh, d->at.dirty, now, world_hz());
	spin_unlock(&t->lock);
}

void tenant_note_dirtied(struct inode *inode, u32 id, bool folio_was_clean)
{
	if (writeback_tenants(inode->wb->all)->by_page)
		stake_note(inode);
	else if (folio_was_clean)
		foreign_note(inode, id);
}

static bool runs_free(struct wb *wb, struct domain_look *d, u64 *interval)
{
	u64 dirty = d->at.dirty, thresh = d->at.thresh;

	if (wb->root->strict_limit) {
		d->at.wb_thresh = wb_tenant_threshold(wb, thresh, dirty);
		thresh = d->at.wb_thresh;
		dirty = account_dirty(&wb->all->policy, &wb->ledger) +
			account_writeback(&wb->all->policy, &wb->ledger);
		if (dirty > limits_freerun(thresh, wb_bg_thresh(thresh, d->at.thresh, d->at.bg)))
			return false;
	} else if (dirty > limits_freerun(thresh, d->at.bg)) {
		return false;
	}
	*interval = min_u64(*interval, poll_interval(dirty, thresh));
	return true;
}

static bool below_floor(struct wb *wb, const struct domain_look *d, u64 *interval)
{
	u64 floor;

	spin_lock(&wb->tenant->lock);
	floor = wb->tenant->config.floor;
	spin_unlock(&wb->tenant->lock);
	if (d->at.dirty >= floor)
		return false;
	*interval = poll_interval(d->at.dirty, floor);
	return true;
}

bool tenant_is_free(struct wb *wb, struct domain_look *d, bool cache_is_free, u64 *interval)
{
	return (cache_is_free && runs_free(wb, d, interval)) || below_floor(wb, d, interval);
}

bool tenant_over_background(struct wb *wb)
{
	struct limits l = tenant_limits(wb->all, wb->tenant);
	u64 dirty = tenant_dirty(wb->all, wb->tenant);

	return dirty > l.bg || wb_dirty_seen(wb) > wb_tenant_threshold(wb, l.bg, dirty);
}

void tenant_note_sleep(struct wb *wb, u64 ns)
{
	if (!wb->tenant)
		return;
	atomic_fetch_add_explicit(&wb->tenant->sleep_ns, ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&wb->tenant->sleeps, 1, memory_order_relaxed);
}

/* --- the end of a tenant */

void tenant_closing_step(struct tenant_closing *c, u64 inodes, u64 began_ns)
{
	c->inodes += inodes;
	c->longest_ns = max_u64(c->longest_ns, world_now() - began_ns);
	world_breathe();
}

static void close_wb(struct wb *wb, struct tenant_closing *c)
{
	bool more = true;

	wb_stop_flusher(wb);
	while (more) {
		u64 began = world_now(), n = 0;

		for (; n < TENANT_CLOSE_STEP && more; n += more) {
			more = wb_hand_over_one(wb);
			world_spend(COST_LOOKUP, more);
		}
		tenant_closing_step(c, n, began);
	}
	stakes_drop(wb, c);
}

void writeback_close_tenant(struct writeback *all, struct tenant *t, struct tenant_closing *out)
{
	struct tenant_closing c = { 0 };

	atomic_store(&t->open, false);
	mutex_lock(&all->making);
	for (u32 i = 0; i < all->count; i++) {
		struct wb *wb = wb_of_tenant(all->wb[i], t->id);

		if (wb && wb->flusher)
			close_wb(wb, &c);
	}
	mutex_unlock(&all->making);
	if (out)
		*out = c;
}
