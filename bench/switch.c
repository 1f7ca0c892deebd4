/* SPDX-License-Identifier: MIT */
/*
 * What a switch between two stacks costs: ours beside swapcontext(), which makes two
 * system calls to save and restore the signal mask.
 */
#include "bench.h"
#include "world/fiber.h"
#include <ucontext.h>

static struct fiber *thread, *other;
static ucontext_t thread_context, other_context;

static void fiber_loop(void *arg)
{
	(void)arg;
	for (;;)
		fiber_switch(other, thread);
}

static void context_loop(void)
{
	for (;;)
		swapcontext(&other_context, &thread_context);
}

/* There and back: two switches. */
static void switch_fibers(void *arg, u64 n)
{
	(void)arg;
	for (u64 i = 0; i < n; i += 2)
		fiber_switch(thread, other);
}

static void switch_contexts(void *arg, u64 n)
{
	(void)arg;
	for (u64 i = 0; i < n; i += 2)
		swapcontext(&thread_context, &other_context);
}

int main(void)
{
	static char stack[64 * 1024];
	char name[32];
	double ours, theirs;

	thread = fiber_adopt_thread();
	other = fiber_create(64 * 1024, fiber_loop, NULL);
	if (!thread || !other || getcontext(&other_context))
		return 1;
	other_context.uc_stack.ss_sp = stack;
	other_context.uc_stack.ss_size = sizeof(stack);
	makecontext(&other_context, context_loop, 0);
	snprintf(name, sizeof(name), "fiber_switch (%s)", fiber_method);
	ours = bench_op(name, switch_fibers, NULL);
	theirs = bench_op("swapcontext", switch_contexts, NULL);
	printf("%-32s %10.1f times\n", "swapcontext / fiber_switch", theirs / ours);
	fiber_destroy(other);
	fiber_destroy(thread);
	return 0;
}
