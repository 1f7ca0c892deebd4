/* SPDX-License-Identifier: MIT */
/*
 * The throttle: who dirties pages faster than devices write them is put to sleep, so
 * that dirty settles half way between free running and the limit. Linux writeback
 * reference, section 5 (balance_dirty_pages); step numbers below are those of 5.2.
 *
 * Each task counts what it dirtied since it last looked, and looks again after
 * nr_dirtied_pause pages; each CPU counts too, against many tasks that dirty a
 * little each. A look below the free running ceiling only chooses the next interval.
 * Above it the task owes time: pages / (rate that balances * position ratio), less the
 * time it spent otherwise since its last pause, and sleeps that off in whole ticks.
 *
 * An update of the estimates takes a few microseconds, and Linux does not look again whether it
 * is due once it has the lock: a task on another CPU that looks meanwhile does it too, over a time
 * of one tick in which next to nothing was dirtied. Tasks that sleep wake in the same tick, so
 * this is frequent. Here it happens in the simulated world, when two tasks look within the time
 * of one update of each other.
 *
 * The policy's accounting decides what is read as dirty and what a write is charged; the
 * law is the same.
 */
#include "writeback/pause.h"
#include "writeback/position.h"
#include "writeback/ratelimit.h"
#include "writeback/wb.h"
#include <errno.h>

/* Task-local words. */
enum { LOCAL_DIRTIED, LOCAL_INTERVAL, LOCAL_PAUSED_WHEN };

/* What a task owes; a view of its local words. */
struct dirtier {
	u64 *nr_dirtied;
	u64 *interval; /* nr_dirtied_pause + 1, or 0 in a new task */
	u64 *dirty_paused_when;
};

static struct dirtier dirtier_self(void)
{
	return (struct dirtier){ world_local(LOCAL_DIRTIED), world_local(LOCAL_INTERVAL),
				 world_local(LOCAL_PAUSED_WHEN) };
}

static u64 interval_of(const struct dirtier *t)
{
	return *t->interval ? *t->interval - 1 : DIRTY_POLL_PAGES;
}

static struct wb_cpu *this_cpu(struct writeback *all)
{
	return &all->cpu[world_cpu() % all->cpus];
}

void throttle_charge(struct writeback *all, u32 pages)
{
	if (!pages)
		return;
	*world_local(LOCAL_DIRTIED) += pages;
	atomic_fetch_add_explicit(&this_cpu(all)->dirtied, pages, memory_order_relaxed);
}

/* One look: everything the decision is made from. */
struct look {
	u64 now; /* jiffies */
	struct limits limits;
	u64 nr_dirty; /* without writeback */
	struct position at;
	u64 pos_ratio;
};

static void take_look(struct wb *wb, struct look *k)
{
	struct writeback *all = wb->all;
	const struct policy *p = &all->policy;

	k->now = world_jiffies();
	k->limits = writeback_limits(all);
	k->nr_dirty = writeback_dirty(all);
	k->at = (struct position){
		.thresh = k->limits.thresh,
		.bg = k->limits.bg,
		.dirty = k->nr_dirty + writeback_in_flight(all),
		.strictlimit = wb->strict_limit,
		.floor_in_position = p->wb_floor == WB_FLOOR_POSITION,
	};
}

/* The device's side of a look; not needed while the whole cache is running free. */
static void look_at_wb(struct wb *wb, struct look *k)
{
	const struct policy *p = &wb->all->policy;

	k->at.wb_thresh = wb_threshold(wb, k->at.thresh, k->at.dirty);
	k->at.wb_bg_thresh = wb_bg_thresh(k->at.wb_thresh, k->at.thresh, k->at.bg);
	k->at.wb_dirty = account_dirty(p, &wb->ledger) + account_writeback(p, &wb->ledger);
	k->at.avg_write_bw = wb_avg_bandwidth(wb);
}

/* Step 3: below its ceiling nobody owes anything; *interval is when to look again. */
static bool runs_free(struct wb *wb, struct look *k, u64 *interval)
{
	if (!wb->strict_limit) {
		if (k->at.dirty > limits_freerun(k->at.thresh, k->at.bg))
			return false;
		*interval = poll_interval(k->at.dirty, k->at.thresh);
		return true;
	}
	look_at_wb(wb, k);
	if (k->at.wb_dirty > limits_freerun(k->at.wb_thresh, k->at.wb_bg_thresh))
		return false;
	*interval = poll_interval(k->at.wb_dirty, k->at.wb_thresh);
	return true;
}

static void wake_flusher(struct wb *wb)
{
	if (!atomic_load_explicit(&wb->running, memory_order_relaxed))
		wb_wake(wb);
}

/* Whether another CPU's update has not ended yet. bw_lock held. */
static bool meets_update(const struct wb *wb)
{
	u64 now = world_now(), other = wb->bw_update_ns;

	return world_is_sim() && other &&
	       max_u64(now, other) - min_u64(now, other) < world_current->cost_ns[COST_ESTIMATE];
}

/* Step 6, and the reading of what it updates. Returns dirty_ratelimit; *avg_bw too. */
static u64 update_estimates(struct wb *wb, struct look *k, u64 *avg_bw)
{
	struct writeback *all = wb->all;
	const struct policy *p = &all->policy;
	u64 dirtied = account_dirtied(p, &wb->ledger), written = account_written(p, &wb->ledger);
	u32 hz = world_hz();
	u64 ratelimit;
	bool due;

	spin_lock(&wb->bw_lock);
	due = bandwidth_due(&wb->bw, k->now, hz) || meets_update(wb);
	spin_unlock(&wb->bw_lock);
	if (due) {
		spin_lock(&all->lock);
		hard_limit_update(&all->hard, k->at.thresh, k->at.dirty, k->now, hz);
		spin_unlock(&all->lock);
	}
	spin_lock(&wb->bw_lock);
	if (due && (bandwidth_due(&wb->bw, k->now, hz) || meets_update(wb))) {
		u64 elapsed = bandwidth_elapsed(&wb->bw, k->now);
		struct ratelimit_inputs in = {
			.pos_ratio = k->pos_ratio,
			.dirty_rate = bandwidth_dirty_rate(&wb->bw, elapsed, dirtied, hz),
			.goal = position_goal(&k->at),
		};

		wb->bw_update_ns = world_now();
		world_spend(COST_ESTIMATE, 1);
		ratelimit_update(&wb->bw, &in);
		bandwidth_update_write(&wb->bw, elapsed, written, hz);
		bandwidth_stamp(&wb->bw, k->now, dirtied, written);
	}
	ratelimit = wb->bw.dirty_ratelimit;
	*avg_bw = wb->bw.avg_write_bw;
	spin_unlock(&wb->bw_lock);
	return ratelimit;
}

static void note_pace(struct writeback *all, const struct look *k, u64 rate)
{
	struct throttle_pace *pace = &all->stats.first_pace;

	spin_lock(&all->lock);
	if (pace->when_ns == WORLD_NEVER)
		*pace = (struct throttle_pace){ world_now(), k->at.wb_dirty, rate };
	spin_unlock(&all->lock);
}

static void note_sleep(struct writeback *all, u64 ticks)
{
	spin_lock(&all->lock);
	all->stats.sleeps++;
	all->stats.sleep_ns += ticks * (NSEC_PER_SEC / world_hz());
	writeback_note(all, &all->stats.first_sleep, true);
	spin_unlock(&all->lock);
}

/* Step 10: too short a pause to bother; the debt is carried over. */
static void skip_pause(struct dirtier *t, s64 pause, u64 period, u64 pages_dirtied, u64 now)
{
	if (pause < -(s64)world_hz()) {
		*t->dirty_paused_when = now;
		*t->nr_dirtied = 0;
	} else if (period) {
		*t->dirty_paused_when += period;
		*t->nr_dirtied = 0;
	} else if (interval_of(t) <= pages_dirtied) {
		*t->interval += pages_dirtied;
	}
}

enum outcome { DONE, AGAIN, WOULD_SLEEP };

/* Steps 7 to 12, above the free running ceiling. */
static enum outcome pay(struct wb *wb, struct look *k, struct dirtier *t, u64 pages_dirtied,
			bool nowait)
{
	u64 avg_bw, ratelimit = update_estimates(wb, k, &avg_bw), period, now = k->now;
	u64 task_ratelimit = position_scale(ratelimit, k->pos_ratio);
	struct pauses plan =
		pause_plan(k->at.wb_dirty, avg_bw, ratelimit, task_ratelimit, world_hz());
	s64 pause;

	note_pace(wb->all, k, task_ratelimit);
	if (task_ratelimit) {
		period = world_hz() * pages_dirtied / task_ratelimit;
		pause = (s64)period;
		if (*t->dirty_paused_when)
			pause -= (s64)(now - *t->dirty_paused_when);
		if (pause < (s64)plan.min_pause) {
			skip_pause(t, pause, period, pages_dirtied, now);
			return DONE;
		}
		if (pause > (s64)plan.max_pause) {
			now += min_u64((u64)pause - plan.max_pause, plan.max_pause);
			pause = (s64)plan.max_pause;
		}
	} else {
		pause = (s64)plan.max_pause;
	}
	if (nowait)
		return WOULD_SLEEP;
	note_sleep(wb->all, (u64)pause);
	device_note_throttled(wb->device);
	world_sleep_jiffies((u64)pause);
	*t->dirty_paused_when = now + (u64)pause;
	*t->nr_dirtied = 0;
	*t->interval = plan.nr_dirtied_pause + 1;
	/* over the limit a task goes on only if this device has next to nothing dirty */
	return task_ratelimit || k->at.wb_dirty <= wb_stat_error(wb->all) ? DONE : AGAIN;
}

static int balance(struct wb *wb, struct dirtier *t, u64 pages_dirtied, bool nowait)
{
	struct writeback *all = wb->all;

	for (;;) {
		struct look k;
		u64 interval;
		bool free;

		take_look(wb, &k);
		if (k.nr_dirty > k.limits.bg)
			wake_flusher(wb);
		free = runs_free(wb, &k, &interval);
		if (free) {
			*t->dirty_paused_when = k.now;
			*t->nr_dirtied = 0;
			*t->interval = interval + 1;
			return 0;
		}
		wake_flusher(wb);
		look_at_wb(wb, &k);
		atomic_store_explicit(&wb->dirty_exceeded,
				      k.at.wb_dirty > k.at.wb_thresh &&
					      (k.at.dirty > k.at.thresh || wb->strict_limit),
				      memory_order_relaxed);
		spin_lock(&all->lock);
		k.at.limit = hard_limit_of(&all->hard, k.at.thresh);
		all->stats.calls++;
		spin_unlock(&all->lock);
		k.pos_ratio = position_ratio(&k.at);
		switch (pay(wb, &k, t, pages_dirtied, nowait)) {
		case DONE:
			return 0;
		case WOULD_SLEEP:
			return -EAGAIN;
		case AGAIN:
			break;
		}
	}
}

/* Takes over what ended tasks of this CPU left unpaid, up to the limit (5.1). */
static void take_leaked(struct wb_cpu *cpu, struct dirtier *t, u64 limit)
{
	u32 leaked = atomic_load_explicit(&cpu->leaked, memory_order_relaxed);

	if (leaked && *t->nr_dirtied < limit) {
		u32 take = (u32)min_u64(leaked, limit - *t->nr_dirtied);

		atomic_fetch_sub_explicit(&cpu->leaked, take, memory_order_relaxed);
		*t->nr_dirtied += take;
	}
}

int throttle_poll(struct wb *wb, bool nowait)
{
	struct writeback *all = wb->all;
	struct dirtier t = dirtier_self();
	struct wb_cpu *cpu = this_cpu(all);
	u64 limit = interval_of(&t);

	wb_count(wb);
	if (atomic_load_explicit(&wb->dirty_exceeded, memory_order_relaxed))
		limit = min_u64(limit, EXCEEDED_POLL_PAGES);
	if (*t.nr_dirtied >= limit) {
		atomic_store_explicit(&cpu->dirtied, 0, memory_order_relaxed);
	} else if (atomic_load_explicit(&cpu->dirtied, memory_order_relaxed) >=
		   atomic_load_explicit(&all->ratelimit_pages, memory_order_relaxed)) {
		atomic_store_explicit(&cpu->dirtied, 0, memory_order_relaxed);
		limit = 0;
	}
	take_leaked(cpu, &t, limit);
	if (*t.nr_dirtied < limit)
		return 0;
	return balance(wb, &t, *t.nr_dirtied, nowait);
}

void throttle_task_exit(struct writeback *all)
{
	struct dirtier t = dirtier_self();

	atomic_fetch_add_explicit(&this_cpu(all)->leaked, (u32)*t.nr_dirtied, memory_order_relaxed);
	*t.nr_dirtied = 0;
}
