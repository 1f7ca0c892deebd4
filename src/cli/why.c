/* SPDX-License-Identifier: MIT */
/* Why the writers of a mount last waited, in sentences: one for each wait, by fixed rules. */
#include "base/units.h"
#include "cli/control.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static u64 number(const json_t *wait, const char *key)
{
	return (u64)json_integer_value(json_object_get(wait, key));
}

static const char *bytes(const json_t *wait, const char *key, char text[UNITS_TEXT_MAX])
{
	return units_print_bytes(text, number(wait, key) & ~0xfffull);
}

/* Who it was, if he is still there. */
static void print_writer(u64 pid)
{
	char path[40], name[32] = "";
	FILE *f;

	if (!pid) {
		printf("the write-out of a mapping");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%" PRIu64 "/comm", pid);
	f = fopen(path, "re");
	if (f && !fgets(name, sizeof(name), f))
		name[0] = 0;
	if (f)
		fclose(f);
	name[strcspn(name, "\n")] = 0;
	printf("process %" PRIu64 "%s%s%s", pid, *name ? " (" : "", name, *name ? ")" : "");
}

static void print_tenant(const json_t *wait)
{
	const char *name = json_string_value(json_object_get(wait, "tenant"));
	const char *whose = json_string_value(json_object_get(wait, "limits_of"));

	if (name && whose)
		printf(" of tenant %s, by the limits of the %s,", *name ? name : "(gone)", whose);
}

static void print_reason(const json_t *wait, const char *why)
{
	char dirty[UNITS_TEXT_MAX], other[UNITS_TEXT_MAX], rate[UNITS_TEXT_MAX];

	bytes(wait, "dirty_bytes", dirty);
	if (!strcmp(why, "paced"))
		printf(": %s were dirty, more than the %s that cost nothing, so it may dirty %s a "
		       "second",
		       dirty, bytes(wait, "freerun_bytes", other),
		       bytes(wait, "allowed_bytes_per_s", rate));
	else if (!strcmp(why, "line"))
		printf(": others were before it, %s were dirty at the limit of %s", dirty,
		       bytes(wait, "limit_bytes", other));
	else
		printf(": %s were dirty at the limit of %s, so nobody may dirty more", dirty,
		       bytes(wait, "limit_bytes", other));
	printf("; the device writes %s a second", bytes(wait, "device_bytes_per_s", rate));
}

static void print_wait(const json_t *wait)
{
	const char *why = json_string_value(json_object_get(wait, "why"));

	if (!why)
		return;
	printf("  %.1f s ago ", (double)number(wait, "ago_ms") / 1e3);
	print_writer(number(wait, "pid"));
	print_tenant(wait);
	printf(" waited %" PRIu64 " ms", number(wait, "wait_ms"));
	print_reason(wait, why);
	printf("\n");
}

void print_waits(const json_t *waits)
{
	const json_t *wait;
	size_t i;

	if (!json_array_size(waits)) {
		printf("no writer has waited\n");
		return;
	}
	printf("why writers last waited:\n");
	json_array_foreach(waits, i, wait) print_wait(wait);
}
