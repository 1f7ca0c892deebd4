// SPDX-License-Identifier: MIT
/* The real world: time, threads, futexes, ticks, identity. Nothing here measures how long. */
#include "worlds.h"
#include <pthread.h>
#include <unistd.h>

static void test_time(void **state)
{
	u64 before = world_now(), deadline;

	(void)state;
	assert_false(world_is_sim());
	for (unsigned i = 0; i < 1000; i++) {
		u64 now = world_now();

		assert_true(now >= before);
		before = now;
		world_spend(COST_SUBMIT, 1000000); /* nothing */
		world_breathe();
	}
	deadline = world_now() + MS;
	world_sleep_until(deadline);
	assert_true(world_now() >= deadline);
	world_sleep_until(0);
	world_sleep_until(deadline);
}

static void test_ticks(void **state)
{
	static const unsigned hz[] = { 100, 250, 1000 };
	struct world w;

	(void)state;
	assert_int_equal(world_hz(), 250);
	for (unsigned i = 0; i < ARRAY_SIZE(hz); i++) {
		u64 tick = NSEC_PER_SEC / hz[i], before, ns;

		world_init_real(&w, hz[i]);
		world_bind(&w);
		assert_false(world_is_sim());
		assert_int_equal(world_hz(), hz[i]);
		assert_true(w.cpus >= 1);
		ns = world_now();
		before = world_jiffies();
		assert_true(before >= 300 * hz[i] + ns / tick);
		assert_true(before <= 300 * hz[i] + world_now() / tick);
		world_sleep_jiffies(2);
		assert_true(world_jiffies() >= before + 2);
		world_bind(NULL);
	}
}

/* --- park and unpark --- */

static _Atomic u32 word, waiting, woken;

static void park_once(void *arg)
{
	(void)arg;
	atomic_fetch_add(&waiting, 1);
	while (!atomic_load(&word))
		world_park(&word, 0, WORLD_NEVER);
	atomic_fetch_add(&woken, 1);
}

static void test_park(void **state)
{
	struct task *t[10];
	u64 deadline = world_now() + MS;

	(void)state;
	atomic_store(&word, 0);
	assert_int_equal(world_park(&word, 1, WORLD_NEVER), -EAGAIN);
	assert_int_equal(world_park(&word, 1, 0), -EAGAIN);
	assert_int_equal(world_park(&word, 0, 0), -ETIMEDOUT);
	while (world_park(&word, 0, deadline) != -ETIMEDOUT)
		;
	assert_true(world_now() >= deadline);
	assert_int_equal(world_unpark(&word, 1), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		t[i] = world_spawn("parker", park_once, NULL);
	while (atomic_load(&waiting) < ARRAY_SIZE(t))
		world_sleep_until(world_now() + MS / 10);
	assert_int_equal(atomic_load(&woken), 0);
	atomic_store(&word, 1);
	assert_true(world_unpark(&word, 3) <= 3);
	assert_true(world_unpark(&word, ~0u) <= ARRAY_SIZE(t));
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		world_join(t[i]);
	assert_int_equal(atomic_load(&woken), ARRAY_SIZE(t));
}

/* --- identity --- */

static void identify(void *arg)
{
	assert_string_equal(world_task_name(), "a name of which only the first ");
	for (unsigned i = 0; i < WORLD_LOCALS; i++) {
		assert_int_equal(*world_local(i), 0);
		*world_local(i) = i + 1;
	}
	assert_true(world_cpu() < (unsigned)sysconf(_SC_NPROCESSORS_CONF));
	*(u64 *)arg = world_task_id();
	assert_int_equal(world_hz(), 1000); /* inherited */
}

static void test_identity(void **state)
{
	struct task *t[20];
	struct world w;
	u64 id[20];

	(void)state;
	world_init_real(&w, 1000);
	world_bind(&w);
	*world_local(2) = 77;
	for (unsigned i = 0; i < 20; i++)
		t[i] = world_spawn("a name of which only the first thirty-one count", identify,
				   &id[i]);
	for (unsigned i = 0; i < 20; i++)
		world_join(t[i]);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_not_equal(id[i], 0);
		assert_int_not_equal(id[i], world_task_id());
		for (unsigned j = 0; j < i; j++)
			assert_true(id[j] < id[i]);
	}
	assert_int_equal(*world_local(2), 77);
	assert_int_equal(world_task_id(), world_task_id());
	world_bind(NULL);
}

static void *found_thread(void *arg)
{
	assert_string_equal(world_task_name(), "thread");
	*(u64 *)arg = world_task_id();
	return NULL;
}

/* Threads that the world did not start are tasks as well. */
static void test_found_thread(void **state)
{
	pthread_t thread;
	u64 id = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, found_thread, &id), 0);
	pthread_join(thread, NULL);
	assert_int_not_equal(id, 0);
	assert_int_not_equal(id, world_task_id());
}

/* --- the end of tasks --- */

static _Atomic u32 ended;
static _Atomic u64 last_ended;

static void note_end(void)
{
	atomic_store(&last_ended, world_task_id());
	atomic_fetch_add(&ended, 1);
}

static void note_identity(void *arg)
{
	*(u64 *)arg = world_task_id();
}

static void *found_and_gone(void *arg)
{
	if (arg)
		note_identity(arg);
	return NULL;
}

static void nothing(void)
{
}

static void test_task_end(void **state)
{
	pthread_t thread;
	u64 id;

	(void)state;
	assert_int_equal(world_at_task_end(note_end), 0);
	assert_int_equal(world_at_task_end(note_end), 0); /* counts once */
	world_join(world_spawn("spawned", note_identity, &id));
	assert_int_equal(ended, 1);
	assert_int_equal(last_ended, id);
	assert_int_equal(pthread_create(&thread, NULL, found_and_gone, &id), 0);
	pthread_join(thread, NULL);
	assert_int_equal(ended, 2);
	assert_int_equal(last_ended, id);
	/* who was never here leaves nothing */
	assert_int_equal(pthread_create(&thread, NULL, found_and_gone, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(ended, 2);
	assert_int_equal(world_at_task_end(nothing), 0);
}

static void test_random(void **state)
{
	u64 ones = 0, zeros = 0;

	(void)state;
	for (unsigned i = 0; i < 64; i++) {
		u64 r = world_random();

		ones |= r;
		zeros |= ~r;
	}
	assert_int_equal(ones, ~0ull); /* every bit was seen both ways */
	assert_int_equal(zeros, ~0ull);
}

/* A real thread may run a simulated world for a while. */
static void in_sim(void *arg)
{
	assert_true(world_is_sim());
	*(u64 *)arg = world_task_id();
	world_sleep_until(3600 * NSEC_PER_SEC);
}

static void with_sim(void *arg)
{
	u64 me = world_task_id(), inside = 0;

	run_in_sim(1, in_sim, &inside);
	assert_int_equal(inside, 1);
	assert_false(world_is_sim());
	assert_int_equal(world_task_id(), me);
	*(u64 *)arg = me;
}

static void test_sim_inside_thread(void **state)
{
	u64 id = 0;

	(void)state;
	world_join(world_spawn("outer", with_sim, &id));
	assert_int_not_equal(id, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_time, setup_unbound),
		cmocka_unit_test_setup(test_ticks, setup_unbound),
		cmocka_unit_test_setup(test_park, setup_unbound),
		cmocka_unit_test_setup(test_identity, setup_unbound),
		cmocka_unit_test_setup(test_found_thread, setup_unbound),
		cmocka_unit_test_setup(test_task_end, setup_unbound),
		cmocka_unit_test_setup(test_random, setup_unbound),
		cmocka_unit_test_setup(test_sim_inside_thread, setup_unbound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
