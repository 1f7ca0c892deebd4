// SPDX-License-Identifier: MIT
/* Tenants under public names; a struct sluice_tenant is the engine's. */
#include "file/tenant.h"
#include "lib/inner.h"
#include <errno.h>
#include <string.h>

#define LIMITS_SIZE_MIN offsetof(struct sluice_tenant_limits, dirty_background_bytes)
#define STATS_SIZE_MIN  offsetof(struct sluice_tenant_stats, in_flight_bytes)

static struct tenant *tenant_in(struct sluice_tenant *t)
{
	return (struct tenant *)t;
}

static int settings_from(const struct sluice_tenant_limits *given, struct tenant_settings *out)
{
	struct sluice_tenant_limits l = { 0 };

	*out = (struct tenant_settings){ 0 };
	if (!given)
		return 0;
	if (given->size < LIMITS_SIZE_MIN || given->size % sizeof(u64))
		return -EINVAL;
	memcpy(&l, given, min_u64(given->size, sizeof(l)));
	*out = (struct tenant_settings){ .dirty_bytes = l.dirty_bytes,
					 .dirty_background_bytes = l.dirty_background_bytes,
					 .memory_bytes = l.memory_bytes,
					 .floor_bytes = l.floor_bytes,
					 .dirty_ratio = l.dirty_ratio,
					 .dirty_background_ratio = l.dirty_background_ratio };
	return 0;
}

int sluice_tenant_create(struct sluice *c, const char *name,
			 const struct sluice_tenant_limits *limits, struct sluice_tenant **out)
{
	struct tenant_settings s;
	struct tenant *t;
	int rc = settings_from(limits, &s);

	rc = rc ? rc : engine_add_tenant(c->engine, name, &s, &t);
	if (!rc)
		*out = (struct sluice_tenant *)t;
	return rc;
}

int sluice_tenant_limit(struct sluice *c, struct sluice_tenant *t,
			const struct sluice_tenant_limits *limits)
{
	struct tenant_settings s;
	int rc = settings_from(limits, &s);

	return rc ? rc : engine_set_tenant(c->engine, tenant_in(t), &s);
}

void sluice_tenant_close(struct sluice *c, struct sluice_tenant *t)
{
	engine_close_tenant(c->engine, tenant_in(t));
}

void sluice_thread_tenant(struct sluice *c, struct sluice_tenant *t)
{
	(void)c;
	engine_act_for(tenant_in(t));
}

void sluice_file_tenant(struct sluice_file *f, struct sluice_tenant *t)
{
	file_set_tenant(f->file, tenant_in(t));
}

int sluice_tenant_stats(struct sluice *c, struct sluice_tenant *t, struct sluice_tenant_stats *out)
{
	struct sluice_tenant_stats s;
	struct tenant_stats e;
	u64 size = out->size;

	if (size < STATS_SIZE_MIN || size % sizeof(u64))
		return -EINVAL;
	engine_tenant_stats(c->engine, tenant_in(t), &e);
	s = (struct sluice_tenant_stats){
		.size = min_u64(size, sizeof(s)),
		.debt_bytes = e.debt * PAGE_SIZE,
		.in_flight_bytes = e.in_flight * PAGE_SIZE,
		.dirty_bytes = e.dirty * PAGE_SIZE,
		.writeback_bytes = e.writeback * PAGE_SIZE,
		.dirty_max_bytes = e.dirty_max * PAGE_SIZE,
		.background_thresh_bytes = e.background_thresh * PAGE_SIZE,
		.dirty_thresh_bytes = e.thresh * PAGE_SIZE,
		.cached_bytes = e.cached * PAGE_SIZE,
		.dirtied_bytes = e.pages_dirtied * PAGE_SIZE,
		.written_bytes = e.pages_written * PAGE_SIZE,
		.throttle_sleeps = e.throttle_sleeps,
		.throttle_sleep_ns = e.throttle_sleep_ns,
	};
	memcpy(out, &s, s.size);
	return 0;
}
