/* SPDX-License-Identifier: MIT */
/* Posting to books; see ledger.h for what they hold. */
#include "ledger/ledger.h"

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

void ledger_post(struct ledger *l, const struct ledger_entry *e)
{
	for (unsigned i = 0; i < LEVEL_MAX; i++) {
		s64 level;

		if (!e->level[i])
			continue;
		level = atomic_fetch_add_explicit(&l->level[i], e->level[i], memory_order_relaxed) +
			e->level[i];
		assert(level >= 0);
		if (e->level[i] > 0)
			raise_peak(l, i, level);
	}
	for (unsigned i = 0; i < TOTAL_MAX; i++)
		if (e->total[i])
			atomic_fetch_add_explicit(&l->total[i], e->total[i], memory_order_relaxed);
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
