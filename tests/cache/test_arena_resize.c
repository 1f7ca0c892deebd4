// SPDX-License-Identifier: MIT
/* An arena that grows and shrinks while its frames are in use, against an array of owners. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "cache/arena.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

struct owned {
	u32 frame;
	unsigned order;
	u8 mark;
};

struct model {
	struct arena a;
	struct owned *owned;
	u32 count, used, max;
	struct rng r;
};

static void stamp(struct model *m, const struct owned *o)
{
	if (m->a.memory)
		for (u32 i = 0; i < 1u << o->order; i++)
			memset(arena_bytes(&m->a, o->frame + i), o->mark, PAGE_SIZE);
}

static void expect_stamp(struct model *m, const struct owned *o)
{
	for (u32 i = 0; m->a.memory && i < 1u << o->order; i++) {
		const u8 *bytes = arena_bytes(&m->a, o->frame + i);

		assert_int_equal(bytes[0], o->mark);
		assert_int_equal(bytes[PAGE_SIZE - 1], o->mark);
	}
}

static void take(struct model *m)
{
	unsigned order = (unsigned)rng_below(&m->r, rng_below(&m->r, ARENA_ORDERS) + 1);
	u32 frame = arena_alloc(&m->a, order);
	struct owned *o = &m->owned[m->count];

	if (frame == ARENA_NONE)
		return;
	assert_true(frame + (1u << order) <= arena_frames(&m->a));
	*o = (struct owned){ frame, order, (u8)(1 + rng_below(&m->r, 255)) };
	stamp(m, o);
	m->count++;
	m->used += 1u << order;
}

static void give(struct model *m, u32 k)
{
	struct owned o = m->owned[k];

	expect_stamp(m, &o);
	arena_free(&m->a, o.frame, o.order);
	m->used -= 1u << o.order;
	m->owned[k] = m->owned[--m->count];
}

/* Frames past the end that the owners hold, and the same below it. */
static void expect_counts(struct model *m)
{
	u32 end = arena_frames(&m->a), stuck = 0;

	for (u32 k = 0; k < m->count; k++)
		for (u32 i = 0; i < 1u << m->owned[k].order; i++)
			stuck += m->owned[k].frame + i >= end;
	assert_int_equal(arena_stuck(&m->a), stuck);
	assert_int_equal(arena_free_frames(&m->a), end - (m->used - stuck));
	assert_true(arena_is_valid(&m->a));
}

static void churn(u32 max, bool contents, u64 seed, unsigned steps)
{
	struct model m = { .max = max, .owned = calloc(max, sizeof(struct owned)) };

	rng_init(&m.r, seed);
	assert_int_equal(arena_init(&m.a, &(struct arena_config){ .frames = max / 2 + 1,
								  .max_frames = max,
								  .contents = contents }),
			 0);
	for (unsigned i = 0; i < steps; i++) {
		u64 dice = rng_below(&m.r, 100);

		if (dice < 5)
			assert_int_equal(arena_resize(&m.a, 1 + (u32)rng_below(&m.r, max)), 0);
		else if (dice < 50 && m.count)
			give(&m, (u32)rng_below(&m.r, m.count));
		else
			take(&m);
		if (i % 8 == 0)
			expect_counts(&m);
	}
	/* frames that went back to the system are in memory no more */
	if (contents && m.count == 0)
		assert_true(memory_use(&m.a.ram).resident_bytes <= (u64)arena_frames(&m.a)
									   << PAGE_SHIFT);
	while (m.count)
		give(&m, m.count - 1);
	expect_counts(&m);
	assert_int_equal(arena_free_frames(&m.a), arena_frames(&m.a));
	if (contents)
		assert_true(memory_use(&m.a.ram).resident_bytes <= (u64)arena_frames(&m.a)
									   << PAGE_SHIFT);
	arena_finish(&m.a);
	free(m.owned);
}

static void test_random_resizing_in_use(void **state)
{
	static const u32 sizes[] = { 2, 63, 512, 1000, 1537, 3000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		churn(sizes[i], false, 10 + i, 4000);
		churn(sizes[i], true, 20 + i, 1000);
	}
}

static void test_a_run_across_the_new_end_is_cut(void **state)
{
	struct arena a;

	(void)state;
	assert_int_equal(arena_init(&a, &(struct arena_config){ .frames = 16 }), 0);
	assert_int_equal(arena_resize(&a, 7), 0); /* one free run of 16 becomes 4, 2 and 1 */
	assert_true(arena_is_valid(&a));
	assert_int_equal(arena_free_frames(&a), 7);
	assert_int_equal(arena_alloc(&a, 0), 6);
	assert_int_equal(arena_alloc(&a, 1), 4);
	assert_int_equal(arena_alloc(&a, 2), 0);
	assert_int_equal(arena_alloc(&a, 0), ARENA_NONE);
	assert_int_equal(arena_resize(&a, 16), 0);
	assert_int_equal(arena_free_frames(&a), 9);
	assert_int_equal(arena_alloc(&a, 3), 8);
	assert_int_equal(arena_resize(&a, 10), 0); /* in the midst of the run just taken */
	assert_int_equal(arena_stuck(&a), 6);
	arena_free(&a, 8, 3);
	assert_int_equal(arena_stuck(&a), 0);
	assert_int_equal(arena_free_frames(&a), 3); /* 7, 8 and 9 */
	assert_true(arena_is_valid(&a));
	arena_finish(&a);
}

static void test_a_stuck_frame_is_an_ordinary_one_after_growing_again(void **state)
{
	struct arena a;

	(void)state;
	assert_int_equal(arena_init(&a, &(struct arena_config){ .frames = 8, .contents = true }),
			 0);
	for (u32 i = 0; i < 8; i++)
		assert_int_equal(arena_alloc(&a, 0), i);
	*(u8 *)arena_bytes(&a, 6) = 42;
	arena_free(&a, 5, 0);
	assert_int_equal(arena_resize(&a, 4), 0);
	assert_int_equal(arena_stuck(&a), 3);
	assert_int_equal(arena_free_frames(&a), 0);
	assert_int_equal(arena_resize(&a, 8), 0);
	assert_int_equal(arena_stuck(&a), 0);
	assert_int_equal(arena_free_frames(&a), 1);
	assert_int_equal(*(u8 *)arena_bytes(&a, 6), 42);
	for (u32 i = 0; i < 8; i++)
		if (i != 5)
			arena_free(&a, i, 0);
	assert_int_equal(arena_free_frames(&a), 8);
	assert_true(arena_is_valid(&a));
	arena_finish(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_resizing_in_use),
		cmocka_unit_test(test_a_run_across_the_new_end_is_cut),
		cmocka_unit_test(test_a_stuck_frame_is_an_ordinary_one_after_growing_again),
	};

	return cmocka_run_group_tests_name("arena_resize", tests, NULL, NULL);
}
