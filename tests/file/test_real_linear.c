// SPDX-License-Identifier: MIT
/*
 * Whether reads and writes of single blocks are linearizable: whether there is one order of all
 * operations, each at some moment between its call and its return, in which every read gives
 * what the last write before it wrote.
 *
 * Every write writes a value of its own, so it is known which write a read saw, and the question
 * is easy (Gibbons and Korach, "Testing shared memories", 1997, section 4.2). A write and the
 * reads that saw it are a cluster. It spans the time from its earliest return to its latest call.
 * If the return comes first, the value was in force all that time (a forward zone); else there is a
 * moment at which all of the cluster could have happened at once (a backward zone). There is an
 * order if and only if no two forward zones overlap, no backward zone lies within a forward one,
 * and no read returned before its write was called.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "file/inner.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS  6
#define WRITERS 2
#define READERS 2
#define STEPS   20000
#define WORDS   (PAGE_SIZE / 8)

struct op {
	u64 called, returned;
	u32 block;
	u32 value; /* of a block; 0: as it was at first */
	bool write;
};

/* What is known of one value of one block. */
struct cluster {
	u64 earliest_return, latest_call, write_called;
};

struct actor {
	struct file *file;
	struct task *task;
	u32 number;
	u32 count;
	struct op op[STEPS];
};

static struct engine *engine;
static struct device *device;
static _Atomic u64 ticks;
static _Atomic u32 working, ready;

static u64 tick(void)
{
	return atomic_fetch_add(&ticks, 1);
}

/* All begin at once. */
static void wait_for_all(void)
{
	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < WRITERS + READERS)
		world_sleep_until(world_now() + 10 * NSEC_PER_USEC);
}

static void writer(void *arg)
{
	struct actor *a = arg;
	u64 words[WORDS];
	struct rng rng;

	rng_init(&rng, a->number);
	wait_for_all();
	for (u32 i = 0; i < STEPS; i++) {
		struct op op = { .block = (u32)rng_below(&rng, BLOCKS),
				 .value = 1 + i * WRITERS + a->number,
				 .write = true };

		for (u32 w = 0; w < WORDS; w++)
			words[w] = op.value;
		op.called = tick();
		if (file_pwrite(a->file, words, PAGE_SIZE, op.block * (u64)PAGE_SIZE) != PAGE_SIZE)
			abort();
		op.returned = tick();
		a->op[a->count++] = op;
	}
	engine_task_exit(engine);
	atomic_fetch_sub(&working, 1);
}

static void reader(void *arg)
{
	struct actor *a = arg;
	u64 words[WORDS];
	struct rng rng;

	rng_init(&rng, 100 + a->number);
	wait_for_all();
	for (u32 i = 0; i < STEPS; i++) {
		struct op op = { .block = (u32)rng_below(&rng, BLOCKS) };

		op.called = tick();
		if (file_pread(a->file, words, PAGE_SIZE, op.block * (u64)PAGE_SIZE) != PAGE_SIZE)
			abort();
		op.returned = tick();
		op.value = (u32)words[0];
		for (u32 w = 0; w < WORDS; w++)
			if (words[w] != words[0])
				abort(); /* torn */
		a->op[a->count++] = op;
	}
	atomic_fetch_sub(&working, 1);
}

/* Makes folios go and come back. */
static void disturber(void *arg)
{
	struct file *f = arg;

	while (atomic_load(&working)) {
		if (file_fsync(f, false))
			abort();
		engine_drop_caches(engine);
		world_sleep_until(world_now() + 50 * NSEC_PER_USEC);
	}
}

static int by_earliest_return(const void *a, const void *b)
{
	const struct cluster *x = a, *y = b;

	return (x->earliest_return > y->earliest_return) -
	       (x->earliest_return < y->earliest_return);
}

/* The clusters of a block; returns how many. */
static u32 gather(const struct actor *actors, u32 block, struct cluster *c)
{
	u32 values = STEPS * WRITERS + 1, n = 0;

	for (u32 v = 0; v < values; v++)
		c[v] = (struct cluster){ .earliest_return = UINT64_MAX,
					 .write_called = UINT64_MAX };
	c[0] = (struct cluster){ 0 }; /* as if written before all else */
	for (u32 a = 0; a < WRITERS + READERS; a++) {
		for (u32 i = 0; i < actors[a].count; i++) {
			const struct op *op = &actors[a].op[i];
			struct cluster *of = &c[op->value];

			if (op->block != block)
				continue;
			assert_true(op->value < values);
			of->earliest_return = min_u64(of->earliest_return, op->returned);
			of->latest_call = max_u64(of->latest_call, op->called);
			if (op->write)
				of->write_called = op->called;
		}
	}
	for (u32 v = 0; v < values; v++) {
		if (c[v].earliest_return == UINT64_MAX)
			continue;
		/* not read before it was written, nor without having been written */
		assert_true(c[v].earliest_return >= c[v].write_called);
		c[n++] = c[v];
	}
	return n;
}

/* The zones of the clusters of a block are as they must be. */
static bool is_linearizable(const struct actor *actors, u32 block, struct cluster *c)
{
	u32 n = gather(actors, block, c);
	u64 end = 0; /* of the forward zones so far */

	qsort(c, n, sizeof(*c), by_earliest_return);
	for (u32 i = 0; i < n; i++) {
		if (c[i].earliest_return >= c[i].latest_call)
			continue;
		if (c[i].earliest_return < end)
			return false; /* two values in force at a time */
		end = c[i].latest_call;
		for (u32 j = i + 1; j < n && c[j].earliest_return < end; j++)
			if (c[j].earliest_return >= c[j].latest_call &&
			    c[j].latest_call > c[i].earliest_return)
				return false; /* another value within */
	}
	return true;
}

static void make_engine(void)
{
	struct engine_config c = { .memory_bytes = 1u << 20, .contents = true };
	struct device_config dc;

	c.policy = *policy_find("sluice");
	vm_settings_init(&c.vm);
	assert_int_equal(device_config_init(&dc, "memory"), 0);
	assert_int_equal(device_create(&dc, &device), 0);
	assert_int_equal(engine_create(&c, &engine), 0);
	assert_int_equal(engine_add_device(engine, device, 0, false), 0);
}

static void run(bool disturbed)
{
	struct actor *actors = calloc(WRITERS + READERS, sizeof(*actors));
	struct cluster *clusters = calloc(STEPS * WRITERS + 1, sizeof(*clusters));
	struct task *disturbs = NULL;
	struct inode *inode;
	struct file *f;

	assert_true(actors && clusters);
	make_engine();
	assert_int_equal(inode_create(engine, 0, PAGE_SIZE, &inode), 0);
	assert_int_equal(inode_truncate(inode, BLOCKS * (u64)PAGE_SIZE), 0);
	assert_int_equal(file_open(inode, 0, &f), 0);
	atomic_store(&ticks, 1);
	atomic_store(&ready, 0);
	atomic_store(&working, WRITERS + READERS);
	for (u32 i = 0; i < WRITERS + READERS; i++) {
		actors[i].file = f;
		actors[i].number = i;
		actors[i].task = world_spawn("linear", i < WRITERS ? writer : reader, &actors[i]);
		assert_non_null(actors[i].task);
	}
	if (disturbed)
		disturbs = world_spawn("disturber", disturber, f);
	for (u32 i = 0; i < WRITERS + READERS; i++)
		world_join(actors[i].task);
	if (disturbs)
		world_join(disturbs);
	for (u32 block = 0; block < BLOCKS; block++)
		if (!is_linearizable(actors, block, clusters))
			fail_msg("block %u has no order", block);
	file_close(f);
	assert_int_equal(engine_destroy(engine), 0);
	device_destroy(device);
	free(actors);
	free(clusters);
}

static void test_hits_are_linearizable(void **state)
{
	(void)state;
	run(false);
}

static void test_so_are_misses_among_them(void **state)
{
	(void)state;
	run(true);
}

/* The checker itself: one write after the other, and a read of the first one's value. */
static void test_the_checker_tells(void **state)
{
	static const struct {
		struct op read;
		bool in_order;
	} cases[] = {
		{ { 2, 3, 0, 0, false }, true },  /* before the first write was seen */
		{ { 5, 6, 0, 0, false }, false }, /* what was there before, after the first write */
		{ { 6, 8, 0, 1, false }, true },  /* while the second is under way */
		{ { 10, 11, 0, 1, false }, false } /* after it */
	};
	struct op writes[] = { { 1, 4, 0, 1, true }, { 7, 9, 0, 2, true } };
	struct actor *a = calloc(WRITERS + READERS, sizeof(*a));
	struct cluster *c = calloc(STEPS * WRITERS + 1, sizeof(*c));

	(void)state;
	assert_true(a && c);
	memcpy(a[0].op, writes, sizeof(writes));
	a[0].count = 2;
	a[2].count = 1;
	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		a[2].op[0] = cases[i].read;
		assert_int_equal(is_linearizable(a, 0, c), cases[i].in_order);
	}
	free(a);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_checker_tells),
		cmocka_unit_test(test_hits_are_linearizable),
		cmocka_unit_test(test_so_are_misses_among_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
