/* SPDX-License-Identifier: MIT */
/*
 * The real world: a thin layer over the kernel. Parking is a futex (Franke, Russell and
 * Kirkwood 2002): the kernel checks the word and goes to sleep in one step, so an unpark
 * that follows a change of the word is never lost. Tasks are threads. Threads that the
 * world did not spawn are tasks too, with a record made at first use.
 */
#include "world/task.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct real_task {
	struct task task;
	pthread_t thread;
	struct world *world; /* inherited from who spawned it */
};

static _Atomic u64 last_id;
static _Thread_local struct task *self;
static _Thread_local struct task self_found; /* of a thread the world did not spawn */

/* What is called at the end of each task, and the key that tells us of the end of a thread. */
static void (*_Atomic end_hooks[8])(void);
static pthread_key_t end_key;
static pthread_once_t end_once = PTHREAD_ONCE_INIT;

void world_init_real(struct world *w, unsigned hz)
{
	assert(hz == 100 || hz == 250 || hz == 1000);
	*w = (struct world){ .kind = WORLD_REAL, .hz = hz, .cpus = real_cpus() };
}

u64 world_now_real(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

u64 world_wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

u64 world_file_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME_COARSE, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

static struct timespec timespec_of(u64 ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(ns % NSEC_PER_SEC) };
}

int real_park(const _Atomic u32 *word, u32 value, u64 deadline)
{
	struct timespec until = timespec_of(deadline);
	long result =
		syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
			deadline == WORLD_NEVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);

	if (!result || errno == EINTR)
		return 0;
	assert(errno == EAGAIN || errno == ETIMEDOUT);
	return -errno;
}

unsigned real_unpark(const _Atomic u32 *word, unsigned n)
{
	long woken = syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n > INT_MAX ? INT_MAX : (int)n,
			     NULL, NULL, 0);

	/* a word that is no longer mapped has nobody parked on it */
	return woken > 0 ? (unsigned)woken : 0;
}

void real_sleep_until(u64 deadline)
{
	struct timespec until = timespec_of(deadline);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

int world_at_task_end(void (*fn)(void))
{
	for (size_t i = 0; i < ARRAY_SIZE(end_hooks); i++) {
		void (*there)(void) = NULL;

		if (atomic_compare_exchange_strong(&end_hooks[i], &there, fn) || there == fn)
			return 0;
	}
	return -ENOSPC;
}

static void task_ends(void *unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(end_hooks); i++) {
		void (*fn)(void) = atomic_load(&end_hooks[i]);

		if (fn)
			fn();
	}
}

static void make_end_key(void)
{
	int error = pthread_key_create(&end_key, task_ends);

	assert(!error);
	(void)error;
}

struct task *real_self(void)
{
	if (unlikely(!self)) {
		self = &self_found;
		task_init(self, atomic_fetch_add(&last_id, 1) + 1, "thread", NULL, NULL);
		pthread_once(&end_once, make_end_key);
		pthread_setspecific(end_key, self);
	}
	return self;
}

static void *thread_main(void *arg)
{
	struct real_task *me = arg;

	self = &me->task;
	world_bind(me->world);
	me->task.fn(me->task.arg);
	task_ends(NULL);
#ifdef SLUICE_CHECKS
	assert(!me->task.held_count); /* it ends with a lock held */
#endif
	return NULL;
}

struct task *real_spawn(const char *name, void (*fn)(void *arg), void *arg)
{
	struct real_task *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	task_init(&t->task, atomic_fetch_add(&last_id, 1) + 1, name, fn, arg);
	t->world = world_current;
	if (pthread_create(&t->thread, NULL, thread_main, t)) {
		free(t);
		return NULL;
	}
	return &t->task;
}

void real_join(struct task *task)
{
	struct real_task *t = container_of(task, struct real_task, task);
	int error = pthread_join(t->thread, NULL);

	assert(!error);
	(void)error;
	free(t);
}

unsigned real_cpus(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus > 0 ? (unsigned)cpus : 1;
}

unsigned real_cpu(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : (unsigned)cpu;
}

u64 real_random(void)
{
	u64 bits;
	ssize_t got;

	/* up to 256 bytes are never cut short, but may be interrupted before the pool is ready */
	do
		got = getrandom(&bits, sizeof(bits), 0);
	while (got != sizeof(bits));
	return bits;
}
