/* SPDX-License-Identifier: MIT */
/*
 * Numbers as people write them. Sizes: "4096", "4k", "128KiB", "3g", "1.5g";
 * units are powers of 1024 ("1e6" style exponents are also taken). Times: "500ms",
 * "2", "2s", "3m", "1h"; a bare number is in `bare_ns`. Upper and lower case are the
 * same; parts of a byte or nanosecond are cut off. All return 0 or -EINVAL
 * (trailing text, negative, overflow), leaving *out alone on failure.
 */
#ifndef SLUICE_BASE_UNITS_H
#define SLUICE_BASE_UNITS_H

#include "base/types.h"

int units_parse_bytes(const char *text, u64 *out_bytes);
int units_parse_time(const char *text, u64 bare_ns, u64 *out_ns);
int units_parse_u64(const char *text, u64 *out);
int units_parse_double(const char *text, double *out);
int units_parse_bool(const char *text, bool *out); /* yes/no, true/false, on/off, 1/0 */

/* "23.5G", "512K": at most 3 significant digits, but to the byte below 10 KiB; returns buf. */
#define UNITS_TEXT_MAX 32
const char *units_print_bytes(char buf[UNITS_TEXT_MAX], u64 bytes);

#endif
