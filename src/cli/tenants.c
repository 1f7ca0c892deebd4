/* SPDX-License-Identifier: MIT */
/* The tenants of a mount, a line for each. */
#include "base/units.h"
#include "cli/control.h"
#include <stdio.h>

static const char *bytes(const json_t *tenant, const char *key, char text[UNITS_TEXT_MAX])
{
	return units_print_bytes(text, (u64)json_integer_value(json_object_get(tenant, key)));
}

static void print_one(const json_t *t)
{
	static const char *const columns[] = { "debt_bytes", "in_flight_bytes",
					       "dirty_thresh_bytes", "floor_bytes",
					       "written_bytes" };
	char text[UNITS_TEXT_MAX];

	printf("  %-20s", json_string_value(json_object_get(t, "name")));
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		printf(" %9s", bytes(t, columns[i], text));
	printf(" %9.1f\n",
	       (double)json_integer_value(json_object_get(t, "throttle_sleep_ns")) / 1e9);
}

void print_tenants(const json_t *tenants)
{
	const json_t *one;
	size_t i;

	if (!json_array_size(tenants))
		return;
	printf("tenants:\n  %-20s %9s %9s %9s %9s %9s %9s\n", "name", "dirty", "in flight", "limit",
	       "floor", "written", "waited, s");
	json_array_foreach(tenants, i, one) print_one(one);
}
