/* SPDX-License-Identifier: MIT */
/*
 * Who is which tenant of a mount. Settings
 *
 *	tenant.NAME.KEY=VALUE
 *
 * give a tenant its figures (lib/tenant_keys.h) and its rules, of which KEY names the kind:
 *
 *	cgroup=/PATH	the caller is in that cgroup (version 2), or below it
 *	uid=USER	the caller is that user, by number or name
 *	path=/PATH	the file is there, or below it; /PATH begins at the root of the mount
 *
 * The first rule that is met, in the order in which they are written, says whose a call is.
 */
#ifndef SLUICE_MOUNT_RULES_H
#define SLUICE_MOUNT_RULES_H

#include "base/err.h"
#include "file/tenant.h"

#define RULES_MAX         64 /* a call meets a set of them: the bits of a word */
#define RULES_TENANTS_MAX RULES_MAX
#define RULES_NAME_MAX    32 /* with its end */

enum rule_kind { RULE_CGROUP, RULE_UID, RULE_PATH, RULE_KINDS };

struct rule {
	enum rule_kind kind;
	u32 tenant; /* index */
	u32 uid;
	char *prefix; /* "/a/b", or "" for all */
};

struct rules_tenant {
	char name[RULES_NAME_MAX];
	struct tenant_settings settings;
};

struct rules {
	struct rules_tenant tenant[RULES_TENANTS_MAX];
	struct rule rule[RULES_MAX];
	u64 of_kind[RULE_KINDS]; /* rules: bits */
	u32 tenants, count;
};

/* Whether it is a setting for here. */
bool rules_is_setting(const char *setting);
/* Takes one in. 0, or a negative errno with `e` set. */
int rules_read(struct rules *r, const char *setting, struct err *e);
/* The same of a list with commas. */
int rules_read_list(struct rules *r, const char *list, struct err *e);
/* Whether each tenant has a rule: 0 or -EINVAL. */
int rules_check(const struct rules *r, struct err *e);
/* The index of a tenant, or -1. */
int rules_tenant(const struct rules *r, const char *name);
/* Takes a tenant out, with its rules. */
void rules_remove(struct rules *r, u32 tenant);
/* 0 or -ENOMEM. */
int rules_copy(struct rules *to, const struct rules *from);
void rules_free(struct rules *r);

/* The rules that a caller in that cgroup meets, or a file of that path. */
u64 rules_met_by_path(const struct rules *r, enum rule_kind kind, const char *path);
u64 rules_met_by_uid(const struct rules *r, u32 uid);
/* The index of the tenant whose a call is that meets these; -1: nobody's. */
int rules_decide(const struct rules *r, u64 met);

#endif
