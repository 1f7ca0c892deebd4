/* SPDX-License-Identifier: MIT */
/* What the simulator's steps cost in real time. */
#include "world/sim.h"
#include "bench.h"
#include "world/lock.h"

struct machine {
	unsigned tasks, cpus;
	void (*task)(void *arg); /* takes its share of the steps */
	u64 steps;               /* of all tasks together */
	struct mutex mutex;
	struct cond cond;
	unsigned turn;
	unsigned started;
};

static u64 share(const struct machine *m)
{
	return m->steps / m->tasks + 1;
}

/* Sleeps of different lengths, so that the event queue is really shuffled. */
static void sleeps(void *arg)
{
	struct machine *m = arg;
	u64 step_ns = 1000 + 37 * m->started++;

	for (u64 i = share(m); i; i--) {
		world_spend(COST_LOOKUP, 1);
		world_sleep_until(world_now() + step_ns);
	}
}

static void yields(void *arg)
{
	for (u64 i = share(arg); i; i--)
		world_sleep_until(0);
}

static void takes_turns(void *arg)
{
	struct machine *m = arg;
	unsigned me = m->started++;

	for (u64 i = share(m); i; i--) {
		mutex_lock(&m->mutex);
		while (m->turn != me)
			cond_wait(&m->cond, &m->mutex);
		m->turn = (m->turn + 1) % m->tasks;
		cond_broadcast(&m->cond);
		mutex_unlock(&m->mutex);
	}
}

static void locks(void *arg)
{
	struct machine *m = arg;

	for (u64 i = share(m); i; i--) {
		mutex_lock(&m->mutex);
		bench_keep(m);
		mutex_unlock(&m->mutex);
	}
}

static void nothing(void *arg)
{
	(void)arg;
}

static void spawns(void *arg)
{
	for (u64 i = share(arg); i; i--)
		world_join(world_spawn("nothing", nothing, NULL));
}

static void all_tasks(void *arg)
{
	struct machine *m = arg;
	struct task *t[1024];

	for (unsigned i = 0; i < m->tasks; i++)
		t[i] = world_spawn("task", m->task, m);
	for (unsigned i = 0; i < m->tasks; i++)
		world_join(t[i]);
}

static void run(void *arg, u64 n)
{
	struct machine *m = arg;
	struct sim_config c;
	struct world *w;

	sim_config_init(&c);
	c.cpus = m->cpus;
	m->steps = n;
	m->turn = m->started = 0;
	mutex_init(&m->mutex, RANK_NONE);
	cond_init(&m->cond);
	w = sim_create(&c);
	if (!w || sim_run(w, all_tasks, m, NULL, 0))
		exit(1);
	sim_destroy(w);
}

int main(void)
{
	bench_op("sleep: 64 tasks, 64 CPUs", run, &(struct machine){ 64, 64, .task = sleeps });
	bench_op("sleep: 64 tasks, 8 CPUs", run, &(struct machine){ 64, 8, .task = sleeps });
	bench_op("sleep: 1000 tasks, 32 CPUs", run, &(struct machine){ 1000, 32, .task = sleeps });
	bench_op("yield: 2 tasks, 1 CPU", run, &(struct machine){ 2, 1, .task = yields });
	bench_op("mutex, cond: 2 tasks in turn", run,
		 &(struct machine){ 2, 2, .task = takes_turns });
	bench_op("lock, unlock a free mutex", run, &(struct machine){ 1, 1, .task = locks });
	bench_op("spawn, join", run, &(struct machine){ 1, 1, .task = spawns });
	return 0;
}
