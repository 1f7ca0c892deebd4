// SPDX-License-Identifier: MIT
/* What a mount says of itself, and how it is made safe. */
#include "file/tenant.h"
#include "ledger/tenant.h"
#include "mount/mount_inner.h"
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#define STAT(field)                                          \
	{                                                    \
#field, offsetof(struct sluice_stats, field) \
	}

static const struct {
	const char *name;
	size_t offset;
} rows[] = {
	STAT(memory_bytes),       STAT(cached_bytes),
	STAT(free_bytes),         STAT(resident_bytes),
	STAT(huge_bytes),         STAT(overhead_bytes),
	STAT(debt_bytes),         STAT(in_flight_bytes),
	STAT(folio_dirty_bytes),  STAT(folio_writeback_bytes),
	STAT(pinned_bytes),       STAT(dirty_bytes),
	STAT(writeback_bytes),    STAT(background_thresh_bytes),
	STAT(freerun_bytes),      STAT(setpoint_bytes),
	STAT(dirty_thresh_bytes), STAT(dirty_limit_bytes),
	STAT(dirtied_bytes),      STAT(written_bytes),
	STAT(cancelled_bytes),    STAT(charged_bytes),
	STAT(throttle_calls),     STAT(throttle_sleeps),
	STAT(throttle_sleep_ns),  STAT(folios_reclaimed),
	STAT(folios_split),       STAT(folios_shed),
	STAT(reclaim_waits),      STAT(device_reads),
	STAT(device_writes),      STAT(device_flushes),
	STAT(device_read_bytes),  STAT(device_write_bytes),
	STAT(device_in_flight),   STAT(write_bandwidth),
	STAT(write_errors),       STAT(files_open),
	STAT(files_idle),         STAT(recovered_files),
	STAT(recovered_bytes),    STAT(aside_files),
	STAT(aside_bytes),        STAT(dropped_files),
	STAT(dropped_bytes),      STAT(unsafe_bytes),
	STAT(unsafe_files),
};

static int set_pages(json_t *to, const char *name, u64 pages)
{
	return json_object_set_new(to, name, json_integer((json_int_t)(pages * PAGE_SIZE)));
}

/* Of whom it was, if he has a name, and whether his own limits counted. */
static int set_tenant(struct mount *m, json_t *one, const struct wait *w)
{
	char name[TENANT_NAME_MAX];

	if (!w->tenant)
		return 0;
	engine_tenant_name_of(m->cache->engine, w->tenant, name, sizeof(name));
	return json_object_set_new(one, "tenant", json_string(name)) |
	       json_object_set_new(one, "limits_of",
				   json_string(w->by_tenant ? "tenant" : "cache"));
}

static json_t *wait_json(struct mount *m, const struct wait *w, u64 now)
{
	static const char *const why[] = { "paced", "limit", "line" };
	json_t *one = json_object();
	int rc = set_tenant(m, one, w);

	rc |= json_object_set_new(one, "ago_ms",
				  json_integer((json_int_t)((now - w->when_ns) / NSEC_PER_MSEC)));
	rc |= json_object_set_new(one, "wait_ms",
				  json_integer((json_int_t)(w->wait_ns / NSEC_PER_MSEC)));
	rc |= json_object_set_new(one, "pid", json_integer(w->who));
	rc |= json_object_set_new(one, "why", json_string(why[w->why]));
	rc |= set_pages(one, "dirty_bytes", w->dirty);
	rc |= set_pages(one, "freerun_bytes", w->freerun);
	rc |= set_pages(one, "setpoint_bytes", w->setpoint);
	rc |= set_pages(one, "limit_bytes", w->limit);
	rc |= set_pages(one, "device_bytes_per_s", w->bandwidth);
	rc |= set_pages(one, "allowed_bytes_per_s", w->allowed);
	if (!rc)
		return one;
	json_decref(one);
	return NULL;
}

static json_t *tenant_json(struct mount *m, struct tenant *t)
{
	json_t *one = json_object();
	struct tenant_stats s;
	int rc;

	engine_tenant_stats(m->cache->engine, t, &s);
	rc = json_object_set_new(one, "name", json_string(engine_tenant_name(t)));
	rc |= set_pages(one, "debt_bytes", s.debt);
	rc |= set_pages(one, "in_flight_bytes", s.in_flight);
	rc |= set_pages(one, "dirty_bytes", s.dirty);
	rc |= set_pages(one, "writeback_bytes", s.writeback);
	rc |= set_pages(one, "dirty_max_bytes", s.dirty_max);
	rc |= set_pages(one, "background_thresh_bytes", s.background_thresh);
	rc |= set_pages(one, "dirty_thresh_bytes", s.thresh);
	rc |= set_pages(one, "floor_bytes", s.floor);
	rc |= set_pages(one, "dirtied_bytes", s.pages_dirtied);
	rc |= set_pages(one, "written_bytes", s.pages_written);
	rc |= json_object_set_new(one, "throttle_sleeps",
				  json_integer((json_int_t)s.throttle_sleeps));
	rc |= json_object_set_new(one, "throttle_sleep_ns",
				  json_integer((json_int_t)s.throttle_sleep_ns));
	if (!rc)
		return one;
	json_decref(one);
	return NULL;
}

/* The last waits of writers, the newest first. */
static int add_waits(struct mount *m, json_t *root)
{
	struct writeback *wb = engine_writeback(m->cache->engine);
	json_t *all = json_array();
	struct wait wait[WAITS_KEPT];
	u64 now = world_now();
	int rc = 0;
	u32 n;

	spin_lock(&wb->lock);
	n = waits_copy(&wb->waits, wait);
	spin_unlock(&wb->lock);
	for (u32 i = 0; i < n; i++)
		rc |= json_array_append_new(all,
					    wait_json(m, &wait[i], max_u64(now, wait[i].when_ns)));
	return rc | json_object_set_new(root, "waits", all);
}

static int add_tenants(struct mount *m, json_t *root)
{
	json_t *all = json_array();
	struct tenant *t;
	int rc = 0;

	for (size_t i = 0; (t = engine_tenant_at(m->cache->engine, i)); i++)
		rc |= json_array_append_new(all, tenant_json(m, t));
	return rc | json_object_set_new(root, "tenants", all);
}

char *mount_stats_json(struct mount *m)
{
	struct sluice_stats s = { .size = sizeof(s) };
	json_t *root = json_object();
	char *text = NULL;
	int rc = sluice_stats(m->cache, &s);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		u64 value;

		memcpy(&value, (char *)&s + rows[i].offset, sizeof(value));
		rc |= json_object_set_new(root, rows[i].name, json_integer((json_int_t)value));
	}
	rc |= json_object_set_new(root, "device", json_string(s.device));
	rc |= add_tenants(m, root);
	rc |= add_waits(m, root);
	if (m->farewell.fd >= 0)
		rc |= json_object_set_new(root, FAREWELL_KEY, json_string(m->farewell.name));
	rc |= json_object_set_new(root, "reads", json_string(m->direct ? "direct" : "kernel"));
	if (!rc)
		text = json_dumps(root, JSON_INDENT(2));
	json_decref(root);
	return text;
}

int mount_sync(struct mount *m)
{
	int rc = sluice_sync(m->cache, NULL, NULL), names;

	nodes_settle(m, true);
	names = result(syncfs(m->source_fd));
	return rc ? rc : names;
}
