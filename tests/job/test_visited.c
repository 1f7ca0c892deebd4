/* SPDX-License-Identifier: MIT */
/* The set of visited blocks, held against an array of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rng.h"
#include "job/visited.h"
#include <stdlib.h>

static u64 next_free(const u8 *taken, u64 count, u64 from)
{
	while (taken[from])
		from = (from + 1) % count;
	return from;
}

/* Takes runs of up to `most` blocks until all are visited, twice. */
static void visit_all(u64 count, u64 most)
{
	struct visited v;
	struct rng r;

	rng_init(&r, count);
	assert_int_equal(visited_init(&v, count), 0);
	for (int pass = 0; pass < 2; pass++) {
		u8 *taken = calloc(count, 1);
		u64 left = count;

		assert_non_null(taken);
		while (left) {
			u64 drawn = rng_below(&r, count), wanted = 1 + rng_below(&r, most);
			u64 at = visited_next_free(&v, drawn), got = 0;

			assert_int_equal(at, next_free(taken, count, drawn));
			while (got < wanted && at + got < count && !taken[at + got])
				taken[at + got++] = 1;
			assert_int_equal(visited_take(&v, at, wanted), got);
			assert_int_equal(visited_take(&v, at, wanted), 0);
			left -= got;
			assert_int_equal(v.left, left);
		}
		free(taken);
		visited_clear(&v);
		assert_int_equal(v.left, count);
	}
	visited_finish(&v);
}

static void all_blocks_are_found_once(void **state)
{
	static const u64 counts[] = { 1, 2, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 8191 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		visit_all(counts[i], 1);
		visit_all(counts[i], 200);
	}
	visit_all(262144, 5000); /* four levels begin above */
	visit_all(262145, 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_blocks_are_found_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
