// SPDX-License-Identifier: MIT
/* A map that is refused memory: whichever allocation fails, nothing that was written changes. */
#include "device/map.h"
#include "rig.h"
#include <errno.h>
#include <stdlib.h>

static unsigned calls, fail_at; /* the call of calloc that fails, from 1; 0: none */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

/* The linker sends the map's allocations here (--wrap). */
void *__wrap_calloc(size_t n, size_t size)
{
	return ++calls == fail_at ? NULL : __real_calloc(n, size);
}

static int reserve(struct map *m, u64 page, u64 n, unsigned fail)
{
	int error;

	calls = 0;
	fail_at = fail;
	error = map_reserve(m, page, n, true);
	fail_at = 0;
	return error;
}

/* One page with bytes, at the front: a single leaf. */
static void start(struct map *m)
{
	*m = (struct map){ 0 };
	assert_int_equal(reserve(m, 5, 1, 0), 0);
	map_set(m, 5, 1);
	memset(map_bytes(m, 5), 7, PAGE_SIZE);
}

static void check_start(const struct map *m)
{
	assert_true(map_any(m, 5, 1));
	assert_false(map_any(m, 0, 5));
	assert_false(map_any(m, 6, ~0ull));
	for (unsigned i = 0; i < PAGE_SIZE; i++)
		assert_int_equal(map_bytes(m, 5)[i], 7);
}

static void test_no_memory_no_change(void **state)
{
	/* Into the next leaf; far away (the tree grows to its full height). */
	static const u64 pages[] = { 510, MAP_PAGES_MAX - 4 };
	struct map m;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(pages); i++) {
		unsigned fail = 1;

		for (;; fail++) {
			start(&m);
			if (!reserve(&m, pages[i], 4, fail))
				break;
			assert_int_equal(calls, fail);
			check_start(&m);
			/* And it can be tried again. */
			assert_int_equal(reserve(&m, pages[i], 4, 0), 0);
			map_set(&m, pages[i], 4);
			assert_true(map_any(&m, pages[i] + 3, 1));
			map_clear(&m, pages[i], 4);
			check_start(&m);
			map_clear(&m, 0, MAP_PAGES_MAX);
			assert_null(m.root);
		}
		check_start(&m);
		/* Four pages and their tables at the least were refused once each. */
		assert_true(fail > 6);
		map_clear(&m, 0, MAP_PAGES_MAX);
		assert_null(m.root);
	}
}

static void test_nothing_is_kept_of_what_is_cleared(void **state)
{
	struct map m = { 0 };

	(void)state;
	assert_int_equal(map_reserve(&m, 0, 100000, false), 0);
	assert_false(map_any(&m, 0, 100000));
	map_set(&m, 0, 100000);
	assert_null(map_bytes(&m, 0));
	for (u64 page = 0; page < 100000; page += 1000) {
		assert_true(map_any(&m, page, ~0ull - page));
		map_clear(&m, page, 1000);
		assert_false(map_any(&m, 0, page + 1000));
	}
	assert_null(m.root);
	assert_int_equal(m.height, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_memory_no_change),
		cmocka_unit_test(test_nothing_is_kept_of_what_is_cleared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
