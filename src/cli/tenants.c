/* SPDX-License-Identifier: MIT */
/*
 * The tenants of a mount: a table of them, and changes. A change goes to the mount as it was
 * written, by an attribute of its root, to which the mount can answer with nothing but an errno. So
 * what people may have mistyped is found here before, by the same reader that the mount has.
 */
#include "base/units.h"
#include "cli/control.h"
#include "mount/mount.h"
#include "mount/rules.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#define LIST_MAX 65536 /* of an attribute's value */

struct request {
	struct words options, close;
};

static const struct option options[] = {
	OPTION(struct request, options, WORDS, "options", 'o', "tenant.NAME.KEY=VALUE,...",
	       "new tenants, other figures, more rules"),
	OPTION(struct request, close, WORDS, "close", 0, "NAME", "the tenant goes away"),
	{ 0 },
};

/* --- the table */

static const char *bytes(const json_t *tenant, const char *key, char text[UNITS_TEXT_MAX])
{
	return units_print_bytes(text, (u64)json_integer_value(json_object_get(tenant, key)));
}

static const char *name_of(const json_t *tenant)
{
	const char *name = json_string_value(json_object_get(tenant, "name"));

	return name ? name : "";
}

static void print_one(const json_t *t)
{
	static const char *const columns[] = { "debt_bytes", "in_flight_bytes",
					       "dirty_thresh_bytes", "floor_bytes",
					       "written_bytes" };
	char text[UNITS_TEXT_MAX];

	printf("  %-20s", name_of(t));
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

/* --- changes */

static bool is_known(const json_t *tenants, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(tenants, i, one) if (!strcmp(name_of(one), name)) return true;
	return false;
}

/* Those that the mount has need no rule any more. */
static int check_rules(struct rules *r, const json_t *known, struct err *e)
{
	for (u32 i = r->tenants; i--;)
		if (is_known(known, r->tenant[i].name))
			rules_remove(r, i);
	return rules_check(r, e);
}

/* What was given with -o as one list in `list`; 0 or EXIT_USAGE. */
static int read_options(const struct command *self, const struct words *options,
			const json_t *known, char list[LIST_MAX])
{
	struct rules *r = calloc(1, sizeof(*r));
	struct err e = { "" };
	int rc = 0;

	*list = 0;
	if (!r)
		return usage_error(self, "%s", strerror(ENOMEM));
	for (size_t i = 0; i < options->count && !rc; i++) {
		size_t length = strlen(list);

		if (length + strlen(options->word[i]) + 2 > LIST_MAX)
			rc = err_set(&e, NULL, 0, "the options are too long");
		else
			snprintf(list + length, LIST_MAX - length, "%s%s", length ? "," : "",
				 options->word[i]);
	}
	rc = rc ? rc : rules_read_list(r, list, &e);
	rc = rc ? rc : check_rules(r, known, &e);
	rules_free(r);
	free(r);
	return rc ? usage_error(self, "%s", e.text[0] ? e.text : strerror(-rc)) : 0;
}

static int set(const struct command *self, const char *mountpoint, const char *attribute,
	       const char *value)
{
	if (!setxattr(mountpoint, attribute, value, strlen(value), 0))
		return EXIT_OK;
	return control_fail(self, mountpoint, errno);
}

static int change(const struct command *self, const struct request *r, const char *mountpoint,
		  const json_t *known)
{
	static char list[LIST_MAX];
	int status = read_options(self, &r->options, known, list);

	for (size_t i = 0; i < r->close.count && !status; i++)
		if (!is_known(known, r->close.word[i]))
			status = usage_error(self, "%s: has no tenant \"%s\"", mountpoint,
					     r->close.word[i]);
	for (size_t i = 0; i < r->close.count && !status; i++)
		status = set(self, mountpoint, MOUNT_END_NAME, r->close.word[i]);
	if (*list && !status)
		status = set(self, mountpoint, MOUNT_TENANTS_NAME, list);
	return status;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct words plain = { 0 };
	struct request r = { 0 };
	static char text[STATS_MAX];
	const char *mountpoint;
	const json_t *known;
	json_t *root;
	int status;

	if (!args_read(self, argc, argv, &r, &plain, &status))
		return status;
	status = words_one(self, &plain, "mountpoint", &mountpoint);
	if (status)
		return status;
	root = control_ask(mountpoint, text);
	if (!root)
		return control_fail(self, mountpoint, errno);
	known = json_object_get(root, "tenants");
	if (r.options.count || r.close.count)
		status = change(self, &r, mountpoint, known);
	else if (json_array_size(known))
		print_tenants(known);
	else
		printf("no tenants\n");
	json_decref(root);
	return status;
}

const struct command command_tenants = {
	.name = "tenants",
	.arguments = "MOUNTPOINT",
	.about = "show and change the tenants of a mount",
	.text = "Prints the tenants of a mount, what each has dirty, may have, and how long it "
		"waited.\n"
		"With options it changes them while the mount is used; those that go away go "
		"first.",
	.examples = "  sluice tenants /mnt/data\n"
		    "  sluice tenants -o tenant.batch.dirty_bytes=16M /mnt/data\n"
		    "  sluice tenants --close batch /mnt/data\n",
	.options = options,
	.run = run,
};
