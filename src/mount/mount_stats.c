// SPDX-License-Identifier: MIT
/* What a mount says of itself, and how it is made safe. */
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
