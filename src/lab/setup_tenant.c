// SPDX-License-Identifier: MIT
/* A tenant of the lab is a name, and figures: see lib/tenant_keys.h. */
#include "lab/setup_tenant.h"
#include "lib/tenant_keys.h"
#include <errno.h>
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

static int refuse_key(const struct setting *s, struct err *e)
{
	const char *known[16], *near;
	size_t count = 0;

	for (; count < ARRAY_SIZE(known) && tenant_key(count); count++)
		known[count] = tenant_key(count);
	near = err_nearest(s->key, known, count);
	return err_set(e, s->at.file, s->at.line, "unknown key \"%s\" in section [%s]%s%s%s",
		       s->key, s->section, near ? "; did you mean \"" : "", near ? near : "",
		       near ? "\"?" : "");
}

int setup_apply_tenant(struct setup *to, const struct setting *s, struct err *e)
{
	struct setup_tenant *t = tenant_at(to, setup_tenant_of(s->section));
	const char *values;
	int rc;

	if (!t)
		return err_set(e, s->at.file, s->at.line, "there are more than %d tenants",
			       SETUP_TENANTS_MAX);
	rc = tenant_key_set(&t->settings, s->key, s->value, &values);
	if (rc == -ENOENT)
		return refuse_key(s, e);
	if (rc)
		return err_set(e, s->at.file, s->at.line, "%s cannot be \"%s\", only %s", s->key,
			       s->value, values);
	return 0;
}
