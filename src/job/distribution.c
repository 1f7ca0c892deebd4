/* SPDX-License-Identifier: MIT */
/*
 * Skewed choices of a block. zipf gives the block of rank k a weight of k^-theta, by
 * the closed form of Gray and others ("Quickly generating billion-record synthetic
 * databases", SIGMOD 1994); pareto takes rank (n-1) * u^(log h / log(1-h)), so that a
 * share h of the blocks gets 1-h of the accesses; normal is a bell around the middle
 * of the file; zoned draws a zone by its share of the accesses, then a block in it.
 * For zipf and pareto a permutation scatters the ranks over the file; a center, if one
 * is given, moves the bell, or all of it around.
 *
 * The normalizing sum of zipf has n terms. Its first 64 are added up, the rest by the
 * Euler-Maclaurin formula, exact to about 1e-13 and as fast for any n.
 *
 * Logarithm and exponential are computed here from additions and multiplications,
 * which IEEE 754 defines to the last bit, because those of the C library may differ
 * between machines, and the same seed must give the same blocks everywhere.
 */
#include "job/distribution.h"
#include <math.h>

#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW  0x1.a39ef35793c76p-33

/* 1 / k, since divisions are slow */
static const double inverse[] = {
	0,        1.0,      1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6,  1.0 / 7,  1.0 / 8,
	1.0 / 9,  1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15, 1.0 / 16, 1.0 / 17,
	1.0 / 18, 1.0 / 19, 1.0 / 20, 1.0 / 21, 1.0 / 22, 1.0 / 23, 1.0 / 24, 1.0 / 25,
};

double exact_log(double x)
{
	int exponent;
	double m = frexp(x, &exponent), s, square, sum = 0;

	assert(x > 0);
	if (m < 0.70710678118654752) {
		m *= 2;
		exponent--;
	}
	/* log m = 2 artanh((m - 1) / (m + 1)), and the argument is at most 0.172 */
	s = (m - 1) / (m + 1);
	square = s * s;
	for (int k = 25; k >= 1; k -= 2)
		sum = sum * square + inverse[k];
	return exponent * LN2_HIGH + (exponent * LN2_LOW + 2 * s * sum);
}

static double exponential(double x)
{
	double n, sum = 1;

	if (x < -700)
		return 0;
	n = floor(x / (LN2_HIGH + LN2_LOW) + 0.5);
	x -= n * LN2_HIGH;
	x -= n * LN2_LOW;
	for (int k = 15; k >= 1; k--)
		sum = 1 + x * inverse[k] * sum;
	return ldexp(sum, (int)n);
}

static double power(double base, double exponent)
{
	return base > 0 ? exponential(exponent * exact_log(base)) : 0;
}

/* The sum of i^-theta for i from 1 to n. */
static double zeta(u64 n, double theta)
{
	const u64 exact = 64;
	double sum = 0, m = (double)exact, last = (double)n;
	double f_m, f_n;

	for (u64 i = 1; i <= min_u64(n, exact - 1); i++)
		sum += power((double)i, -theta);
	if (n < exact)
		return sum;
	f_m = power(m, -theta);
	f_n = power(last, -theta);
	sum += (last * f_n - m * f_m) / (1 - theta) + (f_m + f_n) / 2;
	sum += theta / 12 * (f_m / m - f_n / last);
	sum -= theta * (theta + 1) * (theta + 2) / 720 *
	       (f_m / (m * m * m) - f_n / (last * last * last));
	return sum;
}

static void zipf_init(struct distribution *d)
{
	double theta = d->spread->value, n = (double)d->n;

	d->zeta = zeta(d->n, theta);
	d->alpha = 1 / (1 - theta);
	d->second = 1 + power(0.5, theta);
	d->eta = d->n > 2 ? (1 - power(2 / n, 1 - theta)) / (1 - zeta(2, theta) / d->zeta) : 0;
}

static u64 zipf_rank(const struct distribution *d, struct rng *r)
{
	double u = rng_double(r), sum = u * d->zeta, rank;

	if (sum < 1)
		return 0;
	if (sum < d->second || d->n <= 2)
		return 1;
	rank = (double)d->n * power(d->eta * u - d->eta + 1, d->alpha);
	return (u64)rank;
}

/* The polar method of Marsaglia and Bray (1964). What falls outside the file is drawn again. */
static u64 normal_block(const struct distribution *d, struct rng *r)
{
	for (;;) {
		double x = 2 * rng_double(r) - 1, y = 2 * rng_double(r) - 1;
		double square = x * x + y * y, at;

		if (square >= 1 || square == 0)
			continue;
		at = d->middle + d->deviation * x * sqrt(-2 * exact_log(square) / square);
		if (at >= 0 && at < (double)d->n)
			return (u64)at;
	}
}

/* Where a zone border lies: in blocks, from percent of the file or from bytes. */
static u64 zone_border(const struct distribution *d, u64 sum)
{
	if (d->spread->absolute)
		return sum / d->block_bytes;
	return (u64)((unsigned __int128)d->n * sum / 100);
}

static u64 zoned_block(const struct distribution *d, struct rng *r)
{
	const struct zones *z = d->zones;
	u64 draw = rng_below(r, 100), start = 0, size;
	u32 i = 0;

	while (draw >= z->zone[i].access_percent) {
		draw -= z->zone[i].access_percent;
		start += z->zone[i++].size;
		assert(i < z->count);
	}
	size = zone_border(d, z->zone[i].size);
	start = zone_border(d, start);
	return min_u64(start + rng_below(r, size ? size : 1), d->n - 1);
}

void distribution_init(struct distribution *d, const struct spread *spread, enum job_dir dir, u64 n,
		       u64 block_bytes, u64 seed)
{
	double h = spread->value;

	assert(n && dir <= JOB_DIR_WRITE);
	*d = (struct distribution){ .spread = spread, .n = n, .block_bytes = block_bytes };
	d->zones = &spread->zones[dir];
	permute_init(&d->scatter, n, seed);
	if (spread->center >= 0)
		d->shift = (u64)(spread->center * (double)n);
	switch (spread->kind) {
	case SPREAD_ZIPF:
		zipf_init(d);
		break;
	case SPREAD_PARETO:
		d->power = exact_log(h) / exact_log(1 - h);
		break;
	case SPREAD_NORMAL:
		d->middle = (double)n * (spread->center >= 0 ? spread->center : 0.5);
		d->deviation = (double)n * spread->value / 100;
		break;
	case SPREAD_UNIFORM:
	case SPREAD_ZONED:
		break;
	}
}

u64 distribution_next(struct distribution *d, struct rng *r)
{
	u64 rank;

	switch (d->spread->kind) {
	case SPREAD_ZIPF:
		rank = zipf_rank(d, r);
		break;
	case SPREAD_PARETO:
		rank = (u64)((double)(d->n - 1) * power(rng_double(r), d->power));
		break;
	case SPREAD_NORMAL:
		return normal_block(d, r);
	case SPREAD_ZONED:
		return zoned_block(d, r);
	default:
		return rng_below(r, d->n);
	}
	rank = permute_at(&d->scatter, min_u64(rank, d->n - 1));
	rank += d->shift; /* both are at most n, and n is far from 2^64 */
	return rank >= d->n ? rank - d->n : rank;
}
