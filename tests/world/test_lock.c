// SPDX-License-Identifier: MIT
/*
 * Locks, conditions and completions: every body runs in the simulated world on one CPU and
 * on several, and in the real one, with the same promises; what only holds in
 * virtual time (order, exact times) has tests of its own below.
 */
#include "worlds.h"

#define TASKS 8

/* The real world under a sanitizer on a busy machine is slow: it takes fewer rounds. */
static unsigned rounds(void)
{
	return world_is_sim() ? 1000 : 3000;
}

static void in_both_worlds(void (*fn)(void *arg))
{
	run_in_sim(1, fn, NULL);
	run_in_sim(3, fn, NULL);
	fn(NULL);
}

static void run_tasks(unsigned count, void (*fn)(void *arg))
{
	struct task *t[64];

	assert_true(count <= ARRAY_SIZE(t));
	for (unsigned i = 0; i < count; i++) {
		t[i] = world_spawn("worker", fn, (void *)(uintptr_t)i);
		assert_non_null(t[i]);
	}
	for (unsigned i = 0; i < count; i++)
		world_join(t[i]);
}

/* Sometimes gives others a chance in the middle of a critical section. */
static void dawdle(unsigned i)
{
	if (i % 7 == 0)
		world_sleep_until(world_is_sim() ? world_now() + i % 5 * US : 0);
	else
		spend_ns(i % 3 * 1000);
}

/* --- mutex --- */

static struct mutex mutex;
static u64 counter; /* protected by the lock under test */

static void mutex_worker(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < rounds(); i++) {
		u64 before;

		if (i % 3 || !mutex_trylock(&mutex))
			mutex_lock(&mutex);
		assert_true(mutex_is_held(&mutex));
		before = counter;
		dawdle(i);
		counter = before + 1;
		mutex_unlock(&mutex);
	}
}

static void mutex_body(void *arg)
{
	(void)arg;
	mutex_init(&mutex, RANK_INODE);
	counter = 0;
	run_tasks(TASKS, mutex_worker);
	assert_int_equal(counter, TASKS * rounds());
	assert_false(mutex_is_held(&mutex));
	assert_int_equal(mutex.state, 0);
	assert_true(mutex_trylock(&mutex));
	assert_false(mutex_trylock(&mutex));
	mutex_unlock(&mutex);
}

static void test_mutex(void **state)
{
	(void)state;
	in_both_worlds(mutex_body);
}

/* --- spinlock --- */

static struct spinlock spin;

static void spin_worker(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < rounds(); i++) {
		spin_lock(&spin);
		assert_true(spin_is_held(&spin));
		counter++;
		spend_ns(10);
		spin_unlock(&spin);
		dawdle(i);
	}
}

static void spin_body(void *arg)
{
	(void)arg;
	spin_init(&spin, RANK_TREE);
	counter = 0;
	run_tasks(TASKS, spin_worker);
	assert_int_equal(counter, TASKS * rounds());
	assert_int_equal(spin.state, 0);
}

static void test_spinlock(void **state)
{
	(void)state;
	in_both_worlds(spin_body);
}

/* --- rwsem --- */

static struct rwsem rwsem;
static _Atomic s32 readers_in, writers_in;
static u64 twin; /* equals counter whenever no writer is in */

static void rwsem_write(unsigned i)
{
	if (i % 4 || !rwsem_trylock(&rwsem))
		rwsem_lock(&rwsem);
	assert_true(rwsem_is_exclusive(&rwsem));
	assert_int_equal(atomic_fetch_add(&writers_in, 1), 0);
	assert_int_equal(atomic_load(&readers_in), 0);
	counter++;
	dawdle(i);
	twin++;
	assert_int_equal(atomic_fetch_sub(&writers_in, 1), 1);
	rwsem_unlock(&rwsem);
}

static void rwsem_read(unsigned i)
{
	u64 seen;

	rwsem_lock_shared(&rwsem);
	atomic_fetch_add(&readers_in, 1);
	assert_int_equal(atomic_load(&writers_in), 0);
	seen = counter;
	assert_int_equal(seen, twin);
	dawdle(i);
	assert_int_equal(counter, seen);
	atomic_fetch_sub(&readers_in, 1);
	rwsem_unlock_shared(&rwsem);
}

static void rwsem_worker(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < rounds(); i++) {
		if ((i + me) % 3 == 0)
			rwsem_write(i);
		else
			rwsem_read(i);
		if (i % 11 == me)
			world_sleep_until(world_now() + US);
	}
}

static void rwsem_body(void *arg)
{
	u64 writes = 0;

	(void)arg;
	rwsem_init(&rwsem, RANK_INODE);
	counter = twin = 0;
	run_tasks(TASKS, rwsem_worker);
	for (unsigned me = 0; me < TASKS; me++)
		for (unsigned i = 0; i < rounds(); i++)
			writes += (i + me) % 3 == 0;
	assert_int_equal(counter, writes);
	assert_int_equal(rwsem.word, 0);
	assert_null(rwsem.first);
	assert_true(rwsem_trylock(&rwsem));
	assert_false(rwsem_trylock(&rwsem));
	rwsem_unlock(&rwsem);
	rwsem_lock_shared(&rwsem);
	assert_false(rwsem_trylock(&rwsem));
	rwsem_unlock_shared(&rwsem);
}

static void test_rwsem(void **state)
{
	(void)state;
	in_both_worlds(rwsem_body);
}

/* --- cond: a bounded queue between producers and consumers --- */

static struct cond not_empty, not_full;
static unsigned queued, produced, consumed, consumed_sum;

static void produce(void *arg)
{
	unsigned total = rounds(), i = 0;

	(void)arg;
	for (;;) {
		mutex_lock(&mutex);
		while (queued == 4 && produced < total)
			cond_wait(&not_full, &mutex);
		if (produced == total)
			break;
		produced++;
		queued++;
		cond_signal(&not_empty);
		mutex_unlock(&mutex);
		dawdle(i++);
	}
	cond_broadcast(&not_empty);
	cond_broadcast(&not_full);
	mutex_unlock(&mutex);
}

static void consume(void *arg)
{
	unsigned total = rounds();

	(void)arg;
	for (;;) {
		mutex_lock(&mutex);
		while (!queued && consumed < total)
			cond_wait(&not_empty, &mutex);
		if (!queued)
			break;
		queued--;
		consumed_sum += ++consumed;
		mutex_unlock(&mutex);
		cond_signal(&not_full); /* without the mutex */
	}
	mutex_unlock(&mutex);
	cond_broadcast(&not_empty);
}

static void producer_or_consumer(void *arg)
{
	((uintptr_t)arg % 2 ? produce : consume)(arg);
}

static void cond_body(void *arg)
{
	(void)arg;
	mutex_init(&mutex, RANK_WB_WORK);
	cond_init(&not_empty);
	cond_init(&not_full);
	queued = produced = consumed = consumed_sum = 0;
	run_tasks(TASKS, producer_or_consumer);
	assert_int_equal(consumed, rounds());
	assert_int_equal(consumed_sum, rounds() * (rounds() + 1) / 2);
	assert_int_equal(not_full.waiters, 0);
	assert_int_equal(not_empty.waiters, 0);
}

static void test_cond(void **state)
{
	(void)state;
	in_both_worlds(cond_body);
}

/* --- ping pong: strict alternation through one condition --- */

static struct cond turned;
static unsigned turn;

static void ping_pong(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < rounds() / 2; i++) {
		mutex_lock(&mutex);
		while (turn % 2 != me)
			cond_wait(&turned, &mutex);
		turn++;
		cond_broadcast(&turned);
		mutex_unlock(&mutex);
	}
}

static void ping_pong_body(void *arg)
{
	(void)arg;
	mutex_init(&mutex, RANK_NONE);
	cond_init(&turned);
	turn = 0;
	run_tasks(2, ping_pong);
	assert_int_equal(turn, rounds() / 2 * 2);
}

static void test_ping_pong(void **state)
{
	(void)state;
	in_both_worlds(ping_pong_body);
}

/* --- waits with a deadline --- */

static struct completion never, soon;

static void soon_done(void *arg)
{
	(void)arg;
	world_sleep_until(world_now() + MS);
	completion_done(&soon);
}

static void deadline_body(void *arg)
{
	u64 deadline = world_now() + 2 * MS;
	struct task *t;

	(void)arg;
	mutex_init(&mutex, RANK_NONE);
	cond_init(&turned);
	mutex_lock(&mutex);
	while (cond_wait_until(&turned, &mutex, deadline) != -ETIMEDOUT)
		;
	assert_true(world_now() >= deadline);
	assert_true(mutex_is_held(&mutex));
	mutex_unlock(&mutex);

	completion_init(&never);
	deadline = world_now() + MS;
	assert_int_equal(completion_wait_until(&never, deadline), -ETIMEDOUT);
	assert_true(world_now() >= deadline);
	assert_int_equal(completion_wait_until(&never, 0), -ETIMEDOUT);
	assert_false(completion_is_done(&never));

	completion_init(&soon);
	t = world_spawn("soon", soon_done, NULL);
	assert_int_equal(completion_wait_until(&soon, world_now() + 3600 * NSEC_PER_SEC), 0);
	world_join(t);
	assert_int_equal(completion_wait_until(&soon, 0), 0);
}

static void test_deadlines(void **state)
{
	(void)state;
	in_both_worlds(deadline_body);
}

/* --- completion --- */

static struct completion start, finished[TASKS];
static u64 published; /* written before start is done, read after it is seen */

static void completion_worker(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	if (me % 2)
		dawdle(7 * me);
	completion_wait(&start);
	assert_true(completion_is_done(&start));
	assert_int_equal(published, 42);
	completion_done(&finished[me]);
}

static void completion_body(void *arg)
{
	struct task *t[TASKS];

	(void)arg;
	completion_init(&start);
	published = 0;
	for (unsigned i = 0; i < TASKS; i++) {
		completion_init(&finished[i]);
		t[i] = world_spawn("worker", completion_worker, (void *)(uintptr_t)i);
	}
	world_sleep_until(world_now() + MS);
	for (unsigned i = 0; i < TASKS; i++)
		assert_false(completion_is_done(&finished[i]));
	published = 42;
	completion_done(&start);
	for (unsigned i = 0; i < TASKS; i++)
		completion_wait(&finished[i]);
	for (unsigned i = 0; i < TASKS; i++)
		world_join(t[i]);
	completion_wait(&start); /* for ever */
}

static void test_completion(void **state)
{
	(void)state;
	in_both_worlds(completion_body);
}

/* A completion on the waiter's stack, which is gone as soon as it is done. */
static struct completion *_Atomic handed;

static void hand_back(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < rounds() / 4; i++) {
		struct completion *c;

		while (!(c = atomic_exchange(&handed, NULL)))
			world_sleep_until(world_is_sim() ? world_now() + US : 0);
		completion_done(c);
	}
}

static void short_life_body(void *arg)
{
	struct task *t;

	(void)arg;
	atomic_store(&handed, NULL);
	t = world_spawn("hand back", hand_back, NULL);
	for (unsigned i = 0; i < rounds() / 4; i++) {
		struct completion *c = malloc(sizeof(*c));

		completion_init(c);
		atomic_store(&handed, c);
		completion_wait(c);
		free(c);
	}
	world_join(t);
}

static void test_completion_of_short_life(void **state)
{
	(void)state;
	in_both_worlds(short_life_body);
}

/* --- order in virtual time --- */

/* Who came, as letters. */
static void expect_order(const char *letters)
{
	assert_int_equal(trace.count, strlen(letters));
	for (unsigned i = 0; i < trace.count; i++)
		assert_int_equal(trace.who[i], letters[i]);
}

/* Names: r and R read, w and W write; each comes 10 us after the one before, stays 1 ms. */
static void queuer(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;
	char who = "rwRRWrw"[me];

	world_sleep_until((me + 1) * 10 * US);
	if (who == 'r' || who == 'R') {
		rwsem_lock_shared(&rwsem);
		note(who);
		world_sleep_until(world_now() + MS);
		rwsem_unlock_shared(&rwsem);
	} else {
		rwsem_lock(&rwsem);
		note(who);
		world_sleep_until(world_now() + MS);
		rwsem_unlock(&rwsem);
	}
}

static void fifo_body(void *arg)
{
	(void)arg;
	rwsem_init(&rwsem, RANK_NONE);
	run_tasks(7, queuer);
}

static void test_rwsem_is_fifo(void **state)
{
	static const u64 expected[] = { 10, 1013, 2016, 2016, 3019, 4022, 5025 };

	(void)state;
	run_in_sim(8, fifo_body, NULL);
	expect_order("rwRRWrw");
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(trace.when[i], expected[i] * US);
}

/* Direct hand-over: who gives it up and wants it again at once queues behind. */
static void greedy(void *arg)
{
	char who = "ab"[(uintptr_t)arg];

	for (unsigned i = 0; i < 4; i++) {
		rwsem_lock(&rwsem);
		note(who);
		world_sleep_until(world_now() + MS);
		rwsem_unlock(&rwsem);
	}
}

static void greedy_body(void *arg)
{
	(void)arg;
	rwsem_init(&rwsem, RANK_NONE);
	run_tasks(2, greedy);
}

static void test_rwsem_hands_over(void **state)
{
	(void)state;
	run_in_sim(2, greedy_body, NULL);
	expect_order("abababab");
}

/* A mutex lets whoever comes first barge in, so the greedy one keeps it. */
static void greedy_mutex(void *arg)
{
	char who = "ab"[(uintptr_t)arg];

	for (unsigned i = 0; i < 3; i++) {
		mutex_lock(&mutex);
		note(who);
		world_sleep_until(world_now() + MS);
		mutex_unlock(&mutex);
	}
}

static void greedy_mutex_body(void *arg)
{
	(void)arg;
	mutex_init(&mutex, RANK_NONE);
	run_tasks(2, greedy_mutex);
}

static void test_mutex_barges(void **state)
{
	(void)state;
	run_in_sim(2, greedy_mutex_body, NULL);
	expect_order("aaabbb");
	assert_int_equal(trace.when[3], 3 * MS + 3 * US); /* b needs COST_WAKE to come */
}

static void signalled(void *arg)
{
	world_sleep_until((uintptr_t)arg * US);
	mutex_lock(&mutex);
	cond_wait(&turned, &mutex);
	note("abc"[(uintptr_t)arg]);
	mutex_unlock(&mutex);
}

static void signal_body(void *arg)
{
	struct task *t[3];
	u32 sequence;

	(void)arg;
	mutex_init(&mutex, RANK_NONE);
	cond_init(&turned);
	cond_signal(&turned); /* nobody waits: lost */
	for (unsigned i = 0; i < 3; i++)
		t[i] = world_spawn("signalled", signalled, (void *)(uintptr_t)i);
	world_sleep_until(MS);
	sequence = atomic_load(&turned.sequence);
	cond_signal(&turned);
	/* who has noted it and is not asleep yet finds it changed */
	assert_int_not_equal(atomic_load(&turned.sequence), sequence);
	world_sleep_until(2 * MS);
	expect_order("a");
	cond_broadcast(&turned);
	for (unsigned i = 0; i < 3; i++)
		world_join(t[i]);
}

static void test_cond_wakes_in_order(void **state)
{
	(void)state;
	run_in_sim(4, signal_body, NULL);
	expect_order("abc");
	assert_int_equal(trace.when[0], MS + 3 * US);
	assert_int_equal(trace.when[1], 2 * MS + 3 * US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_mutex, setup_unbound),
		cmocka_unit_test_setup(test_spinlock, setup_unbound),
		cmocka_unit_test_setup(test_rwsem, setup_unbound),
		cmocka_unit_test_setup(test_cond, setup_unbound),
		cmocka_unit_test_setup(test_ping_pong, setup_unbound),
		cmocka_unit_test_setup(test_deadlines, setup_unbound),
		cmocka_unit_test_setup(test_completion, setup_unbound),
		cmocka_unit_test_setup(test_completion_of_short_life, setup_unbound),
		cmocka_unit_test_setup(test_rwsem_is_fifo, setup_unbound),
		cmocka_unit_test_setup(test_rwsem_hands_over, setup_unbound),
		cmocka_unit_test_setup(test_mutex_barges, setup_unbound),
		cmocka_unit_test_setup(test_cond_wakes_in_order, setup_unbound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
