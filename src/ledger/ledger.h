/* SPDX-License-Identifier: MIT */
/*
 * Ledgers: what is owed to the devices, and what that holds in memory.
 *
 * Every change of a page's dirty or in-flight state is one entry, posted to the
 * books of everyone concerned: the file, its device, (later) its tenant and the
 * whole cache. Two views stand side by side in each book and are exact at every
 * instant:
 *
 *	by page		debt: pages with a dirty block, which must be written;
 *			in_flight: pages being written
 *	by folio	what the same state holds as whole folios, as Linux counts:
 *			folio_dirty, folio_writeback, and pinned, the union of the two,
 *			which cannot be reclaimed
 *
 * Of what is dirty, drop (by page) and folio_drop count what is in folios that are made to go once
 * they are written (DONTCACHE).
 *
 * A policy only chooses which of them the throttle and the flusher read. No level
 * counts a page twice; a page that is re-dirtied in flight is in debt and in flight,
 * but pinned once.
 *
 * Levels are changed under the tree lock of the mapping concerned, and those of books that many
 * mappings share under one more. They are read without: hence atomics, relaxed, since nobody
 * infers other state from them.
 */
#ifndef SLUICE_LEDGER_LEDGER_H
#define SLUICE_LEDGER_LEDGER_H

#include "world/lock.h"
#include <stdatomic.h>

/* All in pages. */
#define LEDGER_LEVELS(X)                    \
	X(DEBT, debt)                       \
	X(IN_FLIGHT, in_flight)             \
	X(FOLIO_DIRTY, folio_dirty)         \
	X(FOLIO_WRITEBACK, folio_writeback) \
	X(PINNED, pinned)                   \
	X(DROP, drop)                       \
	X(FOLIO_DROP, folio_drop)

/*
 * Totals only rise, and for pages as for folios
 *
 *	dirtied + redirtied == written + cancelled + dirty level + in-flight level
 *
 * A page counts as written when its I/O ended, whatever came of it; if that failed it is
 * redirtied: owed again without new data. So are clean pages that are written along.
 */
#define LEDGER_TOTALS(X)                                                             \
	X(PAGES_DIRTIED, pages_dirtied) /* newly dirtied data */                     \
	X(PAGES_WRITTEN, pages_written)                                              \
	X(PAGES_CANCELLED, pages_cancelled) /* truncated before they were written */ \
	X(PAGES_REDIRTIED, pages_redirtied)                                          \
	X(FOLIO_REDIRTIED, folio_redirtied)                                          \
	X(FOLIO_DIRTIED, folio_dirtied)                                              \
	X(FOLIO_WRITTEN, folio_written)                                              \
	X(FOLIO_CANCELLED, folio_cancelled)

enum ledger_level {
#define LEDGER_ENUM(name, text) LEVEL_##name,
	LEDGER_LEVELS(LEDGER_ENUM) LEVEL_MAX
};

enum ledger_total {
#undef LEDGER_ENUM
#define LEDGER_ENUM(name, text) TOTAL_##name,
	LEDGER_TOTALS(LEDGER_ENUM) TOTAL_MAX
#undef LEDGER_ENUM
};

struct ledger {
	_Atomic s64 level[LEVEL_MAX];
	_Atomic s64 peak[LEVEL_MAX]; /* largest level since ledger_reset_peaks() */
	_Atomic u64 total[TOTAL_MAX];
};

/* One change. Zero fields change nothing. */
struct ledger_entry {
	s32 level[LEVEL_MAX];
	u32 total[TOTAL_MAX];
};

void ledger_init(struct ledger *l);
void ledger_post(struct ledger *l, const struct ledger_entry *e);
/*
 * Posts to several books, those that are NULL excepted. The first one is posted to under a lock
 * that the caller holds, the others under `lock`, taken here; and by this call only.
 */
void ledger_post_all(struct ledger *const *books, unsigned count, const struct ledger_entry *e,
		     struct spinlock *lock);
/* Posts to one of those others. */
void ledger_post_one(struct ledger *l, const struct ledger_entry *e, struct spinlock *lock);
void ledger_reset_peaks(struct ledger *l);

static inline u64 ledger_level(const struct ledger *l, enum ledger_level i)
{
	s64 v = atomic_load_explicit(&l->level[i], memory_order_relaxed);

	return v > 0 ? (u64)v : 0;
}

static inline u64 ledger_peak(const struct ledger *l, enum ledger_level i)
{
	return (u64)atomic_load_explicit(&l->peak[i], memory_order_relaxed);
}

static inline u64 ledger_total(const struct ledger *l, enum ledger_total i)
{
	return atomic_load_explicit(&l->total[i], memory_order_relaxed);
}

const char *ledger_level_name(enum ledger_level i);
const char *ledger_total_name(enum ledger_total i);

#endif
