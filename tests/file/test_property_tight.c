/* SPDX-License-Identifier: MIT */
/* Less memory than is asked for, tiny limits; and operations of some MiB. */
#include "property.h"

static const struct prop_profile tight = {
	.name = "tight",
	.runs = 200,
	.steps = 1000,
	.tasks = { 1, 6 },
	.files = { 1, 4 },
	.noise = { 0, 2 },
	.devices = { 1, 3 },
	.memory_pages = { 64, 512 },
	.file_bytes = { 64 << 10, 4 << 20 },
	.op_bytes = { 4 << 10, 512 << 10 },
	.dirty_pages = { 1, 64 },
	.audit_every = 1,
};

static void test_tight(void **state)
{
	(void)state;
	prop_run(&tight);
}

static const struct prop_profile large = {
	.name = "large",
	.runs = 60,
	.steps = 500,
	.tasks = { 1, 4 },
	.files = { 1, 3 },
	.noise = { 0, 2 },
	.devices = { 1, 3 },
	.memory_pages = { 512, 8192 },
	.file_bytes = { 1 << 20, 16 << 20 },
	.op_bytes = { 256 << 10, 4 << 20 },
	.dirty_pages = { 64, 4096 },
	.audit_every = 16,
};

static void test_large(void **state)
{
	(void)state;
	prop_run(&large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tight),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests_name("property_tight", tests, NULL, NULL);
}
