/* SPDX-License-Identifier: MIT */
/*
 * The handful of names every file uses: fixed-width integers, container_of and
 * friends. Sizes are in pages and times in nanoseconds unless the name says
 * otherwise.
 */
#ifndef SLUICE_BASE_TYPES_H
#define SLUICE_BASE_TYPES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define PAGE_SHIFT 12
#define PAGE_SIZE  (1u << PAGE_SHIFT) /* bytes */

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull
#define NSEC_PER_USEC 1000ull

#define ARRAY_SIZE(a)                (sizeof(a) / sizeof((a)[0]))
#define container_of(p, type, field) ((type *)((char *)(p)-offsetof(type, field)))
#define likely(x)                    __builtin_expect(!!(x), 1)
#define unlikely(x)                  __builtin_expect(!!(x), 0)

/*
 * For thread-local variables: they are found by one load, in the thread's block of those that came
 * with the program or a library it was started with. Not under gcc's sanitizers: those test the
 * address of such a variable by the flags of the addition that makes it, and the linker turns
 * that into an instruction that sets none.
 */
#ifdef __SANITIZE_ADDRESS__
#define TLS_DIRECT
#else
#define TLS_DIRECT __attribute__((tls_model("initial-exec")))
#endif

static inline u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

#endif
