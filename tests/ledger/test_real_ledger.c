// SPDX-License-Identifier: MIT
/* A book is shared by all files: nothing is lost, and the peak is a level that was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#define POSTERS 4
#define POSTS   50000

static void *post_many(void *arg)
{
	struct ledger_entry up = { 0 }, down = { 0 };

	up.level[LEVEL_DEBT] = 3;
	up.total[TOTAL_PAGES_DIRTIED] = 3;
	down.level[LEVEL_DEBT] = -3;
	for (unsigned i = 0; i < POSTS; i++) {
		ledger_post(arg, &up);
		ledger_post(arg, &down);
	}
	ledger_post(arg, &up);
	return NULL;
}

static void test_threads_post_to_one_book(void **state)
{
	pthread_t thread[POSTERS];
	struct ledger l;

	(void)state;
	ledger_init(&l);
	for (unsigned i = 0; i < POSTERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, post_many, &l), 0);
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(ledger_level(&l, LEVEL_DEBT), POSTERS * 3);
	assert_int_equal(ledger_total(&l, TOTAL_PAGES_DIRTIED), POSTERS * (POSTS + 1ull) * 3);
	assert_int_equal(ledger_peak(&l, LEVEL_DEBT), POSTERS * 3);
}

/* Books of a thread's own and of all, and whether it has posted. */
struct poster {
	struct ledger own, shared;
	struct spinlock lock;
	_Atomic bool done;
};

static void *post_to_both(void *arg)
{
	struct poster *p = arg;
	struct ledger *const books[] = { &p->own, NULL, &p->shared };
	struct ledger_entry up = { 0 };

	up.level[LEVEL_DEBT] = 3;
	ledger_post_all(books, 3, &up, &p->lock);
	atomic_store(&p->done, true);
	return NULL;
}

/* Who posts to a book of all waits for its lock: the test holds it until he is seen to wait. */
static void test_a_book_of_all_has_a_lock(void **state)
{
	struct poster p = { 0 };
	pthread_t thread;

	(void)state;
	ledger_init(&p.own);
	ledger_init(&p.shared);
	spin_init(&p.lock, RANK_NONE);
	spin_lock(&p.lock);
	assert_int_equal(pthread_create(&thread, NULL, post_to_both, &p), 0);
	while (atomic_load(&p.lock.state) != 2 && !atomic_load(&p.done))
		sched_yield();
	assert_false(atomic_load(&p.done));
	assert_int_equal(ledger_level(&p.shared, LEVEL_DEBT), 0);
	spin_unlock(&p.lock);
	pthread_join(thread, NULL);
	assert_int_equal(ledger_level(&p.own, LEVEL_DEBT), 3);
	assert_int_equal(ledger_level(&p.shared, LEVEL_DEBT), 3);
	assert_int_equal(ledger_peak(&p.shared, LEVEL_DEBT), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_post_to_one_book),
		cmocka_unit_test(test_a_book_of_all_has_a_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
