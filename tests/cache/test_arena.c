// SPDX-License-Identifier: MIT
/* The buddy allocator against an array that says who owns each frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "cache/arena.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* The lowest aligned run of free frames that a buddy allocator could give: from the smallest order
 * that has one. */
static u32 model_lowest(const u8 *taken, u32 frames, unsigned order)
{
	for (unsigned o = order; o < ARENA_ORDERS; o++) {
		for (u32 run = 0; (run + 1ull) << o <= frames; run++) {
			u32 first = run << o, up = o + 1 < ARENA_ORDERS ? 2u << o : 1u << o;
			bool free_run = true, free_parent = o + 1 < ARENA_ORDERS;

			for (u32 i = 0; i < 1u << o; i++)
				free_run = free_run && !taken[first + i];
			/* part of a larger free run: that is where it is kept */
			first -= first % up;
			if (first + up > frames)
				free_parent = false;
			for (u32 i = 0; i < up && free_parent; i++)
				free_parent = !taken[first + i];
			if (free_run && !free_parent)
				return run << o;
		}
	}
	return ARENA_NONE;
}

static void own(u8 *taken, u32 frame, unsigned order, u8 value)
{
	for (u32 i = 0; i < 1u << order; i++) {
		assert_int_equal(taken[frame + i], !value);
		taken[frame + i] = value;
	}
}

/* Every size of a small arena, every order: how many runs fit, and that nothing is lost. */
static void test_every_small_arena_gives_all_its_frames(void **state)
{
	(void)state;
	for (u32 frames = 1; frames <= 130; frames++) {
		for (unsigned order = 0; order <= 7; order++) {
			u32 runs = frames >> order;
			u8 taken[130] = { 0 };
			struct arena a;

			assert_int_equal(arena_init(&a, &(struct arena_config){ .frames = frames }),
					 0);
			assert_true(arena_is_valid(&a));
			assert_int_equal(arena_free_frames(&a), frames);
			for (u32 i = 0; i < runs; i++) {
				u32 frame = arena_alloc(&a, order);

				assert_int_equal(frame % (1u << order), 0);
				own(taken, frame, order, 1);
			}
			assert_int_equal(arena_alloc(&a, order), ARENA_NONE);
			assert_int_equal(arena_free_frames(&a), frames - (runs << order));
			for (u32 i = 0; i < runs; i++)
				arena_free(&a, i << order, order);
			assert_int_equal(arena_free_frames(&a), frames);
			assert_true(arena_is_valid(&a));
			arena_finish(&a);
		}
	}
}

/* Eight single frames, given back in this order, become one run of eight. */
static void free_in_order(struct arena *a, const u32 *frames)
{
	for (u32 i = 0; i < 8; i++)
		assert_int_equal(arena_alloc(a, 0), i);
	assert_int_equal(arena_alloc(a, 0), ARENA_NONE);
	for (u32 i = 0; i < 8; i++)
		arena_free(a, frames[i], 0);
	assert_int_equal(a->free_runs[3], 1);
	for (unsigned o = 0; o < 3; o++)
		assert_int_equal(a->free_runs[o], 0);
}

/* All orders of n frames (Heap, "Permutations by interchanges", 1963). */
static void permute(struct arena *a, u32 *frames, u32 n)
{
	if (n == 1)
		free_in_order(a, frames);
	for (u32 i = 0; n > 1 && i < n; i++) {
		u32 k = n % 2 ? 0 : i, other;

		permute(a, frames, n - 1);
		other = frames[k];
		frames[k] = frames[n - 1];
		frames[n - 1] = other;
	}
}

static void test_buddies_join_in_any_order(void **state)
{
	u32 frames[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	struct arena a;

	(void)state;
	assert_int_equal(arena_init(&a, &(struct arena_config){ .frames = 8 }), 0);
	permute(&a, frames, 8);
	arena_finish(&a);
}

/* 1023 = 512 - 1 + 512: orders 9, 8, ..., 0 each once, at the right places. */
static void test_an_odd_size_is_one_run_of_each_order(void **state)
{
	struct arena a;
	u32 at = 0;

	(void)state;
	assert_int_equal(arena_init(&a, &(struct arena_config){ .frames = 1023 }), 0);
	for (unsigned o = ARENA_ORDERS; o-- > 0;) {
		assert_int_equal(a.free_runs[o], 1);
		assert_int_equal(arena_alloc(&a, o), at);
		at += 1u << o;
	}
	assert_int_equal(at, 1023);
	assert_int_equal(arena_free_frames(&a), 0);
	/* the last frame's buddy, 1023, does not exist */
	arena_free(&a, 1022, 0);
	assert_int_equal(arena_alloc(&a, 1), ARENA_NONE);
	assert_int_equal(arena_alloc(&a, 0), 1022);
	at = 0;
	for (unsigned o = ARENA_ORDERS; o-- > 0; at += 1u << o)
		arena_free(&a, at, o);
	for (unsigned o = 0; o < ARENA_ORDERS; o++)
		assert_int_equal(a.free_runs[o], 1);
	arena_finish(&a);
}

/* Nothing larger than order 9 is ever made: 2048 frames are four runs. */
static void test_the_largest_order_does_not_join(void **state)
{
	struct arena a;

	(void)state;
	assert_int_equal(arena_init(&a, &(struct arena_config){ .frames = 2048 }), 0);
	assert_int_equal(a.free_runs[ARENA_MAX_ORDER], 4);
	for (u32 i = 0; i < 2048; i++)
		assert_int_equal(arena_alloc(&a, 0), i);
	for (u32 i = 2048; i-- > 0;)
		arena_free(&a, i, 0);
	assert_int_equal(a.free_runs[ARENA_MAX_ORDER], 4);
	for (unsigned o = 0; o < ARENA_MAX_ORDER; o++)
		assert_int_equal(a.free_runs[o], 0);
	arena_finish(&a);
}

/* The smallest run that will do is cut, and of those the lowest; its lower half is used. */
static void test_the_smallest_lowest_run_is_cut(void **state)
{
	struct arena a;

	(void)state;
	assert_int_equal(arena_init(&a, &(struct arena_config){ .frames = 64 }), 0);
	assert_int_equal(arena_alloc(&a, 4), 0);  /* 0..15; free: 16..31, 32..63 */
	assert_int_equal(arena_alloc(&a, 5), 32); /* free: 16..31 */
	assert_int_equal(arena_alloc(&a, 1), 16); /* free: 18..19, 20..23, 24..31 */
	assert_int_equal(a.free_runs[1], 1);
	assert_int_equal(a.free_runs[2], 1);
	assert_int_equal(a.free_runs[3], 1);
	arena_free(&a, 0, 4);
	assert_int_equal(arena_alloc(&a, 0), 18); /* not 0: that would cut a run of 16 */
	assert_int_equal(arena_alloc(&a, 2), 20);
	assert_int_equal(arena_alloc(&a, 2), 24);
	assert_int_equal(arena_alloc(&a, 4), 0);
	arena_free(&a, 0, 4);
	arena_free(&a, 32, 5);
	arena_free(&a, 16, 1);
	arena_free(&a, 18, 0);
	arena_free(&a, 20, 2);
	arena_free(&a, 24, 2);
	assert_int_equal(a.free_runs[6], 1);
	arena_finish(&a);
}

struct owned {
	u32 frame;
	unsigned order;
};

static void churn(u32 frames, u64 seed, unsigned steps)
{
	struct owned *owned = calloc(frames, sizeof(*owned));
	u8 *taken = calloc(frames, 1);
	u32 count = 0, left = frames;
	struct arena a;
	struct rng r;

	rng_init(&r, seed);
	assert_int_equal(arena_init(&a, &(struct arena_config){ .frames = frames }), 0);
	for (unsigned i = 0; i < steps; i++) {
		if (count && rng_below(&r, 100) < 48) {
			u32 k = (u32)rng_below(&r, count);

			arena_free(&a, owned[k].frame, owned[k].order);
			own(taken, owned[k].frame, owned[k].order, 0);
			left += 1u << owned[k].order;
			owned[k] = owned[--count];
		} else {
			unsigned order = (unsigned)rng_below(&r, ARENA_ORDERS);
			u32 frame;

			order = (unsigned)rng_below(&r, order + 1); /* small ones more often */
			frame = arena_alloc(&a, order);
			assert_int_equal(frame, model_lowest(taken, frames, order));
			if (frame != ARENA_NONE) {
				assert_int_equal(frame % (1u << order), 0);
				assert_true(frame + (1u << order) <= frames);
				own(taken, frame, order, 1);
				owned[count++] = (struct owned){ frame, order };
				left -= 1u << order;
			}
		}
		assert_int_equal(arena_free_frames(&a), left);
		if (i % 16 == 0)
			assert_true(arena_is_valid(&a));
	}
	while (count--)
		arena_free(&a, owned[count].frame, owned[count].order);
	assert_true(arena_is_valid(&a));
	assert_int_equal(arena_free_frames(&a), frames);
	arena_finish(&a);
	free(taken);
	free(owned);
}

static void test_random_use_against_an_array_of_owners(void **state)
{
	static const u32 sizes[] = { 1, 3, 64, 65, 511, 513, 1000, 1536, 2049 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		churn(sizes[i], 100 + i, 1500);
}

/* 2^26 frames are 256 GiB: three levels of summary. Only the ends are touched. */
static void test_a_large_arena(void **state)
{
	u32 frames = (1u << 26) + 7;
	struct arena a;

	(void)state;
	assert_int_equal(arena_init(&a, &(struct arena_config){ .frames = frames }), 0);
	assert_int_equal(arena_alloc(&a, 0), 1u << 26 | 6); /* the single frame at the end */
	assert_int_equal(arena_alloc(&a, 1), 1u << 26 | 4);
	assert_int_equal(arena_alloc(&a, 0), 1u << 26);
	assert_int_equal(arena_alloc(&a, 9), 0);
	assert_int_equal(arena_free_frames(&a), frames - 1 - 2 - 1 - 512);
	arena_free(&a, 1u << 26 | 6, 0);
	arena_free(&a, 1u << 26 | 4, 1);
	arena_free(&a, 1u << 26, 0);
	arena_free(&a, 0, 9);
	assert_int_equal(arena_free_frames(&a), frames);
	assert_int_equal(arena_alloc(&a, 9), 0);
	arena_free(&a, 0, 9);
	arena_finish(&a);
}

static void test_frames_have_bytes_of_their_own(void **state)
{
	struct arena a;
	u8 page[PAGE_SIZE];

	(void)state;
	assert_int_equal(arena_init(&a, &(struct arena_config){ .frames = 33, .contents = true }),
			 0);
	for (u32 i = 0; i < 33; i++)
		memset(arena_bytes(&a, i), (int)i + 1, PAGE_SIZE);
	for (u32 i = 0; i < 33; i++) {
		memset(page, (int)i + 1, PAGE_SIZE);
		assert_memory_equal(arena_bytes(&a, i), page, PAGE_SIZE);
	}
	arena_finish(&a);
}

/* What was freed last is at hand, up to so much; the rest is fetched. */
static void test_a_host_takes_free_frames_back(void **state)
{
	struct arena_config c = { .frames = 64, .ready = 8 };
	struct arena a;
	u32 first, second;

	(void)state;
	assert_int_equal(arena_init(&a, &c), 0);
	first = arena_alloc(&a, 2);
	assert_int_equal(arena_fetched(&a, 2), 0);
	second = arena_alloc(&a, 3);
	assert_int_equal(arena_fetched(&a, 3), 4); /* 4 of the 8 were left */
	arena_alloc(&a, 0);
	assert_int_equal(arena_fetched(&a, 0), 1);
	arena_free(&a, first, 2);
	arena_free(&a, second, 3); /* 12 were freed, 8 of them stay at hand */
	arena_alloc(&a, 4);
	assert_int_equal(arena_fetched(&a, 4), 8);
	arena_finish(&a);

	c.ready = 0; /* all stay at hand */
	assert_int_equal(arena_init(&a, &c), 0);
	arena_alloc(&a, 5);
	assert_int_equal(arena_fetched(&a, 5), 0);
	arena_finish(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_small_arena_gives_all_its_frames),
		cmocka_unit_test(test_buddies_join_in_any_order),
		cmocka_unit_test(test_an_odd_size_is_one_run_of_each_order),
		cmocka_unit_test(test_the_largest_order_does_not_join),
		cmocka_unit_test(test_the_smallest_lowest_run_is_cut),
		cmocka_unit_test(test_random_use_against_an_array_of_owners),
		cmocka_unit_test(test_a_large_arena),
		cmocka_unit_test(test_frames_have_bytes_of_their_own),
		cmocka_unit_test(test_a_host_takes_free_frames_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
