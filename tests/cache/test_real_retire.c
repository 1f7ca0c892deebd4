/* SPDX-License-Identifier: MIT */
/*
 * What leaves the index stays in memory while somebody may look at it without a lock. Calls of
 * free() are counted (--wrap=free).
 */
#include "cache/index.h"
#include "world/lock.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROUNDS 640
#define PAGE   100000 /* three levels: a leaf and two nodes come and go */

static _Atomic u32 frees, counting, is_open, may_end;

void __real_free(void *p);
void __wrap_free(void *p);

void __wrap_free(void *p)
{
	if (p && atomic_load(&counting))
		atomic_fetch_add(&frees, 1);
	__real_free(p);
}

static void hold_section(void *arg)
{
	(void)arg;
	world_read_begin();
	atomic_store(&is_open, 1);
	while (!atomic_load(&may_end)) /* in a section nobody parks */
		sched_yield();
	world_read_end();
}

static void test_leaves_and_nodes(void **state)
{
	struct task *reader = world_spawn("reader", hold_section, NULL);
	struct index ix;

	(void)state;
	assert_non_null(reader);
	while (!atomic_load(&is_open))
		sched_yield();
	index_init(&ix, 0);
	atomic_store(&counting, 1);
	for (u32 i = 0; i < ROUNDS; i++) {
		struct leaf *leaf = index_leaf_create(&ix, PAGE);

		assert_non_null(leaf);
		assert_int_equal(ix.leaves, 1);
		assert_int_equal(ix.nodes, 2);
		index_leaf_release(&ix, leaf);
		assert_null(index_leaf(&ix, PAGE));
		assert_int_equal(ix.memory_bytes, 0);
	}
	assert_int_equal(atomic_load(&frees), 0);
	atomic_store(&may_end, 1);
	atomic_store(&counting, 0); /* the thread's own end */
	world_join(reader);
	atomic_store(&counting, 1);
	world_read_synchronize();
	atomic_store(&counting, 0);
	assert_int_equal(atomic_load(&frees), 3 * ROUNDS);
	index_finish(&ix);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_leaves_and_nodes) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
