// SPDX-License-Identifier: MIT
/*
 * Rings under threads: each event is as it was put, each thread's in its order, none twice, and
 * what is missing is counted; rings of threads that have ended are used again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "world/world.h"
#include "writeback/trace.h"
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#define WRITERS 4
#define EVENTS  20000u

static struct trace_slot slot;
static _Atomic u32 writing, started;

static void write_events(void *arg)
{
	s64 f[TRACE_FIELDS];

	for (s64 n = 0; n < (s64)EVENTS; n++) {
		for (u32 i = 0; i < TRACE_FIELDS; i++)
			f[i] = n * 16 + *(const s64 *)arg;
		trace_put(&slot, TRACE_BALANCE_DIRTY_PAGES, f, TRACE_FIELDS);
		if (!n) /* nobody ends before all have a ring, so each has one of his own */
			atomic_fetch_add(&started, 1);
		while (atomic_load(&started) < WRITERS)
			world_sleep_until(world_now() + NSEC_PER_MSEC);
	}
	atomic_fetch_sub(&writing, 1);
}

struct reading {
	s64 last[WRITERS]; /* number of the writer's newest event that was read */
	u64 count, lost, time_ns;
};

static void read_events(struct reading *r)
{
	struct trace_event e[64];
	ssize_t n;

	while ((n = trace_read(&slot, e, 64, &r->lost)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			s64 writer = e[i].field[0] % 16, number = e[i].field[0] / 16;

			assert_int_equal(e[i].kind, TRACE_BALANCE_DIRTY_PAGES);
			assert_true(writer < WRITERS && number > r->last[writer]);
			for (u32 k = 1; k < TRACE_FIELDS; k++)
				assert_int_equal(e[i].field[k], e[i].field[0]);
			assert_true(e[i].time_ns >= r->time_ns && e[i].time_ns <= world_now());
			assert_int_not_equal(e[i].thread, 0);
			r->time_ns = e[i].time_ns;
			r->last[writer] = number;
			r->count++;
		}
	}
	assert_int_equal(n, 0);
}

static void run_writers(struct reading *r)
{
	static const s64 number[WRITERS] = { 0, 1, 2, 3 };
	struct task *t[WRITERS];

	*r = (struct reading){ .last = { -1, -1, -1, -1 } };
	atomic_store(&writing, WRITERS);
	atomic_store(&started, 0);
	for (u32 i = 0; i < WRITERS; i++)
		t[i] = world_spawn("writer", write_events, (void *)&number[i]);
	while (atomic_load(&writing))
		read_events(r);
	for (u32 i = 0; i < WRITERS; i++)
		world_join(t[i]);
	read_events(r);
}

static void test_events_are_whole_ordered_and_counted(void **state)
{
	struct reading r;

	(void)state;
	assert_int_equal(trace_start(&slot, 64), 0); /* small: much is overwritten */
	run_writers(&r);
	assert_int_equal(r.count + r.lost, (u64)WRITERS * EVENTS);
	assert_true(r.count >= 64);
	trace_finish(&slot);
}

static void test_nothing_is_lost_in_large_rings(void **state)
{
	struct reading r;

	(void)state;
	assert_int_equal(trace_start(&slot, EVENTS), 0);
	run_writers(&r);
	assert_int_equal(r.lost, 0);
	assert_int_equal(r.count, (u64)WRITERS * EVENTS);
	trace_finish(&slot);
}

/* More threads than there may be rings, one after the other. */
static void put_one(void *arg)
{
	const s64 f[] = { *(const s64 *)arg };

	trace_put(&slot, TRACE_WRITEBACK_PAGES_WRITTEN, f, 1);
}

static void test_rings_of_ended_threads_are_used_again(void **state)
{
	struct trace_event e;
	u64 lost;

	(void)state;
	assert_int_equal(trace_start(&slot, 8), 0);
	for (s64 i = 0; i < 1000; i++) {
		world_join(world_spawn("short", put_one, &i));
		assert_int_equal(trace_read(&slot, &e, 1, &lost), 1);
		assert_int_equal(e.field[0], i);
	}
	assert_int_equal(lost, 0);
	trace_finish(&slot);
}

static _Atomic u32 stop;

static void write_on(void *unused)
{
	const s64 f[] = { 1 };

	(void)unused;
	while (!atomic_load(&stop))
		trace_put(&slot, TRACE_WRITEBACK_PAGES_WRITTEN, f, 1);
}

static void test_starting_and_stopping_under_writers(void **state)
{
	struct trace_event e[16];
	struct task *t[2];

	(void)state;
	atomic_store(&stop, 0);
	for (u32 i = 0; i < 2; i++)
		t[i] = world_spawn("writer", write_on, NULL);
	for (u32 i = 0; i < 300; i++) {
		assert_int_equal(trace_start(&slot, 8u << i % 3), 0);
		assert_true(trace_read(&slot, e, 16, NULL) >= 0);
		assert_int_equal(trace_stop(&slot), 0);
	}
	atomic_store(&stop, 1);
	for (u32 i = 0; i < 2; i++)
		world_join(t[i]);
	trace_finish(&slot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_are_whole_ordered_and_counted),
		cmocka_unit_test(test_nothing_is_lost_in_large_rings),
		cmocka_unit_test(test_rings_of_ended_threads_are_used_again),
		cmocka_unit_test(test_starting_and_stopping_under_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
