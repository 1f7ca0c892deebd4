/* SPDX-License-Identifier: MIT */
/*
 * What it costs to note a latency, which the job runner does for every operation, and
 * to read a percentile, which it does at the end.
 */
#include "base/hist.h"
#include "base/rng.h"
#include "bench.h"

#define VALUES 4096 /* 32 KiB: they stay in the first cache */

struct noting {
	struct hist h;
	u64 value_ns[VALUES];
};

static void add(void *arg, u64 n)
{
	struct noting *b = arg;

	for (u64 i = 0; i < n; i++)
		hist_add(&b->h, b->value_ns[i % VALUES]);
}

static void percentile(void *arg, u64 n)
{
	const struct noting *b = arg;

	for (u64 i = 0; i < n; i++)
		bench_keep(hist_percentile(&b->h, 99.9));
}

int main(void)
{
	static struct noting b;
	struct rng r;

	hist_init(&b.h);
	rng_init(&r, 1);
	for (unsigned i = 0; i < VALUES; i++) /* 1 us to 16 ms, as many in each power of two */
		b.value_ns[i] = (1000ull << rng_below(&r, 14)) + rng_below(&r, 1000);
	bench_op("hist_add", add, &b);
	bench_op("hist_percentile", percentile, &b);
	return 0;
}
