// SPDX-License-Identifier: MIT
/*
 * What a fiber switch must keep, checked without any library, so that the same program
 * runs under every method: natively, over ucontext, and cross-compiled under an emulator.
 * Exits with 0, or says what was lost and exits with 1.
 */
#include "world/fiber.h"
#include <fenv.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIBERS 50
#define ROUNDS 200

static void require(bool holds, const char *what)
{
	if (!holds) {
		printf("fiber switch (%s): lost %s\n", fiber_method, what);
		exit(1);
	}
}

/*
 * u64 keep_registers(u64 seed, void (*call)(void *), void *arg, u64 *out): gives each
 * callee-saved register a value of its own, calls call(arg), writes the registers to out.
 */
#if defined(__x86_64__)
#define REGISTERS 6
__asm__(".text\n"
	".type keep_registers, @function\n"
	"keep_registers:\n"
	"	pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
	"	pushq %rcx\n"
	"	leaq 0(%rdi), %rbx; leaq 1(%rdi), %rbp; leaq 2(%rdi), %r12\n"
	"	leaq 3(%rdi), %r13; leaq 4(%rdi), %r14; leaq 5(%rdi), %r15\n"
	"	movq %rdx, %rdi\n"
	"	callq *%rsi\n"
	"	popq %rcx\n"
	"	movq %rbx, 0(%rcx); movq %rbp, 8(%rcx); movq %r12, 16(%rcx)\n"
	"	movq %r13, 24(%rcx); movq %r14, 32(%rcx); movq %r15, 40(%rcx)\n"
	"	popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp\n"
	"	retq\n"
	".size keep_registers, . - keep_registers\n");
#elif defined(__aarch64__)
#define REGISTERS 18 /* x19..x28, d8..d15 */
__asm__(".text\n"
	".type keep_registers, %function\n"
	"keep_registers:\n"
	"	stp x29, x30, [sp, #-176]!\n"
	"	stp x19, x20, [sp, #16]; stp x21, x22, [sp, #32]; stp x23, x24, [sp, #48]\n"
	"	stp x25, x26, [sp, #64]; stp x27, x28, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]; stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]; stp d14, d15, [sp, #144]\n"
	"	str x3, [sp, #160]\n"
	"	add x19, x0, #0; add x20, x0, #1; add x21, x0, #2; add x22, x0, #3\n"
	"	add x23, x0, #4; add x24, x0, #5; add x25, x0, #6; add x26, x0, #7\n"
	"	add x27, x0, #8; add x28, x0, #9\n"
	"	add x9, x0, #10; fmov d8, x9; add x9, x0, #11; fmov d9, x9\n"
	"	add x9, x0, #12; fmov d10, x9; add x9, x0, #13; fmov d11, x9\n"
	"	add x9, x0, #14; fmov d12, x9; add x9, x0, #15; fmov d13, x9\n"
	"	add x9, x0, #16; fmov d14, x9; add x9, x0, #17; fmov d15, x9\n"
	"	mov x0, x2\n"
	"	blr x1\n"
	"	ldr x3, [sp, #160]\n"
	"	stp x19, x20, [x3, #0]; stp x21, x22, [x3, #16]; stp x23, x24, [x3, #32]\n"
	"	stp x25, x26, [x3, #48]; stp x27, x28, [x3, #64]\n"
	"	stp d8, d9, [x3, #80]; stp d10, d11, [x3, #96]\n"
	"	stp d12, d13, [x3, #112]; stp d14, d15, [x3, #128]\n"
	"	ldp d14, d15, [sp, #144]; ldp d12, d13, [sp, #128]\n"
	"	ldp d10, d11, [sp, #112]; ldp d8, d9, [sp, #96]\n"
	"	ldp x27, x28, [sp, #80]; ldp x25, x26, [sp, #64]; ldp x23, x24, [sp, #48]\n"
	"	ldp x21, x22, [sp, #32]; ldp x19, x20, [sp, #16]\n"
	"	ldp x29, x30, [sp], #176\n"
	"	ret\n"
	".size keep_registers, . - keep_registers\n");
#else
#define REGISTERS 0
#endif
#if REGISTERS
void keep_registers(u64 seed, void (*call)(void *arg), void *arg, u64 *out);
#endif

/* Fibers in a ring: each hands on to the next, the last to the main thread. */
struct member {
	struct fiber *fiber, *next;
	unsigned number;
	volatile double
		sum; /* volatile, like all that must be computed in the mode of its moment */
};

static struct member ring[FIBERS];
static struct fiber *thread;
static unsigned finished;

static void hand_on(void *arg)
{
	struct member *me = arg;

	fiber_switch(me->fiber, me->next);
}

static void check_registers(struct member *me, unsigned round)
{
#if REGISTERS
	u64 got[REGISTERS], seed = me->number * 1000003ull + round * 101ull;

	keep_registers(seed, hand_on, me, got);
	for (unsigned i = 0; i < REGISTERS; i++)
		require(got[i] == seed + i, "a register");
#else
	(void)round;
	hand_on(me);
#endif
}

static void member_main(void *arg)
{
	static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
	struct member *me = arg;
	volatile double one = 1.0, three = 3.0, term = one / (me->number + 3), third;

	require(fegetround() == FE_TONEAREST, "the rounding mode a fiber starts with");
	fesetround(modes[me->number % 4]);
	third = one / three;
	for (unsigned round = 0; round < ROUNDS; round++) {
		check_registers(me, round);
		me->sum = me->sum + term;
		require(fegetround() == modes[me->number % 4], "the rounding mode");
		require(one / three == third, "how a division rounds");
	}
	finished++;
	fiber_exit(me->fiber, me->next);
}

static double expected_sum(unsigned number)
{
	static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
	volatile double one = 1.0, sum = 0, term = one / (number + 3);

	fesetround(modes[number % 4]);
	for (unsigned i = 0; i < ROUNDS; i++)
		sum = sum + term;
	fesetround(FE_TONEAREST);
	return sum;
}

static void run_ring(void)
{
	for (unsigned i = 0; i < FIBERS; i++) {
		ring[i].number = i;
		ring[i].sum = 0;
		ring[i].fiber = fiber_create(64 * 1024, member_main, &ring[i]);
		require(ring[i].fiber, "memory");
	}
	for (unsigned i = 0; i < FIBERS; i++)
		ring[i].next = i + 1 < FIBERS ? ring[i + 1].fiber : thread;
	finished = 0;
	for (unsigned round = 0; round <= ROUNDS; round++)
		fiber_switch(thread, ring[0].fiber);
	require(finished == FIBERS, "a fiber");
	for (unsigned i = 0; i < FIBERS; i++) {
		require(ring[i].sum == expected_sum(i), "a floating point sum");
		fiber_destroy(ring[i].fiber);
	}
}

int main(void)
{
	thread = fiber_adopt_thread();
	require(thread, "memory");
	run_ring();
	run_ring(); /* on the same stacks */
	fiber_destroy(thread);
	return 0;
}
