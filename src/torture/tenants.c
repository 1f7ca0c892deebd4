// SPDX-License-Identifier: MIT
/*
 * Tenants of a run: half of the seeds have some. Whom an operation is for follows from the seed and
 * its place in the schedule, so that leaving out others changes nothing of it; and now and then one
 * takes a tenant away, and makes another.
 */
#include "file/tenant.h"
#include "torture/inner.h"
#include <stdio.h>

#define GOES_ONE_IN 97

static u64 hash(u64 x)
{
	struct rng r;

	rng_init(&r, x);
	return rng_u64(&r);
}

static void make(struct torture *t, u32 i, u64 drawn)
{
	struct tenant_settings s = {
		.dirty_bytes = drawn & 1 ? 0 : (2 + (drawn >> 8 & 63)) * PAGE_SIZE,
		.floor_bytes = drawn & 2 ? 0 : (drawn >> 16 & 15) * PAGE_SIZE,
		.memory_bytes = drawn & 4 ? 0 : (1 + (drawn >> 24 & 255)) * PAGE_SIZE,
	};
	char name[32];

	snprintf(name, sizeof(name), "%llx", (unsigned long long)drawn);
	if (engine_add_tenant(t->engine, name, &s, &t->tenant[i]))
		t->tenant[i] = NULL; /* for want of memory */
}

void tenants_make(struct torture *t)
{
	u64 drawn = hash(t->config->seed ^ 0x7e4a47);

	t->tenants = drawn & 1 ? 1 + (u32)(drawn >> 1) % TENANTS_MAX : 0;
	for (u32 i = 0; i < t->tenants; i++)
		make(t, i, hash(drawn + i));
}

void tenants_act(struct torture *t, const struct op *op)
{
	u64 drawn = hash(t->config->seed + (u64)(op - t->op) * 0x9e3779b97f4a7c15ull);
	u32 i;

	if (!t->tenants)
		return;
	i = (u32)(drawn % (t->tenants + 1));
	engine_act_for(i < t->tenants ? t->tenant[i] : NULL);
	if (i == t->tenants || (drawn >> 32) % GOES_ONE_IN || !t->tenant[i])
		return;
	engine_close_tenant(t->engine, t->tenant[i]);
	make(t, i, drawn);
}
