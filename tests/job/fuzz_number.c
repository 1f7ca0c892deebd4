/* SPDX-License-Identifier: MIT */
/* Numbers of the job language under libFuzzer: what is refused leaves the result alone. */
#include "job/number.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static u64 read_as(const char *text, u64 kilo, u64 bare_ns)
{
	const struct number_rules rules = { .kilo = kilo, .bare_ns = bare_ns };
	u64 out = UNTOUCHED;
	int rc = number_read(text, &rules, &out);

	assert(!rc || (rc == -EINVAL && out == UNTOUCHED));
	return out;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	u64 out = UNTOUCHED, plain = 0;
	int rc;

	if (!text)
		return 0;
	read_as(text, 1000, 0);
	read_as(text, 0, NSEC_PER_SEC);
	plain = read_as(text, 1024, 0);
	/* digits alone mean what they say, to whoever reads them */
	if (*text >= '1' && *text <= '9' && strspn(text, "0123456789") == strlen(text) &&
	    strlen(text) < 19) {
		assert(plain == strtoull(text, NULL, 10) && !number_is_computed(text));
		rc = number_bytes(text, &out);
		assert(!rc && out == plain);
	}
	number_is_computed(text);
	out = UNTOUCHED;
	rc = number_bytes(text, &out);
	assert(!rc || (rc == -EINVAL && out == UNTOUCHED));
	out = UNTOUCHED;
	rc = number_time(text, NSEC_PER_USEC, &out);
	assert(!rc || (rc == -EINVAL && out == UNTOUCHED));
	free(text);
	return 0;
}
