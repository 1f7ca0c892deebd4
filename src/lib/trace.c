// SPDX-License-Identifier: MIT
/* Tracing, under public names: events of the two sides are the same bytes. */
#include "lib/inner.h"
#include <errno.h>

#define EVENTS_DEFAULT 4096

static_assert(sizeof(struct sluice_event) == sizeof(struct trace_event) &&
		      offsetof(struct sluice_event, kind) == offsetof(struct trace_event, kind) &&
		      offsetof(struct sluice_event, thread) ==
			      offsetof(struct trace_event, thread) &&
		      offsetof(struct sluice_event, field) == offsetof(struct trace_event, field),
	      "one is the other");

static struct trace_slot *slot_of(struct sluice *c)
{
	return &engine_writeback(c->engine)->trace;
}

int sluice_trace_start(struct sluice *c, size_t events)
{
	int rc;

	if (events > TRACE_RING_MAX)
		return -EINVAL;
	mutex_lock(&c->trace_lock);
	rc = trace_start(slot_of(c), events ? (u32)events : EVENTS_DEFAULT);
	mutex_unlock(&c->trace_lock);
	return rc;
}

ssize_t sluice_trace_read(struct sluice *c, struct sluice_event *out, size_t count, uint64_t *lost)
{
	u64 gone = 0;
	ssize_t n;

	mutex_lock(&c->trace_lock);
	n = trace_read(slot_of(c), (struct trace_event *)out, count, &gone);
	mutex_unlock(&c->trace_lock);
	if (n >= 0 && lost)
		*lost = gone;
	return n;
}

int sluice_trace_stop(struct sluice *c)
{
	int rc;

	mutex_lock(&c->trace_lock);
	rc = trace_stop(slot_of(c));
	mutex_unlock(&c->trace_lock);
	return rc;
}

const char *sluice_event_name(unsigned kind)
{
	return trace_name(kind);
}

const char *sluice_event_field(unsigned kind, unsigned i)
{
	return trace_field(kind, i);
}

int sluice_event_print(const struct sluice_event *e, char *buf, size_t size)
{
	return trace_print((const struct trace_event *)e, buf, size);
}
