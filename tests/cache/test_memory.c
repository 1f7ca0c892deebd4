// SPDX-License-Identifier: MIT
/* Memory of the system: how much of it is taken, measured by the system's own books. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "cache/memory.h"
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MIB (1ull << 20)

/* Pages of the range that are in memory. */
static u64 in_memory(const struct memory *m, u64 from, u64 bytes)
{
	static unsigned char map[16384];
	u64 n = 0;

	assert_true(bytes >> PAGE_SHIFT <= sizeof(map));
	assert_int_equal(mincore(m->base + from, bytes, map), 0);
	for (u64 i = 0; i < bytes >> PAGE_SHIFT; i++)
		n += map[i] & 1;
	return n;
}

static bool system_grants_huge_pages(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	char line[64] = "";

	if (f && !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	return strstr(line, "[always]") || strstr(line, "[madvise]");
}

static void test_memory_comes_with_use_and_no_more_than_asked(void **state)
{
	enum huge_pages kinds[] = { HUGE_AUTO, HUGE_NEVER };
	u64 bytes = 33 * MIB + 5 * PAGE_SIZE; /* no multiple of a huge page */

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct memory m;
		u64 tail = round_down(bytes, HUGE_PAGE_BYTES);

		assert_int_equal(memory_init(&m, bytes, 64 * MIB, kinds[i]), 0);
		assert_int_equal((uintptr_t)m.base % HUGE_PAGE_BYTES, 0);
		assert_int_equal(in_memory(&m, 0, 64 * MIB), 0);
		memset(m.base, 1, bytes);
		assert_int_equal(in_memory(&m, 0, 64 * MIB), div_roundup(bytes, PAGE_SIZE));
		assert_int_equal(memory_use(&m).resident_bytes, bytes);
		assert_true(memory_use(&m).huge_bytes <= tail);
		memory_finish(&m);
	}
}

static void test_huge_pages_where_granted(void **state)
{
	struct memory m;

	(void)state;
	assert_int_equal(memory_init(&m, 16 * MIB, 16 * MIB, HUGE_NEVER), 0);
	memset(m.base, 1, 16 * MIB);
	assert_int_equal(memory_use(&m).huge_bytes, 0);
	memory_finish(&m);
	if (!system_grants_huge_pages()) {
		print_message("# skip: the system grants no transparent huge pages\n");
		skip();
	}
	assert_int_equal(memory_init(&m, 16 * MIB, 16 * MIB, HUGE_AUTO), 0);
	memset(m.base, 1, 16 * MIB);
	/* how many depends on how fragmented memory is; what is told is true */
	assert_int_equal(memory_use(&m).huge_bytes % HUGE_PAGE_BYTES, 0);
	assert_true(memory_use(&m).huge_bytes <= 16 * MIB);
	assert_int_equal(memory_use(&m).resident_bytes, 16 * MIB);
	memory_finish(&m);
}

static u64 huge_pages_set_aside(void)
{
	unsigned long long n = 0, kb = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "HugePages_Free: %llu", &n) != 1)
			sscanf(line, "Hugepagesize: %llu", &kb);
	if (f)
		fclose(f);
	return kb << 10 == HUGE_PAGE_BYTES ? n : 0;
}

/* With `always` there is memory on pages set aside, or none. */
static void test_set_aside_pages_or_none(void **state)
{
	u64 there = huge_pages_set_aside();
	struct memory m;

	(void)state;
	assert_int_equal(memory_init(&m, (there + 4) * HUGE_PAGE_BYTES,
				     (there + 4) * HUGE_PAGE_BYTES, HUGE_ALWAYS),
			 -ENOMEM);
	if (there < 2) {
		print_message("# skip: no huge pages are set aside (vm.nr_hugepages)\n");
		skip();
	}
	assert_int_equal(memory_init(&m, 5 * MIB, 5 * MIB, HUGE_ALWAYS), 0);
	memset(m.base, 1, 5 * MIB);
	assert_int_equal(memory_use(&m).huge_bytes, 4 * MIB);
	assert_int_equal(memory_use(&m).resident_bytes, 5 * MIB);
	memory_discard(&m, PAGE_SIZE, 4 * MIB); /* one whole huge page of it, and small ones */
	assert_int_equal(m.base[HUGE_PAGE_BYTES], 0);
	assert_int_equal(m.base[PAGE_SIZE], 1);
	memory_finish(&m);
}

static void test_what_is_discarded_reads_as_zeros_and_is_gone(void **state)
{
	struct memory m;

	(void)state;
	assert_int_equal(memory_init(&m, 8 * MIB, 16 * MIB, HUGE_AUTO), 0);
	memset(m.base, 7, 8 * MIB);
	memory_shrink(&m, 3 * MIB);
	memory_discard(&m, 3 * MIB, 5 * MIB);
	assert_int_equal(in_memory(&m, 0, 16 * MIB), 3 * MIB >> PAGE_SHIFT);
	assert_int_equal(m.base[3 * MIB - 1], 7);
	assert_int_equal(m.base[3 * MIB], 0); /* still mapped */
	assert_int_equal(memory_grow(&m, 16 * MIB), 0);
	memset(m.base, 9, 16 * MIB);
	assert_int_equal(memory_use(&m).resident_bytes, 16 * MIB);
	memory_finish(&m);
}

static void test_addresses_that_cannot_be_had(void **state)
{
	struct memory m;

	(void)state;
	assert_int_equal(memory_init(&m, PAGE_SIZE, 1ull << 52, HUGE_AUTO), -ENOMEM);
	memory_finish(&m); /* allowed, and does nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_comes_with_use_and_no_more_than_asked),
		cmocka_unit_test(test_huge_pages_where_granted),
		cmocka_unit_test(test_set_aside_pages_or_none),
		cmocka_unit_test(test_what_is_discarded_reads_as_zeros_and_is_gone),
		cmocka_unit_test(test_addresses_that_cannot_be_had),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
