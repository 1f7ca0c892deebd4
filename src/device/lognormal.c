// SPDX-License-Identifier: MIT
/*
 * Normal numbers by the polar method (Marsaglia and Bray, "A convenient method for
 * generating normal variables", SIAM Review 6, 1964): a point drawn evenly from the unit
 * disc gives, by its radius and direction, a normal number. The second number that each
 * point could give is not kept, so that a draw depends on nothing but the generator.
 *
 * The logarithm and the exponential are computed here, with additions, multiplications
 * and divisions only. The C library's differ in the last bit from one processor to
 * another, and a simulation must not. (It takes a compiler that does not fuse a
 * multiplication with an addition: see meson.build.)
 */
#include "device/lognormal.h"
#include <math.h>

/* ln 2 in two parts; the first has few enough bits that small multiples of it are exact. */
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW  0x1.a39ef35793c76p-33

/* ln x for 0 < x <= 1: x = f * 2^k with f near 1, and ln f = 2 artanh((f - 1)/(f + 1)). */
static double plain_log(double x)
{
	int k;
	double f = frexp(x, &k), t, sum = 0;

	assert(x > 0 && x <= 1);
	if (f < 0.70710678118654752) {
		f *= 2;
		k--;
	}
	t = (f - 1) / (f + 1);
	for (int n = 25; n >= 1; n -= 2)
		sum = sum * (t * t) + 1.0 / n;
	return k * LN2_HIGH + (k * LN2_LOW + 2 * t * sum);
}

/* e^x for moderate x: x = k ln 2 + r with |r| <= ln(2)/2, and the series of e^r. */
static double plain_exp(double x)
{
	int k = (int)floor(x / (LN2_HIGH + LN2_LOW) + 0.5);
	double r = x - k * LN2_HIGH - k * LN2_LOW, sum = 1;

	assert(x > -500 && x < 500);
	for (int n = 15; n >= 1; n--)
		sum = 1 + sum * r / n;
	return ldexp(sum, k);
}

static double normal_draw(struct rng *r)
{
	double u, v, s;

	do {
		u = 2 * rng_double(r) - 1;
		v = 2 * rng_double(r) - 1;
		s = u * u + v * v;
	} while (s >= 1 || s == 0);
	return u * sqrt(-2 * plain_log(s) / s);
}

u64 lognormal_draw(struct rng *r, u64 median_ns, double sigma)
{
	double ns;

	assert(sigma >= 0 && sigma <= LOGNORMAL_SIGMA_MAX);
	if (sigma == 0)
		return median_ns;
	ns = floor((double)median_ns * plain_exp(sigma * normal_draw(r)) + 0.5);
	return ns < 1 ? 1 : ns > LOGNORMAL_MAX_NS ? (u64)LOGNORMAL_MAX_NS : (u64)ns;
}
