/* SPDX-License-Identifier: MIT */
/*
 * A barging rwsem in the simulated world: who runs takes it again before the woken waiter is there.
 * He finds it taken, and after 4 ms of that he is the next, whoever else runs. Nobody starves, and
 * two never hold it at a time.
 */
#include "worlds.h"

#define TURNS 7

static struct rwsem rwsem;

static void barger(void *arg)
{
	char who = "ab"[(uintptr_t)arg];

	for (unsigned i = 0; i < TURNS; i++) {
		rwsem_lock(&rwsem);
		note(who);
		world_sleep_until(world_now() + MS);
		rwsem_unlock(&rwsem);
	}
}

static void barger_body(void *arg)
{
	struct task *t[2];

	(void)arg;
	rwsem_init_barging(&rwsem, RANK_NONE);
	for (unsigned i = 0; i < 2; i++)
		t[i] = world_spawn("barger", barger, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < 2; i++)
		world_join(t[i]);
}

static void test_who_runs_goes_first_for_a_while(void **state)
{
	static const char order[] = "aaaaabbbbbaabb";

	(void)state;
	run_in_sim(2, barger_body, NULL);
	assert_int_equal(trace.count, 2 * TURNS);
	for (unsigned i = 0; i < trace.count; i++)
		assert_int_equal(trace.who[i], order[i]);
	assert_int_equal(trace.when[5], 5 * MS + 3 * US); /* b needs COST_WAKE to come */
}

#define MANY 12

static unsigned inside, turns[MANY];

/* Readers among them: shared holders leave together, and barge past nobody. */
static void mixed(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < 100; i++) {
		if (me % 4 == 3) {
			rwsem_lock_shared(&rwsem);
			assert_int_equal(inside, 0);
			world_sleep_until(world_now() + 10 * US);
			assert_int_equal(inside, 0);
			rwsem_unlock_shared(&rwsem);
		} else {
			rwsem_lock(&rwsem);
			assert_int_equal(inside++, 0);
			world_sleep_until(world_now() + (me * i) % 50 * US);
			assert_int_equal(--inside, 0);
			rwsem_unlock(&rwsem);
		}
		turns[me]++;
		spend_ns(500);
	}
}

static void mixed_body(void *arg)
{
	struct task *t[MANY];

	(void)arg;
	rwsem_init_barging(&rwsem, RANK_NONE);
	memset(turns, 0, sizeof(turns));
	for (unsigned i = 0; i < MANY; i++)
		t[i] = world_spawn("mixed", mixed, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < MANY; i++)
		world_join(t[i]);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(turns[i], 100);
	assert_false(rwsem_is_busy(&rwsem));
}

static void test_everybody_gets_his_turns(void **state)
{
	(void)state;
	run_in_sim(1, mixed_body, NULL);
	run_in_sim(3, mixed_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_who_runs_goes_first_for_a_while, setup_unbound),
		cmocka_unit_test_setup(test_everybody_gets_his_turns, setup_unbound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
