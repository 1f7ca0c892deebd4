/* SPDX-License-Identifier: MIT */
/* Numbers as fio's language writes them. All return 0 or -EINVAL, leaving *out alone then. */
#ifndef SLUICE_JOB_NUMBER_H
#define SLUICE_JOB_NUMBER_H

#include "base/types.h"

/* What a number means: bytes with k = kilo, or, if bare_ns, times, a bare one in bare_ns. */
struct number_rules {
	u64 kilo; /* 1024 or 1000, fio's kb_base */
	u64 bare_ns;
};

/* One number or an expression: "4k", "2*(4k+512)", "1h/2". */
int number_read(const char *text, const struct number_rules *rules, u64 *out);
/* True if number_read() would have to compute, outside of parentheses. */
bool number_is_computed(const char *text);

/* "4096", "0x1000", "4k", "4kb", "4ki" (all powers of 1024), "4kib" (1000), up to p. */
int number_bytes(const char *text, u64 *out);
/* "10", "10s", "500ms", "20us", "3m", "1h", "2d"; a bare number counts in bare_ns. */
int number_time(const char *text, u64 bare_ns, u64 *out);

#endif
