/* SPDX-License-Identifier: MIT */
/* Runs one test body in either world, so that both keep the same promises. */
#ifndef SLUICE_TESTS_WORLDS_H
#define SLUICE_TESTS_WORLDS_H

#include "world/lock.h"
#include "world/sim.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS NSEC_PER_MSEC
#define US NSEC_PER_USEC

/* A simulated machine. */
static inline struct world *make_sim(unsigned cpus, unsigned hz, u64 seed)
{
	struct sim_config c;
	struct world *w;

	sim_config_init(&c);
	c.cpus = cpus;
	c.hz = hz;
	c.seed = seed;
	c.cost_ns[COST_COPY] = 1; /* so that tests can spend any time */
	c.cost_ns[COST_WAKE] = 3000;
	w = sim_create(&c);
	assert_non_null(w);
	return w;
}

/* Runs fn in one; fails the test with the names of the stuck if it deadlocks. */
static inline void run_in_sim(unsigned cpus, void (*fn)(void *arg), void *arg)
{
	struct world *w = make_sim(cpus, 250, 1);
	char why[1000] = "";

	if (sim_run(w, fn, arg, why, sizeof(why)))
		fail_msg("%s", why);
	assert_false(world_is_sim());
	sim_destroy(w);
}

static inline void spend_ns(u64 ns)
{
	world_spend(COST_COPY, ns);
}

/* What happened, in order, and when. */
struct trace {
	int who[64];
	u64 when[64];
	unsigned count;
};

static struct trace trace __attribute__((unused));

static inline void note(int who)
{
	assert_true(trace.count < ARRAY_SIZE(trace.who));
	trace.who[trace.count] = who;
	trace.when[trace.count++] = world_now();
}

static inline void expect_trace(const int *who, const u64 *when, unsigned count)
{
	assert_int_equal(trace.count, count);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(trace.who[i], who[i]);
		assert_int_equal(trace.when[i], when[i]);
	}
	trace.count = 0;
}

/* A failed assertion in a fiber jumps out of its world: a test's setup unbinds it. */
static inline int setup_unbound(void **state)
{
	(void)state;
	world_bind(NULL);
	trace.count = 0;
	return 0;
}

#endif
