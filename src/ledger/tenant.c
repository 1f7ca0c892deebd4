// SPDX-License-Identifier: MIT
/*
 * The table of tenants. A tenant that went away stays in its place until nothing in the cache bears
 * its number any more: dirty pages are its own until they are written, folios until they are
 * freed. Then the place is taken by the next one that is made. So nobody who holds a number
 * ever needs to ask whether it is still the same tenant's.
 *
 * A thread may outlive a tenant that it was given, and even the cache. What it keeps is therefore
 * no address but a number and a serial that no two tenants of a process share: if the table has
 * another serial in that place, the thread acts for nobody.
 */
#include "ledger/tenant.h"
#include "base/alloc.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL_TENANT 3  /* the word of the thread's storage */
#define ID_BITS      10 /* of the word; the serial is above */

static_assert(TENANT_MAX < 1 << ID_BITS, "a number fits");

static _Atomic u64 last_serial;

static void tenant_reset(struct tenant *t, const char *name, const struct tenant_config *config,
			 u64 now)
{
	ledger_init(&t->ledger);
	t->config = *config;
	snprintf(t->name, sizeof(t->name), "%s", name);
	hard_limit_init(&t->hard, 0, now);
	proportion_domain_init(&t->proportions);
	memset(t->foreign, 0, sizeof(t->foreign));
	for (unsigned i = 0; i < TENANT_DEVICES; i++)
		atomic_store(&t->device_book[i], NULL);
	t->sleep_ns = t->sleeps = 0;
	t->serial = t->id ? atomic_fetch_add(&last_serial, 1) + 1 : 0;
	atomic_store(&t->open, true);
}

static struct tenant *tenant_make(u32 id, const char *name, const struct tenant_config *config,
				  u64 now)
{
	struct tenant *t = alloc_zeroed(1, sizeof(*t));

	if (!t)
		return NULL;
	t->id = id;
	spin_init(&t->lock, RANK_DOMAIN);
	tenant_reset(t, name, config, now);
	return t;
}

struct tenants *tenants_create(bool by_page, u64 now)
{
	struct tenants *ts = alloc_zeroed(1, sizeof(*ts));

	if (!ts)
		return NULL;
	ts->by_page = by_page;
	spin_init(&ts->lock, RANK_TENANTS);
	ts->of[0] = tenant_make(0, "", &(struct tenant_config){ 0 }, now);
	if (ts->of[0])
		return ts;
	free(ts);
	return NULL;
}

void tenants_destroy(struct tenants *ts)
{
	if (!ts)
		return;
	for (u32 id = 0; id <= ts->used; id++)
		free(ts->of[id]);
	free(ts);
}

/* Whether nothing bears its number any more. */
static bool is_left_alone(struct tenant *t)
{
	if (atomic_load(&t->open) || atomic_load(&t->pages) || atomic_load(&t->inodes))
		return false;
	for (unsigned i = 0; i < LEVEL_MAX; i++)
		if (ledger_level(&t->ledger, i))
			return false;
	return true;
}

/* Lock held. */
static struct tenant *find(struct tenants *ts, const char *name)
{
	for (u32 id = 1; id <= ts->used; id++)
		if (atomic_load(&ts->of[id]->open) && !strcmp(ts->of[id]->name, name))
			return ts->of[id];
	return NULL;
}

struct tenant *tenant_find(struct tenants *ts, const char *name)
{
	struct tenant *t;

	spin_lock(&ts->lock);
	t = find(ts, name);
	spin_unlock(&ts->lock);
	return t;
}

/* A place to use anew, or NULL. Lock held. */
static struct tenant *idle_place(struct tenants *ts)
{
	for (u32 id = 1; id <= ts->used; id++)
		if (is_left_alone(ts->of[id]))
			return ts->of[id];
	return NULL;
}

int tenant_add(struct tenants *ts, const char *name, const struct tenant_config *config, u64 now,
	       struct tenant **out)
{
	struct tenant *made = tenant_make(TENANT_MAX, name, config, now), *t;
	int rc = 0;

	if (!made)
		return -ENOMEM;
	spin_lock(&ts->lock);
	t = idle_place(ts);
	if (find(ts, name)) {
		rc = -EEXIST;
	} else if (t) {
		spin_lock(&t->lock);
		tenant_reset(t, name, config, now);
		spin_unlock(&t->lock);
	} else if (ts->used < TENANT_MAX) {
		t = made;
		made = NULL;
		t->id = ts->used + 1;
		atomic_store_explicit(&ts->of[t->id], t, memory_order_release);
		ts->used = t->id;
	} else {
		rc = -ENOSPC;
	}
	spin_unlock(&ts->lock);
	free(made);
	*out = t;
	return rc;
}

void tenant_set(struct tenant *t, const struct tenant_config *config, u64 now)
{
	spin_lock(&t->lock);
	t->config = *config;
	hard_limit_init(&t->hard, 0, now);
	spin_unlock(&t->lock);
}

struct tenant_config tenant_config(struct tenant *t)
{
	struct tenant_config c;

	spin_lock(&t->lock);
	c = t->config;
	spin_unlock(&t->lock);
	return c;
}

u64 tenant_word(const struct tenant *t)
{
	return t ? t->serial << ID_BITS | t->id : 0;
}

u64 tenant_enter_word(u64 word)
{
	u64 *local = world_local(LOCAL_TENANT), was = *local;

	*local = word;
	return was;
}

u64 tenant_enter(const struct tenant *t)
{
	return tenant_enter_word(tenant_word(t));
}

void tenant_restore(u64 word)
{
	*world_local(LOCAL_TENANT) = word;
}

struct tenant *tenant_of_word(const struct tenants *ts, u64 word)
{
	struct tenant *t = tenant_of(ts, word & ((1u << ID_BITS) - 1));

	return t && t->serial == word >> ID_BITS ? t : NULL;
}

struct tenant *tenant_self(const struct tenants *ts)
{
	struct tenant *t = tenant_of_word(ts, *world_local(LOCAL_TENANT));

	if (t && atomic_load_explicit(&t->open, memory_order_relaxed))
		return t;
	return tenant_of(ts, 0);
}
