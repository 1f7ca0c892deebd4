/* SPDX-License-Identifier: MIT */
/*
 * void fiber_swap(void **save_sp, void *load_sp)
 *
 * Pushes what the ABI says a callee must preserve, leaves the stack pointer in
 * *save_sp, takes load_sp instead and pops the same from there. A new stack is
 * laid out by fiber.c as if fiber_swap had been called from the first instruction
 * of fiber_begin, which passes the two words a fiber starts with to its C entry.
 *
 * x86-64 frame (System V AMD64 ABI 3.2.1), from load_sp upwards:
 *	mxcsr and x87 control word, r15, r14, r13, r12, rbx, rbp, return address
 * aarch64 frame (AAPCS64 6.1), 176 bytes:
 *	x19..x28, x29, x30, d8..d15, fpcr, padding
 */
#if defined(__x86_64__)

	.text
	.globl	fiber_swap
	.hidden	fiber_swap
	.type	fiber_swap, @function
	.p2align 4
fiber_swap:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r12, 0
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r13, 0
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r14, 0
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r15, 0
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	ldmxcsr	(%rsp)
	fldcw	4(%rsp)
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r15
	popq	%r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r14
	popq	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r13
	popq	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r12
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	/* An indirect jump, because a return would always be predicted wrong. */
	popq	%rcx
	.cfi_adjust_cfa_offset -8
	.cfi_register %rip, %rcx
	jmp	*%rcx
	.cfi_endproc
	.size	fiber_swap, . - fiber_swap

	.globl	fiber_begin
	.hidden	fiber_begin
	.type	fiber_begin, @function
	.p2align 4
fiber_begin:
	.cfi_startproc
	.cfi_undefined %rip
	movq	%r12, %rdi
	xorl	%ebp, %ebp
	callq	*%r13
	ud2
	.cfi_endproc
	.size	fiber_begin, . - fiber_begin

#elif defined(__aarch64__)

	.text
	.globl	fiber_swap
	.hidden	fiber_swap
	.type	fiber_swap, %function
	.p2align 4
fiber_swap:
	.cfi_startproc
	sub	sp, sp, #176
	.cfi_adjust_cfa_offset 176
	stp	x19, x20, [sp, #0]
	stp	x21, x22, [sp, #16]
	stp	x23, x24, [sp, #32]
	stp	x25, x26, [sp, #48]
	stp	x27, x28, [sp, #64]
	stp	x29, x30, [sp, #80]
	.cfi_rel_offset x29, 80
	.cfi_rel_offset x30, 88
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	mrs	x2, fpcr
	str	x2, [sp, #160]
	mov	x3, sp
	str	x3, [x0]
	mov	sp, x1
	ldr	x3, [sp, #160]
	cmp	x2, x3
	b.eq	1f
	msr	fpcr, x3
1:	ldp	d14, d15, [sp, #144]
	ldp	d12, d13, [sp, #128]
	ldp	d10, d11, [sp, #112]
	ldp	d8, d9, [sp, #96]
	ldp	x29, x30, [sp, #80]
	ldp	x27, x28, [sp, #64]
	ldp	x25, x26, [sp, #48]
	ldp	x23, x24, [sp, #32]
	ldp	x21, x22, [sp, #16]
	ldp	x19, x20, [sp, #0]
	add	sp, sp, #176
	.cfi_adjust_cfa_offset -176
	.cfi_restore x29
	.cfi_restore x30
	br	x30
	.cfi_endproc
	.size	fiber_swap, . - fiber_swap

	.globl	fiber_begin
	.hidden	fiber_begin
	.type	fiber_begin, %function
	.p2align 4
fiber_begin:
	.cfi_startproc
	.cfi_undefined x30
	mov	x0, x19
	mov	x29, xzr
	blr	x20
	brk	#1
	.cfi_endproc
	.size	fiber_begin, . - fiber_begin

#endif

	.section .note.GNU-stack, "", %progbits
