/* SPDX-License-Identifier: MIT */
/*
 * Histograms against fio 3.33 (Debian 12). The two captures below are what
 *   fio --name=x --ioengine=psync --filename=F --size=8m --number_ios=200 --bs=4k
 *       --rw=randwrite --sync=1 --output-format=json+ --percentile_list=...
 *   fio --name=x --ioengine=null --size=64m --bs=4k --rw=randread --iodepth=1
 *       --output-format=json+ --percentile_list=...
 * printed as `bins` (the value that stands for a bucket, and its samples) and as
 * `percentile` of clat_ns.
 */
#include "base/hist.h"
#include "base/rng.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct bin {
	u64 value_ns, samples;
};

struct percentile {
	double percent;
	u64 value_ns;
};

static const struct bin synced_writes_bins[] = {
	{ 71168, 1 },  { 72192, 1 },  { 73216, 3 },  { 74240, 2 },  { 78336, 5 },  { 79360, 3 },
	{ 80384, 3 },  { 81408, 5 },  { 82432, 6 },  { 83456, 2 },  { 84480, 12 }, { 85504, 12 },
	{ 86528, 8 },  { 87552, 9 },  { 88576, 19 }, { 89600, 12 }, { 90624, 6 },  { 91648, 4 },
	{ 92672, 5 },  { 93696, 4 },  { 94720, 7 },  { 95744, 11 }, { 96768, 12 }, { 97792, 5 },
	{ 98816, 3 },  { 99840, 2 },  { 101888, 2 }, { 102912, 3 }, { 103936, 1 }, { 104960, 3 },
	{ 105984, 1 }, { 107008, 1 }, { 108032, 2 }, { 109056, 3 }, { 110080, 1 }, { 111104, 2 },
	{ 112128, 2 }, { 116224, 2 }, { 117248, 1 }, { 123392, 1 }, { 125440, 2 }, { 127488, 1 },
	{ 128512, 1 }, { 134144, 2 }, { 136192, 3 }, { 138240, 1 }, { 156672, 1 }, { 158720, 1 },
	{ 246784, 1 },
};

static const struct percentile synced_writes_percentiles[] = {
	{ 0.5, 71168 },  { 1, 72192 },   { 5, 78336 },     { 10, 81408 },    { 25, 85504 },
	{ 33.3, 87552 }, { 50, 89600 },  { 66.7, 95744 },  { 75, 96768 },    { 90, 111104 },
	{ 95, 127488 },  { 99, 156672 }, { 99.5, 158720 }, { 99.9, 246784 }, { 100, 246784 },
};

static const struct bin fast_engine_bins[] = {
	{ 0, 60 },  { 1, 36 },   { 9, 112 }, { 10, 15287 }, { 11, 221 },
	{ 19, 83 }, { 20, 571 }, { 21, 12 }, { 30, 1 },     { 9920, 1 },
};

static const struct percentile fast_engine_percentiles[] = {
	{ 1, 9 },   { 5, 10 },    { 10, 10 },   { 20, 10 },    { 30, 10 },    { 40, 10 },
	{ 50, 10 }, { 60, 10 },   { 70, 10 },   { 80, 10 },    { 90, 10 },    { 95, 11 },
	{ 99, 20 }, { 99.5, 20 }, { 99.9, 20 }, { 99.95, 21 }, { 99.99, 30 }, { 100, 9920 },
};

static void fill(struct hist *h, const struct bin *bins, size_t count)
{
	hist_init(h);
	for (size_t i = 0; i < count; i++)
		for (u64 n = 0; n < bins[i].samples; n++)
			hist_add(h, bins[i].value_ns);
}

static void percentiles_are_those_of_fio(void **state)
{
	struct hist h;

	(void)state;
	fill(&h, synced_writes_bins, ARRAY_SIZE(synced_writes_bins));
	assert_int_equal(h.samples, 200);
	for (size_t i = 0; i < ARRAY_SIZE(synced_writes_percentiles); i++)
		assert_int_equal(hist_percentile(&h, synced_writes_percentiles[i].percent),
				 synced_writes_percentiles[i].value_ns);
	fill(&h, fast_engine_bins, ARRAY_SIZE(fast_engine_bins));
	assert_int_equal(h.samples, 16384);
	for (size_t i = 0; i < ARRAY_SIZE(fast_engine_percentiles); i++)
		assert_int_equal(hist_percentile(&h, fast_engine_percentiles[i].percent),
				 fast_engine_percentiles[i].value_ns);
}

/* What a histogram of this one value answers. */
static u64 answer(u64 value_ns)
{
	static struct hist h;

	hist_init(&h);
	hist_add(&h, value_ns);
	return hist_percentile(&h, 50);
}

static void buckets_follow_the_law(void **state)
{
	(void)state;
	for (u64 v = 0; v < 128; v++)
		assert_int_equal(answer(v), v);
	/* width 2 from 128 on, 4 from 256 on, and so forth */
	assert_int_equal(answer(128), 129);
	assert_int_equal(answer(129), 129);
	assert_int_equal(answer(130), 131);
	assert_int_equal(answer(255), 255);
	assert_int_equal(answer(256), 258);
	assert_int_equal(answer(259), 258);
	assert_int_equal(answer(260), 262);
	assert_int_equal(answer(9964), 9920); /* fio's maximum and 100th percentile above */
	assert_int_equal(answer(246610), 246784);
	/* the last group starts at 2^33; what is longer than 2^34 stands in its last bucket */
	assert_int_equal(answer((1ull << 34) - 1), 17112760320);
	assert_int_equal(answer(1ull << 34), 17112760320);
	assert_int_equal(answer(UINT64_MAX), 17112760320);
	for (u64 v = 128; v < 1ull << 34; v += v / 5 + 1) {
		assert_true(answer(v) <= v + v / 128);
		assert_true(answer(v) >= v - v / 128);
	}
}

static void percentile_takes_the_first_bucket_that_reaches_it(void **state)
{
	struct hist h;

	(void)state;
	hist_init(&h);
	assert_int_equal(hist_percentile(&h, 50), 0);
	for (u64 v = 1; v <= 100; v++)
		hist_add(&h, v);
	assert_int_equal(hist_percentile(&h, 0.001), 1);
	assert_int_equal(hist_percentile(&h, 1), 1);
	assert_int_equal(hist_percentile(&h, 1.01), 2);
	assert_int_equal(hist_percentile(&h, 50), 50);
	assert_int_equal(hist_percentile(&h, 50.0001), 51);
	assert_int_equal(hist_percentile(&h, 99), 99);
	assert_int_equal(hist_percentile(&h, 99.9), 100);
	assert_int_equal(hist_percentile(&h, 100), 100);
}

/* The same in fio's own arithmetic, where long double is the 80-bit one. */
static u64 percentile_in_long_double(const struct hist *h, double percent)
{
	u64 seen = 0;

	for (unsigned i = 0; i < 128; i++) {
		seen += h->bucket[i];
		if (seen >= (long double)percent / 100.0 * h->samples)
			return i;
	}
	return UINT64_MAX;
}

static void percentile_rounds_as_80_bit_floating_point(void **state)
{
	struct rng r;
	unsigned compared = 0;

	(void)state;
	if (LDBL_MANT_DIG != 64) {
		print_message("# skip: long double has %d bits here\n", LDBL_MANT_DIG);
		skip();
	}
	rng_init(&r, 42);
	for (unsigned round = 0; round < 300; round++) {
		static struct hist h;
		u64 step = round % 2 ? 1 : 1 + rng_below(&r, 1ull << 40);

		hist_init(&h);
		for (unsigned i = 0; i < 128; i++) {
			/* buckets that end on round numbers make ties likely */
			h.bucket[i] = rng_below(&r, 20) * step;
			h.samples += h.bucket[i];
		}
		for (unsigned tenths = 1; tenths <= 1000; tenths++) {
			double percent = tenths / 10.0;

			assert_int_equal(hist_percentile(&h, percent),
					 percentile_in_long_double(&h, percent));
			compared++;
		}
	}
	assert_int_equal(compared, 300000);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

static void moments(void **state)
{
	static const u64 values[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
	struct hist h;

	(void)state;
	hist_init(&h);
	assert_true(hist_mean(&h) == 0 && hist_stddev(&h) == 0);
	assert_true(h.min_ns == ~0ull && h.max_ns == 0);
	hist_add(&h, 2);
	assert_true(hist_mean(&h) == 2 && hist_stddev(&h) == 0);
	for (size_t i = 1; i < ARRAY_SIZE(values); i++)
		hist_add(&h, values[i]);
	assert_true(near(hist_mean(&h), 5));
	assert_true(near(hist_stddev(&h), sqrt(32.0 / 7))); /* squares sum to 32; n - 1 = 7 */
	assert_int_equal(h.min_ns, 2);
	assert_int_equal(h.max_ns, 9);

	/* far from zero the spread is small beside the mean, and still right */
	hist_init(&h);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		hist_add(&h, 1000000000000 + values[i]);
	assert_true(fabs(hist_stddev(&h) - sqrt(32.0 / 7)) < 1e-3);
}

static void merge_equals_one_histogram(void **state)
{
	struct hist all, half[2], none;
	struct rng r;

	(void)state;
	hist_init(&all);
	hist_init(&half[0]);
	hist_init(&half[1]);
	hist_init(&none);
	rng_init(&r, 7);
	for (unsigned i = 0; i < 5000; i++) {
		/* two populations with means far apart */
		unsigned which = rng_below(&r, 3) == 0;
		u64 value = (which ? 1000000 : 1000) + rng_below(&r, 1000);

		hist_add(&all, value);
		hist_add(&half[which], value);
	}
	hist_merge(&half[0], &half[1]);
	hist_merge(&half[0], &none);
	hist_merge(&none, &half[0]);
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		assert_int_equal(half[0].bucket[i], all.bucket[i]);
		assert_int_equal(none.bucket[i], all.bucket[i]);
	}
	assert_int_equal(none.samples, 5000);
	assert_int_equal(none.min_ns, all.min_ns);
	assert_int_equal(none.max_ns, all.max_ns);
	assert_true(near(hist_mean(&none), hist_mean(&all)));
	assert_true(near(hist_stddev(&none), hist_stddev(&all)));
	assert_int_equal(hist_percentile(&none, 99), hist_percentile(&all, 99));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_are_those_of_fio),
		cmocka_unit_test(buckets_follow_the_law),
		cmocka_unit_test(percentile_takes_the_first_bucket_that_reaches_it),
		cmocka_unit_test(percentile_rounds_as_80_bit_floating_point),
		cmocka_unit_test(moments),
		cmocka_unit_test(merge_equals_one_histogram),
	};

	return cmocka_run_group_tests_name("hist", tests, NULL, NULL);
}
