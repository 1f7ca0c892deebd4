/* SPDX-License-Identifier: MIT */
/*
 * The slow paths of the locks.
 *
 * Mutex and spinlock are the three-state futex lock of Drepper ("Futexes are tricky",
 * section 6): who finds the lock taken marks the word 2 and parks on that value, and who
 * gives up a lock marked 2 wakes one. A woken task takes the lock as 2, because it cannot
 * know whether others still wait. In the real world both spin a little first. The
 * spinlock falls back to sleeping because a thread that holds one may be preempted, and
 * then the rest of the machine should not burn for it.
 *
 * A condition is a counter of signals: a waiter notes it with the mutex held, gives the
 * mutex up and parks on the noted value; a signal that comes in between has changed the
 * counter, so the park returns at once. The number of waiters spares signals that nobody
 * waits for a system call.
 *
 * The rwsem is one word for all who come when nobody waits, and a queue. With
 * RWSEM_WAITERS set the word cannot be taken by anybody but the queue's first, so the
 * queue is served in order: whoever leaves it free, or finds it free after queueing,
 * hands it over: to one exclusive waiter, or to all shared ones up to the next exclusive
 * one. Each waiter parks on a word of its own and owns the lock when it wakes.
 *
 * A barging one imitates Linux's (kernel/locking/rwsem.c) where Linux is simulated: a waiting
 * writer is woken, but the lock is left free, and a task that runs takes it before him. Only
 * a writer who has waited for 4 ms and finds it taken once more is handed it next. With few
 * CPUs, who runs passes a queue again and again.
 */
#include "world/lock.h"
#include "world/task.h"
#include <errno.h>

#define SPINS 100

static const char *const mutex_what[RANK_MAX] = {
#define WHAT(name, text) "mutex (" text ")",
	LOCK_RANKS(WHAT)
#undef WHAT
};

static const char *const rwsem_shared_what[RANK_MAX] = {
#define WHAT(name, text) "rwsem (" text ", shared)",
	LOCK_RANKS(WHAT)
#undef WHAT
};

static const char *const rwsem_exclusive_what[RANK_MAX] = {
#define WHAT(name, text) "rwsem (" text ", exclusive)",
	LOCK_RANKS(WHAT)
#undef WHAT
};

static inline void relax_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Real world: true if the lock was taken while spinning. */
static bool spin_a_little(_Atomic u32 *word)
{
	for (unsigned i = 0; i < SPINS; i++) {
		u32 state = atomic_load_explicit(word, memory_order_relaxed);

		if (state == 2)
			return false; /* there is a queue already */
		if (!state && lock_try_word(word, 1))
			return true;
		relax_cpu();
	}
	return false;
}

void spin_lock_slow(struct spinlock *l)
{
	assert(!world_is_sim()); /* somebody parked with this spinlock held, or takes it twice */
	if (spin_a_little(&l->state))
		return;
	while (atomic_exchange_explicit(&l->state, 2, memory_order_acquire))
		real_park(&l->state, 2, WORLD_NEVER);
}

void mutex_lock_slow(struct mutex *m)
{
	if (!world_is_sim() && spin_a_little(&m->state))
		return;
	while (atomic_exchange_explicit(&m->state, 2, memory_order_acquire))
		world_park_for(&m->state, 2, WORLD_NEVER, mutex_what[m->rank]);
}

void cond_init(struct cond *c)
{
	atomic_init(&c->sequence, 0);
	atomic_init(&c->waiters, 0);
}

int cond_wait_until(struct cond *c, struct mutex *m, u64 deadline)
{
	u32 sequence;
	int result;

	assert(mutex_is_held(m));
	atomic_fetch_add(&c->waiters, 1);
	sequence = atomic_load(&c->sequence);
	mutex_unlock(m);
	result = world_park_for(&c->sequence, sequence, deadline, "cond");
	atomic_fetch_sub(&c->waiters, 1);
	mutex_lock(m);
	return result == -ETIMEDOUT ? -ETIMEDOUT : 0;
}

void cond_wait(struct cond *c, struct mutex *m)
{
	cond_wait_until(c, m, WORLD_NEVER);
}

static void signal_cond(struct cond *c, unsigned n)
{
	if (!atomic_load(&c->waiters))
		return;
	atomic_fetch_add(&c->sequence, 1);
	world_unpark(&c->sequence, n);
}

void cond_signal(struct cond *c)
{
	signal_cond(c, 1);
}

void cond_broadcast(struct cond *c)
{
	signal_cond(c, ~0u);
}

void completion_init(struct completion *c)
{
	atomic_init(&c->state, 0);
}

int completion_wait_until(struct completion *c, u64 deadline)
{
	u32 state = 0;

	atomic_compare_exchange_strong_explicit(&c->state, &state, 1, memory_order_acquire,
						memory_order_acquire);
	while (!completion_is_done(c))
		if (world_park_for(&c->state, 1, deadline, "completion") == -ETIMEDOUT)
			return completion_is_done(c) ? 0 : -ETIMEDOUT;
	return 0;
}

void completion_wait(struct completion *c)
{
	completion_wait_until(c, WORLD_NEVER);
}

void completion_done(struct completion *c)
{
	u32 was = atomic_exchange_explicit(&c->state, 2, memory_order_release);

	/* *c may be gone now; waking by a stale address at worst wakes somebody spuriously */
	if (was == 1)
		world_unpark(&c->state, ~0u);
}

/* On the waiting task's stack; gone as soon as `granted` is set. */
struct rwsem_waiter {
	struct rwsem_waiter *next;
	_Atomic u32 granted;
	bool exclusive;
	u64 patient_until_ns;
};

#define PATIENCE_NS (4 * NSEC_PER_MSEC)

void rwsem_init(struct rwsem *s, enum lock_rank rank)
{
	atomic_init(&s->word, 0);
	s->rank = rank;
	spin_init(&s->guard, RANK_NONE);
	s->barging = s->handoff = false;
	s->first = s->last = NULL;
}

void rwsem_init_barging(struct rwsem *s, enum lock_rank rank)
{
	rwsem_init(s, rank);
	s->barging = true;
}

/* Whether the lock is not handed over, but left free for whoever comes first. */
static bool is_up_for_grabs(const struct rwsem *s)
{
	return s->barging && world_is_sim() && !s->handoff && s->first && s->first->exclusive;
}

static bool barge(struct rwsem *s)
{
	u32 word = RWSEM_WAITERS;

	return is_up_for_grabs(s) &&
	       atomic_compare_exchange_strong(&s->word, &word, RWSEM_WAITERS | RWSEM_EXCLUSIVE);
}

/* Gives the lock to those at the front who can have it, and returns them, unwoken. */
static struct rwsem_waiter *take_front(struct rwsem *s)
{
	struct rwsem_waiter *taken = s->first, *last = s->first;
	u32 word = atomic_load_explicit(&s->word, memory_order_acquire), grant = 1;

	assert(spin_is_held(&s->guard));
	if (!taken || (word & RWSEM_EXCLUSIVE) || (taken->exclusive && (word & ~RWSEM_WAITERS)))
		return NULL;
	if (taken->exclusive)
		grant = RWSEM_EXCLUSIVE;
	else
		for (; last->next && !last->next->exclusive; last = last->next)
			grant++;
	s->first = last->next;
	last->next = NULL;
	s->handoff = false;
	/* meanwhile shared holders may leave, but nobody can come: RWSEM_WAITERS is set */
	atomic_fetch_add_explicit(&s->word, grant, memory_order_acquire);
	if (!s->first) {
		s->last = NULL;
		atomic_fetch_and_explicit(&s->word, ~RWSEM_WAITERS, memory_order_relaxed);
	}
	return taken;
}

/* The woken first waiter takes the lock if it is free; else, having waited long, insists. */
static void try_as_waiter(struct rwsem *s, struct rwsem_waiter *me)
{
	spin_lock(&s->guard);
	if (s->first == me) {
		if (take_front(s))
			atomic_store(&me->granted, 1);
		else if (world_now() > me->patient_until_ns)
			s->handoff = true;
	}
	spin_unlock(&s->guard);
}

static void wake_taken(struct rwsem_waiter *w)
{
	struct rwsem_waiter *next;

	for (; w; w = next) {
		next = w->next;
		atomic_store_explicit(&w->granted, 1, memory_order_release);
		world_unpark(&w->granted, 1); /* w may be gone: as in completion_done() */
	}
}

void rwsem_hand_over(struct rwsem *s)
{
	struct rwsem_waiter *taken;

	spin_lock(&s->guard);
	if (is_up_for_grabs(s)) {
		world_unpark(&s->first->granted, 1);
		spin_unlock(&s->guard);
		return;
	}
	taken = take_front(s);
	spin_unlock(&s->guard);
	wake_taken(taken);
}

void rwsem_lock_slow(struct rwsem *s, bool exclusive)
{
	struct rwsem_waiter me = { .exclusive = exclusive }, *taken;
	const char *what = (exclusive ? rwsem_exclusive_what : rwsem_shared_what)[s->rank];

	spin_lock(&s->guard);
	if (exclusive && barge(s)) {
		spin_unlock(&s->guard);
		return;
	}
	me.patient_until_ns = world_now() + PATIENCE_NS;
	if (s->last)
		s->last->next = &me;
	else
		s->first = &me;
	s->last = &me;
	atomic_fetch_or_explicit(&s->word, RWSEM_WAITERS, memory_order_relaxed);
	/* who left before the bit was set did not see it */
	taken = take_front(s);
	spin_unlock(&s->guard);
	wake_taken(taken);
	while (!atomic_load_explicit(&me.granted, memory_order_acquire)) {
		world_park_for(&me.granted, 0, WORLD_NEVER, what);
		if (s->barging && world_is_sim() && !me.granted)
			try_as_waiter(s, &me);
	}
}
