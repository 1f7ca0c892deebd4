/* SPDX-License-Identifier: MIT */
/* Read sections and what they keep from being freed, in the simulated world and with threads. */
#include "world/epoch.h"
#include "worlds.h"
#include <pthread.h>

struct piece {
	struct world_retired retired;
	_Atomic u32 freed;
};

static _Atomic u32 freed_count;

static void free_piece(struct world_retired *r)
{
	atomic_store(&container_of(r, struct piece, retired)->freed, 1);
	atomic_fetch_add(&freed_count, 1);
}

static void retire_many(struct piece *p, u32 n)
{
	for (u32 i = 0; i < n; i++)
		world_retire(&p[i].retired, free_piece);
}

static void in_sim(void *arg)
{
	struct piece p = { 0 };

	(void)arg;
	world_read_begin();
	world_read_begin();
	assert_true(world_is_reading());
	world_read_end();
	assert_true(world_is_reading());
	world_read_end();
	assert_false(world_is_reading());
	world_retire(&p.retired, free_piece);
	assert_int_equal(p.freed, 1);
	world_read_synchronize();
}

static void test_simulated_pieces_go_at_once(void **state)
{
	(void)state;
	run_in_sim(1, in_sim, NULL);
}

static void test_synchronize_frees_what_was_retired(void **state)
{
	struct piece p[10] = { 0 };

	(void)state;
	retire_many(p, 10);
	world_read_synchronize();
	for (u32 i = 0; i < 10; i++)
		assert_int_equal(p[i].freed, 1);
}

/* Without anybody waiting: garbage is at most what two epochs and a batch hold. */
static void test_garbage_goes_by_itself(void **state)
{
	struct piece *p = calloc(10000, sizeof(*p));
	u32 before = atomic_load(&freed_count);

	(void)state;
	retire_many(p, 10000);
	assert_true(atomic_load(&freed_count) - before >= 10000 - 3 * 64);
	world_read_synchronize();
	assert_int_equal(atomic_load(&freed_count) - before, 10000);
	free(p);
}

/* A thread that stays in a section until told otherwise. */
struct stayer {
	_Atomic u32 inside, leave;
	struct piece *watched;
	u32 freed_inside;
};

static void *stay(void *arg)
{
	struct stayer *s = arg;

	world_read_begin();
	atomic_store(&s->inside, 1);
	while (!atomic_load(&s->leave))
		sched_yield();
	s->freed_inside = atomic_load(&s->watched->freed);
	world_read_end();
	return NULL;
}

static void start_stayer(pthread_t *t, struct stayer *s)
{
	assert_int_equal(pthread_create(t, NULL, stay, s), 0);
	while (!atomic_load(&s->inside))
		sched_yield();
}

static void test_an_open_section_keeps_everything(void **state)
{
	static struct piece p[1000];
	struct stayer s = { .watched = &p[0] };
	u32 before = atomic_load(&freed_count);
	pthread_t t;

	(void)state;
	start_stayer(&t, &s);
	retire_many(p, 1000);
	assert_true(atomic_load(&freed_count) == before);
	atomic_store(&s.leave, 1);
	pthread_join(t, NULL);
	assert_int_equal(s.freed_inside, 0);
	world_read_synchronize();
	assert_int_equal(atomic_load(&freed_count) - before, 1000);
}

static void *release_later(void *arg)
{
	struct stayer *s = arg;
	u64 until = world_now() + 20 * MS;

	while (world_now() < until)
		world_sleep_until(until);
	atomic_store(&s->leave, 1);
	return NULL;
}

/* Who retires too much waits until the section ends, and then it is all but gone. */
static void test_garbage_is_bounded(void **state)
{
	static struct piece p[6000];
	struct stayer s = { .watched = &p[0] };
	u32 before = atomic_load(&freed_count);
	pthread_t t, later;

	(void)state;
	start_stayer(&t, &s);
	assert_int_equal(pthread_create(&later, NULL, release_later, &s), 0);
	retire_many(p, 6000);
	assert_true(6000 - (atomic_load(&freed_count) - before) <= 4096);
	assert_int_equal(atomic_load(&s.leave), 1); /* it did wait */
	assert_int_equal(s.freed_inside, 0);
	pthread_join(t, NULL);
	pthread_join(later, NULL);
	world_read_synchronize();
	assert_int_equal(atomic_load(&freed_count) - before, 6000);
}

/* --- a shared pointer, replaced all the time */

#define SWAPS   20000
#define READERS 3

struct box {
	struct world_retired retired;
	u64 a, b; /* alike while it lives */
};

static _Atomic(struct box *) shared;
static _Atomic u32 over;

static void free_box(struct world_retired *r)
{
	struct box *b = container_of(r, struct box, retired);

	b->a = 1;
	b->b = 2;
	free(b);
}

/* Threads come and go, so that records are entered and taken out while others look at them. */
static void *read_boxes(void *arg)
{
	_Atomic u64 *wrong = arg;

	for (u32 i = 0; i < 500; i++) {
		struct box *b;

		world_read_begin();
		b = atomic_load_explicit(&shared, memory_order_acquire);
		*wrong += b->a != b->b;
		world_read_end();
	}
	return NULL;
}

static void reader_of_boxes(void *arg)
{
	while (!atomic_load(&over)) {
		pthread_t t;

		if (pthread_create(&t, NULL, read_boxes, arg))
			abort();
		read_boxes(arg);
		pthread_join(t, NULL);
	}
}

static struct box *make_box(u64 value)
{
	struct box *b = malloc(sizeof(*b));

	if (!b)
		abort();
	*b = (struct box){ .a = value, .b = value };
	return b;
}

static void test_readers_never_see_a_freed_piece(void **state)
{
	struct task *readers[READERS];
	_Atomic u64 wrong[READERS] = { 0 };

	(void)state;
	atomic_store(&shared, make_box(0));
	for (u32 i = 0; i < READERS; i++) {
		readers[i] = world_spawn("reader", reader_of_boxes, &wrong[i]);
		assert_non_null(readers[i]);
	}
	for (u64 i = 1; i <= SWAPS; i++)
		world_retire(&atomic_exchange(&shared, make_box(i))->retired, free_box);
	atomic_store(&over, 1);
	for (u32 i = 0; i < READERS; i++)
		world_join(readers[i]);
	world_read_synchronize();
	for (u32 i = 0; i < READERS; i++)
		assert_int_equal(wrong[i], 0);
	free(atomic_load(&shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_simulated_pieces_go_at_once, setup_unbound),
		cmocka_unit_test_setup(test_synchronize_frees_what_was_retired, setup_unbound),
		cmocka_unit_test_setup(test_garbage_goes_by_itself, setup_unbound),
		cmocka_unit_test_setup(test_an_open_section_keeps_everything, setup_unbound),
		cmocka_unit_test_setup(test_garbage_is_bounded, setup_unbound),
		cmocka_unit_test_setup(test_readers_never_see_a_freed_piece, setup_unbound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
