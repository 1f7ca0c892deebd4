/* SPDX-License-Identifier: MIT */
/* Posting to books; see ledger.h for what they hold. */
#include "ledger/ledger.h"
#include "base/bits.h"

void ledger_init(struct ledger *l)
{
	for (unsigned i = 0; i < LEVEL_MAX; i++) {
		atomic_init(&l->level[i], 0);
		atomic_init(&l->peak[i], 0);
	}
	for (unsigned i = 0; i < TOTAL_MAX; i++)
		atomic_init(&l->total[i], 0);
}

static void raise_peak(struct ledger *l, unsigned i, s64 level)
{
	s64 peak = atomic_load_explicit(&l->peak[i], memory_order_relaxed);

	while (level > peak &&
	       !atomic_compare_exchange_weak_explicit(&l->peak[i], &peak, level,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/* The fields that change something, as bits: levels from 0 on, then totals. */
static u32 fields_of(const struct ledger_entry *e)
{
	u32 fields = 0;

	for (unsigned i = 0; i < LEVEL_MAX; i++)
		fields |= (u32)(e->level[i] != 0) << i;
	for (unsigned i = 0; i < TOTAL_MAX; i++)
		fields |= (u32)(e->total[i] != 0) << (LEVEL_MAX + i);
	return fields;
}

static void post_fields(struct ledger *l, const struct ledger_entry *e, u32 fields)
{
	for (; fields; fields &= fields - 1) {
		unsigned i = bits_first(fields);
		s64 level;

		if (i >= LEVEL_MAX) {
			atomic_fetch_add_explicit(&l->total[i - LEVEL_MAX], e->total[i - LEVEL_MAX],
						  memory_order_relaxed);
			continue;
		}
		level = atomic_fetch_add_explicit(&l->level[i], e->level[i], memory_order_relaxed) +
			e->level[i];
		assert(level >= 0);
		if (e->level[i] > 0)
			raise_peak(l, i, level);
	}
}

/* The same under a lock for all posts: loads and stores, which cost a tenth. */
static void post_fields_alone(struct ledger *l, const struct ledger_entry *e, u32 fields)
{
	for (; fields; fields &= fields - 1) {
		unsigned i = bits_first(fields);
		_Atomic u64 *total;
		s64 level;

		if (i >= LEVEL_MAX) {
			total = &l->total[i - LEVEL_MAX];
			atomic_store_explicit(total,
					      atomic_load_explicit(total, memory_order_relaxed) +
						      e->total[i - LEVEL_MAX],
					      memory_order_relaxed);
			continue;
		}
		level = atomic_load_explicit(&l->level[i], memory_order_relaxed) + e->level[i];
		assert(level >= 0);
		atomic_store_explicit(&l->level[i], level, memory_order_relaxed);
		if (level > atomic_load_explicit(&l->peak[i], memory_order_relaxed))
			atomic_store_explicit(&l->peak[i], level, memory_order_relaxed);
	}
}

void ledger_post(struct ledger *l, const struct ledger_entry *e)
{
	post_fields(l, e, fields_of(e));
}

void ledger_post_all(struct ledger *const *books, unsigned count, const struct ledger_entry *e,
		     struct spinlock *lock)
{
	u32 fields = fields_of(e);

	post_fields_alone(books[0], e, fields);
	spin_lock(lock);
	for (unsigned i = 1; i < count; i++)
		if (books[i])
			post_fields_alone(books[i], e, fields);
	spin_unlock(lock);
}

void ledger_post_one(struct ledger *l, const struct ledger_entry *e, struct spinlock *lock)
{
	spin_lock(lock);
	post_fields_alone(l, e, fields_of(e));
	spin_unlock(lock);
}

void ledger_reset_peaks(struct ledger *l)
{
	for (unsigned i = 0; i < LEVEL_MAX; i++)
		atomic_store_explicit(&l->peak[i],
				      atomic_load_explicit(&l->level[i], memory_order_relaxed),
				      memory_order_relaxed);
}

const char *ledger_level_name(enum ledger_level i)
{
	static const char *const names[] = {
#define LEDGER_NAME(name, text) #text,
		LEDGER_LEVELS(LEDGER_NAME)
	};

	assert(i < LEVEL_MAX);
	return names[i];
}

const char *ledger_total_name(enum ledger_total i)
{
	static const char *const names[] = { LEDGER_TOTALS(LEDGER_NAME) };

	assert(i < TOTAL_MAX);
	return names[i];
}
