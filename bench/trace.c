// SPDX-License-Identifier: MIT
/* Events of the throttle and the flusher: what one costs while nobody looks, and into a ring. */
#include "bench.h"
#include "writeback/wb.h"

struct work {
	struct writeback all;
	struct wb wb;
	struct trace_balance balance;
};

static void one(void *arg, u64 n)
{
	struct work *w = arg;

	while (n--) {
		bench_keep(n);
		if (trace_on())
			trace_balance_dirty_pages(&w->wb, &w->balance);
	}
}

static void small(void *arg, u64 n)
{
	struct work *w = arg;

	while (n--)
		if (trace_on())
			trace_wake_background(&w->wb);
}

static void empty(void *arg, u64 n)
{
	(void)arg;
	while (n--)
		bench_keep(n);
}

int main(void)
{
	static struct work w;
	double loop, off, on;

	w.wb.all = &w.all;
	w.balance.dirty_ratelimit = 25600;
	loop = bench_op("empty loop", empty, &w);
	off = bench_op("an event, nobody traces", one, &w);
	if (trace_start(&w.all.trace, 4096))
		return 1;
	on = bench_op("balance_dirty_pages, 14 fields", one, &w);
	bench_op("writeback_wake_background, 1", small, &w);
	trace_finish(&w.all.trace);
	printf("off beyond the loop %.2f ns; on %.2f ns (at most 20)\n", off - loop, on - loop);
	return 0;
}
