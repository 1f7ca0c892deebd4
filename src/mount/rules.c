// SPDX-License-Identifier: MIT
/*
 * Rules are numbered in the order in which they were written. What a call meets is a word with a
 * bit for each, put together from parts that are known at different times (the file's path at its
 * open, the caller's cgroup for a moment, his number with each call); the lowest bit decides.
 */
#include "mount/rules.h"
#include "base/bits.h"
#include "base/units.h"
#include "lib/tenant_keys.h"
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TENANT_PREFIX "tenant."

static const char *const kinds[RULE_KINDS] = { "cgroup", "uid", "path" };

bool rules_is_setting(const char *setting)
{
	return !strncmp(setting, TENANT_PREFIX, strlen(TENANT_PREFIX));
}

/* --- reading */

static int no_memory(struct err *e)
{
	err_set(e, NULL, 0, "not enough memory");
	return -ENOMEM;
}

static int refuse_name(const char *setting, struct err *e)
{
	return err_set(e, NULL, 0,
		       "\"%s\": tenant.NAME.KEY=VALUE is needed, with a NAME of 1 to %d letters, "
		       "digits, \"-\" and \"_\"",
		       setting, RULES_NAME_MAX - 1);
}

static int refuse_key(const char *name, const char *key, struct err *e)
{
	const char *known[32], *near;
	size_t count = 0;

	for (; count < RULE_KINDS; count++)
		known[count] = kinds[count];
	for (size_t i = 0; count < ARRAY_SIZE(known) && tenant_key(i); i++)
		known[count++] = tenant_key(i);
	near = err_nearest(key, known, count);
	return err_set(e, NULL, 0, "unknown setting \"tenant.%s.%s\"; %s \"tenant.%s.%s\"%s", name,
		       key, near ? "did you mean" : "a rule is", name, near ? near : kinds[0],
		       near ? "?" : ", uid or path");
}

/* The kind of rule that a key is, or RULE_KINDS. */
static enum rule_kind kind_of(const char *key)
{
	unsigned i = 0;

	while (i < RULE_KINDS && strcmp(kinds[i], key) != 0)
		i++;
	return (enum rule_kind)i;
}

static bool parse_uid(const char *text, u32 *out)
{
	const struct passwd *user;
	u64 number;

	if (!units_parse_u64(text, &number) && number < UINT32_MAX) {
		*out = (u32)number;
		return true;
	}
	user = getpwnam(text);
	if (user)
		*out = user->pw_uid;
	return user != NULL;
}

/* *out: "/a/b" of "/a/b/", "" of "/"; to be freed. 0, -EINVAL if that is no path, or -ENOMEM. */
static int parse_prefix(const char *text, char **out)
{
	size_t length = strlen(text);

	if (*text != '/' || strstr(text, "//") || strstr(text, "/./") || strstr(text, "/../"))
		return -EINVAL;
	if (text[length - 1] == '/')
		length--;
	if ((length >= 2 && !strncmp(text + length - 2, "/.", 2)) ||
	    (length >= 3 && !strncmp(text + length - 3, "/..", 3)))
		return -EINVAL;
	*out = strndup(text, length);
	return *out ? 0 : -ENOMEM;
}

static int add_rule(struct rules *r, u32 tenant, enum rule_kind kind, const char *value,
		    struct err *e)
{
	struct rule new = { .kind = kind, .tenant = tenant };
	const char *name = r->tenant[tenant].name;
	int rc;

	if (r->count == RULES_MAX)
		return err_set(e, NULL, 0, "tenants have more than %d rules", RULES_MAX);
	if (kind == RULE_UID) {
		if (!parse_uid(value, &new.uid))
			return err_set(e, NULL, 0,
				       "tenant.%s.uid cannot be \"%s\", only a user of this "
				       "machine, by number or name",
				       name, value);
	} else {
		rc = parse_prefix(value, &new.prefix);
		if (rc == -ENOMEM)
			return no_memory(e);
		if (rc)
			return err_set(e, NULL, 0,
				       "tenant.%s.%s cannot be \"%s\", only a path from the root "
				       "of %s, as /a/b",
				       name, kinds[kind], value,
				       kind == RULE_PATH ? "the mount" : "all cgroups");
	}
	r->rule[r->count] = new;
	r->of_kind[kind] |= 1ull << r->count++;
	return 0;
}

static int tenant_named(struct rules *r, const char *name, struct err *e)
{
	int at = rules_tenant(r, name);

	if (at >= 0)
		return at;
	if (r->tenants == RULES_TENANTS_MAX)
		return err_set(e, NULL, 0, "there are more than %d tenants", RULES_TENANTS_MAX);
	r->tenant[r->tenants] = (struct rules_tenant){ .name = "" };
	snprintf(r->tenant[r->tenants].name, RULES_NAME_MAX, "%s", name);
	return (int)r->tenants++;
}

static int take(struct rules *r, const char *name, const char *key, const char *value,
		struct err *e)
{
	int at = tenant_named(r, name, e), rc;
	enum rule_kind kind = kind_of(key);
	const char *values;

	if (at < 0)
		return at;
	if (kind != RULE_KINDS)
		return add_rule(r, (u32)at, kind, value, e);
	rc = tenant_key_set(&r->tenant[at].settings, key, value, &values);
	if (rc == -ENOENT)
		return refuse_key(name, key, e);
	if (rc)
		return err_set(e, NULL, 0, "tenant.%s.%s cannot be \"%s\", only %s", name, key,
			       value, values);
	return 0;
}

int rules_read(struct rules *r, const char *setting, struct err *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_";
	char *words = strdup(setting + strlen(TENANT_PREFIX)), *key, *value;
	size_t length;
	int rc;

	if (!words)
		return no_memory(e);
	length = strspn(words, letters);
	key = words + length + 1;
	value = words[length] == '.' ? strchr(key, '=') : NULL;
	if (!length || length >= RULES_NAME_MAX || !value) {
		free(words);
		return refuse_name(setting, e);
	}
	words[length] = *value++ = 0;
	rc = take(r, words, key, value, e);
	free(words);
	return rc;
}

int rules_read_list(struct rules *r, const char *list, struct err *e)
{
	char *words = strdup(list), *rest = words, *word;
	int rc = words ? 0 : no_memory(e);

	while (!rc && (word = strsep(&rest, ",")))
		if (*word)
			rc = rules_is_setting(word) ? rules_read(r, word, e) : refuse_name(word, e);
	free(words);
	return rc;
}

int rules_check(const struct rules *r, struct err *e)
{
	u64 ruled = 0;

	for (u32 i = 0; i < r->count; i++)
		ruled |= 1ull << r->rule[i].tenant;
	for (u32 i = 0; i < r->tenants; i++)
		if (!(ruled >> i & 1))
			return err_set(e, NULL, 0,
				       "nobody is tenant \"%s\": tenant.%s.cgroup=/PATH, .uid=USER "
				       "or .path=/PATH is needed",
				       r->tenant[i].name, r->tenant[i].name);
	return 0;
}

/* --- the set of rules */

int rules_tenant(const struct rules *r, const char *name)
{
	for (u32 i = 0; i < r->tenants; i++)
		if (!strcmp(r->tenant[i].name, name))
			return (int)i;
	return -1;
}

void rules_remove(struct rules *r, u32 tenant)
{
	u32 kept = 0;

	assert(tenant < r->tenants);
	memset(r->of_kind, 0, sizeof(r->of_kind));
	for (u32 i = 0; i < r->count; i++) {
		struct rule one = r->rule[i];

		if (one.tenant == tenant) {
			free(one.prefix);
			continue;
		}
		one.tenant -= one.tenant > tenant;
		r->of_kind[one.kind] |= 1ull << kept;
		r->rule[kept++] = one;
	}
	r->count = kept;
	r->tenants--;
	memmove(r->tenant + tenant, r->tenant + tenant + 1,
		(r->tenants - tenant) * sizeof(r->tenant[0]));
}

int rules_copy(struct rules *to, const struct rules *from)
{
	*to = *from;
	for (u32 i = 0; i < from->count; i++) {
		if (!from->rule[i].prefix)
			continue;
		to->rule[i].prefix = strdup(from->rule[i].prefix);
		if (!to->rule[i].prefix) {
			to->count = i;
			rules_free(to);
			return -ENOMEM;
		}
	}
	return 0;
}

void rules_free(struct rules *r)
{
	for (u32 i = 0; i < r->count; i++)
		free(r->rule[i].prefix);
	*r = (struct rules){ .count = 0 };
}

/* --- what is met */

static bool lies_in(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);

	return !strncmp(path, prefix, length) && (path[length] == 0 || path[length] == '/');
}

u64 rules_met_by_path(const struct rules *r, enum rule_kind kind, const char *path)
{
	u64 met = 0;

	for (u64 left = r->of_kind[kind]; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		if (lies_in(path, r->rule[i].prefix))
			met |= 1ull << i;
	}
	return met;
}

u64 rules_met_by_uid(const struct rules *r, u32 uid)
{
	u64 met = 0;

	for (u64 left = r->of_kind[RULE_UID]; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);

		if (r->rule[i].uid == uid)
			met |= 1ull << i;
	}
	return met;
}

int rules_decide(const struct rules *r, u64 met)
{
	return met ? (int)r->rule[__builtin_ctzll(met)].tenant : -1;
}
