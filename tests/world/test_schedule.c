// SPDX-License-Identifier: MIT
/* The same seed gives the same history, whatever else the process does. */
#include "worlds.h"
#include <pthread.h>

struct schedule {
	u64 hash;
	struct mutex mutex;
	struct cond cond;
	struct rwsem rwsem;
};

static void mix(struct schedule *s, u64 x)
{
	s->hash = (s->hash ^ x) * 0x100000001b3ull; /* FNV-1a, by words */
}

static void random_task(void *arg)
{
	struct schedule *s = arg;

	for (unsigned i = 0; i < 50; i++) {
		u64 r = world_random();

		mix(s, world_task_id());
		mix(s, world_now());
		mix(s, world_cpu());
		spend_ns(r % 70000);
		switch (r >> 32 & 7) {
		case 0:
			world_sleep_until(world_now() + (r >> 40) % MS);
			break;
		case 1:
			world_breathe();
			break;
		case 2:
			mutex_lock(&s->mutex);
			world_sleep_until(world_now() + 20 * US);
			mutex_unlock(&s->mutex);
			break;
		case 3:
			mutex_lock(&s->mutex);
			mix(s, (u64)-cond_wait_until(&s->cond, &s->mutex, world_now() + MS));
			mutex_unlock(&s->mutex);
			break;
		case 4:
			cond_signal(&s->cond);
			break;
		case 5:
			rwsem_lock_shared(&s->rwsem);
			world_sleep_until(world_now() + 30 * US);
			rwsem_unlock_shared(&s->rwsem);
			break;
		case 6:
			rwsem_lock(&s->rwsem);
			spend_ns(5000);
			world_sleep_jiffies(1);
			rwsem_unlock(&s->rwsem);
			break;
		default:
			cond_broadcast(&s->cond);
		}
	}
}

static void random_main(void *arg)
{
	struct schedule *s = arg;
	struct task *t[100];

	mutex_init(&s->mutex, RANK_NONE);
	cond_init(&s->cond);
	rwsem_init(&s->rwsem, RANK_NONE);
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		t[i] = world_spawn("random", random_task, s);
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		world_join(t[i]);
	mix(s, world_now());
}

static u64 random_schedule(u64 seed)
{
	struct schedule s = { .hash = 0xcbf29ce484222325ull };
	struct world *w = make_sim(7, 250, seed);

	if (sim_run(w, random_main, &s, NULL, 0))
		return 0;
	sim_destroy(w);
	return s.hash;
}

#define HASH_OF_SEED_1 0x472df7264f74c060ull

static void test_determinism(void **state)
{
	(void)state;
	assert_int_equal(random_schedule(1), HASH_OF_SEED_1);
	assert_int_equal(random_schedule(1), HASH_OF_SEED_1);
	assert_int_not_equal(random_schedule(2), HASH_OF_SEED_1);
}

static void test_other_seeds(void **state)
{
	u64 last = getenv("SLUICE_SOAK") ? 1000 : 5;

	(void)state;
	for (u64 seed = 2; seed <= last; seed++) {
		u64 hash = random_schedule(seed);

		assert_int_not_equal(hash, HASH_OF_SEED_1);
		assert_int_equal(random_schedule(seed), hash);
	}
}

static void *schedule_thread(void *arg)
{
	u64 *hash = arg;

	for (unsigned i = 0; i < 3; i++)
		hash[i] = random_schedule(1);
	return NULL;
}

static void test_sims_side_by_side(void **state)
{
	pthread_t thread[4];
	u64 hash[4][3];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, schedule_thread, hash[i]), 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(hash[i][j], HASH_OF_SEED_1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_determinism, setup_unbound),
		cmocka_unit_test_setup(test_other_seeds, setup_unbound),
		cmocka_unit_test_setup(test_sims_side_by_side, setup_unbound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
