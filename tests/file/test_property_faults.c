/* SPDX-License-Identifier: MIT */
/* Devices that fail for a while; and many syncs of the same files. */
#include "property.h"

static const struct prop_profile faults = {
	.name = "faults",
	.runs = 200,
	.steps = 1000,
	.tasks = { 1, 6 },
	.files = { 1, 4 },
	.noise = { 0, 2 },
	.devices = { 1, 3 },
	.memory_pages = { 128, 2048 },
	.file_bytes = { 16 << 10, 1 << 20 },
	.op_bytes = { 4 << 10, 128 << 10 },
	.dirty_pages = { 4, 256 },
	.audit_every = 1,
	.faults = true,
};

static void test_faults(void **state)
{
	(void)state;
	prop_run(&faults);
}

static const struct prop_profile syncing = {
	.name = "syncing",
	.runs = 200,
	.steps = 1000,
	.tasks = { 2, 8 },
	.files = { 1, 2 },
	.noise = { 0, 3 },
	.devices = { 1, 1 },
	.memory_pages = { 256, 1024 },
	.file_bytes = { 8 << 10, 128 << 10 },
	.op_bytes = { 4 << 10, 32 << 10 },
	.dirty_pages = { 4, 256 },
	.audit_every = 1,
	.fsync_often = true,
};

static void test_syncing(void **state)
{
	(void)state;
	prop_run(&syncing);
}

static const struct prop_profile failing_syncs = {
	.name = "failing-syncs",
	.runs = 200,
	.steps = 1000,
	.tasks = { 2, 8 },
	.files = { 1, 2 },
	.noise = { 0, 3 },
	.devices = { 1, 1 },
	.memory_pages = { 256, 1024 },
	.file_bytes = { 8 << 10, 128 << 10 },
	.op_bytes = { 4 << 10, 32 << 10 },
	.dirty_pages = { 4, 256 },
	.audit_every = 1,
	.faults = true,
	.fsync_often = true,
};

static void test_failing_syncs(void **state)
{
	(void)state;
	prop_run(&failing_syncs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_syncing),
		cmocka_unit_test(test_failing_syncs),
	};

	return cmocka_run_group_tests_name("property_faults", tests, NULL, NULL);
}
