/* SPDX-License-Identifier: MIT */
/* Where random I/O goes: permutations, and the shapes of the distributions. */
#include "fake_engine.h"
#include "job/clone.h"
#include <math.h>

static void check_permutation(u64 n, u64 seed)
{
	u8 *seen = calloc(n, 1);
	struct permute p;
	u64 value;

	assert_non_null(seen);
	permute_init(&p, n, seed);
	for (u64 i = 0; i < n; i++) {
		assert_true(permute_next(&p, &value));
		assert_true(value < n);
		assert_int_equal(seen[value]++, 0);
		assert_true(permute_at(&p, i) == value);
	}
	assert_false(permute_next(&p, &value));
	free(seen);
}

static void every_size_is_permuted(void **state)
{
	static const u64 sizes[] = {
		4095, 4096, 4097, 65535, 65536, 99991, 262144, 786432, 1000003
	};

	(void)state;
	for (u64 n = 1; n <= 300; n++)
		check_permutation(n, n);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		check_permutation(sizes[i], 5);
}

/* Large ones cannot be walked whole; no value may come twice among neighbours. */
static void huge_sizes_stay_in_range(void **state)
{
	static const u64 sizes[] = { 1ull << 40, (1ull << 40) + 1, 1ull << 52 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		u64 low = 0, value, before = ~0ull;
		struct permute p;

		permute_init(&p, sizes[i], 3);
		for (int n = 0; n < 10000; n++) {
			assert_true(permute_next(&p, &value));
			assert_true(value < sizes[i]);
			assert_true(value != before);
			low += value < sizes[i] / 2;
			before = value;
		}
		assert_in_range(low, 4800, 5200);
		assert_true(permute_at(&p, sizes[i] - 1) < sizes[i]);
	}
}

/* Chi square of where the first quarter of a walk falls, over 64 equal parts. */
static void walks_are_spread_evenly(void **state)
{
	const u64 n = 64 * 1024, draws = n / 4;
	double expected = (double)draws / 64, worst = 0, sum_all = 0;

	(void)state;
	for (u64 seed = 0; seed < 50; seed++) {
		u64 part[64] = { 0 }, value;
		double chi = 0;
		struct permute p;

		permute_init(&p, n, seed);
		for (u64 i = 0; i < draws; i++) {
			permute_next(&p, &value);
			part[value / 1024]++;
		}
		for (int i = 0; i < 64; i++)
			chi += ((double)part[i] - expected) * ((double)part[i] - expected) /
			       expected;
		worst = fmax(worst, chi);
		sum_all += chi;
	}
	/* 63 degrees of freedom, times 3/4 for drawing without putting back: mean 47, s.d. 8.4 */
	assert_true(worst < 90);
	assert_true(sum_all / 50 > 42 && sum_all / 50 < 52);
}

static void neighbours_are_unrelated(void **state)
{
	u64 rising = 0, adjacent = 0, before = 0, value;
	struct permute p;

	(void)state;
	permute_init(&p, 100000, 9);
	for (int i = 0; i < 100000; i++) {
		permute_next(&p, &value);
		if (i) {
			rising += value > before;
			adjacent += value == before + 1 || before == value + 1;
		}
		before = value;
	}
	assert_in_range(rising, 49500, 50500);
	assert_in_range(adjacent, 0, 10);
}

static void seeds_differ(void **state)
{
	struct permute a, b;
	u64 x, y, same = 0;

	(void)state;
	permute_init(&a, 4096, 1);
	permute_init(&b, 4096, 2);
	while (permute_next(&a, &x) && permute_next(&b, &y))
		same += x == y;
	assert_in_range(same, 0, 6);
}

#define DRAWS 200000

static int downwards(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x < y) - (x > y);
}

/* How often each of n blocks is drawn. */
static void draw(const char *text, u64 n, u64 *count)
{
	char file[128];
	struct err e = { 0 };
	struct distribution d;
	struct jobs *jobs;
	struct rng r;

	snprintf(file, sizeof(file), "[j]\nrandom_distribution=%s\n", text);
	if (jobs_parse("t", file, &jobs, &e))
		fail_msg("%s", e.text);
	distribution_init(&d, &jobs->list[0].o.spread, JOB_DIR_READ, n, 4096, 77);
	rng_init(&r, 5);
	memset(count, 0, n * sizeof(*count));
	for (int i = 0; i < DRAWS; i++) {
		u64 block = distribution_next(&d, &r);

		assert_true(block < n);
		count[block]++;
	}
	jobs_free(jobs);
}

/* The k-th hottest block must have a share of k^-theta over the sum of all. */
static void zipf_has_its_weights(void **state)
{
	static const double thetas[] = { 0.5, 0.9, 1.2, 2.5 };
	static const u64 sizes[] = { 1000, 63, 64, 65 };
	static u64 count[1000];

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(thetas); t++) {
		u64 n = sizes[t];
		double sum = 0, theta = thetas[t];
		char text[32];

		for (u64 i = 1; i <= n; i++)
			sum += pow((double)i, -theta);
		snprintf(text, sizeof(text), "zipf:%g", theta);
		draw(text, n, count);
		qsort(count, n, sizeof(count[0]), downwards);
		for (int k = 1; k <= 2; k++) {
			double p = pow(k, -theta) / sum;
			double sd = sqrt(DRAWS * p * (1 - p));

			assert_true(fabs((double)count[k - 1] - DRAWS * p) < 4 * sd);
		}
		if (n == 1000) { /* theta 0.5: the first tenth has about 31 % */
			u64 first = 0;

			for (int i = 0; i < 100; i++)
				first += count[i];
			assert_in_range(first, DRAWS * 30 / 100, DRAWS * 34 / 100);
		}
	}
}

/* Hot blocks do not lie together, nor at the front. */
static void zipf_is_scattered(void **state)
{
	static u64 count[1000];
	u64 front = 0, hot = 0;

	(void)state;
	draw("zipf:0.9", 1000, count);
	for (int i = 0; i < 1000; i++) {
		front += i < 100 ? count[i] : 0;
		hot += count[i] > DRAWS / 100;
	}
	assert_in_range(hot, 5, 30);
	assert_true(front < DRAWS / 3);
}

static void pareto_splits_by_its_share(void **state)
{
	static u64 count[1000];
	u64 first = 0;

	(void)state;
	draw("pareto:0.2", 1000, count);
	qsort(count, 1000, sizeof(count[0]), downwards);
	for (int i = 0; i < 200; i++)
		first += count[i];
	assert_in_range(first, DRAWS * 79 / 100, DRAWS * 82 / 100);
}

static void normal_is_a_bell(void **state)
{
	static u64 count[1000];
	u64 within[3] = { 0 };
	double mean = 0;

	(void)state;
	draw("normal:10", 1000, count);
	for (int i = 0; i < 1000; i++) {
		mean += (double)count[i] * i / DRAWS;
		for (int s = 0; s < 3; s++)
			within[s] +=
				i >= 500 - 100 * (s + 1) && i < 500 + 100 * (s + 1) ? count[i] : 0;
	}
	assert_true(fabs(mean - 499.5) < 2);
	assert_in_range(within[0] * 10000 / DRAWS, 6780, 6870);
	assert_in_range(within[1] * 10000 / DRAWS, 9520, 9570);
	assert_in_range(within[2] * 10000 / DRAWS, 9965, 9980);
}

static void zones_have_their_shares(void **state)
{
	static u64 count[1000];
	static const struct {
		int from, to, percent;
	} zones[] = { { 0, 100, 60 }, { 100, 300, 30 }, { 300, 600, 8 }, { 600, 1000, 2 } };

	(void)state;
	draw("zoned:60/10:30/20:8/30:2/40", 1000, count);
	for (int z = 0; z < 4; z++) {
		u64 sum = 0;

		for (int i = zones[z].from; i < zones[z].to; i++)
			sum += count[i];
		assert_in_range(sum, DRAWS / 100 * zones[z].percent - DRAWS / 200,
				DRAWS / 100 * zones[z].percent + DRAWS / 200);
	}
}

/* The exact blocks, so that no machine and no library may change them. */
static void draws_never_change(void **state)
{
	static const struct {
		const char *text;
		u64 hash;
	} known[] = {
		{ "zipf:1.2", 0xc11b3d75fd2a2d6dull },
		{ "zipf:0.7", 0xa174521ef8b115beull },
		{ "pareto:0.3", 0x4d0a1c7cee593e41ull },
		{ "normal:20", 0xd9539f96e2db4414ull },
	};
	static u64 count[1000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		u64 hash = 0;

		draw(known[i].text, 1000, count);
		for (int b = 0; b < 1000; b++)
			hash = seed_mix(hash, count[b]);
		assert_true(hash == known[i].hash);
	}
}

/* Passes differ, and a file of no whole block has none. */
static void passes_have_new_orders(void **state)
{
	struct job_options o;
	struct blocks b;
	u64 first[64], block, same = 0;

	(void)state;
	options_defaults(&o);
	blocks_init(&b, &o, JOB_DIR_READ, 64, 1);
	for (int i = 0; i < 64; i++)
		assert_int_equal(blocks_next(&b, &first[i]), 0);
	assert_int_equal(blocks_next(&b, &block), -ENODATA);
	blocks_restart(&b);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(blocks_next(&b, &block), 0);
		same += block == first[i];
	}
	assert_in_range(same, 0, 8);
	blocks_init(&b, &o, JOB_DIR_READ, 0, 1);
	assert_int_equal(blocks_next(&b, &block), -ENODATA);

	o.norandommap = true;
	blocks_init(&b, &o, JOB_DIR_READ, 10, 1);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(blocks_next(&b, &block), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_is_permuted),
		cmocka_unit_test(huge_sizes_stay_in_range),
		cmocka_unit_test(walks_are_spread_evenly),
		cmocka_unit_test(neighbours_are_unrelated),
		cmocka_unit_test(seeds_differ),
		cmocka_unit_test(zipf_has_its_weights),
		cmocka_unit_test(zipf_is_scattered),
		cmocka_unit_test(pareto_splits_by_its_share),
		cmocka_unit_test(normal_is_a_bell),
		cmocka_unit_test(zones_have_their_shares),
		cmocka_unit_test(draws_never_change),
		cmocka_unit_test(passes_have_new_orders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
