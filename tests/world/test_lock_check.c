// SPDX-License-Identifier: MIT
/* What builds with SLUICE_CHECKS find out: ranks and owners of locks. */
#include "misuse.h"

static void wrong_order(void *arg)
{
	(void)arg;
	init_locks();
	if (misuse)
		mutex_lock(&inner_mutex);
	mutex_lock(&mutex);
	if (!misuse)
		mutex_lock(&inner_mutex);
	spin_lock(&spin);
	spin_lock(&inner_spin);
	spin_unlock(&spin); /* in any order */
	spin_unlock(&inner_spin);
	mutex_unlock(&mutex);
	mutex_unlock(&inner_mutex);
}

static void same_rank(void *arg)
{
	struct mutex twin;

	(void)arg;
	init_locks();
	mutex_init(&twin, misuse ? RANK_INODE : RANK_NONE);
	mutex_lock(&mutex);
	mutex_lock(&twin);
	mutex_unlock(&twin);
	mutex_unlock(&mutex);
}

/* A trylock may be taken out of order, but counts as held from then on. */
static void after_trylock(void *arg)
{
	(void)arg;
	init_locks();
	mutex_lock(&inner_mutex);
	assert_true(mutex_trylock(&mutex));
	if (misuse)
		rwsem_lock_shared(&rwsem);
	mutex_unlock(&inner_mutex);
	mutex_unlock(&mutex);
}

static void rwsem_order(void *arg)
{
	(void)arg;
	init_locks();
	if (misuse)
		mutex_lock(&mutex);
	rwsem_lock_shared(&rwsem);
	rwsem_unlock_shared(&rwsem);
}

static void park_under_spinlock(void *arg)
{
	_Atomic u32 word = 0;

	(void)arg;
	init_locks();
	spin_lock(&spin);
	if (!misuse)
		spin_unlock(&spin);
	world_park(&word, 0, world_now() + 1000);
	if (misuse)
		spin_unlock(&spin);
}

static void sleep_under_spinlock(void *arg)
{
	(void)arg;
	init_locks();
	spin_lock(&spin);
	if (misuse)
		world_sleep_until(world_now() + 1000);
	spin_unlock(&spin);
}

static void end_with_lock(void *arg)
{
	(void)arg;
	mutex_lock(&mutex);
	if (!misuse)
		mutex_unlock(&mutex);
}

static void task_ends_with_lock(void *arg)
{
	(void)arg;
	init_locks();
	world_join(world_spawn("forgetful", end_with_lock, NULL));
}

static void unlock_for_others(void *arg)
{
	(void)arg;
	mutex_unlock(&mutex);
}

static void foreign_unlock(void *arg)
{
	(void)arg;
	init_locks();
	mutex_lock(&mutex);
	if (misuse)
		world_join(world_spawn("thief", unlock_for_others, NULL));
	else
		mutex_unlock(&mutex);
}

static void look_from_outside(void *arg)
{
	*(bool *)arg = mutex_is_held(&mutex);
}

static void held_is_mine(void *arg)
{
	bool others = true;

	(void)arg;
	init_locks();
	mutex_lock(&mutex);
	assert(mutex_is_held(&mutex));
	world_join(world_spawn("other", look_from_outside, &others));
	assert(others == misuse);
	mutex_unlock(&mutex);
}

static void test_ranks(void **state)
{
	(void)state;
	for (int sim = 0; sim <= 1; sim++) {
		expect_found_out(wrong_order, sim);
		expect_found_out(same_rank, sim);
		expect_found_out(after_trylock, sim);
		expect_found_out(rwsem_order, sim);
	}
}

static void test_owners(void **state)
{
	(void)state;
	for (int sim = 0; sim <= 1; sim++) {
		expect_found_out(park_under_spinlock, sim);
		expect_found_out(sleep_under_spinlock, sim);
		expect_found_out(task_ends_with_lock, sim);
		expect_found_out(foreign_unlock, sim);
		expect_found_out(held_is_mine, sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_ranks, setup_unbound),
		cmocka_unit_test_setup(test_owners, setup_unbound),
	};

#if !defined(SLUICE_CHECKS) || defined(NDEBUG)
	return skip_all("needs -Dchecks=true");
#endif
	return cmocka_run_group_tests(tests, NULL, NULL);
}
