/* SPDX-License-Identifier: MIT */
/* Whose a call is: rules as people write them, which of them a call meets, and which one counts. */
#include "mount/rules.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct rules r;

static void reads(const char *setting)
{
	struct err e = { "" };

	assert_true(rules_is_setting(setting));
	rules_read(&r, setting, &e);
	assert_string_equal(e.text, "");
}

static void refuses(const char *setting, const char *text)
{
	struct err e = { "" };

	assert_int_equal(rules_read(&r, setting, &e), -EINVAL);
	assert_string_equal(e.text, text);
}

static const char *path_is(const char *path)
{
	int tenant = rules_decide(&r, rules_met_by_path(&r, RULE_PATH, path));

	return tenant < 0 ? "nobody" : r.tenant[tenant].name;
}

static const char *cgroup_is(const char *path)
{
	int tenant = rules_decide(&r, rules_met_by_path(&r, RULE_CGROUP, path));

	return tenant < 0 ? "nobody" : r.tenant[tenant].name;
}

static void figures_are_kept(void **state)
{
	const struct tenant_settings *s = &r.tenant[0].settings;

	(void)state;
	assert_false(rules_is_setting("dirty_bytes=1M"));
	reads("tenant.batch.dirty_bytes=64M");
	reads("tenant.batch.dirty_background_bytes=32M");
	reads("tenant.batch.dirty_ratio=7");
	reads("tenant.batch.dirty_background_ratio=3");
	reads("tenant.batch.memory=1G");
	reads("tenant.batch.floor=2M");
	assert_int_equal(r.tenants, 1);
	assert_string_equal(r.tenant[0].name, "batch");
	assert_int_equal(s->dirty_bytes, 64 << 20);
	assert_int_equal(s->dirty_background_bytes, 32 << 20);
	assert_int_equal(s->dirty_ratio, 7);
	assert_int_equal(s->dirty_background_ratio, 3);
	assert_int_equal(s->memory_bytes, 1 << 30);
	assert_int_equal(s->floor_bytes, 2 << 20);
	rules_free(&r);
}

static void paths_end_at_slashes(void **state)
{
	(void)state;
	reads("tenant.logs.path=/var/log");
	reads("tenant.a-file.path=/var/x/");
	reads("tenant.all.path=/");
	assert_string_equal(path_is("/var/log"), "logs");
	assert_string_equal(path_is("/var/log/a/b"), "logs");
	assert_string_equal(path_is("/var/logs"), "all");
	assert_string_equal(path_is("/var/x"), "a-file");
	assert_string_equal(path_is("/var/x/y"), "a-file");
	assert_string_equal(path_is("/v"), "all");
	assert_string_equal(path_is(""), "all"); /* the root itself */
	assert_string_equal(cgroup_is("/var/log"), "nobody");
	rules_free(&r);
}

static void cgroups_are_no_paths(void **state)
{
	(void)state;
	reads("tenant.batch.cgroup=/system.slice/batch.service");
	assert_string_equal(cgroup_is("/system.slice/batch.service"), "batch");
	assert_string_equal(cgroup_is("/system.slice/batch.service/worker"), "batch");
	assert_string_equal(cgroup_is("/system.slice/batch.services"), "nobody");
	assert_string_equal(cgroup_is("/system.slice"), "nobody");
	assert_string_equal(path_is("/system.slice/batch.service"), "nobody");
	rules_free(&r);
}

static void the_first_rule_that_is_met_counts(void **state)
{
	u64 path, uid, cgroup;

	(void)state;
	reads("tenant.a.path=/a");
	reads("tenant.root.uid=root");
	reads("tenant.b.cgroup=/b");
	reads("tenant.a.uid=1234");
	path = rules_met_by_path(&r, RULE_PATH, "/a/x");
	uid = rules_met_by_uid(&r, 0);
	cgroup = rules_met_by_path(&r, RULE_CGROUP, "/b");
	assert_int_equal(path, 1);
	assert_int_equal(uid, 2);
	assert_int_equal(cgroup, 4);
	assert_int_equal(rules_met_by_uid(&r, 1234), 8);
	assert_int_equal(rules_met_by_uid(&r, 1), 0);
	assert_int_equal(rules_decide(&r, path | uid | cgroup), 0);
	assert_int_equal(rules_decide(&r, uid | cgroup), 1);
	assert_int_equal(rules_decide(&r, cgroup | 8), 2);
	assert_int_equal(rules_decide(&r, 8), 0);
	assert_int_equal(rules_decide(&r, 0), -1);
	rules_free(&r);
}

static void a_tenant_is_taken_out(void **state)
{
	struct rules copy;
	u64 met;

	(void)state;
	reads("tenant.a.path=/a");
	reads("tenant.b.path=/b");
	reads("tenant.a.uid=7");
	reads("tenant.c.path=/b/c");
	reads("tenant.c.uid=8");
	assert_int_equal(rules_copy(&copy, &r), 0);
	rules_free(&r);
	r = copy;
	rules_remove(&r, (u32)rules_tenant(&r, "a"));
	assert_int_equal(rules_tenant(&r, "a"), -1);
	assert_int_equal(r.tenants, 2);
	assert_int_equal(r.count, 3);
	assert_string_equal(path_is("/a"), "nobody");
	assert_string_equal(path_is("/b/c"), "b");
	met = rules_met_by_uid(&r, 8);
	assert_int_equal(met, 4);
	assert_string_equal(r.tenant[rules_decide(&r, met)].name, "c");
	assert_int_equal(rules_met_by_uid(&r, 7), 0);
	rules_remove(&r, (u32)rules_tenant(&r, "b"));
	assert_string_equal(path_is("/b/c"), "c");
	rules_free(&r);
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct err e = { "" };

	(void)state;
#define NAME_NEEDED                                                                         \
	": tenant.NAME.KEY=VALUE is needed, with a NAME of 1 to 31 letters, digits, \"-\" " \
	"and \"_\""
	refuses("tenant.a", "\"tenant.a\"" NAME_NEEDED);
	refuses("tenant.a.uid", "\"tenant.a.uid\"" NAME_NEEDED);
	refuses("tenant.=x", "\"tenant.=x\"" NAME_NEEDED);
	refuses("tenant..uid=0", "\"tenant..uid=0\"" NAME_NEEDED);
	refuses("tenant.a b.uid=0", "\"tenant.a b.uid=0\"" NAME_NEEDED);
	refuses("tenant.a123456789b123456789c123456789d1.uid=0",
		"\"tenant.a123456789b123456789c123456789d1.uid=0\"" NAME_NEEDED);
	refuses("tenant.a.gid=0", "unknown setting \"tenant.a.gid\"; did you mean "
				  "\"tenant.a.uid\"?");
	refuses("tenant.a.dirty_byte=1M", "unknown setting \"tenant.a.dirty_byte\"; did you mean "
					  "\"tenant.a.dirty_bytes\"?");
	refuses("tenant.a.colour=red", "unknown setting \"tenant.a.colour\"; a rule is "
				       "\"tenant.a.cgroup\", uid or path");
	refuses("tenant.a.dirty_bytes=1",
		"tenant.a.dirty_bytes cannot be \"1\", only a size of at least 8192");
	refuses("tenant.a.dirty_ratio=101",
		"tenant.a.dirty_ratio cannot be \"101\", only 1 to 100 (percent)");
	refuses("tenant.a.uid=no-such-user", "tenant.a.uid cannot be \"no-such-user\", only a user "
					     "of this machine, by number or name");
	refuses("tenant.a.path=logs", "tenant.a.path cannot be \"logs\", only a path from the root "
				      "of the mount, as /a/b");
	refuses("tenant.a.path=/a/../b",
		"tenant.a.path cannot be \"/a/../b\", only a path from the root of the mount, as "
		"/a/b");
	refuses("tenant.a.path=/a/..",
		"tenant.a.path cannot be \"/a/..\", only a path from the root of the mount, as "
		"/a/b");
	refuses("tenant.a.path=/a/.",
		"tenant.a.path cannot be \"/a/.\", only a path from the root of the mount, as "
		"/a/b");
	refuses("tenant.a.path=/a//b",
		"tenant.a.path cannot be \"/a//b\", only a path from the root of the mount, as "
		"/a/b");
	refuses("tenant.a.cgroup=x.slice", "tenant.a.cgroup cannot be \"x.slice\", only a path "
					   "from the root of all cgroups, as /a/b");
	rules_free(&r);
	reads("tenant.b.path=/b");
	reads("tenant.a.floor=1M");
	assert_int_equal(rules_check(&r, &e), -EINVAL);
	assert_string_equal(e.text, "nobody is tenant \"a\": tenant.a.cgroup=/PATH, .uid=USER or "
				    ".path=/PATH is needed");
	reads("tenant.a.uid=0");
	assert_int_equal(rules_check(&r, &e), 0);
	rules_free(&r);
}

static void there_is_an_end_to_rules(void **state)
{
	char text[64];

	(void)state;
	for (int i = 0; i < RULES_MAX; i++) {
		snprintf(text, sizeof(text), "tenant.t%d.uid=%d", i, i);
		reads(text);
	}
	refuses("tenant.t0.uid=100", "tenants have more than 64 rules");
	refuses("tenant.x.uid=100", "there are more than 64 tenants");
	assert_int_equal(rules_decide(&r, rules_met_by_uid(&r, 63)), 63);
	assert_int_equal(rules_check(&r, NULL), 0);
	rules_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_kept),
		cmocka_unit_test(paths_end_at_slashes),
		cmocka_unit_test(cgroups_are_no_paths),
		cmocka_unit_test(the_first_rule_that_is_met_counts),
		cmocka_unit_test(a_tenant_is_taken_out),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(there_is_an_end_to_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
