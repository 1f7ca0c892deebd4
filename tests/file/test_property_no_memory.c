/* SPDX-License-Identifier: MIT */
/* Memory refused for a while: operations fail, but nothing is lost and nothing leaks. */
#include "property.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t border, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t border, size_t size);

/* The linker sends all allocations here (--wrap). */
void *__wrap_malloc(size_t size)
{
	return prop_refuses() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return prop_refuses() ? NULL : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t border, size_t size)
{
	return prop_refuses() ? NULL : __real_aligned_alloc(border, size);
}

static const struct prop_profile no_memory = {
	.name = "no-memory",
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
	.refusals = true,
};

static void test_no_memory(void **state)
{
	(void)state;
	prop_run(&no_memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("property_no_memory", tests, NULL, NULL);
}
