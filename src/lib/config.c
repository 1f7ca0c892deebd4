// SPDX-License-Identifier: MIT
/*
 * Settings are rows of a table: section and key, which field of the configuration they fill, and
 * what may stand there, as text for people and as numbers. Whatever is not in it is a choice of the
 * policy, or a key of the device, which have tables of their own below. A setting is read in three
 * steps: split at the "=", the row found, the value checked; each complaint names the setting as
 * it was written.
 */
#include "lib/config.h"
#include "base/units.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { KIND_U32, KIND_BYTES, KIND_BOOL, KIND_WORD, KIND_TEXT, KIND_DEVICE };

struct key {
	const char *section, *name;
	enum kind kind;
	size_t offset;
	u64 min, max, multiple;
	const char *values; /* for people; KIND_WORD: the words, in the order of the enum */
};

#define MEMORY_MIN (16ull << 20)
#define MEMORY_MAX (15ull << 40) /* page frames have 32-bit numbers */
#define BYTES_MAX  (1ull << 50)

#define AT(field) offsetof(struct lib_config, field)
#define MEMORY(name, field, min)                                                    \
	{                                                                           \
		"machine", name, KIND_BYTES, AT(field), min, MEMORY_MAX, PAGE_SIZE, \
			"whole pages of 4096 bytes, 16M to 15T"                     \
	}
#define VM(name, kind, min, max, values)                                   \
	{                                                                  \
		"vm", #name, kind, AT(engine.vm.name), min, max, 1, values \
	}
#define DEVICE(name, values)                                    \
	{                                                       \
		"device", name, KIND_DEVICE, 0, 0, 0, 1, values \
	}

static const struct key keys[] = {
	MEMORY("memory", engine.memory_bytes, MEMORY_MIN),
	MEMORY("max_memory", engine.max_memory_bytes, MEMORY_MIN),
	{ "machine", "register_memory", KIND_BOOL, AT(engine.register_memory), 0, 1, 1,
	  "yes or no" },
	{ "machine", "huge_pages", KIND_WORD, AT(engine.huge_pages), 0, 2, 1, "auto|never|always" },
	{ "machine", "reserve", KIND_BYTES, AT(engine.reserve_bytes), 0, BYTES_MAX, 1,
	  "a size, as 500M" },
	VM(dirty_ratio, KIND_U32, 0, 100, "0 to 100 (percent)"),
	VM(dirty_background_ratio, KIND_U32, 0, 100, "0 to 100 (percent)"),
	VM(dirty_bytes, KIND_BYTES, 2ull * PAGE_SIZE, BYTES_MAX, "a size of at least 8192"),
	VM(dirty_background_bytes, KIND_BYTES, 1, BYTES_MAX, "a size of at least 1"),
	VM(dirty_writeback_centisecs, KIND_U32, 0, INT32_MAX, "0 to 2147483647 (1/100 s)"),
	VM(dirty_expire_centisecs, KIND_U32, 0, INT32_MAX, "0 to 2147483647 (1/100 s)"),
	VM(retry_min_ms, KIND_U32, 0, 86400000, "0 to 86400000 (ms)"),
	VM(retry_max_ms, KIND_U32, 0, 86400000, "0 to 86400000 (ms)"),
	{ "device", "read_ahead_kb", KIND_U32, AT(read_ahead_kb), 0, 1u << 20, 4,
	  "a multiple of 4, at most 1048576" },
	{ "device", "strict_limit", KIND_BOOL, AT(strict_limit), 0, 1, 1, "yes or no" },
	{ "device", "block_bytes", KIND_U32, AT(block_bytes), 512, PAGE_SIZE, 512,
	  "512, 1024, 2048 or 4096" },
	{ "device", "idle_files", KIND_U32, AT(idle_files), 0, 1u << 20, 1, "0 to 1048576" },
	{ "machine", "persist", KIND_TEXT, AT(persist), 1, PATH_MAX - 64, 1,
	  "the path of a file, on tmpfs" },
	{ "machine", "recovered", KIND_TEXT, AT(recovered), 1, PATH_MAX - 64, 1,
	  "the path of a folder" },
	{ "machine", "recovery", KIND_WORD, AT(recovery), 0, 1, 1, "refuse|set_aside" },
	DEVICE("io_engine", "auto, uring or threads"),
	DEVICE("queue_depth", "1 to 4096"),
	DEVICE("max_io_kb", "4 to 1048576 (KiB)"),
	DEVICE("direct", "0 or 1"),
};

void lib_config_init(struct lib_config *c)
{
	*c = (struct lib_config){ .engine = { .memory_bytes = 256ull << 20,
					      .contents = true,
					      .policy = *policy_find("sluice") },
				  .read_ahead_kb = 128,
				  .block_bytes = PAGE_SIZE,
				  .idle_files = 1024 };
	vm_settings_init(&c->engine.vm);
	device_config_init(&c->device, "file");
}

const char *lib_config_key(size_t i, char buf[64])
{
	if (i >= ARRAY_SIZE(keys))
		return NULL;
	snprintf(buf, 64, "%s.%s", keys[i].section, keys[i].name);
	return buf;
}

const char *lib_config_values(size_t i)
{
	return i < ARRAY_SIZE(keys) ? keys[i].values : NULL;
}

int lib_config_check_memory(u64 memory_bytes)
{
	return memory_bytes < MEMORY_MIN || memory_bytes > MEMORY_MAX || memory_bytes % PAGE_SIZE
		       ? -EINVAL
		       : 0;
}

/* With or without its section. */
static const struct key *find_key(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		size_t section = strlen(keys[i].section);

		if (!strcmp(name, keys[i].name))
			return &keys[i];
		if (!strncmp(name, keys[i].section, section) && name[section] == '.' &&
		    !strcmp(name + section + 1, keys[i].name))
			return &keys[i];
	}
	return NULL;
}

static int refuse_key(const char *name, struct err *e)
{
	const char *known[64] = { "policy" }, *near;
	char written[ARRAY_SIZE(keys)][64];
	size_t count = 1;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		known[count++] = lib_config_key(i, written[i]);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		known[count++] = keys[i].name;
	for (size_t i = 0; policy_key(i) && count < ARRAY_SIZE(known); i++)
		known[count++] = policy_key(i);
	near = err_nearest(name, known, count);
	if (near)
		return err_set(e, NULL, 0, "unknown setting \"%s\"; did you mean \"%s\"?", name,
			       near);
	return err_set(e, NULL, 0, "unknown setting \"%s\"; the settings stand in sluice(3)", name);
}

/* The place of a word among "one|two|three"; false: it is none of them. */
static bool word_parse(const char *words, const char *text, u64 *out)
{
	size_t length = strlen(text);

	for (*out = 0; *words; ++*out) {
		size_t word = strcspn(words, "|");

		if (word == length && !strncmp(words, text, length))
			return true;
		words += word + (words[word] == '|');
	}
	return false;
}

static bool value_parse(const struct key *k, const char *text, u64 *value)
{
	bool yes;

	switch (k->kind) {
	case KIND_BYTES:
		if (units_parse_bytes(text, value))
			return false;
		break;
	case KIND_U32:
		if (units_parse_u64(text, value))
			return false;
		break;
	case KIND_BOOL:
		if (units_parse_bool(text, &yes))
			return false;
		*value = yes;
		break;
	case KIND_WORD:
		return word_parse(k->values, text, value);
	case KIND_TEXT:
		*value = strlen(text);
		break;
	case KIND_DEVICE:
		return false;
	}
	if (*value < k->min || *value > k->max || *value % k->multiple)
		return false;
	/* a block is a power of two */
	return k->offset != AT(block_bytes) || !(*value & (*value - 1));
}

static void value_store(const struct key *k, struct lib_config *c, u64 value)
{
	char *field = (char *)c + k->offset;
	u32 narrow = (u32)value;
	bool yes = value != 0;

	if (k->kind == KIND_BOOL)
		memcpy(field, &yes, sizeof(yes));
	else if (k->kind == KIND_BYTES)
		memcpy(field, &value, sizeof(value));
	else
		memcpy(field, &narrow, sizeof(narrow));
}

/* As in /proc/sys/vm: setting one of a pair of bytes and ratio takes the other away. */
static void vm_pair(struct lib_config *c, const struct key *k)
{
	if (k->offset == AT(engine.vm.dirty_ratio))
		c->engine.vm.dirty_bytes = 0;
	else if (k->offset == AT(engine.vm.dirty_background_ratio))
		c->engine.vm.dirty_background_bytes = 0;
}

static int set_policy(struct lib_config *c, const char *value, struct err *e)
{
	const char *names[32], *near;
	const struct policy *p = policy_find(value);
	size_t count = 0;

	if (p) {
		c->engine.policy = *p;
		return 0;
	}
	for (; count < ARRAY_SIZE(names) && policy_preset(count); count++)
		names[count] = policy_preset(count)->name;
	near = err_nearest(value, names, count);
	return err_set(e, NULL, 0, "unknown policy \"%s\"%s%s%s", value,
		       near ? "; did you mean \"" : "; sluice-policies(1) lists them",
		       near ? near : "", near ? "\"?" : "");
}

static int set(struct lib_config *c, const char *name, const char *value, struct err *e)
{
	const struct key *k = find_key(name);
	u64 number;

	if (!k && policy_has_key(name))
		return policy_set(&c->engine.policy, name, value, e);
	if (!k)
		return refuse_key(name, e);
	if (k->kind == KIND_DEVICE && !device_config_set(&c->device, k->name, value, NULL))
		return 0;
	if (!value_parse(k, value, &number))
		return err_set(e, NULL, 0, "%s cannot be \"%s\", only %s", name, value, k->values);
	if (k->kind == KIND_TEXT)
		memcpy((char *)c + k->offset, value, number + 1);
	else
		value_store(k, c, number);
	vm_pair(c, k);
	return 0;
}

/* Splits a setting and applies it: the preset of the policy, or all others. */
static int apply(struct lib_config *c, const char *setting, bool preset, struct err *e)
{
	const char *equals = strchr(setting, '=');
	char *name;
	int rc = 0;

	if (!equals || equals == setting)
		return err_set(e, NULL, 0, "\"%s\" is no setting: KEY=VALUE is needed", setting);
	name = strndup(setting, (size_t)(equals - setting));
	if (!name) {
		err_set(e, NULL, 0, "not enough memory");
		return -ENOMEM;
	}
	if (!strcmp(name, "policy"))
		rc = preset ? set_policy(c, equals + 1, e) : 0;
	else if (!preset)
		rc = set(c, name, equals + 1, e);
	free(name);
	return rc;
}

int lib_config_read(struct lib_config *c, const char *const *settings, size_t count, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++)
		rc = apply(c, settings[i], true, e);
	for (size_t i = 0; i < count && !rc; i++)
		rc = apply(c, settings[i], false, e);
	if (rc)
		return rc;
	if (c->engine.reserve_bytes >= c->engine.memory_bytes)
		return err_set(e, NULL, 0, "reserve must be smaller than memory");
	if (c->engine.max_memory_bytes && c->engine.max_memory_bytes < c->engine.memory_bytes)
		return err_set(e, NULL, 0, "max_memory must not be smaller than memory");
	return 0;
}
