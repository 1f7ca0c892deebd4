/* SPDX-License-Identifier: MIT */
/* The engine as a whole: made of a cache and its writeback, it owns the inodes. */
#include "file/inner.h"
#include "file/tenant.h"
#include "writeback/position.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MIN_PAGES 64 /* of a cache */

void vm_settings_init(struct vm_settings *vm)
{
	*vm = (struct vm_settings){ .dirty_ratio = 20,
				    .dirty_background_ratio = 10,
				    .dirty_writeback_centisecs = 500,
				    .dirty_expire_centisecs = 3000,
				    .retry_min_ms = 100,
				    .retry_max_ms = 10000 };
}

static struct vm_limits limits_from(const struct vm_settings *vm)
{
	return (struct vm_limits){
		.config = { .dirty_ratio = vm->dirty_ratio,
			    .dirty_background_ratio = vm->dirty_background_ratio,
			    .dirty_bytes = vm->dirty_bytes,
			    .dirty_background_bytes = vm->dirty_background_bytes },
		.dirty_writeback_centisecs = vm->dirty_writeback_centisecs,
		.dirty_expire_centisecs = vm->dirty_expire_centisecs,
		.retry_min_ms = vm->retry_min_ms,
		.retry_max_ms = vm->retry_max_ms,
	};
}

static bool vm_is_valid(const struct vm_settings *vm)
{
	return vm->dirty_ratio <= 100 && vm->dirty_background_ratio <= 100 &&
	       (!vm->dirty_bytes || vm->dirty_bytes >= 2ull * PAGE_SIZE);
}

int engine_set_vm(struct engine *e, const struct vm_settings *vm)
{
	struct vm_limits limits = limits_from(vm);

	if (!vm_is_valid(vm))
		return -EINVAL;
	writeback_set_vm(&e->all, &limits);
	return 0;
}

void engine_vm(struct engine *e, struct vm_settings *out)
{
	struct vm_limits vm = writeback_vm(&e->all);

	*out = (struct vm_settings){
		.dirty_ratio = vm.config.dirty_ratio,
		.dirty_background_ratio = vm.config.dirty_background_ratio,
		.dirty_bytes = vm.config.dirty_bytes,
		.dirty_background_bytes = vm.config.dirty_background_bytes,
		.dirty_writeback_centisecs = vm.dirty_writeback_centisecs,
		.dirty_expire_centisecs = vm.dirty_expire_centisecs,
		.retry_min_ms = vm.retry_min_ms,
		.retry_max_ms = vm.retry_max_ms,
	};
}

int engine_create(const struct engine_config *c, struct engine **out)
{
	struct cache_config cache = { .memory_pages = c->memory_bytes / PAGE_SIZE,
				      .max_memory_pages = c->max_memory_bytes / PAGE_SIZE,
				      .reserve_pages = c->reserve_bytes / PAGE_SIZE,
				      .ready_pages = c->ready_bytes / PAGE_SIZE,
				      .contents = c->contents,
				      .huge_pages = c->huge_pages,
				      .reclaim = c->policy.reclaim,
				      .shed = c->policy.pinned == PINNED_SHED,
				      .forgets = c->policy.errors == ERRORS_LINUX,
				      .persist = c->persist };
	struct vm_limits vm = limits_from(&c->vm);
	struct engine *e;
	int rc;

	if (cache.memory_pages < MIN_PAGES || cache.reserve_pages >= cache.memory_pages)
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
	e->registers = c->register_memory && c->contents;
	mutex_init(&e->inodes_lock, RANK_INODES);
	list_init(&e->inodes);
	list_init(&e->syncers);
	cond_init(&e->inodes_left);
	*out = e;
	return 0;
finish_cache:
	cache_finish(&e->cache);
free_engine:
	free(e);
	return rc;
}

int engine_tell_memory(struct engine *e, struct device *d, bool forget)
{
	const struct arena *a = &e->cache.arena;

	if (!e->registers)
		return 0;
	return device_register_memory(d, a->memory,
				      forget ? 0 : (size_t)atomic_load(&a->frames) * PAGE_SIZE);
}

int engine_add_device(struct engine *e, struct device *d, u32 read_ahead_kb, bool strict_limit)
{
	int rc = engine_tell_memory(e, d, false);
	struct wb *wb;

	if (rc)
		return rc;
	rc = wb_create(&e->all, d, read_ahead_kb, strict_limit, &wb);
	if (rc)
		engine_tell_memory(e, d, true);
	return rc;
}

int engine_resize(struct engine *e, u64 memory_bytes, u64 timeout_ns, u64 *left_bytes)
{
	u64 left = 0;
	int rc = -EINVAL;

	/* memory that is given back may not be registered; I/O without is only slower */
	for (u32 i = 0; i < e->all.count; i++)
		engine_tell_memory(e, e->all.wb[i]->device, true);
	if (memory_bytes / PAGE_SIZE >= MIN_PAGES)
		rc = cache_resize(&e->cache, memory_bytes / PAGE_SIZE, timeout_ns, &left);
	for (u32 i = 0; i < e->all.count && !left; i++)
		engine_tell_memory(e, e->all.wb[i]->device, false);
	*left_bytes = left * PAGE_SIZE;
	return rc;
}

void engine_memory(struct engine *e, struct engine_memory *out)
{
	struct memory_use arena = memory_use(&e->cache.arena.ram);
	struct list_node *n;
	u64 index = 0;

	mutex_lock(&e->inodes_lock);
	list_for_each (n, &e->inodes) {
		struct mapping *m = &list_entry(n, struct inode, all)->m;

		spin_lock(&m->tree_lock);
		index += m->index.memory_bytes;
		spin_unlock(&m->tree_lock);
	}
	mutex_unlock(&e->inodes_lock);
	*out = (struct engine_memory){
		.arena_bytes = arena.resident_bytes,
		.arena_huge_bytes = arena.huge_bytes,
		.table_bytes = memory_use(&e->cache.table).resident_bytes,
		.index_bytes = index,
		.stuck_bytes = (u64)arena_stuck(&e->cache.arena) * PAGE_SIZE,
	};
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
	out->read_misses = atomic_load(&c->read_misses);
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

struct unsafe {
	u64 pages, files;
	const struct inode *last;
};

static void count_unsafe(void *ctx, struct inode *inode, u64 offset, u64 length, int error)
{
	struct unsafe *u = ctx;

	(void)offset;
	(void)error;
	u->pages += length >> PAGE_SHIFT;
	u->files += inode != u->last;
	u->last = inode;
}

static void stats_of_unsafe(struct engine *e, struct engine_stats *out)
{
	struct unsafe u = { 0 };

	engine_show_unsafe(e, count_unsafe, &u);
	out->unsafe = u.pages;
	out->unsafe_files = u.files;
}

void engine_stats(struct engine *e, struct engine_stats *out)
{
	const struct policy *p = &e->all.policy;
	const struct ledger *l = &e->cache.ledger;
	bool by_folio = p->accounting == ACCOUNT_FOLIO;
	struct vm_limits vm = writeback_vm(&e->all);
	/* not writeback_limits(), which leaves a hint behind: looking on changes nothing */
	struct limits limits = limits_of(&vm.config, cache_dirtyable_pages(&e->cache), false, 0);

	*out = (struct engine_stats){
		.dirty = account_dirty(p, l),
		.writeback = account_writeback(p, l),
		.debt = ledger_level(l, LEVEL_DEBT),
		.in_flight = ledger_level(l, LEVEL_IN_FLIGHT),
		.pinned = ledger_level(l, LEVEL_PINNED),
		.drop = ledger_level(l, LEVEL_DROP),
		.memory = cache_size(&e->cache),
		.cached = cache_pages(&e->cache),
		.free = arena_free_frames(&e->cache.arena),
		.background_thresh = limits.bg,
		.thresh = limits.thresh,
		.dirty_max = ledger_peak(l, by_folio ? LEVEL_FOLIO_DIRTY : LEVEL_DEBT),
		.debt_max = ledger_peak(l, LEVEL_DEBT),
		.pinned_max = ledger_peak(l, LEVEL_PINNED),
		.drop_max = ledger_peak(l, LEVEL_DROP),
		.charged = account_dirtied(p, l),
		.written = account_written(p, l),
		.cancelled =
			ledger_total(l, by_folio ? TOTAL_FOLIO_CANCELLED : TOTAL_PAGES_CANCELLED),
		.pages_dirtied = ledger_total(l, TOTAL_PAGES_DIRTIED),
		.pages_written = ledger_total(l, TOTAL_PAGES_WRITTEN),
		.write_failures = atomic_load(&e->cache.failures),
	};
	stats_of_unsafe(e, out);
	stats_of_cache(&e->cache, out);
	stats_of_throttle(&e->all, &limits, out);
}

void engine_stats_reset(struct engine *e)
{
	spin_lock(&e->cache.books_lock);
	ledger_reset_peaks(&e->cache.ledger);
	spin_unlock(&e->cache.books_lock);
	spin_lock(&e->all.lock);
	e->all.stats.first_sleep.when_ns = WORLD_NEVER;
	e->all.stats.background.when_ns = WORLD_NEVER;
	e->all.stats.first_pace.when_ns = WORLD_NEVER;
	spin_unlock(&e->all.lock);
}

u64 engine_page_out(struct engine *e, u64 pages)
{
	return cache_page_out(&e->cache, pages);
}

u64 engine_drop_caches(struct engine *e)
{
	u64 dropped = cache_drop_clean(&e->cache);
	struct list_node *n;

	mutex_lock(&e->inodes_lock);
	list_for_each (n, &e->inodes) {
		struct inode *inode = list_entry(n, struct inode, all);
		bool gone;

		spin_lock(&inode->m.tree_lock);
		/* Linux drops the inode, and with it where a pass stopped */
		gone = !inode->m.pages;
		if (gone)
			inode->m.write_cursor = 0;
		spin_unlock(&inode->m.tree_lock);
		if (gone && unlikely(writeback_tenants(&e->all)))
			inode_unsettle(inode);
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
		pages += folio_get(inode->m.pages);
	}
	mutex_unlock(&e->inodes_lock);
	return ok && cache_audit(&e->cache, &sum, pages, why, why_size) &&
	       engine_audit_tenants(e, why, why_size);
}

void engine_task_exit(struct engine *e)
{
	throttle_task_exit(&e->all);
}

struct writeback *engine_writeback(struct engine *e)
{
	return &e->all;
}
