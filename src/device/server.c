// SPDX-License-Identifier: MIT
/*
 * The server's clock is a fixed-point number of 128 bits, the lowest 50 of which are the
 * fraction of a nanosecond. A rate is turned into a period once, by one exact integer
 * division: the rate, a double, is taken as an integer of 2^-48 parts, which loses nothing
 * from 16 a second upwards. The period is rounded up, so a whole number of periods never
 * falls short of the whole nanosecond it should end at; the excess is below 2^-50 ns a
 * request, and would need 10^15 requests to be seen.
 */
#include "device/server.h"
#include <math.h>

#define RATE_BITS 48

fine_ns fine_period(double per_second)
{
	fine_ns rate, second;

	assert(per_second >= 1 && per_second <= 1e12);
	rate = (fine_ns)ldexp(per_second, RATE_BITS);
	/* 10^9 < 2^30, and 30 + 50 + 48 bits just fit. */
	second = (fine_ns)NSEC_PER_SEC << (FINE_BITS + RATE_BITS);
	return second / rate + (second % rate != 0);
}

u64 server_take(struct server *s, u64 now, fine_ns cost)
{
	fine_ns arrival = (fine_ns)now << FINE_BITS;

	if (s->free_at < arrival)
		s->free_at = arrival;
	s->free_at += cost;
	return (u64)(s->free_at >> FINE_BITS);
}
