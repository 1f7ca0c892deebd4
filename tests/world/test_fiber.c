// SPDX-License-Identifier: MIT
/* Fibers: many of them, deep stacks, stacks used again, the guard page. */
#include "world/fiber.h"
#include "worlds.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__
#endif
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define FIBERS 1000 /* ThreadSanitizer counts fibers as threads and takes about 8,000 */
#else
#define FIBERS 10000
#endif

#define STACK_BYTES (256u * 1024)

static struct fiber *thread, *fibers[FIBERS];
static u64 sum;

static void counting(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	sum += me;
	fiber_switch(fibers[me], thread);
	sum += 2 * me;
	fiber_exit(fibers[me], thread);
}

static void test_many_fibers(void **state)
{
	u64 once = (u64)FIBERS * (FIBERS - 1) / 2;

	(void)state;
	thread = fiber_adopt_thread();
	sum = 0;
	for (unsigned i = 0; i < FIBERS; i++) {
		fibers[i] = fiber_create(STACK_BYTES, counting, (void *)(uintptr_t)i);
		assert_non_null(fibers[i]);
	}
	for (unsigned i = 0; i < FIBERS; i++)
		fiber_switch(thread, fibers[i]);
	assert_int_equal(sum, once);
	for (unsigned i = FIBERS; i-- > 0;)
		fiber_switch(thread, fibers[i]);
	assert_int_equal(sum, 3 * once);
	for (unsigned i = 0; i < FIBERS; i++)
		fiber_destroy(fibers[i]);
	fiber_destroy(thread);
}

/* Uses most of the stack, all of it different in every frame, across switches. */
static __attribute__((noinline)) u64 deep(struct fiber *me, unsigned depth)
{
	volatile u8 frame[1024];
	u64 got = 0;

	memset((void *)frame, (int)depth, sizeof(frame));
	if (depth)
		got = deep(me, depth - 1);
	else
		fiber_switch(me, thread);
	for (unsigned i = 0; i < sizeof(frame); i++)
		got += frame[i] == (u8)depth;
	return got;
}

static struct fiber *deep_fiber;
static u64 deep_got;

static void deep_main(void *arg)
{
	deep_got = deep(deep_fiber, (unsigned)(uintptr_t)arg);
	fiber_exit(deep_fiber, thread);
}

static void test_deep_stack(void **state)
{
	unsigned depth = 160;

	(void)state;
	thread = fiber_adopt_thread();
	for (unsigned round = 0; round < 3; round++) { /* the later ones on a stack used before */
		deep_fiber = fiber_create(STACK_BYTES, deep_main, (void *)(uintptr_t)depth);
		assert_non_null(deep_fiber);
		deep_got = 0;
		fiber_switch(thread, deep_fiber);
		assert_int_equal(deep_got, 0);
		fiber_switch(thread, deep_fiber);
		assert_int_equal(deep_got, (depth + 1) * 1024);
		fiber_destroy(deep_fiber);
	}
	fiber_destroy(thread);
}

/* --- the guard page: overflowing faults at the end of the stack, not beyond it --- */

static char *first_frame;

static void faulted(int signal, siginfo_t *info, void *context)
{
	char *at = info->si_addr;
	size_t used = (size_t)(first_frame - at);

	(void)signal;
	(void)context;
	_exit(at < first_frame && used > STACK_BYTES / 2 && used < STACK_BYTES + 4096 ? 42 : 43);
}

static __attribute__((noinline)) unsigned overflow(unsigned depth)
{
	volatile char frame[1024];

	frame[0] = (char)depth;
	frame[1023] = 1;
	if (!first_frame)
		first_frame = (char *)frame;
	return depth == ~0u ? 0 : overflow(depth + 1) + (unsigned)frame[0] + (unsigned)frame[1023];
}

static void overflow_main(void *arg)
{
	(void)arg;
	_exit((int)(overflow(0) & 7));
}

static void test_guard_page(void **state)
{
	static char signal_stack[64 * 1024];
	struct sigaction action = { .sa_sigaction = faulted, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t alternate = { .ss_sp = signal_stack, .ss_size = sizeof(signal_stack) };
	int status;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		sigaltstack(&alternate, NULL);
		sigaction(SIGSEGV, &action, NULL);
		thread = fiber_adopt_thread();
		fiber_switch(thread, fiber_create(STACK_BYTES, overflow_main, NULL));
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
}

/* --- fibers of a simulated world --- */

static void sleeper(void *arg)
{
	*(u64 *)arg += 1;
	world_sleep_until(world_now() + NSEC_PER_MSEC);
	*(u64 *)arg += 1;
}

static void crowd(void *arg)
{
	static struct task *t[FIBERS];

	for (unsigned i = 0; i < FIBERS; i++) {
		t[i] = world_spawn("sleeper", sleeper, arg);
		assert_non_null(t[i]);
	}
	for (unsigned i = 0; i < FIBERS; i++)
		world_join(t[i]);
	assert_int_equal(world_now(), NSEC_PER_MSEC + 3000);
}

static void test_crowd_of_tasks(void **state)
{
	u64 steps = 0;

	(void)state;
	run_in_sim(4, crowd, &steps);
	assert_int_equal(steps, 2 * FIBERS);
}

/* --- no memory for another task: those there are go on --- */

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define LIMITED_MEMORY /* sanitizers need address space without limit */
#endif

#ifdef LIMITED_MEMORY
static void spawn_all(void *arg)
{
	static struct task *t[FIBERS];
	unsigned count = 0;

	while (count < FIBERS && (t[count] = world_spawn("sleeper", sleeper, arg)))
		count++;
	if (count < 10 || count == FIBERS)
		_exit(1);
	for (unsigned i = 0; i < count; i++)
		world_join(t[i]);
	if (*(u64 *)arg != 2 * count)
		_exit(2);
	world_join(world_spawn("sleeper", sleeper, arg)); /* on a stack used before */
	if (*(u64 *)arg != 2 * count + 2)
		_exit(3);
}

static void test_memory_short(void **state)
{
	struct rlimit limit = { 256u << 20, 256u << 20 };
	u64 steps = 0;
	int status;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		if (setrlimit(RLIMIT_AS, &limit))
			_exit(4);
		run_in_sim(2, spawn_all, &steps);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef LIMITED_MEMORY
		/* before the pool of stacks fills */
		cmocka_unit_test_setup(test_memory_short, setup_unbound),
#endif
		cmocka_unit_test_setup(test_many_fibers, setup_unbound),
		cmocka_unit_test_setup(test_deep_stack, setup_unbound),
		cmocka_unit_test_setup(test_guard_page, setup_unbound),
		cmocka_unit_test_setup(test_crowd_of_tasks, setup_unbound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
