// SPDX-License-Identifier: MIT
/*
 * People ask why a writer waited after it did, when nobody traced it. So the last few waits are
 * kept, each with the numbers that decided it. They are entered where the throttle counts sleeps,
 * under the same lock, and only when somebody sleeps anyway.
 *
 * Whose wait it is the engine can't know: a server writes for others. It says so beforehand.
 */
#include "writeback/waits.h"
#include "base/bits.h"
#include <assert.h>

#define JOIN_NS  50000000 /* as far apart two waits may be to be one */
#define SHORT_NS 1000000  /* nobody asks about less */

static _Thread_local u32 acting_for;

void waits_act_for(u32 who)
{
	acting_for = who;
}

u32 waits_who(void)
{
	return acting_for;
}

static bool goes_on(const struct wait *last, const struct wait *next)
{
	return last->who == next->who && last->tenant == next->tenant && last->why == next->why &&
	       next->why == WAIT_LIMIT && next->when_ns < last->when_ns + last->wait_ns + JOIN_NS;
}

void waits_note(struct waits *w, const struct wait *wait)
{
	struct wait *last = &w->wait[(w->count - 1) % WAITS_KEPT];

	if (wait->wait_ns < SHORT_NS)
		return;
	if (w->count && goes_on(last, wait)) {
		u64 began = last->when_ns;

		*last = *wait;
		last->wait_ns += wait->when_ns - min_u64(began, wait->when_ns);
		last->when_ns = began;
		return;
	}
	w->wait[w->count++ % WAITS_KEPT] = *wait;
}

u32 waits_copy(const struct waits *w, struct wait out[WAITS_KEPT])
{
	u32 n = (u32)min_u64(w->count, WAITS_KEPT);

	for (u32 i = 0; i < n; i++)
		out[i] = w->wait[(w->count - 1 - i) % WAITS_KEPT];
	return n;
}
