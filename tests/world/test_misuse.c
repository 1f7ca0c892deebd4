// SPDX-License-Identifier: MIT
/* What every build with assertions finds out. */
#include "misuse.h"

static void spin_twice(void *arg)
{
	(void)arg;
	init_locks();
	spin_lock(&spin);
	if (misuse)
		spin_lock(&spin);
	spin_unlock(&spin);
}

static void unlock_free_spinlock(void *arg)
{
	(void)arg;
	init_locks();
	if (!misuse)
		spin_lock(&spin);
	spin_unlock(&spin);
}

static void unlock_free_mutex(void *arg)
{
	(void)arg;
	init_locks();
	if (!misuse)
		mutex_lock(&mutex);
	mutex_unlock(&mutex);
}

static void unlock_free_rwsem(void *arg)
{
	(void)arg;
	init_locks();
	if (!misuse)
		rwsem_lock(&rwsem);
	rwsem_unlock(&rwsem);
}

static void unlock_wrong_way(void *arg)
{
	(void)arg;
	init_locks();
	rwsem_lock(&rwsem);
	if (misuse)
		rwsem_unlock_shared(&rwsem);
	else
		rwsem_unlock(&rwsem);
}

/* A spinlock held across a park is found out by who then meets it. */
static void hold_and_sleep(void *arg)
{
	(void)arg;
	spin_lock(&spin);
	if (misuse)
		world_sleep_until(world_now() + MS);
	spin_unlock(&spin);
}

static void meet_held_spinlock(void *arg)
{
	struct task *t;

	(void)arg;
	init_locks();
	t = world_spawn("holder", hold_and_sleep, NULL);
	world_sleep_until(MS / 2);
	spin_lock(&spin);
	spin_unlock(&spin);
	world_join(t);
}

static void sleeping_event(struct sim_event *e)
{
	(void)e;
	if (misuse)
		world_sleep_until(world_now() + MS);
}

static void sleep_in_event(void *arg)
{
	static struct sim_event e;

	(void)arg;
	sim_event_init(&e, sleeping_event);
	sim_event_at(&e, MS);
	world_sleep_until(2 * MS);
}

static void event_in_the_past(void *arg)
{
	static struct sim_event e;

	(void)arg;
	world_sleep_until(MS);
	sim_event_init(&e, sleeping_event);
	sim_event_at(&e, misuse ? MS - 1 : MS);
}

static void test_misuse(void **state)
{
	(void)state;
	expect_found_out(spin_twice, true);
	expect_found_out(meet_held_spinlock, true);
	expect_found_out(sleep_in_event, true);
	expect_found_out(event_in_the_past, true);
	for (int sim = 0; sim <= 1; sim++) {
		expect_found_out(unlock_free_spinlock, sim);
		expect_found_out(unlock_free_mutex, sim);
		expect_found_out(unlock_free_rwsem, sim);
		expect_found_out(unlock_wrong_way, sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_misuse, setup_unbound),
	};

#ifdef NDEBUG
	return skip_all("needs assertions");
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
