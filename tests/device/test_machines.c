// SPDX-License-Identifier: MIT
/* The example machines' device sections are read, and a device can be made of each. */
#include "rig.h"
#include <stdio.h>

static const struct {
	const char *file, *name, *model;
} machines[] = {
	{ "slowdev", "slowdev", "rate" },
	{ "io2", "io2", "ebs" },
	{ "nvme", "nvme", "nvme" },
};

static void create(void *arg)
{
	struct device *d;

	assert_int_equal(device_create(arg, &d), 0);
	device_destroy(d);
}

static void test_examples(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		struct device_config c;
		struct err e = { "" };
		char path[4096];
		struct ini ini;

		snprintf(path, sizeof(path), SOURCE_ROOT "/machines/%s.ini", machines[i].file);
		assert_int_equal(ini_load(&ini, path, &e), 0);
		device_config_read(&c, &ini, ini_section(&ini, "device"), &e);
		assert_string_equal(e.text, "");
		assert_string_equal(c.name, machines[i].name);
		assert_string_equal(c.model, machines[i].model);
		rig_run(create, &c);
		ini_finish(&ini);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_examples) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
