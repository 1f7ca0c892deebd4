// SPDX-License-Identifier: MIT
/*
 * One server shared equally: of n requests that are there, each goes on at 1/n of the speed it has
 * alone (processor sharing). So what a small request waits for is how many others there are, not
 * how long they have been queued: the way of a device with many queues, which it serves in
 * turns, before one store of flash.
 *
 * All requests that are there advance alike, so one clock of work done by each is enough: it goes
 * at 1/n of the speed of time. A request that arrives at clock c with work w ends at clock c + w,
 * whoever comes and goes meanwhile; so the order in which they end is known, and only the first
 * one's time is ever needed, and found anew when somebody comes or goes. (Zhang's virtual clock,
 * as in fair queueing.)
 */
#include "device/share.h"
#include "device/model.h"

/* The clock up to `now`; one who submits may be a little ahead of the others. */
static void advance(struct share *s, u64 now)
{
	if (now <= s->at_ns)
		return;
	if (s->requests)
		s->done += ((fine_ns)(now - s->at_ns) << FINE_BITS) / s->requests;
	s->at_ns = now;
}

static struct device_request *first_of(struct share *s)
{
	return list_entry(s->first.next, struct device_request, share.link);
}

static void arm(struct share *s)
{
	fine_ns left, ns;

	if (!s->requests)
		return;
	left = first_of(s)->share.ends_at;
	left = left > s->done ? left - s->done : 0;
	ns = left * s->requests;
	ns = (ns >> FINE_BITS) + ((ns & (((fine_ns)1 << FINE_BITS) - 1)) != 0);
	sim_event_at(&s->event, s->at_ns + (u64)ns);
}

static void first_ends(struct sim_event *e)
{
	struct share *s = container_of(e, struct share, event);
	u64 now = world_now();

	advance(s, now);
	while (s->requests && first_of(s)->share.ends_at <= s->done) {
		struct device_request *r = first_of(s);

		list_del(&r->share.link);
		s->requests--;
		s->end(s, r, now);
	}
	arm(s);
}

void share_init(struct share *s, void (*end)(struct share *s, struct device_request *r, u64 now))
{
	*s = (struct share){ .end = end };
	list_init(&s->first);
	sim_event_init(&s->event, first_ends);
}

void share_add(struct share *s, struct device_request *r, fine_ns work, u64 now)
{
	struct list_node *before;

	advance(s, now);
	r->share.ends_at = s->done + work;
	before = s->first.prev;
	while (before != &s->first &&
	       list_entry(before, struct device_request, share.link)->share.ends_at >
		       r->share.ends_at)
		before = before->prev;
	list_add(before, &r->share.link);
	s->requests++;
	arm(s);
}
