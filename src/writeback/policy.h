/* SPDX-License-Identifier: MIT */
/*
 * A policy is data: one choice for each question on which page caches differ. The
 * presets stand in one table (policy.c); an experiment may change single choices of
 * a preset by name. A new behaviour is a new choice here and one small function
 * where it acts.
 */
#ifndef SLUICE_WRITEBACK_POLICY_H
#define SLUICE_WRITEBACK_POLICY_H

#include "base/err.h"
#include "cache/reclaim.h"

/* The order of the values is that of the answers in policy.c. */
enum policy_accounting { ACCOUNT_FOLIO, ACCOUNT_PAGE, ACCOUNT_DEBT };
enum policy_small_write { SMALL_WRITE_KEEP, SMALL_WRITE_SPLIT, SMALL_WRITE_EVICT };
enum policy_readahead { READAHEAD_MARK_ORDER, READAHEAD_FILE_ORDER };
enum policy_write_order { WRITE_ORDER_ZERO, WRITE_ORDER_LENGTH };
enum policy_writeout { WRITEOUT_FOLIO, WRITEOUT_BLOCK };
enum policy_write_lock { WRITE_LOCK_INODE, WRITE_LOCK_FOLIO };
enum policy_wb_floor { WB_FLOOR_POSITION, WB_FLOOR_THRESHOLD };
enum policy_wb_counters { WB_COUNTERS_EXACT, WB_COUNTERS_PER_CPU };
enum policy_ext4_folios { EXT4_FOLIOS_SINGLE, EXT4_FOLIOS_LARGE };
enum policy_pinned { PINNED_IGNORE, PINNED_SHED };
enum policy_errors { ERRORS_KEEP, ERRORS_LINUX };
enum policy_foreign { FOREIGN_NONE, FOREIGN_FLUSH, FOREIGN_SKIP_SHARED, FOREIGN_TARGETED };
enum policy_file_queue { FILE_QUEUE_FAIR, FILE_QUEUE_BARGING };
enum policy_tenant_limits { TENANT_LIMITS_MEMCG, TENANT_LIMITS_PLAIN };
enum policy_dontcache { DONTCACHE_INLINE, DONTCACHE_KICK, DONTCACHE_OWN };
enum policy_flush_depth { FLUSH_DEPTH_FIXED, FLUSH_DEPTH_ADAPTIVE };

struct policy {
	char name[32];
	enum policy_accounting accounting;   /* what is charged as dirty */
	enum policy_pinned pinned;           /* what is done about memory pinned by debt */
	enum policy_small_write small_write; /* a small write into a large clean folio */
	enum policy_write_order write_order; /* order of a folio made by a write */
	enum policy_readahead readahead;     /* where readahead takes the folio order from */
	enum policy_writeout writeout;       /* what of a dirty folio is written */
	enum policy_write_lock write_lock;   /* what a writer excludes other writers from */
	enum policy_wb_floor wb_floor;       /* where a device's floor of (limit - dirty)/8 acts */
	enum reclaim reclaim;                /* which clean folio goes when memory is needed */
	enum policy_errors errors;           /* what becomes of data that could not be written */
	u32 pinned_share;                    /* pinned=shed: tenths of memory that may be pinned */
	enum policy_wb_counters wb_counters; /* what the flusher sees of its device's dirty pages */
	enum policy_ext4_folios ext4_folios; /* the folios of files on ext4 */
	u32 max_order;                       /* largest folio order, 0..9 */
	enum policy_foreign foreign;         /* what is written for a tenant in others' files */
	enum policy_file_queue file_queue;   /* who gets a file's lock that others wait for */
	enum policy_tenant_limits tenant_limits; /* what a tenant may have dirty */
	enum policy_dontcache dontcache;     /* who writes what DONTCACHE writes leave, and when */
	enum policy_flush_depth flush_depth; /* how much background write-out is in flight */
};

/* The preset of that name, or NULL. */
const struct policy *policy_find(const char *name);
/* The i-th preset in table order, or NULL past the end. */
const struct policy *policy_preset(size_t i);
/* One line on the i-th preset, or NULL past the end. */
const char *policy_about(size_t i);
/* Sets one choice by its key; -EINVAL saying what would be right. */
int policy_set(struct policy *p, const char *key, const char *value, struct err *e);

/* Keys in print order, NULL past the end; the value as text; a sentence on the choice. */
const char *policy_key(size_t i);
const char *policy_value(const struct policy *p, size_t key, char buf[16]);
const char *policy_meaning(const struct policy *p, size_t key);
/* The values a key may take, as "folio|page|debt". */
const char *policy_values(size_t key);
bool policy_has_key(const char *key);
/* The preset's name and what p changed of it: "linux-7.4 accounting=page". Returns buf. */
const char *policy_label(const struct policy *p, char *buf, size_t size);

#endif
