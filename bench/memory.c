// SPDX-License-Identifier: MIT
/*
 * What making folios costs: one thread alone, and several at once, each in a file of its own, over
 * a cache that is full, so that each new folio takes the place of an old one.
 *
 *	bench_memory [THREADS]
 */
#include "cache/cache.h"
#include <stdio.h>
#include <stdlib.h>

#define PAGES   (256u << 10) /* 1 GiB */
#define MAKE    (2u << 20)   /* folios, by each thread */
#define THREADS 16

static struct cache cache;
static struct mapping mappings[THREADS];

static void make(void *arg)
{
	struct mapping *m = arg;

	for (u64 page = 0; page < MAKE; page++) {
		struct folio *f = folio_alloc(&cache, 0);

		folio_lock(f);
		if (mapping_add(m, f, page))
			abort();
		folio_unlock(f);
		folio_unpin(&cache, f);
	}
}

static double run(unsigned threads, enum reclaim rule)
{
	struct cache_config config = { .memory_pages = PAGES, .reclaim = rule };
	struct task *t[THREADS];
	u64 started, ended;

	if (cache_init(&cache, &config))
		abort();
	for (unsigned i = 0; i < threads; i++)
		mapping_init(&mappings[i], &cache, NULL, 0, 9, NULL);
	started = world_now();
	for (unsigned i = 0; i < threads; i++)
		t[i] = world_spawn("make", make, &mappings[i]);
	for (unsigned i = 0; i < threads; i++)
		world_join(t[i]);
	ended = world_now();
	for (unsigned i = 0; i < threads; i++)
		mapping_discard(&mappings[i]);
	cache_discard(&cache);
	return (double)(ended - started) / MAKE;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "lru2", "sieve", "s3fifo" };
	unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 2;

	if (!threads || threads > THREADS)
		return 1;
	for (enum reclaim rule = 0; rule <= RECLAIM_S3FIFO; rule++) {
		double one = run(1, rule), many = run(threads, rule);

		printf("%-7s 1 thread %4.0f ns a folio, %u threads %4.0f ns: %.2f times as many\n",
		       names[rule], one, threads, many, threads * one / many);
	}
	return 0;
}
