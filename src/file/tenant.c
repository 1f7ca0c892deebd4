// SPDX-License-Identifier: MIT
/* Tenants at the engine's front: settings in bytes, and figures. See tenant.h. */
#include "file/tenant.h"
#include "base/alloc.h"
#include "cache/owner.h"
#include "file/inner.h"
#include <stdio.h>
#include <string.h>

static struct tenant_config config_of(const struct tenant_settings *s)
{
	return (struct tenant_config){
		.limits = { .dirty_ratio = s->dirty_ratio,
			    .dirty_background_ratio = s->dirty_background_ratio,
			    .dirty_bytes = s->dirty_bytes,
			    .dirty_background_bytes = s->dirty_background_bytes },
		.memory_pages = s->memory_bytes / PAGE_SIZE,
		.floor = s->floor_bytes / PAGE_SIZE,
	};
}

static bool settings_valid(const struct tenant_settings *s)
{
	return s->dirty_ratio <= 100 && s->dirty_background_ratio <= 100 &&
	       (!s->dirty_bytes || s->dirty_bytes >= 2ull * PAGE_SIZE) &&
	       (!s->memory_bytes || s->memory_bytes >= PAGE_SIZE);
}

int engine_add_tenant(struct engine *e, const char *name, const struct tenant_settings *s,
		      struct tenant **out)
{
	struct tenant_config config = config_of(s);
	struct tenants *ts;

	if (!name || !*name || strlen(name) >= TENANT_NAME_MAX || !settings_valid(s))
		return -EINVAL;
	ts = writeback_make_tenants(&e->all);
	return ts ? tenant_add(ts, name, &config, world_jiffies(), out) : -ENOMEM;
}

int engine_set_tenant(struct engine *e, struct tenant *t, const struct tenant_settings *s)
{
	struct tenant_config config = config_of(s);

	(void)e;
	if (!settings_valid(s))
		return -EINVAL;
	tenant_set(t, &config, world_jiffies());
	return 0;
}

void engine_close_tenant(struct engine *e, struct tenant *t)
{
	writeback_close_tenant(&e->all, t, NULL);
}

void engine_close_tenant_telling(struct engine *e, struct tenant *t, u64 *inodes, u64 *longest_ns)
{
	struct tenant_closing c;

	writeback_close_tenant(&e->all, t, &c);
	*inodes = c.inodes;
	*longest_ns = c.longest_ns;
}

struct tenant *engine_tenant(struct engine *e, const char *name)
{
	struct tenants *ts = writeback_tenants(&e->all);

	return ts ? tenant_find(ts, name) : NULL;
}

struct tenant *engine_tenant_at(struct engine *e, size_t i)
{
	struct tenants *ts = writeback_tenants(&e->all);

	for (u32 id = 1; ts && id <= ts->used; id++)
		if (atomic_load(&tenant_of(ts, id)->open) && !i--)
			return tenant_of(ts, id);
	return NULL;
}

const char *engine_tenant_name(const struct tenant *t)
{
	return t->name;
}

void engine_tenant_name_of(struct engine *e, u64 word, char *name, size_t size)
{
	struct tenants *ts = writeback_tenants(&e->all);
	struct tenant *t = ts ? tenant_of_word(ts, word) : NULL;

	*name = 0;
	if (!t)
		return;
	spin_lock(&t->lock);
	if (tenant_word(t) == word)
		snprintf(name, size, "%s", t->name);
	spin_unlock(&t->lock);
}

void engine_tenant_stats(struct engine *e, struct tenant *t, struct tenant_stats *out)
{
	const struct policy *p = &e->all.policy;
	const struct ledger *l = &t->ledger;
	bool by_folio = p->accounting == ACCOUNT_FOLIO;
	struct limits limits = tenant_limits(&e->all, t);
	s64 cached = atomic_load(&t->pages);

	*out = (struct tenant_stats){
		.dirty = account_dirty(p, l),
		.writeback = account_writeback(p, l),
		.debt = ledger_level(l, LEVEL_DEBT),
		.in_flight = ledger_level(l, LEVEL_IN_FLIGHT),
		.cached = cached > 0 ? (u64)cached : 0,
		.thresh = limits.thresh,
		.background_thresh = limits.bg,
		.floor = tenant_config(t).floor,
		.dirty_max = ledger_peak(l, by_folio ? LEVEL_FOLIO_DIRTY : LEVEL_DEBT),
		.charged = account_dirtied(p, l),
		.written = account_written(p, l),
		.pages_dirtied = ledger_total(l, TOTAL_PAGES_DIRTIED),
		.pages_written = ledger_total(l, TOTAL_PAGES_WRITTEN),
		.throttle_sleep_ns = atomic_load(&t->sleep_ns),
		.throttle_sleeps = atomic_load(&t->sleeps),
	};
}

void engine_tenant_reset(struct engine *e, struct tenant *t)
{
	(void)e;
	ledger_reset_peaks(&t->ledger);
}

u64 engine_act_for(struct tenant *t)
{
	return tenant_enter(t);
}

void engine_restore(u64 before)
{
	tenant_restore(before);
}

void file_set_tenant(struct file *f, struct tenant *t)
{
	atomic_store_explicit(&f->tenant, tenant_word(t), memory_order_relaxed);
}

void inode_set_shared(struct inode *inode, bool shared)
{
	atomic_store(&inode->shared, shared);
}

/* --- audit */

static bool same_levels(const struct ledger *l, const struct ledger_entry *e, const char *whose,
			const char *name, char *why, size_t why_size)
{
	for (unsigned i = 0; i < LEVEL_MAX; i++) {
		s64 kept = atomic_load(&l->level[i]);

		if (kept == e->level[i])
			continue;
		snprintf(why, why_size, "%s %s: %s is %lld, the files say %d", whose, name,
			 ledger_level_name(i), (long long)kept, e->level[i]);
		return false;
	}
	return true;
}

static void add_levels(struct ledger_entry *to, const struct ledger *l)
{
	for (unsigned i = 0; i < LEVEL_MAX; i++)
		to->level[i] += (s32)ledger_level(l, i);
}

/* Ownership by folio: a wb's book holds the files whose home it is. */
static bool audit_homes(struct engine *e, char *why, size_t why_size)
{
	for_each_wb(wb, &e->all)
	{
		struct ledger_entry sum = { 0 };
		struct list_node *n;

		list_for_each (n, &e->inodes) {
			const struct inode *inode = list_entry(n, struct inode, all);

			if (inode->home == wb)
				add_levels(&sum, &inode->m.ledger);
		}
		if (!same_levels(&wb->ledger, &sum, "wb of", wb->tenant ? wb->tenant->name : "all",
				 why, why_size))
			return false;
	}
	return true;
}

/* Ownership by page: a tenant's book is the sum of those it has on devices. */
static bool audit_devices(struct engine *e, struct tenant *t, char *why, size_t why_size)
{
	struct ledger_entry sum = { 0 };

	for (u32 i = 0; i < e->all.count; i++)
		if (t->device_book[i])
			add_levels(&sum, t->device_book[i]);
	return same_levels(&t->ledger, &sum, "devices of", t->name, why, why_size);
}

bool engine_audit_tenants(struct engine *e, char *why, size_t why_size)
{
	struct tenants *ts = writeback_tenants(&e->all);
	struct ledger_entry *of = ts ? calloc(TENANT_MAX + 1, sizeof(*of)) : NULL;
	struct list_node *n;
	bool ok = true;

	if (!of)
		return true;
	mutex_lock(&e->inodes_lock);
	list_for_each (n, &e->inodes)
		owner_audit(&list_entry(n, struct inode, all)->m, of);
	for (u32 id = 1; id <= ts->used && ok; id++) {
		struct tenant *t = tenant_of(ts, id);

		ok = same_levels(&t->ledger, &of[id], "tenant", t->name, why, why_size) &&
		     (!ts->by_page || audit_devices(e, t, why, why_size));
	}
	ok = ok && (ts->by_page || audit_homes(e, why, why_size));
	mutex_unlock(&e->inodes_lock);
	free(of);
	return ok;
}
