/* SPDX-License-Identifier: MIT */
/*
 * Each device's share of a domain's recent write-out, and the part of a
 * threshold that the share earns it. Linux writeback reference, sections 4.6 and
 * 4.7. The owner serialises a domain and its proportions together: asking for a
 * share ages both. `now` is in jiffies, never going back.
 */
#ifndef SLUICE_LEDGER_PROPORTION_H
#define SLUICE_LEDGER_PROPORTION_H

#include "base/types.h"

#define PROPORTION_MAX_FRAC 1024    /* a max_frac that bounds nothing */
#define RATIO_ALL           1000000 /* 100 % in units of 1/10000 % */

struct proportion_domain {
	u64 den;        /* pages written in all, halved each period; never below 1 */
	u64 period;     /* periods that ended while the clock of periods ran */
	u64 period_end; /* jiffies; meaningful while `running` */
	bool running;
};

struct proportion {
	u64 num;    /* pages written by this one, halved for each period up to `period` */
	u64 period; /* the domain's period when last touched */
};

void proportion_domain_init(struct proportion_domain *d);
/* A proportion that has written nothing. */
void proportion_init(struct proportion *p, const struct proportion_domain *d);

/*
 * n pages were written. With max_frac < PROPORTION_MAX_FRAC only so many of them
 * count as bring the share to max_frac/1024.
 */
void proportion_add(struct proportion_domain *d, struct proportion *p, u64 n, u32 max_frac, u64 now,
		    u32 hz);

/* The share *num / *den: *den is not 0, *num <= *den. */
void proportion_share(struct proportion_domain *d, struct proportion *p, u64 now, u32 hz, u64 *num,
		      u64 *den);

/* What decides a device's part of a threshold. */
struct wb_share {
	u64 num, den;            /* from proportion_share() */
	u32 min_ratio;           /* of the device, in 1/10000 % */
	u32 max_ratio;           /* likewise, RATIO_ALL where there is none */
	u32 min_ratio_sum;       /* over all devices, < RATIO_ALL */
	u64 this_bw, tot_bw;     /* avg_write_bw: this wb's; all wbs' with dirty files */
	bool strictlimit;        /* a smaller floor: 1/100 instead of 1/8 */
	bool floor_in_threshold; /* a part of t - dirty is everyone's (6.14 and later) */
};

/* The device's part W(t) of t, which is thresh or bg; `dirty` is the domain's. */
u64 wb_thresh(u64 t, u64 dirty, const struct wb_share *share);

/* The part of bg that goes with a part w of thresh, as throttling uses it: w * bg / thresh. */
u64 wb_bg_thresh(u64 w, u64 thresh, u64 bg);

#endif
