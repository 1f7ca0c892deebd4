/* SPDX-License-Identifier: MIT */
/*
 * A latency histogram must cover nine decades with a constant relative error, so
 * its buckets double in width at each power of two and every power of two has the
 * same number of them. The first 128 buckets are 1 ns wide; from there on, a value
 * whose highest set bit is number m (m > 6) drops its low m - 6 bits, and what is
 * left picks one of 64 buckets in group m - 5. A bucket answers for all its values
 * with the one in its middle. The law is fio's (fio 3.33), so that results can be
 * laid beside fio's own; so is the percentile: the first bucket, from below, at
 * which the samples counted so far reach percent / 100 * samples.
 *
 * Mean and variance are kept beside the buckets, exact but for rounding. The sum of
 * squared distances from the mean is carried along and combined by the formulas of
 * Chan, Golub and LeVeque ("Updating formulae and a pairwise algorithm for computing
 * sample variances", 1979): sums of plain squares would cancel to noise.
 */
#include "base/hist.h"
#include "base/bits.h"
#include <math.h>
#include <string.h>

typedef unsigned __int128 u128;

void hist_init(struct hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min_ns = ~0ull;
}

static unsigned bucket_of(u64 value_ns)
{
	unsigned shift, index;

	if (value_ns < 2 << HIST_BITS)
		return (unsigned)value_ns;
	shift = ilog2(value_ns) - HIST_BITS;
	index = ((shift + 1) << HIST_BITS) + ((value_ns >> shift) & bits_mask(0, HIST_BITS));
	return (unsigned)min_u64(index, HIST_BUCKETS - 1);
}

static u64 middle_of(unsigned bucket)
{
	unsigned shift;

	if (bucket < 2 << HIST_BITS)
		return bucket;
	shift = (bucket >> HIST_BITS) - 1;
	return (1ull << (shift + HIST_BITS)) + ((bucket & bits_mask(0, HIST_BITS)) << shift) +
	       (1ull << shift) / 2;
}

void hist_add(struct hist *h, u64 value_ns)
{
	double value = (double)value_ns;

	if (h->samples) {
		double n = (double)h->samples;
		double away = value - h->sum_ns / n;

		h->sum_squares += away * away * (n / (n + 1));
	}
	h->bucket[bucket_of(value_ns)]++;
	h->samples++;
	h->min_ns = min_u64(h->min_ns, value_ns);
	h->max_ns = max_u64(h->max_ns, value_ns);
	h->sum_ns += value;
}

void hist_merge(struct hist *into, const struct hist *from)
{
	if (!from->samples)
		return;
	if (into->samples) {
		double a = (double)into->samples, b = (double)from->samples;
		double away = into->sum_ns / a - from->sum_ns / b;

		into->sum_squares += away * away * (a * b / (a + b));
	}
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
	into->samples += from->samples;
	into->min_ns = min_u64(into->min_ns, from->min_ns);
	into->max_ns = max_u64(into->max_ns, from->max_ns);
	into->sum_ns += from->sum_ns;
	into->sum_squares += from->sum_squares;
}

/* Rounds v * 2^*exponent to 64 significant bits, ties to even; `inexact` if v was cut already. */
static u64 round_to_64(u128 v, bool inexact, int *exponent)
{
	unsigned drop;
	u64 kept;
	u128 rest, half;

	if (!(v >> 64))
		return (u64)v;
	drop = ilog2((u64)(v >> 64)) + 1;
	kept = (u64)(v >> drop);
	rest = v & (((u128)1 << drop) - 1);
	half = (u128)1 << (drop - 1);
	*exponent += (int)drop;
	if (rest > half || (rest == half && (inexact || kept & 1)))
		kept++;
	if (!kept) { /* carried out of the top */
		kept = 1ull << 63;
		*exponent += 1;
	}
	return kept;
}

/*
 * The smallest count that is not below percent / 100 * samples. fio computes this
 * in the 80-bit floating point of x86-64, and whether a percentile falls on one
 * bucket or the next may hang on the rounding; other machines have no such type.
 * Hence the two roundings are done here by hand, in integers: same samples, same
 * answer, everywhere.
 */
static u64 rank_of(double percent, u64 samples)
{
	int exponent;
	u64 mantissa = (u64)ldexp(frexp(percent, &exponent), 53);
	u128 wide = (u128)mantissa << 64;
	u64 fraction, rank;
	u128 product;

	exponent -= 53 + 64;
	fraction = round_to_64(wide / 100, wide % 100 != 0, &exponent);
	product = (u128)fraction * samples;
	fraction = round_to_64(product, false, &exponent);
	assert(exponent < 0);
	if (exponent <= -64)
		return 1;
	rank = fraction >> -exponent;
	return rank + (rank << -exponent != fraction);
}

u64 hist_percentile(const struct hist *h, double percent)
{
	u64 seen = 0, rank;

	assert(percent > 0 && percent <= 100);
	if (!h->samples)
		return 0;
	rank = max_u64(rank_of(percent, h->samples), 1);
	assert(rank <= h->samples);
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= rank)
			return middle_of(i);
	}
	assert(!"the buckets hold fewer samples than were counted");
	return h->max_ns;
}

double hist_mean(const struct hist *h)
{
	return h->samples ? h->sum_ns / (double)h->samples : 0;
}

/* Of the sample, as fio has it: divided by samples - 1. */
double hist_stddev(const struct hist *h)
{
	return h->samples > 1 ? sqrt(h->sum_squares / (double)(h->samples - 1)) : 0;
}
