/* SPDX-License-Identifier: MIT */
/* Numbers and sizes under libFuzzer: what is refused leaves the result alone. */
#include "base/units.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* What is printed can be read, and is within the three digits that it has. */
static void print(u64 bytes)
{
	char buf[UNITS_TEXT_MAX];
	u64 back = 0;
	int rc = units_parse_bytes(units_print_bytes(buf, bytes), &back);

	assert(!rc || bytes > UINT64_MAX / 200 * 199); /* rounded up past what there is */
	assert(rc || (back >= bytes - bytes / 100 && back / 101 <= bytes / 100));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	u64 bytes = UNTOUCHED, ns = UNTOUCHED, plain = UNTOUCHED;
	double real = -4711;
	bool yes = true;
	int rc;

	if (!text)
		return 0;
	rc = units_parse_bytes(text, &bytes);
	assert(!rc || (rc == -EINVAL && bytes == UNTOUCHED));
	if (!rc)
		print(bytes);
	rc = units_parse_time(text, NSEC_PER_SEC, &ns);
	assert(!rc || (rc == -EINVAL && ns == UNTOUCHED));
	rc = units_parse_u64(text, &plain);
	assert(!rc || (rc == -EINVAL && plain == UNTOUCHED));
	assert(rc || plain == strtoull(text, NULL, 10));
	rc = units_parse_double(text, &real);
	assert(!rc || (rc == -EINVAL && real == -4711));
	assert(isfinite(real));
	rc = units_parse_bool(text, &yes);
	assert(!rc || (rc == -EINVAL && yes));
	free(text);
	return 0;
}
