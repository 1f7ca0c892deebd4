/* SPDX-License-Identifier: MIT */
/* Moves the rate one dirtier of a wb is held to. Linux writeback reference, section 5.5. */
#ifndef SLUICE_WRITEBACK_RATELIMIT_H
#define SLUICE_WRITEBACK_RATELIMIT_H

#include "ledger/bandwidth.h"
#include "writeback/position.h"

struct ratelimit_inputs {
	u64 pos_ratio;             /* position_ratio() of the domain */
	u64 dirty_rate;            /* bandwidth_dirty_rate() */
	struct position_goal goal; /* position_goal() of the domain */
};

/*
 * Sets b->dirty_ratelimit and b->balanced_dirty_ratelimit from b->avg_write_bw;
 * returns the new dirty_ratelimit. With a tenant domain: called for the global
 * domain, then again for the tenant's.
 */
u64 ratelimit_update(struct bandwidth *b, const struct ratelimit_inputs *in);

#endif
