/* SPDX-License-Identifier: MIT */
/*
 * A fiber is a stack and the stack pointer it was left with. To switch is to save
 * the callee-saved registers on the running stack, to note its pointer and to pop
 * the same registers from the other one (switch.S): the compiler has already saved
 * all the rest around the call. A new fiber's stack is laid out as if it had been
 * left that way just before its first instruction.
 *
 * Stacks are mapped, so that only touched pages cost memory, with one inaccessible
 * page below to turn an overflow into a fault at once. Mapping costs microseconds and
 * simulations spawn many tasks, so stacks of ended fibers wait in a small pool, the
 * last used on top, for whoever needs one of their size next; the fiber's own record
 * sits at the top of its stack and needs no allocation.
 *
 * AddressSanitizer has to know which stack is the current one, and ThreadSanitizer
 * keeps a shadow of the call stack per fiber; both are told just before each switch.
 */
#include "world/fiber.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIBER_TSAN
#endif
#endif

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if !defined(FIBER_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define FIBER_UCONTEXT
#endif
#ifdef FIBER_UCONTEXT
#include <ucontext.h>
#endif

#define POOL_STACKS_MAX 1024
#define ALWAYS_INLINE   static inline __attribute__((always_inline))

struct fiber {
#ifdef FIBER_UCONTEXT
	ucontext_t context;
#else
	void *sp;
#endif
	void (*fn)(void *arg);
	void *arg;
	void *map; /* guard page and stack; NULL for an adopted thread */
	size_t map_bytes;
	struct fiber *pool_next;
#ifdef FIBER_ASAN
	struct fiber *came_from; /* who switched to this one last */
	void *fake_stack;
	const void *stack_bottom; /* an adopted thread's are learned when it is left */
	size_t stack_bytes;
#endif
#ifdef FIBER_TSAN
	void *tsan;
#endif
};

/* Stacks without a fiber; guarded by pool_lock. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fiber *pool_first;
static unsigned pool_stacks;

/*
 * --- sanitizers ---
 *
 * Always inline: ThreadSanitizer counts calls and returns on a shadow stack per fiber, so
 * nothing may be called or return between announcing a switch and making it.
 */

ALWAYS_INLINE void announce_switch(struct fiber *from, struct fiber *to, bool for_ever)
{
#ifdef FIBER_ASAN
	to->came_from = from;
	__sanitizer_start_switch_fiber(for_ever ? NULL : &from->fake_stack, to->stack_bottom,
				       to->stack_bytes);
#endif
#ifdef FIBER_TSAN
	__tsan_switch_to_fiber(to->tsan, 0);
#endif
	(void)from;
	(void)to;
	(void)for_ever;
}

ALWAYS_INLINE void announce_arrival(struct fiber *me)
{
#ifdef FIBER_ASAN
	const void *bottom;
	size_t bytes;

	__sanitizer_finish_switch_fiber(me->fake_stack, &bottom, &bytes);
	me->came_from->stack_bottom = bottom;
	me->came_from->stack_bytes = bytes;
	me->fake_stack = NULL;
#endif
	(void)me;
}

/* --- the switch --- */

static void fiber_main(void *arg)
{
	struct fiber *me = arg;

	announce_arrival(me);
	me->fn(me->arg);
	abort(); /* fn ends with fiber_exit() */
}

#ifdef FIBER_UCONTEXT

const char *const fiber_method = "ucontext";

/* makecontext() passes ints, so the pointer travels as two. */
static void ucontext_main(unsigned high, unsigned low)
{
	fiber_main((void *)((uintptr_t)(u64)high << 32 | low));
}

static bool prepare(struct fiber *f, char *bottom, size_t bytes)
{
	u64 word = (uintptr_t)f;

	if (getcontext(&f->context))
		return false;
	f->context.uc_stack.ss_sp = bottom;
	f->context.uc_stack.ss_size = bytes;
	f->context.uc_link = NULL;
	makecontext(&f->context, (void (*)(void))ucontext_main, 2, (unsigned)(word >> 32),
		    (unsigned)word);
	return true;
}

ALWAYS_INLINE void swap(struct fiber *from, struct fiber *to)
{
	int error = swapcontext(&from->context, &to->context);

	assert(!error);
	(void)error;
}

#else

void fiber_swap(void **save_sp, void *load_sp);
void fiber_begin(void);

#ifdef __x86_64__

const char *const fiber_method = "x86-64";

static bool prepare(struct fiber *f, char *bottom, size_t bytes)
{
	u64 *sp = (u64 *)((uintptr_t)(bottom + bytes) & ~15ull);
	u32 mxcsr;
	u16 x87;

	__asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(x87));
	/* fiber_begin itself starts at a 16-byte boundary, and so calls at one */
	*--sp = (uintptr_t)fiber_begin;
	*--sp = 0;                     /* rbp: ends chains of frames */
	*--sp = 0;                     /* rbx */
	*--sp = (uintptr_t)f;          /* r12 */
	*--sp = (uintptr_t)fiber_main; /* r13 */
	*--sp = 0;                     /* r14 */
	*--sp = 0;                     /* r15 */
	*--sp = mxcsr | (u64)x87 << 32;
	f->sp = sp;
	return true;
}

#else

const char *const fiber_method = "aarch64";

static bool prepare(struct fiber *f, char *bottom, size_t bytes)
{
	u64 *sp = (u64 *)((uintptr_t)(bottom + bytes) & ~15ull) - 22;
	u64 fpcr;

	__asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
	memset(sp, 0, 22 * sizeof(*sp));
	sp[0] = (uintptr_t)f;            /* x19 */
	sp[1] = (uintptr_t)fiber_main;   /* x20 */
	sp[11] = (uintptr_t)fiber_begin; /* x30 */
	sp[20] = fpcr;
	f->sp = sp;
	return true;
}

#endif

ALWAYS_INLINE void swap(struct fiber *from, struct fiber *to)
{
	fiber_swap(&from->sp, to->sp);
}

#endif

void fiber_switch(struct fiber *from, struct fiber *to)
{
	assert(from != to);
	announce_switch(from, to, false);
	swap(from, to);
	announce_arrival(from);
}

void fiber_exit(struct fiber *from, struct fiber *to)
{
	assert(from != to);
	announce_switch(from, to, true);
	swap(from, to);
	abort(); /* somebody switched to an ended fiber */
}

/* --- stacks --- */

static struct fiber *pool_take(size_t map_bytes)
{
	struct fiber **link, *f;

	pthread_mutex_lock(&pool_lock);
	for (link = &pool_first; (f = *link); link = &f->pool_next) {
		if (f->map_bytes == map_bytes) {
			*link = f->pool_next;
			pool_stacks--;
			break;
		}
	}
	pthread_mutex_unlock(&pool_lock);
	return f;
}

static bool pool_give(struct fiber *f)
{
	bool taken;

	pthread_mutex_lock(&pool_lock);
	taken = pool_stacks < POOL_STACKS_MAX;
	if (taken) {
		f->pool_next = pool_first;
		pool_first = f;
		pool_stacks++;
	}
	pthread_mutex_unlock(&pool_lock);
	return taken;
}

/* A fiber record at the top of a fresh mapping whose lowest page is the guard. */
static struct fiber *stack_map(size_t map_bytes, size_t guard_bytes)
{
	char *map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	struct fiber *f;

	if (map == MAP_FAILED)
		return NULL;
	if (mprotect(map, guard_bytes, PROT_NONE)) {
		munmap(map, map_bytes);
		return NULL;
	}
	f = (struct fiber *)((uintptr_t)(map + map_bytes - sizeof(*f)) & ~63ull);
	f->map = map;
	f->map_bytes = map_bytes;
	return f;
}

struct fiber *fiber_create(size_t stack_bytes, void (*fn)(void *arg), void *arg)
{
	size_t guard_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t map_bytes = (stack_bytes + sizeof(struct fiber) + 64 + guard_bytes - 1) /
				   guard_bytes * guard_bytes +
			   guard_bytes;
	struct fiber *f;
	char *bottom;

	assert(stack_bytes >= 4096 && fn);
	f = pool_take(map_bytes);
	if (!f)
		f = stack_map(map_bytes, guard_bytes);
	if (!f)
		return NULL;
	bottom = (char *)f->map + guard_bytes;
	stack_bytes = (size_t)((char *)f - bottom);
#ifdef FIBER_ASAN
	/* frames that fiber_exit() never returned through left their red zones */
	__asan_unpoison_memory_region(bottom, stack_bytes);
	f->fake_stack = NULL;
	f->stack_bottom = bottom;
	f->stack_bytes = stack_bytes;
#endif
	f->fn = fn;
	f->arg = arg;
	if (!prepare(f, bottom, stack_bytes)) {
		munmap(f->map, f->map_bytes);
		return NULL;
	}
#ifdef FIBER_TSAN
	f->tsan = __tsan_create_fiber(0);
#endif
	return f;
}

struct fiber *fiber_adopt_thread(void)
{
	struct fiber *f = calloc(1, sizeof(*f));

#ifdef FIBER_TSAN
	if (f)
		f->tsan = __tsan_get_current_fiber();
#endif
	return f;
}

void fiber_destroy(struct fiber *f)
{
	if (!f)
		return;
	if (!f->map) {
		free(f);
		return;
	}
#ifdef FIBER_TSAN
	__tsan_destroy_fiber(f->tsan);
#endif
	if (!pool_give(f))
		munmap(f->map, f->map_bytes);
}
