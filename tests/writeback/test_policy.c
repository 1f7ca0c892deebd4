/* SPDX-License-Identifier: MIT */
/* Policies: what the presets choose, and setting, printing and refusing choices. */
#include "writeback/policy.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "key=value" of the preset, as the tables print it. */
static void assert_choice(const char *preset, const char *key, const char *value)
{
	const struct policy *p = policy_find(preset);
	char buf[16];

	assert_non_null(p);
	for (size_t i = 0; policy_key(i); i++) {
		if (!strcmp(policy_key(i), key)) {
			assert_string_equal(policy_value(p, i, buf), value);
			return;
		}
	}
	fail_msg("no key %s", key);
}

static void presets_stand_in_order_of_release(void **state)
{
	static const char *const names[] = { "linux-6.1",  "linux-6.6", "linux-6.12",
					     "linux-6.18", "linux-7.4", "sluice" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_string_equal(policy_preset(i)->name, names[i]);
		assert_ptr_equal(policy_find(names[i]), policy_preset(i));
		assert_true(strlen(policy_about(i)) > 10);
	}
	assert_null(policy_preset(ARRAY_SIZE(names)));
	assert_null(policy_about(ARRAY_SIZE(names)));
	assert_null(policy_find("linux"));
	assert_null(policy_find(""));
}

/* Linux writeback reference, section 16: the release at which each behaviour changed. */
static void releases_differ_where_linux_did(void **state)
{
	(void)state;
	assert_choice("linux-6.1", "write_order", "zero");
	assert_choice("linux-6.6", "write_order", "length");
	assert_choice("linux-6.1", "writeout", "folio");
	assert_choice("linux-6.6", "writeout", "block");
	assert_choice("linux-6.12", "readahead", "mark-order");
	assert_choice("linux-6.18", "readahead", "file-order");
	assert_choice("linux-6.12", "wb_floor", "position");
	assert_choice("linux-6.18", "wb_floor", "threshold");
	assert_choice("linux-6.18", "dontcache", "inline");
	assert_choice("linux-7.4", "dontcache", "kick");
	for (size_t i = 0; strncmp(policy_preset(i)->name, "linux-", 6) == 0; i++) {
		const char *name = policy_preset(i)->name;

		assert_choice(name, "accounting", "folio");
		assert_choice(name, "pinned", "ignore");
		assert_choice(name, "small_write", "keep");
		assert_choice(name, "write_lock", "inode");
		assert_choice(name, "max_order", "9");
		assert_choice(name, "flush_depth", "fixed");
	}
}

static void sluice_reads_the_debt(void **state)
{
	(void)state;
	assert_choice("sluice", "accounting", "debt");
	assert_choice("sluice", "pinned", "shed");
	assert_choice("sluice", "write_lock", "folio");
	assert_choice("sluice", "writeout", "block");
	assert_choice("sluice", "readahead", "file-order");
	assert_choice("sluice", "dontcache", "own");
	assert_choice("sluice", "flush_depth", "adaptive");
}

#define VALUES_MAX 11

static size_t split_values(size_t key, char copy[64], char *out[VALUES_MAX])
{
	size_t count = 0;
	char *rest = copy;

	assert_true(strlen(policy_values(key)) < 64);
	strcpy(copy, policy_values(key));
	for (char *v; (v = strsep(&rest, "|"));) {
		assert_true(count < VALUES_MAX);
		out[count++] = v;
	}
	return count;
}

/* Every value a key claims to take can be set, is printed back and has its own sentence. */
static void every_value_can_be_set_and_is_explained(void **state)
{
	char copy[64], buf[16], *values[VALUES_MAX];

	(void)state;
	for (size_t key = 0; policy_key(key); key++) {
		size_t count = split_values(key, copy, values);
		const char *seen[VALUES_MAX];

		assert_true(count >= 2);
		assert_true(policy_has_key(policy_key(key)));
		for (size_t i = 0; i < count; i++) {
			struct policy p = *policy_find("linux-7.4");
			struct err e = { "" };

			assert_int_equal(policy_set(&p, policy_key(key), values[i], &e), 0);
			assert_string_equal(e.text, "");
			assert_string_equal(policy_value(&p, key, buf), values[i]);
			seen[i] = policy_meaning(&p, key);
			for (size_t j = 0; j < i; j++)
				assert_string_not_equal(seen[i], seen[j]);
		}
	}
	assert_null(policy_key(19));
	assert_null(policy_values(19));
}

static void values_land_in_their_fields(void **state)
{
	struct policy p = *policy_find("linux-7.4");

	(void)state;
	assert_int_equal(policy_set(&p, "accounting", "page", NULL), 0);
	assert_int_equal(policy_set(&p, "small_write", "evict", NULL), 0);
	assert_int_equal(policy_set(&p, "max_order", "4", NULL), 0);
	assert_int_equal(p.accounting, ACCOUNT_PAGE);
	assert_int_equal(p.small_write, SMALL_WRITE_EVICT);
	assert_int_equal(p.max_order, 4);
	assert_int_equal(p.readahead, READAHEAD_FILE_ORDER);
	assert_int_equal(p.write_lock, WRITE_LOCK_INODE);
}

static void assert_refused(const char *key, const char *value, const char *text)
{
	struct policy p = *policy_find("linux-6.12");
	struct err e = { "" };

	assert_int_equal(policy_set(&p, key, value, &e), -EINVAL);
	assert_string_equal(e.text, text);
	assert_memory_equal(&p, policy_find("linux-6.12"), sizeof(p));
}

static void wrong_choices_are_refused_with_the_right_ones(void **state)
{
	(void)state;
	assert_refused("accounting", "pages",
		       "accounting cannot be \"pages\", only folio|page|debt");
	assert_refused("max_order", "10", "max_order cannot be \"10\", only 0|1|2|3|4|5|6|7|8|9");
	assert_refused("max_order", "-1", "max_order cannot be \"-1\", only 0|1|2|3|4|5|6|7|8|9");
	assert_refused("readahead", "", "readahead cannot be \"\", only mark-order|file-order");
	assert_refused("acounting", "page",
		       "unknown policy key \"acounting\"; did you mean \"accounting\"?");
	assert_refused("name", "x", "unknown policy key \"name\"");
	assert_false(policy_has_key("name"));
}

static void labels_name_the_preset_and_its_changes(void **state)
{
	struct policy p = *policy_find("linux-7.4");
	char buf[256], small[16];

	(void)state;
	assert_string_equal(policy_label(&p, buf, sizeof(buf)), "linux-7.4");
	assert_int_equal(policy_set(&p, "accounting", "page", NULL), 0);
	assert_string_equal(policy_label(&p, buf, sizeof(buf)), "linux-7.4 accounting=page");
	assert_int_equal(policy_set(&p, "max_order", "4", NULL), 0);
	assert_string_equal(policy_label(&p, buf, sizeof(buf)),
			    "linux-7.4 accounting=page max_order=4");
	assert_string_equal(policy_label(&p, small, sizeof(small)), "linux-7.4 accou");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(presets_stand_in_order_of_release),
		cmocka_unit_test(releases_differ_where_linux_did),
		cmocka_unit_test(sluice_reads_the_debt),
		cmocka_unit_test(every_value_can_be_set_and_is_explained),
		cmocka_unit_test(values_land_in_their_fields),
		cmocka_unit_test(wrong_choices_are_refused_with_the_right_ones),
		cmocka_unit_test(labels_name_the_preset_and_its_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
