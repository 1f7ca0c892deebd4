/* SPDX-License-Identifier: MIT */
/* Small machines, looked at after every operation; from one task on memory to many on disks. */
#include "property.h"

static const struct prop_profile one_task = {
	.name = "one-task",
	.runs = 100,
	.steps = 1000,
	.tasks = { 1, 1 },
	.files = { 1, 2 },
	.noise = { 0, 0 },
	.devices = { 1, 1 },
	.memory_pages = { 256, 2048 },
	.file_bytes = { 16 << 10, 1 << 20 },
	.op_bytes = { 4 << 10, 128 << 10 },
	.dirty_pages = { 4, 128 },
	.audit_every = 1,
	.only_memory = true,
};

static void test_one_task(void **state)
{
	(void)state;
	prop_run(&one_task);
}

static const struct prop_profile tasks = {
	.name = "tasks",
	.runs = 200,
	.steps = 1000,
	.tasks = { 2, 8 },
	.files = { 1, 4 },
	.noise = { 0, 0 },
	.devices = { 1, 2 },
	.memory_pages = { 512, 4096 },
	.file_bytes = { 16 << 10, 1 << 20 },
	.op_bytes = { 4 << 10, 128 << 10 },
	.dirty_pages = { 4, 256 },
	.audit_every = 1,
};

static void test_tasks(void **state)
{
	(void)state;
	prop_run(&tasks);
}

static const struct prop_profile noise = {
	.name = "noise",
	.runs = 200,
	.steps = 1000,
	.tasks = { 1, 4 },
	.files = { 1, 3 },
	.noise = { 1, 3 },
	.devices = { 1, 3 },
	.memory_pages = { 512, 4096 },
	.file_bytes = { 16 << 10, 1 << 20 },
	.op_bytes = { 4 << 10, 128 << 10 },
	.dirty_pages = { 4, 256 },
	.audit_every = 1,
};

static void test_noise(void **state)
{
	(void)state;
	prop_run(&noise);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_task),
		cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_noise),
	};

	return cmocka_run_group_tests_name("property", tests, NULL, NULL);
}
