/* SPDX-License-Identifier: MIT */
/*
 * Tenants: those among whom a cache's dirty memory is divided, as Linux divides it among memory
 * cgroups. A tenant is a dirty domain of its own, with a ledger, limits, a smoothed hard limit and
 * shares of the devices; and it has a floor, below which it is never throttled.
 *
 * They are numbered from 1; number 0 is everybody else (Linux's root cgroup), who has no limits
 * but the whole cache's. A task acts for the tenant that its thread was given.
 *
 * A cache has no table of them until it has its first tenant, so that one without has nothing
 * to ask but for the table.
 */
#ifndef SLUICE_LEDGER_TENANT_H
#define SLUICE_LEDGER_TENANT_H

#include "ledger/ledger.h"
#include "ledger/limits.h"
#include "ledger/proportion.h"

#define TENANT_MAX      1023 /* numbers; one is used anew once nothing of the old one is left */
#define TENANT_NAME_MAX 64   /* with its end */
#define TENANT_DEVICES  16
#define TENANT_FOREIGN  4 /* flushes that it remembers to ask for: MEMCG_CGWB_FRN_CNT */

/* What it may have dirty; where all four are 0, as much as anybody. */
struct tenant_config {
	struct limits_config limits;
	u64 memory_pages; /* memory it may use, as far as limits go; 0: all */
	u64 floor;        /* pages */
};

/* Pages of its that are dirty in a file of somebody else's (reference 10.5). */
struct tenant_foreign {
	bool used;
	u32 device, owner; /* whose */
	u64 serial;        /* of the owner */
	u64 at;            /* jiffies: when it last made some dirty; 0: flushed since */
	bool flushing;
};

struct tenant {
	u32 id;             /* immutable */
	_Atomic u64 serial; /* of all tenants ever made; 0: number 0; changes with its name */
	_Atomic bool open;  /* false: it went away; its pages stay its own until they are written */
	_Atomic s64 pages;  /* cached in folios that are its */
	_Atomic s64 inodes; /* that are its */
	struct ledger ledger;
	/* of its pages on each device, under ownership by page; NULL: it has none there yet */
	struct ledger *_Atomic device_book[TENANT_DEVICES];
	_Atomic u64 sleep_ns, sleeps;

	struct spinlock lock; /* protects the rest */
	char name[TENANT_NAME_MAX];
	struct tenant_config config;
	struct hard_limit hard;
	struct proportion_domain proportions;
	struct tenant_foreign foreign[TENANT_FOREIGN];
};

struct tenants {
	struct spinlock lock; /* who is made and who goes */
	bool by_page;         /* immutable: each dirty page is his who made it dirty */
	_Atomic u32 used;     /* numbers above were never used */
	struct tenant *_Atomic of[TENANT_MAX + 1];
};

/* NULL without memory. */
struct tenants *tenants_create(bool by_page, u64 now);
void tenants_destroy(struct tenants *ts);

/* Makes one: 0, -EEXIST (the name is taken), -ENOSPC, -ENOMEM. `now` in jiffies. */
int tenant_add(struct tenants *ts, const char *name, const struct tenant_config *config, u64 now,
	       struct tenant **out);
/* The open one of that name, or NULL. */
struct tenant *tenant_find(struct tenants *ts, const char *name);
void tenant_set(struct tenant *t, const struct tenant_config *config, u64 now);
struct tenant_config tenant_config(struct tenant *t);

static inline struct tenant *tenant_of(const struct tenants *ts, u32 id)
{
	assert(id <= TENANT_MAX);
	return atomic_load_explicit(&ts->of[id], memory_order_acquire);
}

/* The calling thread acts for t (NULL: for number 0) from now on. Returns a word for restoring. */
u64 tenant_enter(const struct tenant *t);
/* The same by its word (tenant_word()). */
u64 tenant_enter_word(u64 word);
void tenant_restore(u64 word);
u64 tenant_word(const struct tenant *t);
/* The one of a word, open or not; NULL: of none, or another is in its place. */
struct tenant *tenant_of_word(const struct tenants *ts, u64 word);
/* For whom it acts here: never NULL, and always one that is open. */
struct tenant *tenant_self(const struct tenants *ts);

#endif
