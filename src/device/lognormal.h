/* SPDX-License-Identifier: MIT */
/* Log-normal random times, the same on every machine. */
#ifndef SLUICE_DEVICE_LOGNORMAL_H
#define SLUICE_DEVICE_LOGNORMAL_H

#include "base/rng.h"

#define LOGNORMAL_SIGMA_MAX 3.0
#define LOGNORMAL_MAX_NS    3.6e12 /* one hour */

/*
 * A time whose logarithm is normal around log(median_ns) with deviation sigma, but at
 * least 1 ns and at most an hour.
 */
u64 lognormal_draw(struct rng *r, u64 median_ns, double sigma);

#endif
