// SPDX-License-Identifier: MIT
/*
 * Traces in the simulated world, where every event has one place and one time. Limits as in
 * test_throttle.c: 64 MiB have thresh 3276, background 1636, free running up to 2456 pages.
 */
#include "../file/rig.h"
#include "writeback/trace.h"

#define SEEN_MAX 20000

static struct trace_event seen[SEEN_MAX];
static u32 seen_count;

static void see(void *ctx, const struct trace_event *e)
{
	assert_ptr_equal(ctx, seen);
	assert_true(seen_count < SEEN_MAX);
	seen[seen_count++] = *e;
}

/* The value of a field by its name. */
static s64 value(const struct trace_event *e, const char *name)
{
	for (u32 i = 0; trace_field(e->kind, i); i++)
		if (!strcmp(trace_field(e->kind, i), name))
			return e->field[i];
	fail_msg("%s has no field %s", trace_name(e->kind), name);
	return 0;
}

static const struct trace_event *first_of(enum trace_kind kind)
{
	for (u32 i = 0; i < seen_count; i++)
		if (seen[i].kind == kind)
			return &seen[i];
	fail_msg("no %s", trace_name(kind));
	return NULL;
}

static u32 count_of(enum trace_kind kind)
{
	u32 n = 0;

	for (u32 i = 0; i < seen_count; i++)
		n += seen[i].kind == kind;
	return n;
}

static struct trace_slot *slot_of(struct rig *r)
{
	return &engine_writeback(r->e)->trace;
}

/* A device that writes 250 pages a second. */
static struct rig *open_slow(void)
{
	struct rig *r = rig_new("linux-7.4", 64 * MIB);

	r->config.contents = false;
	r->device_config.bytes_per_s = 250 * 4096;
	rig_start(r);
	seen_count = 0;
	return r;
}

RIG_TEST(test_a_throttled_writer_is_told_of)
{
	struct rig *r = open_slow();
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	struct engine_stats s;
	const struct trace_event *e;
	s64 pauses_ms = 0;

	assert_int_equal(trace_start_sink(slot_of(r), see, seen), 0);
	rig_dirty(f, 0, 3500);
	assert_int_equal(trace_stop(slot_of(r)), 0);
	engine_stats(r->e, &s);
	assert_true(s.throttle_sleeps > 0);
	assert_int_equal(count_of(TRACE_BALANCE_DIRTY_PAGES), s.throttle_calls);
	for (u32 i = 0; i < seen_count; i++) {
		s64 pause;

		assert_true(!i || seen[i].time_ns >= seen[i - 1].time_ns);
		if (seen[i].kind != TRACE_BALANCE_DIRTY_PAGES)
			continue;
		assert_int_equal(value(&seen[i], "limit"), 3276);
		assert_int_equal(value(&seen[i], "setpoint"), (3276 + 2456) / 2);
		assert_true(value(&seen[i], "dirty") > 2456);
		assert_true(value(&seen[i], "dirtied") > 0);
		pause = value(&seen[i], "pause");
		pauses_ms += pause > 0 ? pause : 0;
		assert_true(pause <= 200);
	}
	assert_int_equal(pauses_ms, s.throttle_sleep_ns / NSEC_PER_MSEC);
	e = first_of(TRACE_GLOBAL_DIRTY_STATE);
	assert_int_equal(value(e, "background_thresh"), 1636);
	assert_int_equal(value(e, "dirty_thresh"), 3276);
	assert_int_equal(value(e, "nr_dirty"), 25); /* 3276 / (32 * 4 CPUs): a CPU is full */
	assert_int_equal(value(e, "nr_dirtied"), 25);
	assert_int_equal(e->thread, 1);
	e = first_of(TRACE_WRITEBACK_WAKE_BACKGROUND);
	assert_int_equal(value(e, "bdi"), 0);
	e = first_of(TRACE_BDI_DIRTY_RATELIMIT);
	assert_true(value(e, "write_bw") > 0 && value(e, "write_bw") % 4 == 0); /* pages to KiB */
	rig_end(r, f);
}

RIG_TEST(test_a_sync_is_told_of_from_its_queueing_to_its_end)
{
	static const enum trace_kind order[] = {
		TRACE_WRITEBACK_QUEUE,
		TRACE_WRITEBACK_EXEC,
		TRACE_WRITEBACK_QUEUE_IO,
		TRACE_WRITEBACK_START,
		TRACE_WRITEBACK_SINGLE_INODE_START,
		TRACE_WRITEBACK_SINGLE_INODE,
		TRACE_WRITEBACK_WRITTEN,
	};
	struct rig *r = rig_open("linux-7.4");
	struct inode *first = rig_inode(r, 4096);
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	u32 at = 0;

	seen_count = 0;
	rig_write(f, 0, 40 * KIB, 1);
	assert_int_equal(trace_start_sink(slot_of(r), see, seen), 0);
	assert_int_equal(engine_sync(r->e), 0);
	trace_stop(slot_of(r));
	for (u32 i = 0; i < seen_count && at < ARRAY_SIZE(order); i++)
		at += seen[i].kind == order[at];
	assert_int_equal(at, ARRAY_SIZE(order));
	assert_int_equal(value(first_of(TRACE_WRITEBACK_QUEUE), "reason"), WB_REASON_SYNC);
	assert_int_equal(value(first_of(TRACE_WRITEBACK_QUEUE), "sync_mode"), 1);
	assert_int_equal(value(first_of(TRACE_WRITEBACK_QUEUE_IO), "enqueue"), 1);
	assert_int_equal(value(first_of(TRACE_WRITEBACK_SINGLE_INODE), "ino"), 2);
	assert_int_equal(count_of(TRACE_WRITEBACK_PAGES_WRITTEN), 1);
	rig_drop(f);
	inode_destroy(first);
	rig_close(r);
}

/* Nothing of a run depends on whether somebody looks on. */
static u64 run_ns(bool traced)
{
	struct rig *r = open_slow();
	struct file *f = rig_file(rig_inode(r, 4096), 0);
	u64 start = world_now(), took;

	if (traced)
		assert_int_equal(trace_start_sink(slot_of(r), see, seen), 0);
	rig_dirty(f, 0, 3500);
	took = world_now() - start;
	assert_int_equal(seen_count > 0, traced);
	rig_end(r, f);
	return took;
}

static u64 times_ns[2];

static void run_plain(void *unused)
{
	(void)unused;
	times_ns[0] = run_ns(false);
}

static void run_traced(void *unused)
{
	(void)unused;
	times_ns[1] = run_ns(true);
}

static void test_looking_on_changes_nothing(void **state)
{
	(void)state;
	rig_run(run_plain, NULL);
	rig_run(run_traced, NULL);
	assert_true(times_ns[0] > NSEC_PER_SEC);
	assert_int_equal(times_ns[0], times_ns[1]);
}

RIG_TEST(test_a_ring_keeps_the_newest_and_counts_the_lost)
{
	struct trace_slot slot = { .all = NULL };
	struct trace_event e[64];
	u64 lost = 99;

	assert_int_equal(trace_start(&slot, 16), 0); /* 32 slots, of which one is at risk */
	for (s64 i = 0; i < 10; i++)
		trace_put(&slot, TRACE_WRITEBACK_PAGES_WRITTEN, &i, 1);
	assert_int_equal(trace_read(&slot, e, 4, &lost), 4);
	assert_int_equal(lost, 0);
	assert_int_equal(e[3].field[0], 3);
	assert_int_equal(trace_read(&slot, e, 64, &lost), 6);
	assert_int_equal(e[5].field[0], 9);
	assert_int_equal(trace_read(&slot, e, 64, NULL), 0);
	for (s64 i = 10; i < 110; i++)
		trace_put(&slot, TRACE_WRITEBACK_PAGES_WRITTEN, &i, 1);
	assert_int_equal(trace_read(&slot, e, 64, &lost), 31);
	assert_int_equal(lost, 100 - 31);
	for (u32 i = 0; i < 31; i++)
		assert_int_equal(e[i].field[0], 79 + i);
	assert_int_equal(trace_stop(&slot), 0);
	trace_finish(&slot);
	assert_int_equal(atomic_load(&trace_word), 0);
}

RIG_TEST(test_tracing_is_on_once_and_starts_empty)
{
	struct trace_slot slot = { .all = NULL };
	struct trace_event e[4];
	const s64 f[] = { 1 };
	u64 lost;

	assert_int_equal(trace_read(&slot, e, 4, NULL), -ENODATA);
	assert_int_equal(trace_stop(&slot), -ENODATA);
	assert_false(trace_on());
	assert_int_equal(trace_start(&slot, 8), 0);
	assert_true(trace_on());
	assert_int_equal(trace_start(&slot, 8), -EBUSY);
	assert_int_equal(trace_start_sink(&slot, see, seen), -EBUSY);
	for (u32 i = 0; i < 40; i++)
		trace_put(&slot, TRACE_WRITEBACK_PAGES_WRITTEN, f, 1);
	assert_int_equal(trace_stop(&slot), 0);
	assert_false(trace_on());
	trace_put(&slot, TRACE_WRITEBACK_PAGES_WRITTEN, f, 1); /* too late: nowhere */
	assert_int_equal(trace_start(&slot, 8), 0);
	assert_int_equal(trace_read(&slot, e, 4, &lost), 0);
	assert_int_equal(lost, 0);
	assert_int_equal(trace_start(&slot, 8), -EBUSY);
	trace_finish(&slot);
	assert_false(trace_on());
}

static void test_events_have_names_and_text(void **state)
{
	const struct trace_event e = { .kind = TRACE_WRITEBACK_QUEUE_IO,
				       .field = { 3, -4, 5, 6, WB_REASON_PERIODIC } };
	const struct trace_event no = { .kind = TRACE_KINDS };
	static const char text[] = "writeback_queue_io: bdi 0:3: older=-4 age=5 enqueue=6 "
				   "reason=periodic";
	char buf[200];

	(void)state;
	assert_int_equal(trace_print(&e, buf, sizeof(buf)), strlen(text));
	assert_string_equal(buf, text);
	assert_int_equal(trace_print(&e, buf, 8), strlen(text)); /* cut, as snprintf does */
	assert_string_equal(buf, "writeba");
	assert_int_equal(trace_print(&e, NULL, 0), strlen(text));
	assert_int_equal(trace_print(&no, buf, sizeof(buf)), -EINVAL);
	for (u32 i = 0; i < TRACE_KINDS; i++) {
		assert_non_null(trace_name(i));
		assert_non_null(trace_field(i, 0));
	}
	assert_null(trace_name(TRACE_KINDS));
	assert_null(trace_field(TRACE_KINDS, 0));
	assert_string_equal(trace_field(TRACE_BALANCE_DIRTY_PAGES, 13), "think");
	assert_null(trace_field(TRACE_BALANCE_DIRTY_PAGES, 14));
	assert_null(trace_field(TRACE_WRITEBACK_PAGES_WRITTEN, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_throttled_writer_is_told_of),
		cmocka_unit_test(test_a_sync_is_told_of_from_its_queueing_to_its_end),
		cmocka_unit_test(test_looking_on_changes_nothing),
		cmocka_unit_test(test_a_ring_keeps_the_newest_and_counts_the_lost),
		cmocka_unit_test(test_tracing_is_on_once_and_starts_empty),
		cmocka_unit_test(test_events_have_names_and_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
