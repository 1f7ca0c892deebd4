/* SPDX-License-Identifier: MIT */
/*
 * Locks, conditions and completions, built once on park and unpark, for both
 * worlds. The uncontended paths are inline, touch one word and make no call.
 *
 * spinlock	short sections; a task that holds one may not park. So in the simulated
 *		world nobody can ever find one held: that is an assertion failure
 * mutex	may be held across a park; barging allowed
 * rwsem	shared or exclusive; strictly first come first served, handed over
 *		directly; but for a barging one in the simulated world
 * cond, completion	as the names say
 *
 * Every lock has a rank; a task may only take locks of a higher rank than those it
 * holds (a trylock may take any: it does not wait). Builds with SLUICE_CHECKS
 * (-Dchecks=true) check it in both worlds with a small stack of held locks per task,
 * and that nothing parks under a spinlock, and that who gives up a lock holds it.
 */
#ifndef SLUICE_WORLD_LOCK_H
#define SLUICE_WORLD_LOCK_H

#include "world/world.h"

/* The ranks of all locks, outermost first: rank, name in reports. */
#define LOCK_RANKS(X)                                                                           \
	X(NONE, "unranked")         /* not checked: tests */                                    \
	X(NAMESPACE, "namespace")   /* path tables of job engines */                            \
	X(RESIZE, "resize")         /* cache.resize_lock: one change of size at a time */       \
	X(INODES, "inodes")         /* engine.inodes_lock: the list of all inodes */            \
	X(INODE, "inode")           /* inode.lock: writers of a file against each other */      \
	X(INVALIDATE, "invalidate") /* inode.invalidate_lock: reads, faults against truncate */ \
	X(TENANTS, "tenants")       /* tenants.lock: who is made and who goes */                \
	X(THROTTLE, "throttle")     /* wb.line: tasks over the limit, in order */               \
	X(JOURNAL, "journal")       /* journal.commit: one commit at a time */                  \
	X(WB_WORK, "flusher work")  /* wb.work_lock: queued work of a flusher */                \
	X(WB_LIST, "flusher lists") /* wb.list_lock: the inode lists of a flusher */            \
	X(TREE, "tree")             /* mapping.tree_lock: the index and its state words */      \
	X(BOOKS, "books")           /* cache.books_lock: ledgers that mappings share */         \
	X(LRU, "lru")               /* cache.lru_lock */                                        \
	X(ARENA, "arena")           /* arena.lock: free pages and descriptors */                \
	X(DOMAIN, "domain")         /* domain.lock: limits and proportions */                   \
	X(BANDWIDTH, "bandwidth")   /* bandwidth.lock: a device's estimates */                  \
	X(DEVICE, "device")         /* device internals */                                      \
	X(EPOCH_CLOCK, "epochs")    /* epoch.c: who moves the clock */                          \
	X(EPOCH, "retired")         /* epoch.c: what waits to be freed */

enum lock_rank {
#define RANK_ENUM(name, text) RANK_##name,
	LOCK_RANKS(RANK_ENUM)
#undef RANK_ENUM
		RANK_MAX
};

struct spinlock {
	_Atomic u32 state; /* 0 free, 1 held, 2 held and a thread sleeps on it */
	u32 rank;
};

struct mutex {
	_Atomic u32 state; /* 0 free, 1 held, 2 held and somebody waits */
	u32 rank;
};

struct cond {
	_Atomic u32 sequence; /* of signals */
	_Atomic u32 waiters;
};

struct completion {
	_Atomic u32 state; /* 0 not yet, 1 not yet and somebody waits, 2 done, for ever */
};

/*
 * `word` counts the shared holders; RWSEM_EXCLUSIVE says that it is held exclusively,
 * RWSEM_WAITERS that the queue is not empty: then nobody takes it but from the queue.
 * Waiting tasks stand in the queue with a record on their own stacks. `guard` protects
 * the queue and RWSEM_WAITERS.
 */
#define RWSEM_WAITERS   (1u << 31)
#define RWSEM_EXCLUSIVE (1u << 30)

struct rwsem {
	_Atomic u32 word;
	u32 rank;
	struct spinlock guard;
	bool barging;
	bool handoff; /* the first in the queue is not to be passed any more */
	struct rwsem_waiter *first, *last;
};

/* The slow paths; lock.c. */
void spin_lock_slow(struct spinlock *l);
void mutex_lock_slow(struct mutex *m);
void rwsem_lock_slow(struct rwsem *s, bool exclusive);
void rwsem_hand_over(struct rwsem *s);

/* What builds with SLUICE_CHECKS do around taking and giving up a lock; lock_check.c. */
#ifdef SLUICE_CHECKS
void lock_check_order(const void *lock, u32 rank);            /* before waiting for it */
void lock_check_taken(const void *lock, u32 rank, bool spin); /* just taken */
void lock_check_given(const void *lock);                      /* about to be given up */
bool lock_check_mine(const void *lock);
#else
static inline void lock_check_order(const void *lock, u32 rank)
{
	(void)lock;
	(void)rank;
}
static inline void lock_check_taken(const void *lock, u32 rank, bool spin)
{
	(void)lock;
	(void)rank;
	(void)spin;
}
static inline void lock_check_given(const void *lock)
{
	(void)lock;
}
static inline bool lock_check_mine(const void *lock)
{
	(void)lock;
	return true;
}
#endif

/* For the fast paths: takes `word` from 0 to `to`. */
static inline bool lock_try_word(_Atomic u32 *word, u32 to)
{
	u32 free = 0;

	return atomic_compare_exchange_strong_explicit(word, &free, to, memory_order_acquire,
						       memory_order_relaxed);
}

/* --- spinlock --- */

static inline void spin_init(struct spinlock *l, enum lock_rank rank)
{
	atomic_init(&l->state, 0);
	l->rank = rank;
}

static inline void spin_lock(struct spinlock *l)
{
	lock_check_order(l, l->rank);
	if (unlikely(!lock_try_word(&l->state, 1)))
		spin_lock_slow(l);
	lock_check_taken(l, l->rank, true);
}

static inline bool spin_trylock(struct spinlock *l)
{
	if (!lock_try_word(&l->state, 1))
		return false;
	lock_check_taken(l, l->rank, true);
	return true;
}

static inline void spin_unlock(struct spinlock *l)
{
	u32 was;

	lock_check_given(l);
	was = atomic_exchange_explicit(&l->state, 0, memory_order_release);
	assert(was);
	if (unlikely(was == 2))
		world_unpark(&l->state, 1);
}

/* For assertions: by anybody; in builds with SLUICE_CHECKS by the calling task. */
static inline bool spin_is_held(const struct spinlock *l)
{
	return atomic_load_explicit(&l->state, memory_order_relaxed) && lock_check_mine(l);
}

/* --- mutex --- */

static inline void mutex_init(struct mutex *m, enum lock_rank rank)
{
	atomic_init(&m->state, 0);
	m->rank = rank;
}

static inline void mutex_lock(struct mutex *m)
{
	lock_check_order(m, m->rank);
	if (unlikely(!lock_try_word(&m->state, 1)))
		mutex_lock_slow(m);
	lock_check_taken(m, m->rank, false);
}

static inline bool mutex_trylock(struct mutex *m)
{
	if (!lock_try_word(&m->state, 1))
		return false;
	lock_check_taken(m, m->rank, false);
	return true;
}

static inline void mutex_unlock(struct mutex *m)
{
	u32 was;

	lock_check_given(m);
	was = atomic_exchange_explicit(&m->state, 0, memory_order_release);
	assert(was);
	if (unlikely(was == 2))
		world_unpark(&m->state, 1);
}

/* As spin_is_held(). */
static inline bool mutex_is_held(const struct mutex *m)
{
	return atomic_load_explicit(&m->state, memory_order_relaxed) && lock_check_mine(m);
}

/* --- cond --- */

void cond_init(struct cond *c);
/* Gives m up while waiting, and holds it again on return. May wake spuriously. */
void cond_wait(struct cond *c, struct mutex *m);
/* The same with a deadline: 0 or -ETIMEDOUT. */
int cond_wait_until(struct cond *c, struct mutex *m, u64 deadline);
/* What is waited for has been changed with m held; m may be given up already. */
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);

/* --- completion --- */

void completion_init(struct completion *c);
void completion_wait(struct completion *c);
/* The same with a deadline: 0 or -ETIMEDOUT. */
int completion_wait_until(struct completion *c, u64 deadline);
/*
 * Wakes all, now and later; callable from events. Its last touch of *c is what lets
 * waiters go, so that they may free it.
 */
void completion_done(struct completion *c);

static inline bool completion_is_done(const struct completion *c)
{
	return atomic_load_explicit(&c->state, memory_order_acquire) == 2;
}

/* --- rwsem --- */

void rwsem_init(struct rwsem *s, enum lock_rank rank);
/* One that in the simulated world may be taken past waiting writers, as Linux's may (lock.c). */
void rwsem_init_barging(struct rwsem *s, enum lock_rank rank);

static inline void rwsem_lock_shared(struct rwsem *s)
{
	u32 word = atomic_load_explicit(&s->word, memory_order_relaxed);

	lock_check_order(s, s->rank);
	do {
		if (unlikely(word & (RWSEM_WAITERS | RWSEM_EXCLUSIVE))) {
			rwsem_lock_slow(s, false);
			break;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&s->word, &word, word + 1, memory_order_acquire, memory_order_relaxed));
	lock_check_taken(s, s->rank, false);
}

static inline bool rwsem_trylock_shared(struct rwsem *s)
{
	u32 word = atomic_load_explicit(&s->word, memory_order_relaxed);

	do {
		if (word & (RWSEM_WAITERS | RWSEM_EXCLUSIVE))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&s->word, &word, word + 1, memory_order_acquire, memory_order_relaxed));
	lock_check_taken(s, s->rank, false);
	return true;
}

static inline void rwsem_unlock_shared(struct rwsem *s)
{
	u32 was;

	lock_check_given(s);
	was = atomic_fetch_sub_explicit(&s->word, 1, memory_order_release);
	assert((was & ~RWSEM_WAITERS) && !(was & RWSEM_EXCLUSIVE));
	if (unlikely(was == (RWSEM_WAITERS | 1)))
		rwsem_hand_over(s);
}

static inline void rwsem_lock(struct rwsem *s)
{
	lock_check_order(s, s->rank);
	if (unlikely(!lock_try_word(&s->word, RWSEM_EXCLUSIVE)))
		rwsem_lock_slow(s, true);
	lock_check_taken(s, s->rank, false);
}

static inline bool rwsem_trylock(struct rwsem *s)
{
	if (!lock_try_word(&s->word, RWSEM_EXCLUSIVE))
		return false;
	lock_check_taken(s, s->rank, false);
	return true;
}

static inline void rwsem_unlock(struct rwsem *s)
{
	u32 was;

	lock_check_given(s);
	was = atomic_fetch_and_explicit(&s->word, ~RWSEM_EXCLUSIVE, memory_order_release);
	assert((was & ~RWSEM_WAITERS) == RWSEM_EXCLUSIVE);
	if (unlikely(was & RWSEM_WAITERS))
		rwsem_hand_over(s);
}

/* Whether anybody holds it or waits for it, at this moment. */
static inline bool rwsem_is_busy(const struct rwsem *s)
{
	return atomic_load_explicit(&s->word, memory_order_relaxed) != 0;
}

/* For assertions: exclusively by anybody; with SLUICE_CHECKS by the calling task. */
static inline bool rwsem_is_exclusive(const struct rwsem *s)
{
	return (atomic_load_explicit(&s->word, memory_order_relaxed) & RWSEM_EXCLUSIVE) &&
	       lock_check_mine(s);
}

#endif
