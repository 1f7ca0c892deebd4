/* SPDX-License-Identifier: MIT */
/* The slow path of an rwsem for one who comes to it late: a lock that is no longer held. */
#include "worlds.h"

/* Who found an rwsem held, and free again when he has queued, takes it himself. */
static void late_body(void *arg)
{
	struct rwsem s;

	(void)arg;
	rwsem_init(&s, RANK_NONE);
	for (unsigned exclusive = 0; exclusive < 2; exclusive++) {
		rwsem_lock_slow(&s, exclusive);
		lock_check_taken(&s, s.rank, false);
		assert_true(rwsem_is_busy(&s));
		assert_int_equal(rwsem_is_exclusive(&s), exclusive);
		if (exclusive)
			rwsem_unlock(&s);
		else
			rwsem_unlock_shared(&s);
		assert_false(rwsem_is_busy(&s));
	}
}

static void test_rwsem_found_free(void **state)
{
	(void)state;
	run_in_sim(1, late_body, NULL); /* first: it knows when somebody waits for ever */
	late_body(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_rwsem_found_free, setup_unbound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
