/* SPDX-License-Identifier: MIT */
/*
 * A few workers, tasks of the real world and so OS threads, take case after case
 * from one counter until there is none left. A worker binds a simulated world while
 * it runs a case, so nothing here may block through the world in between: what the
 * workers share is atomic, and of several that want to report progress at once one
 * does and the others go on.
 */
#include "lab/lab.h"
#include "base/bits.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define REPORT_NS (NSEC_PER_SEC / 10) /* wall time between two reports of progress */

struct lab {
	const struct plan *plan;
	const struct lab_options *options;
	struct lab_result *results;
	struct share *shares; /* one of each case */
	u64 started_ns;
	_Atomic size_t next, done;
	atomic_flag reporting; /* guards reported_ns and the call of progress() */
	u64 reported_ns;
};

/* What a case tells the others: how far it is, and how far it will go. */
struct share {
	struct lab *lab;
	const struct experiment_case *c;
	u64 guess_ns;
	_Atomic u64 virtual_ns;
	_Atomic bool done;
};

static void sum_up(const struct lab *lab, const struct share *newest, struct lab_progress *p)
{
	double left_s = 0;
	bool open = false;

	*p = (struct lab_progress){ .done = lab->done, .total = lab->plan->count };
	p->newest = newest->c->name;
	p->wall_s = (double)(world_now_real() - lab->started_ns) / NSEC_PER_SEC;
	for (size_t i = 0; i < lab->plan->count; i++) {
		const struct share *s = &lab->shares[i];
		u64 now_ns = s->virtual_ns;

		p->virtual_s += (double)now_ns / NSEC_PER_SEC;
		open |= !s->guess_ns;
		if (!s->done && s->guess_ns > now_ns)
			left_s += (double)(s->guess_ns - now_ns) / NSEC_PER_SEC;
	}
	p->left_s = open || p->virtual_s <= 0 ? -1 : left_s * p->wall_s / p->virtual_s;
}

static void report(struct lab *lab, const struct share *newest, bool always)
{
	struct lab_progress p;
	u64 now_ns = world_now_real();

	if (!lab->options->progress || atomic_flag_test_and_set(&lab->reporting))
		return;
	if (always || now_ns - lab->reported_ns >= REPORT_NS) {
		lab->reported_ns = now_ns;
		sum_up(lab, newest, &p);
		lab->options->progress(lab->options->progress_ctx, &p);
	}
	atomic_flag_clear(&lab->reporting);
}

static void tick(void *ctx, u64 now_ns)
{
	struct share *s = ctx;

	s->virtual_ns = now_ns;
	report(s->lab, s, false);
}

static void work(void *arg)
{
	struct lab *lab = arg;
	const struct case_watch watch = { lab->options->record, lab->options->trace };
	size_t i;

	while ((i = lab->next++) < lab->plan->count) {
		struct share *s = &lab->shares[i];

		run_case_watched(lab->plan->experiment, s->c, lab->options->seed, tick, s, &watch,
				 &lab->results[i]);
		s->virtual_ns = (u64)(lab->results[i].virtual_s * NSEC_PER_SEC);
		s->done = true;
		lab->done++;
		report(lab, s, true);
	}
}

/* Starts as many workers as there is memory for; whoever starts them works too. */
static void work_together(struct lab *lab, unsigned workers)
{
	struct task **tasks = calloc(workers, sizeof(struct task *));

	for (unsigned i = 1; tasks && i < workers; i++)
		tasks[i] = world_spawn("lab", work, lab);
	work(lab);
	for (unsigned i = 1; tasks && i < workers; i++)
		if (tasks[i])
			world_join(tasks[i]);
	free(tasks);
}

int lab_run(const struct plan *plan, const struct lab_options *o, struct lab_result *results)
{
	struct lab lab = {
		.plan = plan,
		.options = o,
		.results = results,
		.started_ns = world_now_real(),
		.reporting = ATOMIC_FLAG_INIT,
	};
	unsigned workers =
		o->jobs ? o->jobs : (unsigned)max_u64(1, (u64)sysconf(_SC_NPROCESSORS_ONLN));

	assert(!world_is_sim() && (!o->trace || plan->count == 1));
	lab.shares = calloc(plan->count, sizeof(*lab.shares));
	if (!lab.shares)
		return -ENOMEM;
	for (size_t i = 0; i < plan->count; i++) {
		lab.shares[i].lab = &lab;
		lab.shares[i].c = &plan->cases[i];
		lab.shares[i].guess_ns = run_guess_ns(plan->experiment, &plan->cases[i]);
	}
	work_together(&lab, (unsigned)min_u64(workers, plan->count));
	if (plan->count) /* whoever ended last may have found another reporting */
		report(&lab, &lab.shares[plan->count - 1], true);
	free(lab.shares);
	return 0;
}

void lab_results_finish(struct lab_result *results, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		series_destroy(results[i].series);
		results[i].series = NULL;
	}
}
