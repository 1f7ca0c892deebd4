/* SPDX-License-Identifier: MIT */
/* Words of bits, at their edges; and the lists. */
#include "base/bits.h"
#include "base/list.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void masks_and_positions(void **state)
{
	(void)state;
	assert_int_equal(bits_mask(0, 0), 0);
	assert_int_equal(bits_mask(63, 0), 0);
	assert_int_equal(bits_mask(0, 64), ~0ull);
	assert_int_equal(bits_mask(63, 1), 1ull << 63);
	assert_int_equal(bits_mask(4, 8), 0xff0);
	for (unsigned first = 0; first < 64; first++) {
		for (unsigned n = 1; n <= 64 - first; n++) {
			u64 w = bits_mask(first, n);

			assert_int_equal(bits_count(w), n);
			assert_int_equal(bits_first(w), first);
			assert_int_equal(bits_last(w), first + n - 1);
			assert_int_equal(bits_run(w, first), n);
			assert_int_equal(bits_run(~w, first), 0);
		}
	}
	assert_int_equal(bits_run(0xf0f0, 5), 3);
	assert_int_equal(bits_run(~0ull, 63), 1);
}

static void powers_and_rounding(void **state)
{
	(void)state;
	assert_int_equal(ilog2(1), 0);
	assert_int_equal(ilog2(UINT64_MAX), 63);
	assert_int_equal(roundup_pow2(1), 1);
	assert_int_equal(roundup_pow2(2), 2);
	assert_int_equal(roundup_pow2(3), 4);
	assert_int_equal(roundup_pow2((1ull << 62) + 1), 1ull << 63);
	assert_int_equal(div_roundup(0, 5), 0);
	assert_int_equal(div_roundup(10, 5), 2);
	assert_int_equal(div_roundup(11, 5), 3);
	assert_int_equal(div_roundup(UINT64_MAX, 2), 1ull << 63);
	assert_int_equal(round_down(4097, 4096), 4096);
	assert_int_equal(round_up(4097, 4096), 8192);
	assert_int_equal(round_up(8192, 4096), 8192);
}

struct item {
	int number;
	struct list_node node;
};

/* The numbers in list order as one decimal number: 1, 2, 3 is 123. */
static int spelled(struct list_node *head)
{
	struct list_node *n;
	int all = 0;

	list_for_each (n, head)
		all = all * 10 + list_entry(n, struct item, node)->number;
	return all;
}

static void lists(void **state)
{
	struct item items[5];
	struct list_node a, b, *n, *tmp;

	(void)state;
	list_init(&a);
	list_init(&b);
	assert_true(list_empty(&a));
	for (int i = 0; i < 5; i++) {
		items[i].number = i + 1;
		list_init(&items[i].node);
	}
	list_add_tail(&a, &items[0].node);
	list_add_tail(&a, &items[1].node);
	list_add(&a, &items[2].node);
	assert_int_equal(spelled(&a), 312);
	list_add_tail(&b, &items[3].node);
	list_add_tail(&b, &items[4].node);
	list_splice(&a, &b);
	assert_true(list_empty(&b));
	assert_int_equal(spelled(&a), 45312);
	list_splice(&a, &b); /* nothing to move */
	assert_int_equal(spelled(&a), 45312);
	list_del(&items[2].node);
	assert_true(list_empty(&items[2].node));
	assert_int_equal(spelled(&a), 4512);
	list_for_each_safe (n, tmp, &a)
		if (list_entry(n, struct item, node)->number % 2 == 0)
			list_del(n);
	assert_int_equal(spelled(&a), 51);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(masks_and_positions),
		cmocka_unit_test(powers_and_rounding),
		cmocka_unit_test(lists),
	};

	return cmocka_run_group_tests_name("bits", tests, NULL, NULL);
}
