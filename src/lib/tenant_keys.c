// SPDX-License-Identifier: MIT
/* A table of keys; see tenant_keys.h. */
#include "lib/tenant_keys.h"
#include "base/units.h"
#include <errno.h>
#include <string.h>

struct key {
	const char *name;
	size_t offset; /* in struct tenant_settings */
	bool bytes;
	u64 min;
	const char *values;
};

#define PERCENT(name)                                                                         \
	{                                                                                     \
#name, offsetof(struct tenant_settings, name), false, 1, "1 to 100 (percent)" \
	}
#define BYTES(name, field, min, values)                                          \
	{                                                                        \
		name, offsetof(struct tenant_settings, field), true, min, values \
	}

static const struct key keys[] = {
	PERCENT(dirty_ratio),
	PERCENT(dirty_background_ratio),
	BYTES("dirty_bytes", dirty_bytes, 2ull * PAGE_SIZE, "a size of at least 8192"),
	BYTES("dirty_background_bytes", dirty_background_bytes, 1, "a size, as 64M"),
	BYTES("memory", memory_bytes, PAGE_SIZE, "a size of at least 4096"),
	BYTES("floor", floor_bytes, 0, "a size, as 64M"),
};

const char *tenant_key(size_t i)
{
	return i < ARRAY_SIZE(keys) ? keys[i].name : NULL;
}

static const struct key *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	return NULL;
}

int tenant_key_set(struct tenant_settings *to, const char *key, const char *value,
		   const char **values)
{
	const struct key *k = find(key);
	u64 number;
	int rc;

	if (!k)
		return -ENOENT;
	*values = k->values;
	rc = k->bytes ? units_parse_bytes(value, &number) : units_parse_u64(value, &number);
	if (rc || number < k->min || (!k->bytes && number > 100))
		return -EINVAL;
	if (k->bytes)
		memcpy((char *)to + k->offset, &number, sizeof(number));
	else
		memcpy((char *)to + k->offset, &(u32){ (u32)number }, sizeof(u32));
	return 0;
}
