/* SPDX-License-Identifier: MIT */
/*
 * Fibers: stacks that can be switched between without the kernel. The switch
 * saves the callee-saved registers on the old stack, swaps stack pointers and
 * restores them from the new one (System V AMD64 ABI; AAPCS64); elsewhere, and
 * with -Dfiber=ucontext, swapcontext() does it at the price of two system calls.
 * Sanitizers are told about every switch.
 */
#ifndef SLUICE_WORLD_FIBER_H
#define SLUICE_WORLD_FIBER_H

#include "base/types.h"

struct fiber;

/* A fiber that will run fn(arg) on a stack of its own (guard page below). NULL: no memory.
 * fn must not return: it ends with fiber_exit(). */
struct fiber *fiber_create(size_t stack_bytes, void (*fn)(void *arg), void *arg);
/* The fiber that stands for the calling OS thread, to switch back to. NULL: no memory. */
struct fiber *fiber_adopt_thread(void);
void fiber_destroy(struct fiber *f); /* not the running one; NULL is fine */
/* Leaves `from`, the running fiber, for `to`; returns when something switches back to it. */
void fiber_switch(struct fiber *from, struct fiber *to);
/* As fiber_switch, never to return: `from` has ended. */
void fiber_exit(struct fiber *from, struct fiber *to) __attribute__((noreturn));

/* What switches: "x86-64", "aarch64" or "ucontext". */
extern const char *const fiber_method;

#endif
