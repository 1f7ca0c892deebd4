/* SPDX-License-Identifier: MIT */
/* The model of a file: what reads and power losses may show of overlapping operations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "torture/model.h"
#include <cmocka.h>
#include <string.h>

static const u8 a[8] = "aaaaaaaa", b[8] = "bbbbbbbb", c[8] = "cccccccc", zero[8];

static u64 clock_ticks;

static void make(struct model *m)
{
	clock_ticks = 0;
	model_init(m, 64, &clock_ticks);
}

static void set(struct model *m, u64 from, const u8 *bytes)
{
	u32 v = model_begin(m, from, from + 8, bytes);

	model_end(m, v, from, from + 8, false, false);
}

static void test_last_write_counts(void **state)
{
	struct model m;
	u64 now;

	(void)state;
	make(&m);
	assert_int_equal(model_allows(&m, 0, zero, 8, clock_ticks, false), 8);
	set(&m, 0, a);
	set(&m, 4, b);
	now = model_tick(&m);
	assert_int_equal(model_allows(&m, 0, (const u8 *)"aaaabbbb", 8, now, false), 8);
	assert_int_equal(model_allows(&m, 0, a, 8, now, false), 4);
	assert_int_equal(model_allows(&m, 0, zero, 8, now, false), 0);
	model_finish(&m);
}

static void test_concurrent_writes(void **state)
{
	struct model m;
	u32 first, second;
	u64 before, now;

	(void)state;
	make(&m);
	set(&m, 0, c);
	before = model_tick(&m);
	first = model_begin(&m, 0, 8, a);
	second = model_begin(&m, 0, 8, b);
	assert_int_equal(model_allows(&m, 0, (const u8 *)"abcabcab", 8, before, false), 8);
	model_end(&m, first, 0, 8, false, false);
	model_end(&m, second, 0, 8, false, false);
	/* a read that began before may still have the old bytes, one that begins now may not */
	assert_int_equal(model_allows(&m, 0, c, 8, before, false), 8);
	now = model_tick(&m);
	assert_int_equal(model_allows(&m, 0, c, 8, now, false), 0);
	assert_int_equal(model_allows(&m, 0, a, 8, now, false), 8);
	assert_int_equal(model_allows(&m, 0, b, 8, now, false), 8);
	model_finish(&m);
}

static void test_power_loss(void **state)
{
	struct model m;
	u64 start;
	u32 v;

	(void)state;
	make(&m);
	set(&m, 0, a);
	assert_int_equal(model_allows(&m, 0, zero, 8, m.durable, true), 8);
	assert_int_equal(model_allows(&m, 0, a, 8, m.durable, true), 8);
	start = model_tick(&m);
	set(&m, 0, b); /* while the fsync is under way */
	model_synced(&m, start);
	assert_int_equal(model_allows(&m, 0, zero, 8, m.durable, true), 0);
	assert_int_equal(model_allows(&m, 0, a, 8, m.durable, true), 8);
	assert_int_equal(model_allows(&m, 0, b, 8, m.durable, true), 8);
	v = model_begin(&m, 0, 8, c);
	model_end(&m, v, 0, 8, false, true); /* O_DSYNC */
	assert_int_equal(model_allows(&m, 0, b, 8, m.durable, true), 0);
	assert_int_equal(model_allows(&m, 0, c, 8, m.durable, true), 8);
	model_finish(&m);
}

static void test_failed_write_counts_for_nothing(void **state)
{
	struct model m;
	u32 v;

	(void)state;
	make(&m);
	set(&m, 0, a);
	v = model_begin(&m, 0, 8, b);
	model_end(&m, v, 0, 8, true, false);
	assert_int_equal(model_allows(&m, 0, (const u8 *)"abababab", 8, model_tick(&m), false), 8);
	assert_int_equal(model_allows(&m, 0, c, 8, model_tick(&m), false), 0);
	model_finish(&m);
}

static void test_folding_changes_nothing(void **state)
{
	struct model m;

	(void)state;
	make(&m);
	set(&m, 0, a);
	set(&m, 4, b);
	set(&m, 6, c);
	model_synced(&m, model_tick(&m));
	assert_int_equal(m.count, 0);
	assert_memory_equal(m.base, "aaaabbcccccccc", 14);
	model_finish(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_write_counts),
		cmocka_unit_test(test_concurrent_writes),
		cmocka_unit_test(test_power_loss),
		cmocka_unit_test(test_failed_write_counts_for_nothing),
		cmocka_unit_test(test_folding_changes_nothing),
	};

	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
