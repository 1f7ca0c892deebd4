/* SPDX-License-Identifier: MIT */
/* Asking the table of options: by name, by something like a name, and for all defaults. */
#include "job/options.h"
#include <string.h>

static bool same(const char *a, const char *b)
{
	return *a == *b && !strcmp(a, b);
}

const struct option *options_find(const char *name)
{
	for (size_t i = 0; i < options_count; i++) {
		const struct option *o = &options_table[i];

		if (same(name, o->name) || (o->alias && same(name, o->alias)))
			return o;
	}
	return NULL;
}

const char *options_nearest(const char *name)
{
	const char *names[2 * OPTIONS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < options_count; i++) {
		names[count++] = options_table[i].name;
		if (options_table[i].alias)
			names[count++] = options_table[i].alias;
	}
	return err_nearest(name, names, count);
}

const char *options_related(const char *name)
{
	const struct option *best = NULL;

	for (size_t i = 0; i < options_count; i++) {
		const struct option *o = &options_table[i];
		size_t len = strlen(o->name);

		if (!strncmp(name, o->name, len) && (!best || len > strlen(best->name)))
			best = o;
	}
	return best ? best->name : NULL;
}

void options_defaults(struct job_options *o)
{
	struct err e = { 0 };

	memset(o, 0, sizeof(*o));
	o->kb_base = 1024;
	for (size_t i = 0; i < options_count; i++) {
		if (options_table[i].normal)
			options_set(o, &options_table[i], options_table[i].normal, NULL, 0, &e);
	}
	assert(!e.text[0]);
}
