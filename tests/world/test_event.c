// SPDX-License-Identifier: MIT
/* Timer ticks and events of the simulated world. */
#include "base/rng.h"
#include "worlds.h"

/* --- jiffies --- */

static void jiffies_main(void *arg)
{
	u64 hz = world_hz(), tick = NSEC_PER_SEC / hz;

	(void)arg;
	assert_int_equal(world_jiffies(), 300 * hz);
	world_sleep_until(tick - 1);
	assert_int_equal(world_jiffies(), 300 * hz);
	world_sleep_until(tick);
	assert_int_equal(world_jiffies(), 300 * hz + 1);
	world_sleep_jiffies(1);
	assert_int_equal(world_now(), 3 * tick);
	world_sleep_until(3 * tick + tick / 2);
	world_sleep_jiffies(1); /* a whole period, and the rest of this tick */
	assert_int_equal(world_now(), 5 * tick);
	world_sleep_until(6 * tick - 1);
	world_sleep_jiffies(62);
	assert_int_equal(world_now(), 68 * tick);
	/* 300 * hz is a multiple of 8: levels of 8 ticks stand on multiples of 8 ticks */
	world_sleep_jiffies(63);
	assert_int_equal(world_now(), 136 * tick);
	world_sleep_jiffies(64); /* 200 would be early by the part of the tick that has passed */
	assert_int_equal(world_now(), 208 * tick);
	world_sleep_jiffies(65);
	assert_int_equal(world_now(), 280 * tick);
	world_sleep_jiffies(503);
	assert_int_equal(world_now(), 784 * tick);
}

static void coarse_main(void *arg)
{
	static const u64 at[] = { 504, 4032, 40000 }, unit[] = { 64, 512, 4096 };
	u64 before;

	(void)arg;
	for (unsigned i = 0; i < ARRAY_SIZE(at); i++) {
		before = world_jiffies();
		world_sleep_jiffies(at[i]);
		assert_int_equal(world_jiffies() % unit[i], 0);
		assert_true(world_jiffies() > before + at[i]);
		assert_true(world_jiffies() <= before + at[i] + unit[i]);
		assert_int_equal(world_now() % (NSEC_PER_SEC / world_hz()), 0);
		world_sleep_jiffies(1);
	}
}

static void exact_main(void *arg)
{
	const u64 *expected = arg;

	world_sleep_jiffies(512);
	assert_int_equal(world_now(), expected[0]);
	world_sleep_jiffies(5000);
	assert_int_equal(world_now(), expected[1]);
}

static void test_jiffies(void **state)
{
	static const unsigned hz[] = { 100, 250, 1000 };
	/* jiffies 30000, 75000, 300000 + 512 -> 30528, 75520, 300544, and so on */
	static const u64 exact[][2] = {
		{ 528 * 10 * MS, 5840 * 10 * MS },
		{ 520 * 4 * MS, 5896 * 4 * MS },
		{ 544 * MS, 5664 * MS },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(hz); i++) {
		struct world *w = make_sim(1, hz[i], 1);

		assert_int_equal(sim_run(w, jiffies_main, NULL, NULL, 0), 0);
		sim_destroy(w);
		w = make_sim(1, hz[i], 1);
		assert_int_equal(sim_run(w, coarse_main, NULL, NULL, 0), 0);
		sim_destroy(w);
		w = make_sim(1, hz[i], 1);
		assert_int_equal(sim_run(w, exact_main, (void *)exact[i], NULL, 0), 0);
		sim_destroy(w);
	}
}

/* --- events --- */

struct numbered {
	struct sim_event event;
	int number;
};

static void numbered_fn(struct sim_event *e)
{
	struct numbered *n = container_of(e, struct numbered, event);

	assert_int_equal(world_task_id(), 0);
	assert_int_equal(world_now(), e->when);
	assert_false(sim_event_pending(e));
	note(n->number);
	spend_ns(12345); /* charged to nobody */
	if (n->number == 9) {
		n->number = 10;
		sim_event_at(e, world_current->clock_ns); /* again in this instant */
	}
}

static void events_main(void *arg)
{
	struct numbered e[6];

	(void)arg;
	for (int i = 0; i < 6; i++) {
		sim_event_init(&e[i].event, numbered_fn);
		e[i].number = i;
		assert_false(sim_event_cancel(&e[i].event));
	}
	e[5].number = 9;
	sim_event_at(&e[3].event, MS);
	sim_event_at(&e[5].event, MS);
	sim_event_at(&e[1].event, MS);
	sim_event_at(&e[0].event, MS);
	sim_event_at(&e[2].event, 2 * MS);
	sim_event_at(&e[4].event, 3 * MS);
	sim_event_at(&e[3].event, MS);     /* moved behind the others of the instant */
	sim_event_at(&e[2].event, 4 * MS); /* later */
	sim_event_at(&e[4].event, MS / 2); /* sooner */
	sim_event_at(&e[1].event, 5 * MS);
	assert_true(sim_event_pending(&e[1].event));
	assert_true(sim_event_cancel(&e[1].event));
	assert_false(sim_event_cancel(&e[1].event));
	world_sleep_until(10 * MS);
}

static void test_events(void **state)
{
	struct world *w = make_sim(1, 250, 1);
	struct sim_stats stats;

	(void)state;
	assert_int_equal(sim_run(w, events_main, NULL, NULL, 0), 0);
	expect_trace((int[]){ 4, 9, 0, 3, 10, 2 }, (u64[]){ MS / 2, MS, MS, MS, MS, 4 * MS }, 6);
	sim_stats(w, &stats);
	assert_int_equal(stats.events, 7);
	assert_int_equal(stats.cpu_busy_ns, 0);
	sim_destroy(w);
}

/* The heap against a list sorted by (time, order of scheduling), with moves and cancels. */
#define MANY 500

static struct many {
	struct sim_event event;
	u64 when, order;
	bool scheduled;
} many[MANY];
static u64 many_last_when, many_last_order, many_called;

static void many_fn(struct sim_event *e)
{
	struct many *m = container_of(e, struct many, event);

	assert_true(m->scheduled);
	assert_int_equal(m->when, world_now());
	assert_true(m->when > many_last_when ||
		    (m->when == many_last_when && m->order > many_last_order));
	many_last_when = m->when;
	many_last_order = m->order;
	m->scheduled = false;
	many_called++;
}

static void many_main(void *arg)
{
	struct rng r;
	u64 left = 0;

	(void)arg;
	rng_init(&r, 42);
	for (unsigned i = 0; i < MANY; i++)
		sim_event_init(&many[i].event, many_fn);
	for (u64 step = 1; step <= 20 * MANY; step++) {
		struct many *m = &many[rng_below(&r, MANY)];

		if (rng_below(&r, 4) == 0) {
			assert_int_equal(sim_event_cancel(&m->event), m->scheduled);
			m->scheduled = false;
			continue;
		}
		m->when = 1 + rng_below(&r, 100);
		m->order = step;
		m->scheduled = true;
		sim_event_at(&m->event, m->when);
	}
	for (unsigned i = 0; i < MANY; i++)
		left += many[i].scheduled;
	assert_true(left > MANY / 2);
	world_sleep_until(1000);
	assert_int_equal(many_called, left);
}

static void test_many_events(void **state)
{
	(void)state;
	many_last_when = many_called = 0;
	run_in_sim(1, many_main, NULL);
}

/* --- a wake-up from an event; spawning from one; what is left is cancelled --- */

static struct task *from_event;
static _Atomic u32 word;

static void late(void *arg)
{
	(void)arg;
	note(2);
}

static void waking_fn(struct sim_event *e)
{
	(void)e;
	world_unpark(&word, 1);
	from_event = world_spawn("late", late, NULL);
}

static struct sim_event waking, left_over;

static void waking_main(void *arg)
{
	(void)arg;
	atomic_store(&word, 0);
	sim_event_init(&waking, waking_fn);
	sim_event_init(&left_over, waking_fn);
	sim_event_at(&waking, MS);
	sim_event_at(&left_over, 100 * MS);
	assert_int_equal(world_park(&word, 0, WORLD_NEVER), 0);
	note(1);
	world_join(from_event);
}

static void test_event_wakes_and_spawns(void **state)
{
	(void)state;
	run_in_sim(1, waking_main, NULL);
	expect_trace((int[]){ 2, 1 }, (u64[]){ MS, MS + 3000 }, 2);
	assert_false(sim_event_pending(&left_over));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_jiffies, setup_unbound),
		cmocka_unit_test_setup(test_events, setup_unbound),
		cmocka_unit_test_setup(test_many_events, setup_unbound),
		cmocka_unit_test_setup(test_event_wakes_and_spawns, setup_unbound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
