// SPDX-License-Identifier: MIT
/* The simulated world: clock, CPUs, parking, who is stuck, who is who. */
#include "worlds.h"

/* --- clock --- */

static void clock_main(void *arg)
{
	(void)arg;
	assert_true(world_is_sim());
	assert_int_equal(world_now(), 0);
	assert_int_equal(world_task_id(), 1);
	assert_string_equal(world_task_name(), "main");
	spend_ns(700);
	assert_int_equal(world_now(), 700);
	world_breathe(); /* below the quantum */
	assert_int_equal(world_current->clock_ns, 0);
	spend_ns(50 * US);
	world_breathe();
	assert_int_equal(world_current->clock_ns, 50700);
	assert_int_equal(world_current->ahead_ns, 0);
	world_sleep_until(MS);
	assert_int_equal(world_now(), MS);
	spend_ns(100);
	world_sleep_until(5); /* has passed: settles */
	assert_int_equal(world_current->clock_ns, MS + 100);
	spend_ns(100);
	world_sleep_until(MS + 150); /* passed while spending */
	assert_int_equal(world_now(), MS + 200);
}

static void test_clock(void **state)
{
	(void)state;
	run_in_sim(1, clock_main, NULL);
}

static void test_clock_goes_on(void **state)
{
	struct world *w = make_sim(1, 250, 1);
	struct sim_stats stats;

	(void)state;
	assert_int_equal(sim_run(w, clock_main, NULL, NULL, 0), 0);
	assert_int_equal(w->clock_ns, MS + 200);
	sim_stats(w, &stats);
	assert_int_equal(stats.cpu_busy_ns, 50900);
	assert_int_equal(stats.tasks_peak, 1);
	assert_int_equal(stats.parks, 0);
	sim_destroy(w);
}

/* --- CPUs --- */

static void burn(void *arg)
{
	spend_ns(MS);
	note((int)(intptr_t)arg);
}

static void burn_main(void *arg)
{
	struct task *t[3];

	(void)arg;
	for (int i = 0; i < 3; i++)
		t[i] = world_spawn("burner", burn, (void *)(intptr_t)i);
	for (int i = 0; i < 3; i++)
		world_join(t[i]);
}

static void test_two_cpus_three_tasks(void **state)
{
	(void)state;
	run_in_sim(2, burn_main, NULL);
	expect_trace((int[]){ 0, 1, 2 }, (u64[]){ MS, MS, 2 * MS }, 3);
	run_in_sim(1, burn_main, NULL);
	expect_trace((int[]){ 0, 1, 2 }, (u64[]){ MS, 2 * MS, 3 * MS }, 3);
	run_in_sim(1024, burn_main, NULL);
	expect_trace((int[]){ 0, 1, 2 }, (u64[]){ MS, MS, MS }, 3);
}

/*
 * A task that breathes keeps its CPU until it has had its slice, at HZ 250 a tick of 4 ms; then it
 * goes behind those who wait.
 */
static void breather(void *arg)
{
	for (int i = 0; i < 3; i++) {
		note((int)(intptr_t)arg);
		spend_ns(2 * MS);
		world_breathe();
	}
}

static void breather_main(void *arg)
{
	struct task *a = world_spawn("a", breather, (void *)1);
	struct task *b = world_spawn("b", breather, (void *)2);

	(void)arg;
	world_join(a);
	world_join(b);
}

static void test_breathe_takes_turns(void **state)
{
	(void)state;
	run_in_sim(1, breather_main, NULL);
	expect_trace((int[]){ 1, 1, 2, 2, 1, 2 },
		     (u64[]){ 0, 2 * MS, 4 * MS, 6 * MS, 8 * MS, 10 * MS }, 6);
}

/* A task keeps the CPU it last ran on, when that is free; else takes the lowest. */
static void homing(void *arg)
{
	unsigned *cpus = arg;

	cpus[0] = world_cpu();
	spend_ns(10 * US);
	world_sleep_until((9 - cpus[0]) * MS); /* the last comes back first */
	cpus[1] = world_cpu();
}

static void homing_main(void *arg)
{
	unsigned cpus[3][2];
	struct task *t[3];

	(void)arg;
	for (int i = 0; i < 3; i++)
		t[i] = world_spawn("homing", homing, cpus[i]);
	for (int i = 0; i < 3; i++)
		world_join(t[i]);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(cpus[i][0], i);
		assert_int_equal(cpus[i][1], i);
	}
	assert_int_equal(world_cpu(), 0); /* main's own */
}

static void test_cpu_affinity(void **state)
{
	(void)state;
	run_in_sim(4, homing_main, NULL);
}

/* --- park and unpark --- */

static _Atomic u32 word;

static void waiter(void *arg)
{
	assert_int_equal(world_park(&word, 0, WORLD_NEVER), 0);
	note((int)(intptr_t)arg);
}

static void wake_main(void *arg)
{
	struct task *t[5];

	(void)arg;
	atomic_store(&word, 0);
	assert_int_equal(world_unpark(&word, 1), 0);
	assert_int_equal(world_park(&word, 1, WORLD_NEVER), -EAGAIN);
	for (int i = 0; i < 5; i++)
		t[i] = world_spawn("waiter", waiter, (void *)(intptr_t)i);
	world_sleep_until(MS);
	spend_ns(500);
	assert_int_equal(world_unpark(&word, 1), 1);
	spend_ns(500);
	assert_int_equal(world_unpark(&word, 2), 2);
	world_sleep_until(2 * MS);
	assert_int_equal(world_unpark(&word, 100), 2);
	for (int i = 0; i < 5; i++)
		world_join(t[i]);
}

static void test_wake_order(void **state)
{
	(void)state;
	run_in_sim(8, wake_main, NULL);
	expect_trace((int[]){ 0, 1, 2, 3, 4 },
		     (u64[]){ MS + 3500, MS + 4000, MS + 4000, 2 * MS + 3000, 2 * MS + 3000 }, 5);
}

/* Who parked far ahead of the clock is not woken in its own past. */
static void spender(void *arg)
{
	(void)arg;
	spend_ns(100 * US);
	assert_int_equal(world_park(&word, 0, WORLD_NEVER), 0);
	note(1);
}

static void past_main(void *arg)
{
	struct task *t = world_spawn("spender", spender, NULL);

	(void)arg;
	atomic_store(&word, 0);
	world_sleep_until(0);
	assert_int_equal(world_unpark(&word, 1), 1);
	world_join(t);
}

static void test_no_wake_in_the_past(void **state)
{
	(void)state;
	run_in_sim(2, past_main, NULL);
	expect_trace((int[]){ 1 }, (u64[]){ 100 * US }, 1);
}

static void deadline_main(void *arg)
{
	struct task *t;

	(void)arg;
	atomic_store(&word, 0);
	assert_int_equal(world_park(&word, 0, 0), -ETIMEDOUT);
	assert_int_equal(world_now(), 0);
	assert_int_equal(world_park(&word, 1, 0), -EAGAIN);
	spend_ns(1000);
	assert_int_equal(world_park(&word, 0, MS), -ETIMEDOUT);
	assert_int_equal(world_now(), MS);
	assert_int_equal(world_unpark(&word, 1), 0); /* it left the queue */
	/* woken before the deadline, though it runs after it */
	t = world_spawn("waiter", waiter, (void *)7);
	world_sleep_until(2 * MS);
	assert_int_equal(world_unpark(&word, 1), 1);
	world_join(t);
	assert_int_equal(trace.when[0], 2 * MS + 3000);
	trace.count = 0;
}

static void test_deadline(void **state)
{
	(void)state;
	run_in_sim(1, deadline_main, NULL);
}

/* The middle of three times out; the others are still woken in order. */
static void timed_waiter(void *arg)
{
	u64 deadline = (intptr_t)arg == 1 ? MS : 10 * MS;
	int result = world_park(&word, 0, deadline);

	assert_int_equal(result, (intptr_t)arg == 1 ? -ETIMEDOUT : 0);
	note((int)(intptr_t)arg);
}

static void middle_main(void *arg)
{
	struct task *t[3];

	(void)arg;
	atomic_store(&word, 0);
	for (int i = 0; i < 3; i++)
		t[i] = world_spawn("timed", timed_waiter, (void *)(intptr_t)i);
	world_sleep_until(2 * MS);
	assert_int_equal(world_unpark(&word, 3), 2);
	for (int i = 0; i < 3; i++)
		world_join(t[i]);
	assert_int_equal(world_current->clock_ns, 2 * MS + 6000); /* and main woken by 2 */
}

static void test_timeout_in_the_middle(void **state)
{
	(void)state;
	run_in_sim(3, middle_main, NULL);
	expect_trace((int[]){ 1, 0, 2 }, (u64[]){ MS, 2 * MS + 3000, 2 * MS + 3000 }, 3);
}

/* Woken before its deadline, and at once: the deadline is forgotten. */
static void early_bird(void *arg)
{
	(void)arg;
	assert_int_equal(world_park(&word, 0, 5 * MS), 0);
	note(1);
	assert_int_equal(world_park(&word, 0, WORLD_NEVER), 0);
	note(2);
}

static void early_main(void *arg)
{
	struct task *t = world_spawn("early bird", early_bird, NULL);

	(void)arg;
	atomic_store(&word, 0);
	world_sleep_until(MS);
	assert_int_equal(world_unpark(&word, 1), 1);
	world_sleep_until(20 * MS);
	assert_int_equal(world_unpark(&word, 1), 1);
	world_join(t);
}

static void test_deadline_forgotten(void **state)
{
	struct world *w = make_sim(1, 250, 1);

	(void)state;
	w->cost_ns[COST_WAKE] = 0;
	assert_int_equal(sim_run(w, early_main, NULL, NULL, 0), 0);
	sim_destroy(w);
	expect_trace((int[]){ 1, 2 }, (u64[]){ MS, 20 * MS }, 2);
}

/* --- many words at once: each finds its own waiters --- */

#define WORDS 1000

static _Atomic u32 words[WORDS];
static unsigned word_wakes[WORDS];

static void word_waiter(void *arg)
{
	unsigned mine = (unsigned)(uintptr_t)arg % WORDS;

	while (!atomic_load(&words[mine]))
		world_park(&words[mine], 0, WORLD_NEVER);
	word_wakes[mine]++;
}

static void words_main(void *arg)
{
	static struct task *t[2 * WORDS];

	(void)arg;
	for (unsigned i = 0; i < 2 * WORDS; i++) {
		t[i] = world_spawn("waiter", word_waiter, (void *)(uintptr_t)i);
		if (i % 10 == 0)
			world_sleep_until(0); /* some park before others are made */
	}
	world_sleep_until(MS);
	for (unsigned i = WORDS; i-- > 0;) {
		atomic_store(&words[i], 1);
		assert_int_equal(world_unpark(&words[i], ~0u), 2);
		assert_int_equal(world_unpark(&words[i], ~0u), 0);
	}
	for (unsigned i = 0; i < 2 * WORDS; i++)
		world_join(t[i]);
	for (unsigned i = 0; i < WORDS; i++)
		assert_int_equal(word_wakes[i], 2);
}

static void test_many_words(void **state)
{
	(void)state;
	run_in_sim(2, words_main, NULL);
}

/* --- deadlock --- */

static struct mutex mutex_a, mutex_b;

static void deadly(void *arg)
{
	struct mutex *first = arg, *second = arg == &mutex_a ? &mutex_b : &mutex_a;

	mutex_lock(first);
	world_sleep_until(MS);
	mutex_lock(second);
}

static void deadlock_main(void *arg)
{
	struct task *t;

	(void)arg;
	mutex_init(&mutex_a, RANK_NONE);
	mutex_init(&mutex_b, RANK_NONE);
	t = world_spawn("ab", deadly, &mutex_a);
	world_spawn("ba", deadly, &mutex_b);
	world_sleep_until(2 * MS);
	world_join(t);
}

static void test_deadlock(void **state)
{
	struct world *w = make_sim(2, 250, 1);
	char why[400], little[20];

	(void)state;
	assert_int_equal(sim_run(w, deadlock_main, NULL, why, sizeof(why)), -EDEADLK);
	assert_string_equal(why, "3 tasks are stuck at 0.002000 s:"
				 " 'main' (task 1) waits for the end of ab since 0.002000 s;"
				 " 'ab' (task 2) waits for mutex (unranked) since 0.001000 s;"
				 " 'ba' (task 3) waits for mutex (unranked) since 0.001000 s");
	sim_destroy(w);
	w = make_sim(2, 250, 1);
	assert_int_equal(sim_run(w, deadlock_main, NULL, little, sizeof(little)), -EDEADLK);
	assert_string_equal(little, "3 tasks are stuck a");
	sim_destroy(w);
}

/* --- task identity --- */

static void identity(void *arg)
{
	*(u64 *)arg = world_task_id();
	for (unsigned i = 0; i < WORLD_LOCALS; i++) {
		assert_int_equal(*world_local(i), 0);
		*world_local(i) = world_task_id();
	}
	world_sleep_until(world_now() + US);
	for (unsigned i = 0; i < WORLD_LOCALS; i++)
		assert_int_equal(*world_local(i), *(u64 *)arg);
}

static void identity_main(void *arg)
{
	u64 id[10];
	struct task *t[10];

	(void)arg;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 10; i++)
			t[i] = world_spawn("identity", identity, &id[i]);
		for (unsigned i = 0; i < 10; i++)
			world_join(t[i]);
		for (unsigned i = 0; i < 10; i++)
			assert_int_equal(id[i], 2 + 10 * round + i); /* records are used again */
	}
}

static void test_task_identity(void **state)
{
	(void)state;
	run_in_sim(2, identity_main, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_clock, setup_unbound),
		cmocka_unit_test_setup(test_clock_goes_on, setup_unbound),
		cmocka_unit_test_setup(test_two_cpus_three_tasks, setup_unbound),
		cmocka_unit_test_setup(test_breathe_takes_turns, setup_unbound),
		cmocka_unit_test_setup(test_cpu_affinity, setup_unbound),
		cmocka_unit_test_setup(test_wake_order, setup_unbound),
		cmocka_unit_test_setup(test_no_wake_in_the_past, setup_unbound),
		cmocka_unit_test_setup(test_deadline, setup_unbound),
		cmocka_unit_test_setup(test_timeout_in_the_middle, setup_unbound),
		cmocka_unit_test_setup(test_deadline_forgotten, setup_unbound),
		cmocka_unit_test_setup(test_many_words, setup_unbound),
		cmocka_unit_test_setup(test_deadlock, setup_unbound),
		cmocka_unit_test_setup(test_task_identity, setup_unbound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
