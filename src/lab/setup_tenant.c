// SPDX-License-Identifier: MIT
/*
 * A tenant is a name and six figures, each optional:
 *
 *	dirty_ratio, dirty_background_ratio	percent
 *	dirty_bytes, dirty_background_bytes	instead of these
 *	memory					what counts as its memory (memory.max)
 *	floor					below that it is never throttled
 *
 * What a ratio is of, and what memory does, is the policy's choice tenant_limits.
 */
#include "lab/setup_tenant.h"
#include "base/units.h"
#include <stdio.h>
#include <string.h>

#define TENANT_NAMED "tenant "

const char *setup_tenant_of(const char *section)
{
	return strncmp(section, TENANT_NAMED, strlen(TENANT_NAMED)) != 0
		       ? NULL
		       : section + strlen(TENANT_NAMED);
}

int setup_check_tenant(const char *section, const struct origin *at, struct err *e)
{
	const char *name = setup_tenant_of(section);

	if (!*name || strlen(name) >= sizeof(((struct setup_tenant *)0)->name) ||
	    strpbrk(name, ". \t"))
		return err_set(e, at->file, at->line,
			       "[%s]: the name of a tenant has 1 to 31 characters, and no dot or "
			       "blank",
			       section);
	return 0;
}

struct setting setup_bare_tenant(const char *section, const char *file, int line)
{
	if (!setup_tenant_of(section))
		return (struct setting){ 0 };
	return (struct setting){ section, "floor", "0", { file, line } };
}

static struct setup_tenant *tenant_at(struct setup *to, const char *name)
{
	struct setup_tenant *t = to->tenant;

	for (u32 i = 0; i < to->tenant_count; i++, t++)
		if (!strcmp(t->name, name))
			return t;
	if (to->tenant_count == SETUP_TENANTS_MAX)
		return NULL;
	to->tenant_count++;
	*t = (struct setup_tenant){ .name = "" };
	snprintf(t->name, sizeof(t->name), "%s", name);
	return t;
}

struct key {
	const char *name;
	size_t offset; /* in struct tenant_settings */
	bool bytes;
	u64 min;
};

#define KEY(name, field, bytes, min)                                      \
	{                                                                 \
		name, offsetof(struct tenant_settings, field), bytes, min \
	}

static const struct key keys[] = {
	KEY("dirty_ratio", dirty_ratio, false, 1),
	KEY("dirty_background_ratio", dirty_background_ratio, false, 1),
	KEY("dirty_bytes", dirty_bytes, true, 2ull * PAGE_SIZE),
	KEY("dirty_background_bytes", dirty_background_bytes, true, 1),
	KEY("memory", memory_bytes, true, PAGE_SIZE),
	KEY("floor", floor_bytes, true, 0),
};

static int refuse_key(const struct setting *s, struct err *e)
{
	const char *known[ARRAY_SIZE(keys)], *near;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		known[i] = keys[i].name;
	near = err_nearest(s->key, known, ARRAY_SIZE(keys));
	return err_set(e, s->at.file, s->at.line, "unknown key \"%s\" in section [%s]%s%s%s",
		       s->key, s->section, near ? "; did you mean \"" : "", near ? near : "",
		       near ? "\"?" : "");
}

int setup_apply_tenant(struct setup *to, const struct setting *s, struct err *e)
{
	struct setup_tenant *t = tenant_at(to, setup_tenant_of(s->section));
	const struct key *k = keys;
	u64 value;
	int rc;

	if (!t)
		return err_set(e, s->at.file, s->at.line, "there are more than %d tenants",
			       SETUP_TENANTS_MAX);
	while (k < keys + ARRAY_SIZE(keys) && strcmp(k->name, s->key) != 0)
		k++;
	if (k == keys + ARRAY_SIZE(keys))
		return refuse_key(s, e);
	rc = k->bytes ? units_parse_bytes(s->value, &value) : units_parse_u64(s->value, &value);
	if (rc || value < k->min || (!k->bytes && value > 100))
		return err_set(e, s->at.file, s->at.line, "%s cannot be \"%s\", only %s", s->key,
			       s->value,
			       !k->bytes             ? "1 to 100 (percent)"
			       : k->min == PAGE_SIZE ? "a size of at least 4096"
			       : k->min > PAGE_SIZE  ? "a size of at least 8192"
						     : "a size, as 64M");
	if (k->bytes)
		memcpy((char *)&t->settings + k->offset, &value, sizeof(value));
	else
		memcpy((char *)&t->settings + k->offset, &(u32){ (u32)value }, sizeof(u32));
	return 0;
}
