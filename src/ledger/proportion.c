// SPDX-License-Identifier: MIT
/*
 * Flexible proportions: who did how much of the recent write-out.
 *
 * A domain counts all pages written (den), each device its own (num), and every
 * 3 s all counts are halved, so that the past fades and num/den is the device's
 * share of the last few seconds. Both round down, so that a device which alone has
 * written keeps all of it however long it is idle. The halving would be a timer; it is done
 * late, by whoever looks next. That is exact, since between two looks no count
 * changes: the domain knows when its running period ends, and a look at `now`
 * first halves den once for each end that has passed. The timer would stop when
 * nothing is left (den <= 1 at the end of a period) and start with the next
 * completion; so here a domain stops `running` at the first such end, counts no
 * more periods, and the next completion starts a period of full length at its own
 * `now`. A device remembers the period it was last touched in and halves num by
 * as many as have been counted since. As halving brings any den to 1 within 64
 * ends, catching up after any idle time is short.
 *
 * The one difference: Linux' timer may fire late when the machine is idle, which
 * moves the later ends; here periods end exactly 3 s apart.
 *
 * Linux writeback reference, sections 4.6 and 4.7.
 */
#include "ledger/proportion.h"

#include "base/bits.h"

#define PERIOD_SECONDS 3
#define FLOOR          8   /* 1/8 of the room is everyone's */
#define FLOOR_STRICT   100 /* with a limit of its own only 1/100 */

__extension__ typedef unsigned __int128 u128;

void proportion_domain_init(struct proportion_domain *d)
{
	*d = (struct proportion_domain){ .den = 1 };
}

void proportion_init(struct proportion *p, const struct proportion_domain *d)
{
	*p = (struct proportion){ .period = d->period };
}

static void domain_age(struct proportion_domain *d, u64 now, u32 hz)
{
	while (d->running && now >= d->period_end) {
		if (d->den <= 1) {
			d->running = false;
			return;
		}
		d->den >>= 1;
		d->period++;
		d->period_end += PERIOD_SECONDS * (u64)hz;
	}
}

static void proportion_age(struct proportion *p, const struct proportion_domain *d)
{
	u64 periods = d->period - p->period;

	assert(p->period <= d->period);
	p->num = periods < 64 ? p->num >> periods : 0;
	p->period = d->period;
}

static void share_of(const struct proportion_domain *d, const struct proportion *p, u64 *num,
		     u64 *den)
{
	*num = p->num;
	*den = max_u64(max_u64(d->den, p->num), 1);
}

/* How many of n pages count: the least k with (num + k)/(den + k) >= max_frac, or n. */
static u64 capped(const struct proportion_domain *d, const struct proportion *p, u64 n,
		  u32 max_frac)
{
	u64 num, den;

	if (max_frac >= PROPORTION_MAX_FRAC)
		return n;
	share_of(d, p, &num, &den);
	if (num * PROPORTION_MAX_FRAC >= den * max_frac)
		return 0;
	return min_u64(n, div_roundup(den * max_frac - num * PROPORTION_MAX_FRAC,
				      PROPORTION_MAX_FRAC - max_frac));
}

void proportion_add(struct proportion_domain *d, struct proportion *p, u64 n, u32 max_frac, u64 now,
		    u32 hz)
{
	domain_age(d, now, hz);
	proportion_age(p, d);
	n = capped(d, p, n, max_frac);
	p->num += n;
	d->den += n;
	if (!d->running) {
		d->running = true;
		d->period_end = now + PERIOD_SECONDS * (u64)hz;
	}
}

void proportion_share(struct proportion_domain *d, struct proportion *p, u64 now, u32 hz, u64 *num,
		      u64 *den)
{
	domain_age(d, now, hz);
	proportion_age(p, d);
	share_of(d, p, num, den);
}

/* t * a / b without overflow on the way. */
static u64 scaled(u64 t, u64 a, u64 b)
{
	return (u64)((u128)t * a / b);
}

u64 wb_thresh(u64 t, u64 dirty, const struct wb_share *share)
{
	u64 min_ratio = share->min_ratio, max_ratio = share->max_ratio, w;

	assert(share->den && share->num <= share->den);
	assert(share->min_ratio_sum < RATIO_ALL && min_ratio <= max_ratio);
	assert(max_ratio <= RATIO_ALL);
	if (share->this_bw < share->tot_bw) {
		min_ratio = scaled(min_ratio, share->this_bw, share->tot_bw);
		if (max_ratio < RATIO_ALL)
			max_ratio = scaled(max_ratio, share->this_bw, share->tot_bw);
	}
	w = scaled(t, RATIO_ALL - share->min_ratio_sum, RATIO_ALL);
	w = scaled(w, share->num, share->den) + scaled(t, min_ratio, RATIO_ALL);
	if (share->floor_in_threshold && t > dirty)
		w = max_u64(w, (t - dirty) / (share->strictlimit ? FLOOR_STRICT : FLOOR));
	return min_u64(w, scaled(t, max_ratio, RATIO_ALL));
}

u64 wb_bg_thresh(u64 w, u64 thresh, u64 bg)
{
	return thresh ? scaled(w, bg, thresh) : 0;
}
