/* SPDX-License-Identifier: MIT */
/*
 * Epoch-based reclamation (Fraser, "Practical lock-freedom", 2004, section 5.2.3). There is one
 * clock of epochs. A section notes the epoch it began in. The clock goes on from e to e + 1 when
 * every open section notes e; so what was unlinked and retired in epoch e is out of everybody's
 * sight when the clock shows e + 2. Three lists of retired pieces are enough, and whoever
 * retires the BATCH-th piece tries to move the clock: there is no thread for it.
 *
 * A section's mark must be seen before its loads are made, which would cost each a full
 * fence. Those who move the clock pay for that (fence.h, as liburcu's default flavour does): either
 * the mark is seen, or the section began after their fence and sees what was unlinked before it.
 *
 * A thread that is preempted in a section holds up the clock. Garbage is bounded all the same:
 * with LIMIT pieces retired the next one to retire waits for the clock, parked on `waiting`,
 * which the end of a section wakes.
 */
#include "world/epoch.h"
#include "world/lock.h"
#include "world/task.h"
#include <pthread.h>

#define BATCH 64
#define LIMIT 4096
#define LISTS 3

struct world_epoch world_epoch = { .now = 1 };
_Thread_local struct world_reader world_reader;

/* Protects `readers`. The system's own: threads come and go in whatever world they are bound to. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list_node readers = { &readers, &readers };
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;

/* Held by the one who moves the clock, also while he waits for sections, which take no locks. */
static struct spinlock clock_lock = { .rank = RANK_EPOCH_CLOCK };
static struct spinlock retired_lock = { .rank = RANK_EPOCH }; /* protects the two below */
static struct world_retired *retired[LISTS];                  /* by epoch % LISTS */
static u32 retired_count;

static void thread_exits(void *arg)
{
	struct world_reader *r = arg;

	assert(!r->nesting);
	pthread_mutex_lock(&registry_lock);
	list_del(&r->link);
	pthread_mutex_unlock(&registry_lock);
	r->registered = r->light = false; /* should a later destructor of this thread read again */
}

static void init_once(void)
{
	pthread_key_create(&exit_key, thread_exits);
	world_fence_init();
}

void world_reader_register(void)
{
	struct world_reader *r = &world_reader;

	if (r->registered)
		return;
	pthread_once(&once, init_once);
	pthread_setspecific(exit_key, r);
	r->registered = true;
	r->light = atomic_load(&world_fences_light);
	pthread_mutex_lock(&registry_lock);
	list_add(&readers, &r->link);
	pthread_mutex_unlock(&registry_lock);
}

void world_reader_wake(void)
{
	atomic_store(&world_epoch.waiting, 0);
	real_unpark(&world_epoch.waiting, ~0u);
}

/* Whether a section is open that began before the present epoch. */
static bool is_held_up(void)
{
	u64 now = atomic_load(&world_epoch.now);
	struct list_node *n;
	bool held = false;

	pthread_mutex_lock(&registry_lock);
	list_for_each (n, &readers) {
		u64 epoch = atomic_load(&list_entry(n, struct world_reader, link)->epoch);

		held = held || (epoch && epoch != now);
	}
	pthread_mutex_unlock(&registry_lock);
	return held;
}

static void free_list(struct world_retired *r)
{
	struct world_retired *next;

	for (; r; r = next) {
		next = r->next;
		r->free(r);
	}
}

/* Moves the clock one epoch on and frees what that allows; false: a section does not let it. */
static bool advance(void)
{
	struct world_retired *list = NULL, *next, **slot;
	u32 count = 0;
	u64 now;

	assert(spin_is_held(&clock_lock));
	world_fence_heavy(); /* their marks and ours */
	if (is_held_up())
		return false;
	spin_lock(&retired_lock);
	now = atomic_fetch_add(&world_epoch.now, 1) + 1;
	slot = &retired[(now + 1) % LISTS]; /* of now - 2, and from now + 1 on */
	for (list = *slot, *slot = NULL, next = list; next; next = next->next)
		count++;
	retired_count -= count;
	spin_unlock(&retired_lock);
	free_list(list);
	return true;
}

/* Moves the clock on by `epochs`, waiting for sections to end. */
static void advance_waiting(unsigned epochs)
{
	assert(!world_is_reading()); /* it would wait for itself */
	while (epochs) {
		if (advance()) {
			epochs--;
			continue;
		}
		atomic_store(&world_epoch.waiting, 1);
		world_fence_heavy();
		if (is_held_up())
			real_park(&world_epoch.waiting, 1, WORLD_NEVER);
		atomic_store(&world_epoch.waiting, 0);
	}
}

void world_retire(struct world_retired *r, void (*fn)(struct world_retired *r))
{
	u32 count;

	assert(!world_is_reading());
	if (world_is_sim()) {
		fn(r);
		return;
	}
	r->free = fn;
	spin_lock(&retired_lock);
	r->next = retired[atomic_load(&world_epoch.now) % LISTS];
	retired[atomic_load(&world_epoch.now) % LISTS] = r;
	count = ++retired_count;
	spin_unlock(&retired_lock);
	if (count % BATCH && count < LIMIT)
		return;
	if (count >= LIMIT) {
		spin_lock(&clock_lock);
		advance_waiting(2);
		spin_unlock(&clock_lock);
	} else if (spin_trylock(&clock_lock)) {
		advance();
		spin_unlock(&clock_lock);
	}
}

void world_read_synchronize(void)
{
	assert(!world_is_reading());
	if (world_is_sim())
		return;
	spin_lock(&clock_lock);
	advance_waiting(2);
	spin_unlock(&clock_lock);
}
