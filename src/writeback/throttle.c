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
 * law is the same. A task of a tenant's (tenant.c) is looked at in two domains, the whole cache and
 * its tenant, and goes by the slower one.
 *
 * Over the limit there is nothing to owe, only waiting for dirty to fall. Where writers sleep
 * with their file's lock held, that lock makes them a queue. Where they sleep without
 * (write_lock=folio), whoever happened to look at the right moment would go on, and one with
 * bad luck could wait for ever. So there they stand in line, first come first served: only the
 * first looks, more often than a pause is long, since he looks for all; and near the limit
 * nobody goes on before those who are in line.
 */
#include "writeback/outage.h"
#include "writeback/pause.h"
#include "writeback/position.h"
#include "writeback/ratelimit.h"
#include "writeback/tenant.h"
#include "writeback/ticks.h"
#include <errno.h>

#define LINE_LOOKS_PER_SEC 100 /* of the first in line */
#define LINE_MATTERS       2   /* below a position ratio of 1/2 */

/* Task-local words. */
enum {
	LOCAL_DIRTIED,
	LOCAL_INTERVAL,
	LOCAL_PAUSED_WHEN,
	LOCAL_POLLED = 4 /* LOCAL_DIRTIED as it was when the last poll ended; 3: ledger/tenant.c */
};

/* What a task owes; a view of its local words. */
struct dirtier {
	u64 *nr_dirtied;
	u64 *interval;    /* nr_dirtied_pause + 1, or 0 in a new task */
	u64 *paused_when; /* parts of a jiffy: dirty_paused_when */
	bool in_line;     /* holds the line of its device */
};

static struct dirtier dirtier_of(u64 *locals)
{
	return (struct dirtier){ .nr_dirtied = locals + LOCAL_DIRTIED,
				 .interval = locals + LOCAL_INTERVAL,
				 .paused_when = locals + LOCAL_PAUSED_WHEN };
}

static u64 interval_of(const struct dirtier *t)
{
	return *t->interval ? *t->interval - 1 : DIRTY_POLL_PAGES;
}

static struct wb_cpu *this_cpu(struct writeback *all)
{
	unsigned cpu = world_cpu();

	return &all->cpu[likely(cpu < all->cpus) ? cpu : cpu % all->cpus];
}

void throttle_charge(struct writeback *all, u32 pages)
{
	struct wb_cpu *cpu;

	if (!pages)
		return;
	*world_local(LOCAL_DIRTIED) += pages;
	cpu = this_cpu(all);
	/* not one addition: should somebody else's get lost, he is asked a little later */
	atomic_store_explicit(&cpu->dirtied,
			      atomic_load_explicit(&cpu->dirtied, memory_order_relaxed) + pages,
			      memory_order_relaxed);
}

/* One look: everything the decision is made from. */
struct look {
	u64 now; /* jiffies */
	struct limits limits;
	u64 started;  /* when the task came to be looked at: `now` of its first look */
	u64 nr_dirty; /* without writeback */
	bool failing; /* the writer's own file fails: it stands in no line */
	int hopeless; /* ... and what it gets over the limit instead of a sleep; 0 */
	struct position at;
	u64 pos_ratio;
	struct domain_look own;    /* at the domain of the tenant, if there is one */
	const struct position *by; /* which of them counts: the slower one */
	u64 by_pos_ratio;
};

static void take_look(struct inode *inode, struct wb *wb, struct look *k)
{
	struct writeback *all = wb->all;
	u64 owed = outage_pages(all);
	const struct policy *p = &all->policy;

	k->now = world_jiffies();
	k->limits = writeback_limits(all);
	k->nr_dirty = writeback_dirty(all);
	k->at = (struct position){
		.thresh = k->limits.thresh,
		.bg = k->limits.bg,
		.dirty = k->nr_dirty + writeback_in_flight(all),
		.strictlimit = wb->root->strict_limit,
		.floor_in_position = p->wb_floor == WB_FLOOR_POSITION,
	};
	if (unlikely(owed)) {
		k->failing = outage_concerns(inode, &k->hopeless);
		owed = k->failing ? 0 : owed; /* from here on: not to be seen */
		k->at.dirty -= min_u64(owed, k->at.dirty);
		k->nr_dirty -= min_u64(owed, k->nr_dirty);
	}
	if (unlikely(wb->tenant != NULL))
		tenant_look(wb, &k->at, &k->own);
	if (unlikely(owed && wb->tenant != NULL)) {
		owed = outage_pages_of(all, wb->tenant);
		k->own.at.dirty -= min_u64(owed, k->own.at.dirty);
		k->own.nr_dirty -= min_u64(owed, k->own.nr_dirty);
	}
	if (trace_on())
		trace_global_dirty_state(wb, &k->limits);
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
static bool cache_runs_free(struct wb *wb, struct look *k, u64 *interval)
{
	if (!wb->root->strict_limit) {
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

static bool runs_free(struct wb *wb, struct look *k, u64 *interval)
{
	bool free = cache_runs_free(wb, k, interval);

	return likely(!wb->tenant) ? free : tenant_is_free(wb, &k->own, free, interval);
}

/* Step 5: where the task stands in its domains, and which of them counts. */
static void take_position(struct wb *wb, struct look *k)
{
	bool exceeded;

	look_at_wb(wb, k);
	exceeded = k->at.wb_dirty > k->at.wb_thresh &&
		   (k->at.dirty > k->at.thresh || k->at.strictlimit);
	spin_lock(&wb->all->lock);
	k->at.limit = hard_limit_of(&wb->all->hard, k->at.thresh);
	wb->all->stats.calls++;
	spin_unlock(&wb->all->lock);
	k->pos_ratio = position_ratio(&k->at);
	k->by = &k->at, k->by_pos_ratio = k->pos_ratio;
	if (unlikely(wb->tenant != NULL)) {
		exceeded |= tenant_look_at_wb(wb, &k->at, &k->own);
		if (k->own.pos_ratio < k->pos_ratio) {
			k->by = &k->own.at, k->by_pos_ratio = k->own.pos_ratio;
		}
	}
	atomic_store_explicit(&wb->dirty_exceeded, exceeded, memory_order_relaxed);
}

static void wake_flusher(struct wb *wb)
{
	if (atomic_load_explicit(&wb->running, memory_order_relaxed))
		return;
	if (trace_on())
		trace_wake_background(wb);
	wb_wake(wb);
}

/* Whether another CPU's update has not ended yet. bw_lock held. */
static bool meets_update(const struct wb *wb)
{
	u64 now = world_now(), other = wb->bw_update_ns;

	return other && max_u64(now, other) - min_u64(now, other) < world_cost_ns(COST_ESTIMATE);
}

/* Step 6, and the reading of what it updates. */
static struct bandwidth update_estimates(struct wb *wb, struct look *k)
{
	struct writeback *all = wb->all;
	const struct policy *p = &all->policy;
	u64 dirtied = account_dirtied(p, &wb->ledger), written = account_written(p, &wb->ledger);
	u32 hz = world_hz();
	struct bandwidth bw;
	bool due;

	spin_lock(&wb->bw_lock);
	due = bandwidth_due(&wb->bw, k->now, hz) || meets_update(wb);
	spin_unlock(&wb->bw_lock);
	if (due) {
		spin_lock(&all->lock);
		hard_limit_update(&all->hard, k->at.thresh, k->at.dirty, k->now, hz);
		spin_unlock(&all->lock);
		if (unlikely(wb->tenant != NULL))
			tenant_update_limit(wb, &k->own, k->now);
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
		if (unlikely(wb->tenant != NULL)) {
			in.pos_ratio = k->own.pos_ratio;
			in.goal = position_goal(&k->own.at);
			ratelimit_update(&wb->bw, &in);
		}
		bandwidth_update_write(&wb->bw, elapsed, written, hz);
		bandwidth_stamp(&wb->bw, k->now, dirtied, written);
		if (trace_on())
			trace_bdi_dirty_ratelimit(
				wb, in.dirty_rate,
				position_scale(wb->bw.dirty_ratelimit, k->by_pos_ratio));
	}
	bw = wb->bw;
	spin_unlock(&wb->bw_lock);
	return bw;
}

static void note_pace(struct writeback *all, const struct look *k, u64 rate)
{
	struct throttle_pace *pace = &all->stats.first_pace;

	spin_lock(&all->lock);
	if (pace->when_ns == WORLD_NEVER)
		*pace = (struct throttle_pace){ world_now(), k->at.wb_dirty, rate };
	spin_unlock(&all->lock);
}

/* `allowed`: pages a second that the task may dirty. */
static void note_sleep(struct wb *wb, const struct look *k, enum wait_why why, u64 start, u64 ns,
		       u64 allowed)
{
	const struct wait wait = {
		.when_ns = start,
		.wait_ns = ns,
		.why = why,
		.who = waits_who(),
		.tenant = tenant_word(wb->tenant),
		.by_tenant = k->by != &k->at,
		.dirty = k->by->dirty,
		.freerun = limits_freerun(k->by->thresh, k->by->bg),
		.setpoint = position_setpoint(k->by),
		.limit = k->by->limit,
		.bandwidth = k->at.avg_write_bw,
		.allowed = allowed,
	};

	spin_lock(&wb->all->lock);
	wb->all->stats.sleeps++;
	wb->all->stats.sleep_ns += ns;
	waits_note(&wb->all->waits, &wait);
	writeback_note(wb->all, &wb->all->stats.first_sleep, true);
	spin_unlock(&wb->all->lock);
	tenant_note_sleep(wb, ns);
}

/* Step 10: too short a pause to bother; the debt is carried over. */
static void skip_pause(struct dirtier *t, const struct ticks *ticks, s64 pause, u64 period,
		       u64 pages_dirtied)
{
	if (pause < -(s64)ticks->hz) {
		*t->paused_when = ticks->now * ticks->parts;
		*t->nr_dirtied = 0;
	} else if (period) {
		*t->paused_when += period * ticks->parts;
		*t->nr_dirtied = 0;
	} else if (interval_of(t) <= pages_dirtied) {
		*t->interval += pages_dirtied;
	}
}

/* Goes to the end of the line, and comes back as the first in it, after so many jiffies. */
static u64 join_line(struct wb *wb, const struct look *k, struct dirtier *t)
{
	u64 start = world_now(), jiffies = world_jiffies();

	assert(!t->in_line);
	rwsem_lock(&wb->line);
	t->in_line = true;
	if (world_now() > start)
		note_sleep(wb, k, WAIT_IN_LINE, start, world_now() - start, 0);
	return world_jiffies() - jiffies;
}

static void leave_line(struct wb *wb, struct dirtier *t)
{
	if (!t->in_line)
		return;
	rwsem_unlock(&wb->line);
	t->in_line = false;
}

static u64 line_ticks(void)
{
	return div_roundup(world_hz(), LINE_LOOKS_PER_SEC);
}

/* The first in line waits a little for dirty to fall. */
static void wait_in_line(struct wb *wb, const struct look *k)
{
	u64 ticks = line_ticks();

	note_sleep(wb, k, WAIT_LIMIT, world_now(), ticks * (NSEC_PER_SEC / world_hz()), 0);
	device_note_throttled(wb->device);
	world_sleep_jiffies(ticks);
}

enum outcome { DONE, AGAIN, WOULD_SLEEP, HOPELESS };

/* What a look above the free running ceiling led to: pages paid for in `period`, of it `pause`. */
struct payment {
	u64 ratelimit, task_ratelimit, pages, period;
	s64 pause;
};

static void trace_payment(struct wb *wb, const struct look *k, const struct dirtier *t,
			  const struct payment *p, bool too_short)
{
	const struct position *at = k->by;
	u64 setpoint = position_setpoint(at);
	const struct trace_balance b = {
		.limit = at->limit,
		.setpoint = setpoint,
		.dirty = at->dirty,
		.wb_setpoint = setpoint * at->wb_thresh / (at->thresh + 1),
		.wb_dirty = at->wb_dirty,
		.dirty_ratelimit = p->ratelimit,
		.task_ratelimit = p->task_ratelimit,
		.dirtied = p->pages,
		.dirtied_pause = interval_of(t),
		.paused = k->now - k->started,
		.pause = too_short && p->pause > 0 ? 0 : p->pause, /* not slept */
		.period = p->period,
		.think = *t->paused_when ? k->now - *t->paused_when / TICK_PARTS : 0,
	};

	trace_balance_dirty_pages(wb, &b);
}

/*
 * Whether the task has to do with the line of its device. Far enough below the limit nobody
 * asks who is still in it, or it would never end between tasks that come again and again.
 */
static bool queues(struct wb *wb, const struct look *k, const struct dirtier *t, bool waits)
{
	if (wb->all->policy.write_lock != WRITE_LOCK_FOLIO || k->failing)
		return false;
	return waits || t->in_line ||
	       (k->by_pos_ratio < POSITION_ONE / LINE_MATTERS && rwsem_is_busy(&wb->line));
}

/*
 * One step in line: into it, a wait as the first of it, or out of it. Who has waited owes nothing
 * more, and looks again after the next page: with small turns everybody has his soon.
 */
static enum outcome queue_up(struct wb *wb, struct look *k, struct dirtier *t, struct payment *p,
			     bool waits)
{
	if (!t->in_line) {
		p->pause = (s64)join_line(wb, k, t);
		if (trace_on())
			trace_payment(wb, k, t, p, false);
		return AGAIN;
	}
	p->pause = waits ? (s64)line_ticks() : 0;
	if (trace_on())
		trace_payment(wb, k, t, p, false);
	if (waits) {
		wait_in_line(wb, k);
		return AGAIN;
	}
	leave_line(wb, t);
	*t->paused_when = k->now * TICK_PARTS;
	*t->nr_dirtied = 0;
	*t->interval = 1 + 1;
	return DONE;
}

/* Steps 7 to 12, above the free running ceiling. */
static enum outcome pay(struct wb *wb, struct look *k, struct dirtier *t, u64 pages_dirtied,
			bool nowait)
{
	const struct bandwidth bw = update_estimates(wb, k);
	bool ours = wb->all->policy.accounting == ACCOUNT_DEBT && k->by == &k->at;
	struct ticks ticks = ticks_for(&k->at, &bw, k->now, ours);
	struct payment p = { .ratelimit = bw.dirty_ratelimit,
			     .task_ratelimit = position_scale(bw.dirty_ratelimit, k->by_pos_ratio),
			     .pages = pages_dirtied };
	struct pauses plan = pause_plan(k->at.wb_dirty, bw.avg_write_bw, bw.dirty_ratelimit,
					p.task_ratelimit, ticks.hz);
	/* over the limit a task goes on only if this device has next to nothing dirty */
	bool waits = !p.task_ratelimit && k->at.wb_dirty > wb_stat_error(wb->all);
	bool too_short = false;

	note_pace(wb->all, k, p.task_ratelimit);
	if (unlikely(k->failing)) {
		leave_line(wb, t);
		if (k->hopeless && waits)
			return HOPELESS;
	}
	if (queues(wb, k, t, waits))
		return nowait ? WOULD_SLEEP : queue_up(wb, k, t, &p, waits);
	if (p.task_ratelimit) {
		p.period = ticks.hz * pages_dirtied / p.task_ratelimit;
		p.pause = (s64)p.period;
		if (*t->paused_when)
			p.pause -= (s64)(ticks.now - *t->paused_when / ticks.parts);
		too_short = p.pause < (s64)plan.min_pause;
		if (p.pause > (s64)plan.max_pause) {
			ticks.now += min_u64((u64)p.pause - plan.max_pause, plan.max_pause);
			p.pause = (s64)plan.max_pause;
		}
	} else {
		p.period = plan.max_pause;
		p.pause = (s64)plan.max_pause;
	}
	if (ticks.longest < plan.max_pause && p.pause > 0) {
		p.pause = (s64)min_u64((u64)p.pause, ticks.longest);
		too_short = false;
	}
	if (trace_on())
		trace_payment(wb, k, t, &p, too_short);
	if (too_short) {
		skip_pause(t, &ticks, p.pause, p.period, pages_dirtied);
		return DONE;
	}
	if (nowait)
		return WOULD_SLEEP;
	note_sleep(wb, k, p.task_ratelimit ? WAIT_PACED : WAIT_LIMIT, world_now(),
		   (u64)p.pause * (NSEC_PER_SEC / ticks.hz), p.task_ratelimit);
	device_note_throttled(wb->device);
	ticks_sleep(&ticks, (u64)p.pause);
	*t->paused_when = (ticks.now + (u64)p.pause) * ticks.parts;
	*t->nr_dirtied = 0;
	*t->interval = plan.nr_dirtied_pause + 1;
	return waits ? AGAIN : DONE;
}

static int balance(struct inode *inode, struct wb *wb, struct dirtier *t, u64 pages_dirtied,
		   bool nowait)
{
	u64 started = world_jiffies();

	for (;;) {
		struct look k = { .started = started };
		u64 interval;
		bool free;

		take_look(inode, wb, &k);
		if (k.nr_dirty > k.limits.bg)
			wake_flusher(wb);
		free = runs_free(wb, &k, &interval);
		if (free) {
			*t->paused_when = k.now * TICK_PARTS;
			*t->nr_dirtied = 0;
			*t->interval = interval + 1;
			leave_line(wb, t);
			return 0;
		}
		wake_flusher(wb);
		if (unlikely(writeback_tenants(wb->all)))
			foreign_flush(wb);
		take_position(wb, &k);
		switch (pay(wb, &k, t, pages_dirtied, nowait)) {
		case DONE:
			return 0;
		case WOULD_SLEEP:
			return -EAGAIN;
		case HOPELESS:
			return k.hopeless;
		case AGAIN:
			break;
		}
	}
}

/*
 * Real world: pages that threads left unpaid which ended without a word, of all caches, since one
 * may have written to several.
 */
static _Atomic u32 left_by_threads;

static void thread_ends(void)
{
	u64 *dirtied = world_local(LOCAL_DIRTIED);

	atomic_fetch_add_explicit(&left_by_threads, (u32)*dirtied, memory_order_relaxed);
	*dirtied = 0;
}

int throttle_init(void)
{
	return world_is_sim() ? 0 : world_at_task_end(thread_ends);
}

/* Takes over what ended tasks left unpaid, up to the limit (5.1). */
static void take_leaked(_Atomic u32 *from, struct dirtier *t, u64 limit)
{
	u32 leaked = atomic_load_explicit(from, memory_order_relaxed);

	if (leaked && *t->nr_dirtied < limit) {
		u32 take = (u32)min_u64(leaked, limit - *t->nr_dirtied);

		/* who finds that another took some leaves the rest for later */
		if (atomic_compare_exchange_strong_explicit(from, &leaked, leaked - take,
							    memory_order_relaxed,
							    memory_order_relaxed))
			*t->nr_dirtied += take;
	}
}

static int poll_task(struct inode *inode, u64 *locals, bool nowait)
{
	struct wb *wb = inode->wb;
	struct writeback *all = wb->all;
	struct dirtier t = dirtier_of(locals);
	struct wb_cpu *cpu = this_cpu(all);
	u64 limit = interval_of(&t);

	if (unlikely(writeback_tenants(all)))
		wb = wb_of_task(wb);
	if (wb->unseen)
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
	take_leaked(&cpu->leaked, &t, limit);
	if (!world_is_sim())
		take_leaked(&left_by_threads, &t, limit);
	if (*t.nr_dirtied < limit)
		return 0;
	return balance(inode, wb, &t, *t.nr_dirtied, nowait);
}

int throttle_poll(struct inode *inode, bool nowait)
{
	u64 *locals = world_locals();
	int rc = poll_task(inode, locals, nowait);

	locals[LOCAL_POLLED] = rc ? ~0ull : locals[LOCAL_DIRTIED];
	return rc;
}

bool throttle_owes_nothing(const struct wb *wb)
{
	const u64 *locals = world_locals();

	return locals[LOCAL_POLLED] == locals[LOCAL_DIRTIED] && !world_models_calls() &&
	       !atomic_load_explicit(&wb->dirty_exceeded, memory_order_relaxed);
}

void throttle_task_exit(struct writeback *all)
{
	struct dirtier t = dirtier_of(world_locals());

	atomic_fetch_add_explicit(&this_cpu(all)->leaked, (u32)*t.nr_dirtied, memory_order_relaxed);
	*t.nr_dirtied = 0;
}
