/* SPDX-License-Identifier: MIT */
/*
 * A setup starts from defaults; the settings are applied one after the other, each
 * by the row of a table that knows its key, its range and its field. Only what is
 * the device model's business is different: its settings are gathered into one INI
 * section, the later value of a key in the place of the earlier one, and the device
 * reads that section itself. In place of lines this section carries the settings'
 * numbers, so that a complaint of the device's can be led back to the place where
 * the value was really written.
 */
#include "lab/setup.h"
#include "base/units.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int settings_add(struct settings *s, const struct setting *new)
{
	if (s->count == s->capacity) {
		size_t capacity = s->capacity ? 2 * s->capacity : 16;
		struct setting *all = reallocarray(s->all, capacity, sizeof(*all));

		if (!all)
			return -ENOMEM;
		s->all = all;
		s->capacity = capacity;
	}
	s->all[s->count++] = *new;
	return 0;
}

int settings_append(struct settings *s, const struct settings *more)
{
	int error = 0;

	for (size_t i = 0; i < more->count && !error; i++)
		error = settings_add(s, &more->all[i]);
	return error;
}

void settings_finish(struct settings *s)
{
	free(s->all);
	*s = (struct settings){ 0 };
}

enum kind { KIND_U32, KIND_U64, KIND_BYTES, KIND_BOOL };

/* A key, the field it sets, and the values it may have (bytes are in `what` as text). */
struct knob {
	const char *section, *key;
	size_t offset;
	enum kind kind;
	u64 min, max, multiple;
	const char *what;
};

#define KNOB(section, key, field, kind, min, max, multiple, what)                           \
	{                                                                                   \
		section, key, offsetof(struct setup, field), kind, min, max, multiple, what \
	}
#define VM(key, kind, min, max, what) KNOB("vm", #key, vm.key, kind, min, max, 1, what)
#define CPU(name, key, ns, text)                                                  \
	KNOB("cpu", #key, sim.cost_ns[COST_##name], KIND_U64, 0, NSEC_PER_SEC, 1, \
	     "0 to 1000000000 (nanoseconds)"),

#define BYTES_MAX  (1ull << 50)
#define MEMORY_MAX (15ull << 40) /* page frames have 32-bit numbers */

static const struct knob knobs[] = {
	KNOB("machine", "cpus", sim.cpus, KIND_U32, 1, 1024, 1, "1 to 1024"),
	KNOB("machine", "hz", sim.hz, KIND_U32, 100, 1000, 1, "100, 250 or 1000"),
	KNOB("machine", "memory", memory_bytes, KIND_BYTES, 16ull << 20, MEMORY_MAX, PAGE_SIZE,
	     "whole pages of 4096 bytes, 16M to 15T"),
	KNOB("machine", "reserve", reserve_bytes, KIND_BYTES, 0, BYTES_MAX, 1, "a size, as 5.8G"),
	VM(dirty_ratio, KIND_U32, 0, 100, "0 to 100 (percent)"),
	VM(dirty_background_ratio, KIND_U32, 0, 100, "0 to 100 (percent)"),
	VM(dirty_bytes, KIND_BYTES, 2 * PAGE_SIZE, BYTES_MAX, "a size of at least 8192"),
	VM(dirty_background_bytes, KIND_BYTES, 1, BYTES_MAX, "a size of at least 1"),
	VM(dirty_writeback_centisecs, KIND_U32, 0, INT32_MAX, "0 to 2147483647"),
	VM(dirty_expire_centisecs, KIND_U32, 0, INT32_MAX, "0 to 2147483647"),
	COSTS(CPU) KNOB("device", "size", device_size_bytes, KIND_BYTES, PAGE_SIZE, ~0ull, 1,
			"a size of at least 4096"),
	KNOB("device", "read_ahead_kb", read_ahead_kb, KIND_U32, 0, 1u << 20, 4,
	     "a multiple of 4, at most 1048576"),
	KNOB("device", "block_bytes", block_bytes, KIND_U32, 512, PAGE_SIZE, 512,
	     "512, 1024, 2048 or 4096"),
	KNOB("device", "strict_limit", strict_limit, KIND_BOOL, 0, 1, 1, "yes or no"),
};

static const char *const sections[] = { "machine", "cpu", "device", "vm" };

const char *setup_section(size_t i)
{
	return i < ARRAY_SIZE(sections) ? sections[i] : NULL;
}

bool setup_has_section(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (!strcmp(sections[i], name))
			return true;
	return false;
}

static const struct knob *knob_find(const char *section, const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		if (!strcmp(knobs[i].section, section) && !strcmp(knobs[i].key, key))
			return &knobs[i];
	return NULL;
}

static int knob_parse(const struct knob *k, const char *text, u64 *out)
{
	bool yes;

	if (k->kind == KIND_BYTES)
		return units_parse_bytes(text, out);
	if (k->kind != KIND_BOOL)
		return units_parse_u64(text, out);
	if (units_parse_bool(text, &yes))
		return -EINVAL;
	*out = yes;
	return 0;
}

static void knob_store(const struct knob *k, struct setup *to, u64 value)
{
	char *field = (char *)to + k->offset;
	u32 narrow = (u32)value;
	bool yes = value != 0;

	if (k->kind == KIND_BOOL)
		memcpy(field, &yes, sizeof(yes));
	else if (k->kind == KIND_U32)
		memcpy(field, &narrow, sizeof(narrow));
	else
		memcpy(field, &value, sizeof(value));
}

static int refuse_key(const struct setting *s, struct err *e)
{
	const char *known[ARRAY_SIZE(knobs) + 1];
	const char *near;
	char list[256] = "";
	size_t count = 0, used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++) {
		if (strcmp(knobs[i].section, s->section) != 0)
			continue;
		known[count++] = knobs[i].key;
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
					 knobs[i].key);
		assert(used < sizeof(list));
	}
	if (!strcmp(s->section, "machine")) {
		known[count++] = "fs";
		used += (size_t)snprintf(list + used, sizeof(list) - used, ", fs");
	}
	near = err_nearest(s->key, known, count);
	if (near)
		return err_set(e, s->at.file, s->at.line,
			       "unknown key \"%s\" in section [%s]; did you mean \"%s\"?", s->key,
			       s->section, near);
	return err_set(e, s->at.file, s->at.line,
		       "unknown key \"%s\" in section [%s], which takes %s", s->key, s->section,
		       list);
}

/* As in /proc/sys/vm: setting one of a pair of bytes and ratio takes the other away. */
static void vm_pair(struct setup *to, const char *key)
{
	if (!strcmp(key, "dirty_ratio"))
		to->vm.dirty_bytes = 0;
	else if (!strcmp(key, "dirty_background_ratio"))
		to->vm.dirty_background_bytes = 0;
}

static bool value_fits(const struct knob *k, u64 value)
{
	if (value < k->min || value > k->max || value % k->multiple)
		return false;
	if (!strcmp(k->key, "hz"))
		return value == 100 || value == 250 || value == 1000;
	if (!strcmp(k->key, "block_bytes"))
		return (value & (value - 1)) == 0;
	return true;
}

static int apply(struct setup *to, const struct setting *s, struct err *e)
{
	const struct knob *k = knob_find(s->section, s->key);
	u64 value;

	if (!strcmp(s->section, "machine") && !strcmp(s->key, "fs")) {
		to->fs = fs_find(s->value);
		if (to->fs == FS_NONE)
			return err_set(e, s->at.file, s->at.line,
				       "fs cannot be \"%s\", only xfs or ext4", s->value);
		return 0;
	}
	if (!strcmp(s->section, "machine") && !strcmp(s->key, "page_size")) {
		if (units_parse_bytes(s->value, &value) || value != PAGE_SIZE)
			return err_set(e, s->at.file, s->at.line, "page_size can only be 4096");
		return 0;
	}
	if (!k)
		return refuse_key(s, e);
	if (knob_parse(k, s->value, &value) || !value_fits(k, value))
		return err_set(e, s->at.file, s->at.line, "%s cannot be \"%s\", only %s", s->key,
			       s->value, k->what);
	knob_store(k, to, value);
	vm_pair(to, s->key);
	return 0;
}

/* The last setting of a key, or NULL. */
static const struct setting *last_of(const struct settings *s, const char *section, const char *key)
{
	for (size_t i = s->count; i-- > 0;)
		if (!strcmp(s->all[i].section, section) && !strcmp(s->all[i].key, key))
			return &s->all[i];
	return NULL;
}

/* "settings:12: text" of the device reader -> the origin of setting 12, and the text. */
static int readdress(const struct settings *s, const char *path, const struct err *from,
		     struct err *e)
{
	size_t index = 0;
	int prefix = 0;

	if (sscanf(from->text, "settings:%zu: %n", &index, &prefix) == 1 && prefix > 0 &&
	    index >= 1 && index <= s->count)
		return err_set(e, s->all[index - 1].at.file, s->all[index - 1].at.line, "%s",
			       from->text + prefix);
	if (!strncmp(from->text, "settings:", 9))
		return err_set(e, path, 0, "%s", strrchr(from->text, ':') + 2);
	return err_set(e, path, 0, "%s", from->text);
}

static int read_device(struct setup *to, const struct settings *s, const char *path, struct err *e)
{
	struct ini_section section = { .name = (char *)"device" };
	struct ini ini = { .path = (char *)"settings", .sections = &section, .section_count = 1 };
	struct err inner = { "" };
	int error = 0;

	section.entries = calloc(s->count + 1, sizeof(*section.entries));
	if (!section.entries)
		return err_set(e, NULL, 0, "not enough memory");
	for (size_t i = 0; i < s->count; i++) {
		const struct setting *one = &s->all[i];
		bool ours = strcmp(one->section, "device") || knob_find("device", one->key);

		if (ours || last_of(s, one->section, one->key) != one)
			continue;
		section.line = section.line ? section.line : (int)i + 1;
		section.entries[section.entry_count++] = (struct ini_entry){
			.key = (char *)one->key, .value = (char *)one->value, .line = (int)i + 1
		};
	}
	if (!section.entry_count)
		error = err_set(e, path, 0, "there is no [device]: an experiment needs one");
	else if (device_config_read(&to->device, &ini, &section, &inner))
		error = readdress(s, path, &inner, e);
	free(section.entries);
	return error;
}

static int check_whole(const struct setup *to, const struct settings *s, const char *path,
		       struct err *e)
{
	static const char *const needed[] = { "cpus", "memory" };
	const struct setting *reserve = last_of(s, "machine", "reserve");

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!last_of(s, "machine", needed[i]))
			return err_set(e, path, 0, "section [machine] needs \"%s\"", needed[i]);
	if (reserve && to->reserve_bytes >= to->memory_bytes)
		return err_set(e, reserve->at.file, reserve->at.line,
			       "reserve must be smaller than memory");
	return 0;
}

int setup_read(struct setup *out, const struct settings *s, const char *path, struct err *e)
{
	*out = (struct setup){ .fs = FS_XFS, .read_ahead_kb = 128, .block_bytes = PAGE_SIZE };
	sim_config_init(&out->sim);
	out->sim.hz = 250;
	vm_settings_init(&out->vm);
	for (size_t i = 0; i < s->count; i++) {
		const struct setting *one = &s->all[i];

		assert(setup_has_section(one->section));
		if (!strcmp(one->section, "device") && !knob_find("device", one->key))
			continue;
		if (apply(out, one, e))
			return -EINVAL;
	}
	if (check_whole(out, s, path, e))
		return -EINVAL;
	return read_device(out, s, path, e);
}

int setup_read_vm(struct vm_settings *vm, const struct settings *s, struct err *e)
{
	struct setup setup = { .vm = *vm };

	for (size_t i = 0; i < s->count; i++) {
		assert(!strcmp(s->all[i].section, "vm"));
		if (apply(&setup, &s->all[i], e))
			return -EINVAL;
	}
	*vm = setup.vm;
	return 0;
}
