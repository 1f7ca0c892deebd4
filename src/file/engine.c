/* SPDX-License-Identifier: MIT */
/* The engine as a whole: made of a cache and its writeback, it owns the inodes. */
#include "file/inner.h"
#include "writeback/position.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void vm_settings_init(struct vm_settings *vm)
{
	*vm = (struct vm_settings){ .dirty_ratio = 20,
				    .dirty_background_ratio = 10,
				    .dirty_writeback_centisecs = 500,
				    .dirty_expire_centisecs = 3000 };
}

static struct vm_limits limits_of_vm(const struct vm_settings *vm)
{
	return (struct vm_limits){
		.config = { .dirty_ratio = vm->dirty_ratio,
			    .dirty_background_ratio = vm->dirty_background_ratio,
			    .dirty_bytes = vm->dirty_bytes,
			    .dirty_background_bytes = vm->dirty_background_bytes },
		.dirty_writeback_centisecs = vm->dirty_writeback_centisecs,
		.dirty_expire_centisecs = vm->dirty_expire_centisecs,
	};
}

int engine_create(const struct engine_config *c, struct engine **out)
{
	struct cache_config cache = { .memory_pages = c->memory_bytes / PAGE_SIZE,
				      .reserve_pages = c->reserve_bytes / PAGE_SIZE,
				      .contents = c->contents,
				      .shed = c->policy.pinned == PINNED_SHED };
	struct vm_limits vm = limits_of_vm(&c->vm);
	struct engine *e;
	int rc;

	if (cache.memory_pages < 64 || cache.reserve_pages >= cache.memory_pages)
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	rc = cache_init(&e->cache, &cache);
	if (rc)
		goto free_engine;
	rc = writeback_init(&e->all, &e->cache, &c->policy, c->fs, &vm);
	if (rc)
		goto finish_cache;
	mutex_init(&e->inodes_lock, RANK_INODES);
	list_init(&e->inodes);
	*out = e;
	return 0;
finish_cache:
	cache_finish(&e->cache);
free_engine:
	free(e);
	return rc;
}

/* Ends all flushers, waits for what is still in flight, and frees the devices' state. */
static void stop_flushers(struct engine *e)
{
	for (u32 i = 0; i < e->all.count; i++)
		wb_stop(e->all.wb[i]);
	while (e->all.count) {
		struct wb *wb = e->all.wb[e->all.count - 1];

		while (!device_idle(wb->device))
			world_sleep_until(world_now() + NSEC_PER_MSEC);
		wb_destroy(wb);
	}
}

int engine_destroy(struct engine *e)
{
	int error = engine_sync(e);

	while (!list_empty(&e->inodes))
		inode_destroy(list_entry(e->inodes.next, struct inode, all));
	stop_flushers(e);
	writeback_finish(&e->all);
	cache_finish(&e->cache);
	free(e);
	return error;
}

void engine_discard(struct engine *e)
{
	stop_flushers(e);
	while (!list_empty(&e->inodes)) {
		struct inode *inode = list_entry(e->inodes.next, struct inode, all);

		list_del(&inode->all);
		mapping_discard(&inode->m);
		store_destroy(inode->m.store);
		free(inode);
	}
	writeback_finish(&e->all);
	cache_discard(&e->cache);
	free(e);
}

int engine_add_device(struct engine *e, struct device *d, u32 read_ahead_kb, bool strict_limit)
{
	struct wb *wb;

	return wb_create(&e->all, d, read_ahead_kb, strict_limit, &wb);
}

void engine_set_vm(struct engine *e, const struct vm_settings *vm)
{
	struct vm_limits limits = limits_of_vm(vm);

	writeback_set_vm(&e->all, &limits);
}

void bdi_settings_init(struct bdi_settings *s)
{
	_Static_assert(BDI_RATIO_ALL == RATIO_ALL, "one unit of ratios");
	_Static_assert(ENGINE_DEVICES_MAX == WB_MAX, "a wb for each device");
	*s = (struct bdi_settings){ .read_ahead_kb = 128, .max_ratio = BDI_RATIO_ALL };
}

/* Bytes as a ratio of the limit, or `ratio` where they are 0 (reference 4.8). */
static u64 ratio_of(u64 bytes, u32 ratio, u64 thresh)
{
	u64 pages = bytes / PAGE_SIZE;

	if (!bytes)
		return ratio;
	return pages <= thresh ? pages * RATIO_ALL / thresh : RATIO_ALL + 1;
}

int engine_set_bdi(struct engine *e, unsigned device, const struct bdi_settings *s)
{
	u64 thresh = writeback_limits(&e->all).thresh;
	struct wb *wb;

	assert(device < e->all.count);
	wb = e->all.wb[device];
	if ((s->min_bytes || s->max_bytes) && !thresh)
		return -EINVAL;
	wb->ra_pages = s->read_ahead_kb / (PAGE_SIZE / 1024);
	return wb_limit(wb, s->strict_limit, ratio_of(s->min_bytes, s->min_ratio, thresh),
			ratio_of(s->max_bytes, s->max_ratio, thresh));
}

static void stats_of_cache(struct cache *c, struct engine_stats *out)
{
	spin_lock(&c->lru_lock);
	out->folios_split = c->stats.folios_split;
	out->folios_shed = c->stats.folios_shed;
	out->folios_evicted = c->stats.folios_evicted;
	out->folios_reclaimed = c->stats.folios_reclaimed;
	out->reclaim_waits = c->stats.reclaim_waits;
	for (unsigned order = 0; order < ARENA_ORDERS; order++)
		out->cached_of_order[order] = c->folios_of_order[order] << order;
	spin_unlock(&c->lru_lock);
}

static void stats_of_throttle(struct writeback *all, const struct limits *limits,
			      struct engine_stats *out)
{
	const struct throttle_stats *s = &all->stats;

	spin_lock(&all->lock);
	out->dirty_limit = hard_limit_of(&all->hard, limits->thresh);
	out->throttle_sleep_ns = s->sleep_ns;
	out->throttle_sleeps = s->sleeps;
	out->throttle_calls = s->calls;
	out->first_throttle_ns = s->first_sleep.when_ns;
	out->first_throttle_dirty = s->first_sleep.dirty;
	out->first_throttle_debt = s->first_sleep.debt;
	out->first_pace_ns = s->first_pace.when_ns;
	out->first_pace = s->first_pace.rate;
	out->first_pace_dirty = s->first_pace.wb_dirty;
	out->background_ns = s->background.when_ns;
	out->background_dirty = s->background.dirty;
	out->background_debt = s->background.debt;
	spin_unlock(&all->lock);
	out->freerun = limits_freerun(limits->thresh, limits->bg);
	out->setpoint = position_setpoint(&(struct position){
		.thresh = limits->thresh, .bg = limits->bg, .limit = out->dirty_limit });
}

void engine_stats(struct engine *e, struct engine_stats *out)
{
	const struct policy *p = &e->all.policy;
	const struct ledger *l = &e->cache.ledger;
	bool by_folio = p->accounting == ACCOUNT_FOLIO;
	/* not writeback_limits(), which leaves a hint behind: looking on changes nothing */
	struct limits limits =
		limits_of(&e->all.vm.config, cache_dirtyable_pages(&e->cache), false, 0);

	*out = (struct engine_stats){
		.dirty = account_dirty(p, l),
		.writeback = account_writeback(p, l),
		.debt = ledger_level(l, LEVEL_DEBT),
		.in_flight = ledger_level(l, LEVEL_IN_FLIGHT),
		.pinned = ledger_level(l, LEVEL_PINNED),
		.cached = cache_pages(&e->cache),
		.free = arena_free_frames(&e->cache.arena),
		.background_thresh = limits.bg,
		.thresh = limits.thresh,
		.dirty_max = ledger_peak(l, by_folio ? LEVEL_FOLIO_DIRTY : LEVEL_DEBT),
		.debt_max = ledger_peak(l, LEVEL_DEBT),
		.pinned_max = ledger_peak(l, LEVEL_PINNED),
		.charged = account_dirtied(p, l),
		.written = account_written(p, l),
		.cancelled =
			ledger_total(l, by_folio ? TOTAL_FOLIO_CANCELLED : TOTAL_PAGES_CANCELLED),
		.pages_dirtied = ledger_total(l, TOTAL_PAGES_DIRTIED),
		.pages_written = ledger_total(l, TOTAL_PAGES_WRITTEN),
	};
	stats_of_cache(&e->cache, out);
	stats_of_throttle(&e->all, &limits, out);
}

void engine_stats_reset(struct engine *e)
{
	ledger_reset_peaks(&e->cache.ledger);
	spin_lock(&e->all.lock);
	e->all.stats.first_sleep.when_ns = WORLD_NEVER;
	e->all.stats.background.when_ns = WORLD_NEVER;
	e->all.stats.first_pace.when_ns = WORLD_NEVER;
	spin_unlock(&e->all.lock);
}

/* Waits for what an inode has in flight; 0 or its error, if anything failed since `failures`. */
static int wait_inode(struct inode *inode, u64 failures)
{
	int error;

	inode_wait_pages(inode, 0, INDEX_MAX_PAGES - 1);
	spin_lock(&inode->m.tree_lock);
	error = atomic_load(&inode->m.cache->failures) != failures ? inode->m.error : 0;
	spin_unlock(&inode->m.tree_lock);
	return error;
}

int engine_sync(struct engine *e)
{
	u64 failures = atomic_load(&e->cache.failures);
	u32 flushed = 0; /* devices, as bits */
	struct list_node *n;
	int error = 0;

	writeback_sync(&e->all);
	mutex_lock(&e->inodes_lock);
	list_for_each (n, &e->inodes) {
		int rc = wait_inode(list_entry(n, struct inode, all), failures);

		error = error ? error : rc;
	}
	list_for_each (n, &e->inodes) {
		struct inode *inode = list_entry(n, struct inode, all);
		int rc;

		if (flushed >> inode->wb->index & 1)
			continue;
		flushed |= 1u << inode->wb->index;
		rc = inode_flush_device(inode);
		error = error ? error : rc;
	}
	mutex_unlock(&e->inodes_lock);
	return error;
}

u64 engine_drop_caches(struct engine *e)
{
	u64 dropped = cache_drop_clean(&e->cache);
	struct list_node *n;

	mutex_lock(&e->inodes_lock);
	list_for_each (n, &e->inodes) {
		struct inode *inode = list_entry(n, struct inode, all);

		if (!inode->m.pages) /* Linux drops the inode, and with it where a pass stopped */
			inode->m.write_cursor = 0;
	}
	mutex_unlock(&e->inodes_lock);
	return dropped;
}

bool engine_audit(struct engine *e, char *why, size_t why_size)
{
	struct ledger sum;
	struct list_node *n;
	u64 pages = 0;
	bool ok = true;

	ledger_init(&sum);
	mutex_lock(&e->inodes_lock);
	list_for_each (n, &e->inodes) {
		struct inode *inode = list_entry(n, struct inode, all);

		ok = ok && mapping_audit(&inode->m, &sum, why, why_size);
		pages += inode->m.pages;
	}
	mutex_unlock(&e->inodes_lock);
	return ok && cache_audit(&e->cache, &sum, pages, why, why_size);
}

void engine_task_exit(struct engine *e)
{
	throttle_task_exit(&e->all);
}
