/* SPDX-License-Identifier: MIT */
/*
 * Devices as the throttle and the flusher see them: limits, shares of them, bandwidth.
 *
 * Completions arrive under the tree_lock of the mapping whose pages landed; they feed the
 * device's share of the limits and, when the last page of a file has landed, arm a delayed
 * update of the bandwidth estimate, so that the end of a burst is counted too.
 */
#include "writeback/wb.h"
#include "base/bits.h"
#include "cache/state.h"
#include "writeback/journal.h"
#include "writeback/outage.h"
#include "writeback/pause.h"
#include "writeback/position.h"
#include "writeback/slice.h"
#include "writeback/tenant.h"
#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

static struct inode *inode_of(struct mapping *m)
{
	return container_of(m, struct inode, m);
}

static void pages_launched(struct mapping *m)
{
	struct wb *wb = inode_of(m)->home;

	spin_lock(&wb->bw_lock);
	wb->inodes_in_flight++;
	spin_unlock(&wb->bw_lock);
}

/* Pages of a wb were written: its share of the device grows, in each of its domains. */
static void share_written(struct wb *wb, u32 written)
{
	struct writeback *all = wb->all;
	struct tenant *t = wb->tenant;
	u32 max = (u32)((u64)wb->root->max_ratio * PROPORTION_MAX_FRAC / RATIO_ALL);

	if (!written)
		return;
	spin_lock(&all->lock);
	proportion_add(&all->proportions, &wb->proportion, written, max, world_jiffies(),
		       world_hz());
	spin_unlock(&all->lock);
	if (!t)
		return;
	spin_lock(&t->lock);
	proportion_add(&t->proportions, &wb->tenant_proportion, written, max, world_jiffies(),
		       world_hz());
	spin_unlock(&t->lock);
}

/* Nothing of a wb, or of a file of its, is in flight any more: arms the delayed update. */
static void flight_ended(struct wb *wb, bool of_inode)
{
	bool arm;

	spin_lock(&wb->bw_lock);
	assert(!of_inode || wb->inodes_in_flight > 0);
	wb->inodes_in_flight -= of_inode;
	arm = !atomic_load_explicit(&wb->bw_due, memory_order_relaxed);
	if (arm)
		atomic_store_explicit(&wb->bw_due,
				      world_timer_jiffies(bandwidth_interval(world_hz())),
				      memory_order_relaxed);
	spin_unlock(&wb->bw_lock);
	if (arm)
		wb_rearm(wb);
}

static void pages_landed(struct mapping *m, const struct ledger_entry *e, bool last)
{
	struct wb *wb = inode_of(m)->home;

	atomic_store_explicit(&inode_of(m)->unflushed, true, memory_order_release);
	share_written(wb, e->total[account_written_total(&wb->all->policy)]);
	if (!last)
		return;
	atomic_store_explicit(&inode_of(m)->landed_ns, world_now(), memory_order_release);
	flight_ended(wb, true);
}

static void tenant_landed(struct mapping *m, struct tenant *t, const struct ledger_entry *e)
{
	struct wb *wb = wb_of_tenant(inode_of(m)->wb, t->id);

	share_written(wb, e->total[account_written_total(&wb->all->policy)]);
	if (!account_writeback(&wb->all->policy, &wb->ledger))
		flight_ended(wb, false);
}

const struct mapping_ops inode_mapping_ops = { .launched = pages_launched,
					       .landed = pages_landed,
					       .tenant_landed = tenant_landed };

u64 writeback_dirty(const struct writeback *all)
{
	return account_dirty(&all->policy, &all->cache->ledger);
}

u64 writeback_in_flight(const struct writeback *all)
{
	return account_writeback(&all->policy, &all->cache->ledger);
}

void writeback_note(struct writeback *all, struct throttle_moment *moment, bool in_flight_too)
{
	if (moment->when_ns != WORLD_NEVER)
		return;
	moment->when_ns = world_now();
	moment->dirty = writeback_dirty(all);
	moment->debt = ledger_level(&all->cache->ledger, LEVEL_DEBT);
	if (!in_flight_too)
		return;
	moment->dirty += writeback_in_flight(all);
	moment->debt += ledger_level(&all->cache->ledger, LEVEL_IN_FLIGHT);
}

struct vm_limits writeback_vm(const struct writeback *all)
{
	const struct vm_knobs *k = &all->vm;

	return (struct vm_limits){
		.config = { .dirty_ratio =
				    atomic_load_explicit(&k->dirty_ratio, memory_order_relaxed),
			    .dirty_background_ratio = atomic_load_explicit(
				    &k->dirty_background_ratio, memory_order_relaxed),
			    .dirty_bytes =
				    atomic_load_explicit(&k->dirty_bytes, memory_order_relaxed),
			    .dirty_background_bytes = atomic_load_explicit(
				    &k->dirty_background_bytes, memory_order_relaxed) },
		.dirty_writeback_centisecs =
			atomic_load_explicit(&k->dirty_writeback_centisecs, memory_order_relaxed),
		.dirty_expire_centisecs =
			atomic_load_explicit(&k->dirty_expire_centisecs, memory_order_relaxed),
		.retry_min_ms = atomic_load_explicit(&k->retry_min_ms, memory_order_relaxed),
		.retry_max_ms = atomic_load_explicit(&k->retry_max_ms, memory_order_relaxed),
	};
}

struct limits writeback_limits(struct writeback *all)
{
	struct vm_limits vm = writeback_vm(all);
	u64 avail = cache_dirtyable_pages(all->cache), owed = outage_pages(all);
	struct limits l;

	if (unlikely(owed))
		avail -= min_u64(owed, avail - 1);
	l = limits_of(&vm.config, avail, false, 0);
	if (unlikely(owed) && l.thresh > avail / 2) { /* what failed must not take all memory */
		l.thresh = max_u64(avail / 2, 1);
		l.bg = min_u64(l.bg, l.thresh / 2);
	}
	atomic_store_explicit(&all->bg_thresh, l.bg, memory_order_relaxed);
	return l;
}

/* Reclaim found nothing but dirty folios: all flushers write what they have. */
static void need_writeback(struct cache *c)
{
	struct writeback *all = c->owner;

	for_each_wb(wb, all)
	{
		spin_lock(&wb->list_lock);
		wb->start_all = wb->dirty_inodes > 0;
		spin_unlock(&wb->list_lock);
		wb_wake(wb);
	}
}

/* What follows from the limits when they are new (reference 4.5, 5.1). */
static void limits_changed(struct writeback *all)
{
	struct limits l = writeback_limits(all);

	spin_lock(&all->lock);
	hard_limit_init(&all->hard, l.thresh, world_jiffies());
	spin_unlock(&all->lock);
	all->ratelimit_pages = (u32)min_u64(ratelimit_pages(l.thresh, all->cpus), UINT32_MAX);
}

static void set_knobs(struct vm_knobs *k, const struct vm_limits *vm)
{
	k->dirty_ratio = vm->config.dirty_ratio;
	k->dirty_background_ratio = vm->config.dirty_background_ratio;
	k->dirty_bytes = vm->config.dirty_bytes;
	k->dirty_background_bytes = vm->config.dirty_background_bytes;
	k->dirty_writeback_centisecs = vm->dirty_writeback_centisecs;
	k->dirty_expire_centisecs = vm->dirty_expire_centisecs;
	k->retry_min_ms = vm->retry_min_ms;
	k->retry_max_ms = vm->retry_max_ms;
}

void writeback_set_vm(struct writeback *all, const struct vm_limits *vm)
{
	struct vm_limits old = writeback_vm(all);

	if (!memcmp(&old, vm, sizeof(old)))
		return;
	set_knobs(&all->vm, vm);
	limits_changed(all);
	for_each_wb(wb, all) wb_wake(wb);
}

int writeback_init(struct writeback *all, struct cache *cache, const struct policy *policy,
		   enum fs_kind fs, const struct vm_limits *vm)
{
	*all = (struct writeback){ .cache = cache, .fs = fs_of(fs), .policy = *policy };
	set_knobs(&all->vm, vm);
	fs_apply(all->fs, &all->policy);
	/* a folio may be several tenants', so what is charged by folios cannot be told apart */
	if (all->policy.foreign == FOREIGN_TARGETED && all->policy.accounting != ACCOUNT_DEBT)
		all->policy.foreign = FOREIGN_FLUSH;
	all->world = world_current;
	all->cpus = world_cpus();
	if (throttle_init())
		return -ENOMEM;
	all->cpu = aligned_alloc(alignof(struct wb_cpu), all->cpus * sizeof(*all->cpu));
	if (!all->cpu)
		return -ENOMEM;
	memset(all->cpu, 0, all->cpus * sizeof(*all->cpu));
	spin_init(&all->lock, RANK_DOMAIN);
	mutex_init(&all->making, RANK_TENANTS);
	proportion_domain_init(&all->proportions);
	limits_changed(all);
	all->stats.first_sleep.when_ns = all->stats.background.when_ns = WORLD_NEVER;
	all->stats.first_pace.when_ns = WORLD_NEVER;
	cache->owner = all;
	cache->need_writeback = need_writeback;
	cache->waits_in_vain = outage_fills_memory;
	return 0;
}

void writeback_finish(struct writeback *all)
{
	assert(!all->count);
	trace_finish(&all->trace);
	tenants_destroy(writeback_tenants(all));
	all->cache->tenants = NULL;
	free(all->cpu);
}

struct wb *wb_new(struct writeback *all, struct device *device)
{
	struct wb *wb = calloc(1, sizeof(*wb));
	u64 now = world_jiffies();

	if (!wb)
		return NULL;
	wb->runs = malloc(FOLIO_MAX_RUNS * sizeof(*wb->runs));
	if (all->policy.wb_counters == WB_COUNTERS_PER_CPU)
		wb->unseen = calloc(all->cpus, sizeof(*wb->unseen));
	if (!wb->runs || (all->policy.wb_counters == WB_COUNTERS_PER_CPU && !wb->unseen)) {
		wb_free(wb);
		return NULL;
	}
	wb->all = all;
	wb->root = wb;
	wb->device = device;
	wb->io_pages = device_config(device)->max_io_bytes / PAGE_SIZE;
	wb->fs = device_is_fuse(device) ? fs_of(FS_NONE) : all->fs; /* the server's is its own */
	wb->max_ratio = RATIO_ALL;
	wb->wake_ns = WORLD_NEVER;
	wb->retry_ns = WORLD_NEVER;
	wb->last_old_flush = now;
	ledger_init(&wb->ledger);
	spin_init(&wb->list_lock, RANK_WB_LIST);
	spin_init(&wb->bw_lock, RANK_BANDWIDTH);
	rwsem_init(&wb->line, RANK_THROTTLE);
	dontcache_init(&wb->dontcache);
	depth_init(&wb->depth);
	list_init(&wb->dirty);
	list_init(&wb->io);
	list_init(&wb->more_io);
	list_init(&wb->work);
	list_init(&wb->stakes);
	list_init(&wb->failing);
	bandwidth_init(&wb->bw, now, 0, 0);
	proportion_init(&wb->proportion, &all->proportions);
	return wb;
}

void wb_free(struct wb *wb)
{
	free(wb->of_tenant);
	free(wb->unseen);
	free(wb->runs);
	free(wb);
}

void wb_publish(struct wb *wb)
{
	struct wb *_Atomic *at = &wb->all->first_wb;

	while (*at)
		at = &(*at)->next_wb;
	atomic_store_explicit(at, wb, memory_order_release);
}

int wb_create(struct writeback *all, struct device *device, u32 read_ahead_kb, bool strict_limit,
	      struct wb **out)
{
	struct wb *wb;
	int rc;

	if (all->count == WB_MAX)
		return -ENOSPC;
	wb = wb_new(all, device);
	if (!wb)
		return -ENOMEM;
	wb->ra_pages = read_ahead_kb / (PAGE_SIZE / 1024);
	wb->strict_limit = strict_limit;
	wb->index = all->count;
	rc = journal_create(device, wb->fs, &wb->journal);
	if (!rc) {
		wb->flusher = world_spawn("flusher", flusher_run, wb);
		rc = wb->flusher ? 0 : -ENOMEM;
	}
	if (rc)
		goto failed;
	all->wb[wb->index] = wb;
	all->count = wb->index + 1; /* others may be looking */
	mutex_lock(&all->making);
	wb_publish(wb);
	mutex_unlock(&all->making);
	*out = wb;
	return 0;
failed:
	if (wb->journal) {
		journal_stop(wb->journal);
		journal_destroy(wb->journal);
	}
	wb_free(wb);
	return rc;
}

int wb_limit(struct wb *wb, bool strict_limit, u64 min_ratio, u64 max_ratio)
{
	struct writeback *all = wb->all;
	u64 sum = min_ratio;
	int error = 0;

	spin_lock(&all->lock);
	for (u32 i = 0; i < all->count; i++)
		sum += all->wb[i] != wb ? all->wb[i]->min_ratio : 0;
	if (max_ratio > RATIO_ALL || min_ratio > max_ratio || sum >= RATIO_ALL) {
		error = -EINVAL;
	} else {
		wb->min_ratio = (u32)min_ratio;
		wb->max_ratio = (u32)max_ratio;
		wb->strict_limit = strict_limit;
	}
	spin_unlock(&all->lock);
	return error;
}

void wb_stop_flusher(struct wb *wb)
{
	if (!wb->flusher)
		return;
	spin_lock(&wb->list_lock);
	wb->stopping = true;
	spin_unlock(&wb->list_lock);
	wb_wake(wb);
	world_join(wb->flusher);
	wb->flusher = NULL;
}

void wb_stop(struct wb *wb)
{
	for (u32 id = 1; wb->of_tenant && id <= TENANT_MAX; id++)
		if (wb->of_tenant[id])
			wb_stop_flusher(wb->of_tenant[id]);
	wb_stop_flusher(wb);
	if (wb->journal)
		journal_stop(wb->journal);
}

/* Off the list of all, which nobody walks any more. */
static void unlist(struct wb *wb)
{
	struct wb *_Atomic *at = &wb->all->first_wb;

	while (*at != wb)
		at = &(*at)->next_wb;
	*at = wb_after(wb);
}

void wb_destroy(struct wb *wb)
{
	struct writeback *all = wb->all;

	assert(wb->stopping && !wb->inodes_in_flight);
	assert(wb->index == all->count - 1); /* last in, first out */
	all->wb[--all->count] = NULL;
	for (u32 id = 1; wb->of_tenant && id <= TENANT_MAX; id++) {
		struct wb *own = wb->of_tenant[id];

		if (!own)
			continue;
		unlist(own);
		wb_free(own);
	}
	if (wb->journal)
		journal_destroy(wb->journal);
	unlist(wb);
	wb_free(wb);
}

u64 wb_avg_bandwidth(struct wb *wb)
{
	u64 bw;

	spin_lock(&wb->bw_lock);
	bw = wb->bw.avg_write_bw;
	spin_unlock(&wb->bw_lock);
	return bw;
}

/* Bandwidth of all devices with dirty inodes (tot_write_bandwidth). */
static u64 total_bandwidth(struct writeback *all)
{
	u64 sum = 0;

	for_each_wb(wb, all) if (wb->dirty_inodes) sum += wb_avg_bandwidth(wb);
	return sum;
}

/* The part of a threshold of a domain whose proportions `lock` protects. */
static u64 part_of(struct wb *wb, struct proportion_domain *domain, struct proportion *proportion,
		   struct spinlock *lock, u64 thresh, u64 dirty)
{
	struct writeback *all = wb->all;
	struct wb_share share = {
		.strictlimit = wb->root->strict_limit,
		.floor_in_threshold = all->policy.wb_floor == WB_FLOOR_THRESHOLD,
	};

	spin_lock(&all->lock);
	share.min_ratio = wb->root->min_ratio;
	share.max_ratio = wb->root->max_ratio;
	for (u32 i = 0; i < all->count; i++)
		share.min_ratio_sum += all->wb[i]->min_ratio;
	spin_unlock(&all->lock);
	spin_lock(lock);
	proportion_share(domain, proportion, world_jiffies(), world_hz(), &share.num, &share.den);
	spin_unlock(lock);
	if (share.min_ratio || share.max_ratio < RATIO_ALL) {
		share.this_bw = wb_avg_bandwidth(wb);
		share.tot_bw = total_bandwidth(all);
	}
	return wb_thresh(thresh, dirty, &share);
}

u64 wb_threshold(struct wb *wb, u64 thresh, u64 dirty)
{
	return part_of(wb, &wb->all->proportions, &wb->proportion, &wb->all->lock, thresh, dirty);
}

u64 wb_tenant_threshold(struct wb *wb, u64 thresh, u64 dirty)
{
	struct tenant *t = wb->tenant;

	return part_of(wb, &t->proportions, &wb->tenant_proportion, &t->lock, thresh, dirty);
}

u64 wb_stat_batch(const struct writeback *all)
{
	return 8 * (1 + (u64)ilog2(all->cpus));
}

u64 wb_stat_error(const struct writeback *all)
{
	return all->cpus * wb_stat_batch(all);
}

void wb_count(struct wb *wb)
{
	struct writeback *all = wb->all;
	s64 dirty, *mine, batch;

	if (!wb->unseen)
		return;
	batch = (s64)wb_stat_batch(all);
	dirty = (s64)account_dirty(&all->policy, &wb->ledger);
	spin_lock(&wb->bw_lock);
	mine = &wb->unseen[world_cpu() % all->cpus];
	*mine += dirty - wb->sampled;
	wb->sampled = dirty;
	if (*mine >= batch || *mine <= -batch) {
		wb->seen += *mine;
		*mine = 0;
	}
	spin_unlock(&wb->bw_lock);
}

u64 wb_dirty_seen(struct wb *wb)
{
	s64 seen;

	if (!wb->unseen)
		return account_dirty(&wb->all->policy, &wb->ledger);
	wb_count(wb);
	spin_lock(&wb->bw_lock);
	seen = wb->seen;
	spin_unlock(&wb->bw_lock);
	return seen > 0 ? (u64)seen : 0;
}

bool wb_over_background(struct wb *wb)
{
	struct writeback *all = wb->all;
	struct limits l = writeback_limits(all);
	u64 dirty = writeback_dirty(all);

	if (trace_on())
		trace_global_dirty_state(wb, &l);
	if (dirty > l.bg || wb_dirty_seen(wb) > wb_threshold(wb, l.bg, dirty))
		return true;
	return wb->tenant && tenant_over_background(wb);
}

/* An update of the bandwidth alone, bw_lock held. */
static void update_bandwidth(struct wb *wb, u64 now)
{
	const struct policy *p = &wb->all->policy;
	u64 written = account_written(p, &wb->ledger);

	now = max_u64(now, wb->bw.bw_stamp); /* one who updated it was ahead in time */
	bandwidth_update_write(&wb->bw, bandwidth_elapsed(&wb->bw, now), written, world_hz());
	bandwidth_stamp(&wb->bw, now, account_dirtied(p, &wb->ledger), written);
}

void wb_update_bandwidth(struct wb *wb)
{
	u64 now = world_jiffies();

	spin_lock(&wb->bw_lock);
	if (bandwidth_due(&wb->bw, now, world_hz()))
		update_bandwidth(wb, now);
	spin_unlock(&wb->bw_lock);
}

u64 wb_delayed_update(struct wb *wb)
{
	u64 due = atomic_load_explicit(&wb->bw_due, memory_order_relaxed), now;

	if (!due)
		return WORLD_NEVER;
	now = world_jiffies();
	if (now < due)
		return world_jiffies_ns(due);
	spin_lock(&wb->bw_lock);
	atomic_store_explicit(&wb->bw_due, 0, memory_order_relaxed);
	update_bandwidth(wb, now);
	spin_unlock(&wb->bw_lock);
	return WORLD_NEVER;
}
