// SPDX-License-Identifier: MIT
/* A book is shared by all files: nothing is lost, and the peak is a level that was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger/ledger.h"
#include <cmocka.h>
#include <pthread.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_post_to_one_book),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
