// SPDX-License-Identifier: MIT
/*
 * Tenants of a run, if it has any: tasks act for them, files are theirs, their limits change, and
 * they go away and come back, with data of theirs still to be written.
 */
#include "base/bits.h"
#include "file/tenant.h"
#include "torture/inner.h"
#include <errno.h>
#include <stdio.h>

static struct tenant_settings settings_of(const struct op *op)
{
	struct tenant_settings s = { 0 };

	if (op->value & 1)
		s.dirty_bytes = (2 + op->value % 64) * PAGE_SIZE;
	if (op->value & 2)
		s.dirty_background_bytes = s.dirty_bytes / 2;
	if (op->value & 4)
		s.memory_bytes = (16 + op->value % 200) * PAGE_SIZE;
	if (op->value & 8)
		s.floor_bytes = op->value % 16 * PAGE_SIZE;
	return s;
}

static void add(struct torture *t, u32 i, const struct op *op)
{
	struct tenant_settings s = settings_of(op);
	char name[16];
	int rc;

	snprintf(name, sizeof(name), "t%u", i);
	rc = engine_add_tenant(t->engine, name, &s, &t->tenant[i]);
	if (rc)
		t->tenant[i] = NULL;
	if (rc && rc != -ENOMEM && rc != -ENOSPC)
		torture_fail(t, "a tenant cannot be made: %d", rc);
}

void tenants_begin(struct torture *t)
{
	for (u32 i = 0; i < t->tenants; i++)
		add(t, i, &(struct op){ .value = rng_below(&t->rng, POOL_BYTES) });
}

void tenants_enter(struct ttask *task)
{
	struct torture *t = task->t;

	if (t->tenants)
		engine_act_for(t->tenant[task->number % t->tenants]);
}

void op_tenant(struct ttask *task, struct tfile *f, const struct op *op)
{
	struct torture *t = task->t;
	u32 i = (u32)(op->value / 16) % TENANTS_MAX;
	struct tenant *tenant = t->tenant[i];
	struct tenant_settings s = settings_of(op);

	if (i >= t->tenants)
		tenant = NULL;
	switch (op->flags % 4) {
	case 0:
		engine_act_for(tenant);
		break;
	case 1:
		file_set_tenant(f->open[task->number][0], tenant);
		break;
	case 2:
		if (tenant && engine_set_tenant(t->engine, tenant, &s))
			torture_fail(t, "limits of a tenant that are right were refused");
		break;
	default:
		if (!tenant)
			break;
		t->tenant[i] = NULL; /* for all others, from now on */
		engine_close_tenant(t->engine, tenant);
		add(t, i, op);
	}
}
