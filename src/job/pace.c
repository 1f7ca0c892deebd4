/* SPDX-License-Identifier: MIT */
/*
 * When a clone does its next I/O.
 *
 * Rates: after n bytes were issued, the next I/O is due n / rate after the epoch, in
 * whole microseconds. What is due in the past is issued at once, so that a job that was
 * held up catches up by issuing without pause. With rate_process=poisson the gaps are drawn
 * from an exponential distribution around the same mean instead.
 *
 * Flow: of the I/Os that all clones of a flow have done, each may have done its weight's
 * share, and waits for the others when it has done more.
 *
 * latency_target: the number of I/Os in flight is what is looked for. Every window in which
 * enough of them were in time doubles it, until one was too much; from there on the
 * interval between the largest good and the smallest bad one is halved. When it stands
 * still, figures are forgotten and one more window gives the result. This is fio's search.
 */
#include "job/clone.h"
#include <errno.h>

void clone_sleep_until(struct clone *c, u64 when)
{
	if (!c->run->interruptible) {
		world_sleep_until(when);
		return;
	}
	while (!atomic_load(&c->terminate) && world_now() < when)
		world_park(&c->terminate, 0, when);
}

u64 clone_deadline(const struct clone *c)
{
	u64 runtime = c->job->o.runtime_ns;

	return runtime && !c->ramping ? c->epoch_ns + runtime : WORLD_NEVER;
}

static u64 due_us(u64 bytes, u64 bps)
{
	u64 rest = bytes % bps;

	if (likely(rest < 1ull << 44))
		rest = rest * 1000000 / bps;
	else
		rest = (u64)((unsigned __int128)rest * 1000000 / bps);
	return bytes / bps * 1000000 + rest;
}

/* Exponential, with the mean that linear I/Os of the smallest block have. */
static u64 draw_gap_us(struct clone *c, enum job_dir dir)
{
	double mean = 1e6 * (double)c->job->o.bs_bytes[dir] / (double)c->rate_bps[dir];

	return (u64)(-exact_log(1 - rng_double(&c->arrivals)) * mean);
}

void clone_pace(struct clone *c, enum job_dir dir)
{
	if (!c->rate_bps[dir])
		return;
	if (c->job->o.rate_process) {
		c->rate_random_us[dir] += draw_gap_us(c, dir);
		c->rate_next_us[dir] = c->rate_random_us[dir] + c->rate_shift_us;
	} else {
		c->rate_next_us[dir] =
			due_us(c->issued_bytes[dir], c->rate_bps[dir]) + c->rate_shift_us;
	}
}

/*
 * A mixed job whose drawn direction must wait does one of the other direction instead if
 * that is due earlier.
 */
u64 clone_due_ns(const struct clone *c, enum job_dir *dir, u64 now)
{
	const struct job_options *o = &c->job->o;
	enum job_dir other = *dir == JOB_DIR_READ ? JOB_DIR_WRITE : JOB_DIR_READ;
	bool mixed = (o->rw & RW_READ) && (o->rw & RW_WRITE);
	u64 share = other == JOB_DIR_READ ? o->rwmixread : 100 - o->rwmixread;
	u64 elapsed_us = (now - c->epoch_ns) / NSEC_PER_USEC;

	if (likely(c->rate_next_us[*dir] <= elapsed_us))
		return 0;
	if (mixed && share && c->rate_next_us[other] < c->rate_next_us[*dir])
		*dir = other;
	if (c->rate_next_us[*dir] <= elapsed_us)
		return 0;
	return c->rate_next_us[*dir] * NSEC_PER_USEC;
}

bool clone_wait_for_rate(struct clone *c, u64 due)
{
	const struct job_options *o = &c->job->o;

	if (!c->ramping && o->runtime_ns && due >= o->runtime_ns) {
		clone_sleep_until(c, c->epoch_ns + o->runtime_ns);
		return false;
	}
	clone_sleep_until(c, c->epoch_ns + due);
	return !atomic_load(&c->terminate);
}

/* Uses the CPU. */
static void spin_until(struct clone *c, u64 when)
{
	while (world_now() < when && !atomic_load(&c->terminate)) {
		u64 left = when - world_now(), unit;

		if (!world_is_sim())
			continue;
		unit = world_current->cost_ns[COST_SYSCALL];
		if (!unit) {
			clone_sleep_until(c, when);
			return;
		}
		world_spend(COST_SYSCALL, max_u64(1, min_u64(left, WORLD_QUANTUM) / unit));
		world_breathe();
	}
}

void clone_shift_rates(struct clone *c, u64 ns)
{
	c->rate_shift_us += ns / NSEC_PER_USEC;
	for (int dir = 0; dir < JOB_DIRS; dir++)
		if (c->rate_bps[dir])
			c->rate_next_us[dir] += ns / NSEC_PER_USEC;
}

/* Pauses after every thinktime_blocks I/Os or thinktime_iotime, but not past the runtime. */
void clone_think_if_due(struct clone *c)
{
	const struct job_options *o = &c->job->o;
	u64 now = world_now(), until;
	bool by_count = o->thinktime_blocks && c->think_count >= o->thinktime_blocks;
	bool by_time = o->thinktime_iotime_ns && now - c->think_since_ns >= o->thinktime_iotime_ns;

	if (!o->thinktime_ns || !(by_count || by_time))
		return;
	c->think_count = 0;
	until = min_u64(now + o->thinktime_ns, clone_deadline(c));
	if (o->thinktime_spin_ns)
		spin_until(c, min_u64(until, now + o->thinktime_spin_ns));
	clone_sleep_until(c, until);
	c->think_since_ns = world_now();
	if (o->rate_ignore_thinktime)
		clone_shift_rates(c, c->think_since_ns - now);
}

static void flow_changed(struct flow *f)
{
	atomic_fetch_add(&f->progress, 1);
	world_unpark(&f->progress, ~0u);
}

void clone_terminate(struct clone *c)
{
	atomic_store(&c->terminate, 1);
	world_unpark(&c->terminate, ~0u);
	if (c->flow)
		flow_changed(c->flow);
}

void clone_join_flow(struct clone *c)
{
	struct flow *f = c->flow;

	if (!f)
		return;
	mutex_lock(&f->lock);
	f->weight += c->job->o.flow;
	mutex_unlock(&f->lock);
	c->flow_ios = 0;
	flow_changed(f);
}

void clone_leave_flow(struct clone *c)
{
	struct flow *f = c->flow;

	if (!f)
		return;
	mutex_lock(&f->lock);
	f->weight -= c->job->o.flow;
	f->ios -= c->flow_ios;
	mutex_unlock(&f->lock);
	flow_changed(f);
}

bool clone_flows(struct clone *c)
{
	struct flow *f = c->flow;
	u32 seen = atomic_load(&f->progress);
	bool ahead;

	mutex_lock(&f->lock);
	ahead = c->flow_ios * f->weight > c->job->o.flow * f->ios;
	f->ios += !ahead;
	mutex_unlock(&f->lock);
	c->flow_ios += !ahead;
	if (!ahead)
		flow_changed(f);
	else if (c->job->o.flow_sleep_ns)
		clone_sleep_until(
			c, min_u64(world_now() + c->job->o.flow_sleep_ns, clone_deadline(c)));
	else
		world_park(&f->progress, seen, clone_deadline(c));
	return !ahead;
}

void clone_depth_init(struct clone *c)
{
	u32 most = (u32)c->job->o.iodepth;
	bool searches = c->job->o.latency_target_ns;

	c->depth = searches ? 1 : most;
	c->depth_low = 1;
	c->depth_high = most;
	c->depth_steady = 0;
	c->depth_found = false;
}

static void begin_window(struct clone *c, u64 now)
{
	c->depth_since_ns = now;
	c->depth_ios = c->depth_late = 0;
}

static void lower_depth(struct clone *c, u64 now)
{
	if (c->depth == 1) {
		clone_fail(c, -ETIMEDOUT, "latency_target cannot be met with one I/O in flight");
		return;
	}
	c->depth_high = c->depth;
	c->depth_low -= c->depth == c->depth_low;
	c->depth = (c->depth + c->depth_low) / 2;
	c->depth_steady = 0;
	begin_window(c, now);
}

static void raise_depth(struct clone *c, u64 now)
{
	u32 before = c->depth, most = (u32)c->job->o.iodepth;

	c->depth_low = c->depth;
	if (c->depth + 1 == c->depth_high && ++c->depth_steady >= 3) {
		c->depth_high++;
		c->depth_steady = 0;
	}
	c->depth = c->depth_high != most ? (c->depth + c->depth_high) / 2 : 2 * c->depth;
	c->depth = (u32)min_u64(c->depth, most);
	if (!c->job->o.latency_run && c->depth == before) {
		if (c->depth_found)
			c->stop = true;
		else
			clone_forget_figures(c, now);
		c->depth_found = true;
	}
	begin_window(c, now);
}

void clone_depth_learn(struct clone *c, u64 latency_ns, u64 now)
{
	const struct job_options *o = &c->job->o;
	double share = o->latency_percentile.percent[0];
	bool late = latency_ns > o->latency_target_ns;

	c->depth_ios++;
	c->depth_late += late;
	if (late && share == 100) {
		lower_depth(c, now);
		return;
	}
	if (now - c->depth_since_ns < o->latency_window_ns)
		return;
	if ((double)(c->depth_ios - c->depth_late) * 100 >= share * (double)c->depth_ios)
		raise_depth(c, now);
	else
		lower_depth(c, now);
}
