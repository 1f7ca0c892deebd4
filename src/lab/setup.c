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
#include "base/units.h"
#include "lab/setup_tenant.h"
#include "ledger/limits.h"
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

enum kind { KIND_U32, KIND_U64, KIND_BYTES, KIND_BOOL, KIND_PERCENT };

/* A key, the field it sets, and the values it may have (bytes are in `what` as text). */
struct knob {
	const char *section, *key;
	size_t offset; /* in struct setup; of section device in struct setup_device */
	enum kind kind;
	u64 min, max, multiple;
	const char *what;
};

#define KNOB(section, key, field, kind, min, max, multiple, what)                           \
	{                                                                                   \
		section, key, offsetof(struct setup, field), kind, min, max, multiple, what \
	}
#define DEVICE(key, field, kind, min, max, multiple, what)                                     \
	{                                                                                      \
		"device", key, offsetof(struct setup_device, field), kind, min, max, multiple, \
			what                                                                   \
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
	KNOB("machine", "ready", ready_bytes, KIND_BYTES, PAGE_SIZE, MEMORY_MAX, PAGE_SIZE,
	     "whole pages of 4096 bytes, at most 15T"),
	KNOB("machine", "page_out", page_out_bytes, KIND_BYTES, 0, BYTES_MAX, 1,
	     "a size, as 25M, of what is looked at in a second"),
	VM(dirty_ratio, KIND_U32, 0, 100, "0 to 100 (percent)"),
	VM(dirty_background_ratio, KIND_U32, 0, 100, "0 to 100 (percent)"),
	VM(dirty_bytes, KIND_BYTES, 2ull * PAGE_SIZE, BYTES_MAX, "a size of at least 8192"),
	VM(dirty_background_bytes, KIND_BYTES, 1, BYTES_MAX, "a size of at least 1"),
	VM(dirty_writeback_centisecs, KIND_U32, 0, INT32_MAX, "0 to 2147483647"),
	VM(dirty_expire_centisecs, KIND_U32, 0, INT32_MAX, "0 to 2147483647"),
	COSTS(CPU) DEVICE("size", size_bytes, KIND_BYTES, PAGE_SIZE, ~0ull, 1,
			  "a size of at least 4096"),
	DEVICE("read_ahead_kb", bdi.read_ahead_kb, KIND_U32, 0, 1u << 20, 4,
	       "a multiple of 4, at most 1048576"),
	DEVICE("block_bytes", block_bytes, KIND_U32, 512, PAGE_SIZE, 512,
	       "512, 1024, 2048 or 4096"),
	DEVICE("strict_limit", bdi.strict_limit, KIND_BOOL, 0, 1, 1, "yes or no"),
	DEVICE("min_ratio", bdi.min_ratio, KIND_PERCENT, 0, 99, 1, "0 to 99 (percent)"),
	DEVICE("max_ratio", bdi.max_ratio, KIND_PERCENT, 0, 100, 1, "0 to 100 (percent)"),
	DEVICE("min_ratio_fine", bdi.min_ratio, KIND_U32, 0, BDI_RATIO_ALL - 1, 1,
	       "0 to 999999 (1/10000 percent)"),
	DEVICE("max_ratio_fine", bdi.max_ratio, KIND_U32, 0, BDI_RATIO_ALL, 1,
	       "0 to 1000000 (1/10000 percent)"),
	DEVICE("min_bytes", bdi.min_bytes, KIND_BYTES, PAGE_SIZE, BYTES_MAX, 1,
	       "a size of at least 4096"),
	DEVICE("max_bytes", bdi.max_bytes, KIND_BYTES, PAGE_SIZE, BYTES_MAX, 1,
	       "a size of at least 4096"),
};

static const char *const sections[] = { "machine", "cpu", "device", "vm" };

const char *setup_section(size_t i)
{
	return i < ARRAY_SIZE(sections) ? sections[i] : NULL;
}

#define DEVICE_NAMED "device "

/* The name in "device NAME", "" in "device"; NULL: no device's section. */
static const char *device_of(const char *section)
{
	if (!strcmp(section, "device"))
		return "";
	return strncmp(section, DEVICE_NAMED, strlen(DEVICE_NAMED)) != 0
		       ? NULL
		       : section + strlen(DEVICE_NAMED);
}

bool setup_has_section(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (!strcmp(sections[i], name))
			return true;
	return device_of(name) || setup_tenant_of(name);
}

bool setup_has_device(const struct settings *s, const char *section)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->all[i].section, section))
			return true;
	return false;
}

static int refuse_section(const char *key, const char *section, const struct origin *at,
			  struct err *e)
{
	const char *near = err_nearest(section, sections, ARRAY_SIZE(sections));

	return err_set(e, at->file, at->line, "\"%s\" is in no section there is%s%s%s", key,
		       near ? "; did you mean \"" : "", near ? near : "", near ? ".\"?" : "");
}

int setting_address(const struct settings *s, const char *key, const struct origin *at,
		    char **section, const char **name, struct err *e)
{
	const char *dot = strchr(key, '.'), *second = strchr(dot + 1, '.');
	bool device = second && (!strncmp(key, "device.", 7) || !strncmp(key, "tenant.", 7));

	if (device && asprintf(section, "%.6s %.*s", key, (int)(second - dot - 1), dot + 1) < 0)
		*section = NULL;
	else if (!device)
		*section = strndup(key, (size_t)(dot - key));
	if (!*section) {
		err_set(e, NULL, 0, "not enough memory");
		return -ENOMEM;
	}
	*name = device ? second + 1 : dot + 1;
	if (device && !setup_has_device(s, *section))
		err_set(e, at->file, at->line, "\"%s\" is of a %.6s there is not: no [%s]", key,
			key, *section);
	else if (!setup_has_section(*section))
		refuse_section(key, *section, at, e);
	else
		return 0;
	free(*section);
	*section = NULL;
	return -EINVAL;
}

static const struct knob *knob_find(const char *section, const char *key)
{
	if (device_of(section))
		section = "device";
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

static void knob_store(const struct knob *k, void *to, u64 value)
{
	char *field = (char *)to + k->offset;
	u32 narrow = (u32)(k->kind == KIND_PERCENT ? value * (BDI_RATIO_ALL / 100) : value);
	bool yes = value != 0;

	if (k->kind == KIND_BOOL)
		memcpy(field, &yes, sizeof(yes));
	else if (k->kind == KIND_U32 || k->kind == KIND_PERCENT)
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
		snprintf(list + used, sizeof(list) - used, ", fs");
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

/* Likewise in /sys/class/bdi. */
static void bdi_pair(struct setup_device *d, const char *key)
{
	if (!strncmp(key, "min_ratio", 9))
		d->bdi.min_bytes = 0;
	else if (!strncmp(key, "max_ratio", 9))
		d->bdi.max_bytes = 0;
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

/* The device of a section; NULL: it is a new one and there is no room. */
static struct setup_device *device_at(struct setup *to, const char *name)
{
	struct setup_device *d = to->device;

	for (u32 i = 0; i < to->device_count; i++, d++)
		if (!strcmp(d->name, name))
			return d;
	if (to->device_count == ENGINE_DEVICES_MAX)
		return NULL;
	to->device_count++;
	*d = (struct setup_device){ .block_bytes = PAGE_SIZE };
	snprintf(d->name, sizeof(d->name), "%s", name);
	bdi_settings_init(&d->bdi);
	return d;
}

static bool is_name_key(const char *key)
{
	return !strcmp(key, "mount") || !strcmp(key, "shared_file");
}

static int apply_name(struct setup_device *d, const struct setting *s, struct err *e)
{
	if (!*s->value)
		return err_set(e, s->at.file, s->at.line, "%s needs a name, as /mnt", s->key);
	if (!strcmp(s->key, "shared_file")) {
		d->shared_file = s->value;
		return 0;
	}
	if (!d->name[0])
		return err_set(e, s->at.file, s->at.line,
			       "[device] takes all files that are in no other device's mount, and "
			       "has none itself");
	d->mount = s->value;
	return 0;
}

static int apply(struct setup *to, const struct setting *s, struct err *e)
{
	const struct knob *k = knob_find(s->section, s->key);
	const char *name = device_of(s->section);
	struct setup_device *d = name ? device_at(to, name) : NULL;
	u64 value;

	if (d && is_name_key(s->key))
		return apply_name(d, s, e);
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
	knob_store(k, d ? (void *)d : to, value);
	if (d)
		bdi_pair(d, s->key);
	else
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

/* The settings of one device that are for its model, as a section; the later of a key counts. */
static void gather(struct ini_section *to, const struct settings *s, const char *section)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct setting *one = &s->all[i];
		bool ours = strcmp(one->section, section) != 0 || knob_find(section, one->key) ||
			    is_name_key(one->key);

		if (ours || last_of(s, section, one->key) != one)
			continue;
		to->line = to->line ? to->line : (int)i + 1;
		to->entries[to->entry_count++] = (struct ini_entry){ .key = (char *)one->key,
								     .value = (char *)one->value,
								     .line = (int)i + 1 };
	}
}

static const char *section_of(char buf[64], const struct setup_device *d)
{
	snprintf(buf, 64, "%s%s", d->name[0] ? DEVICE_NAMED : "device", d->name);
	return buf;
}

static int read_device(struct setup_device *to, const struct settings *s, const char *path,
		       struct err *e)
{
	char name[64];
	struct ini_section section = { .name = (char *)section_of(name, to) };
	struct ini ini = { .path = (char *)"settings", .sections = &section, .section_count = 1 };
	struct err inner = { "" };
	int error = 0;

	section.entries = calloc(s->count + 1, sizeof(*section.entries));
	if (!section.entries)
		return err_set(e, NULL, 0, "not enough memory");
	gather(&section, s, name);
	if (!section.entry_count && !to->name[0])
		error = err_set(e, path, 0, "there is no [device]: an experiment needs one");
	else if (!section.entry_count)
		error = err_set(e, path, 0, "section [%s] says no model", name);
	else if (device_config_read(&to->config, &ini, &section, &inner))
		error = readdress(s, path, &inner, e);
	else if (to->name[0] && !last_of(s, name, "name"))
		memcpy(to->config.name, to->name, sizeof(to->config.name));
	free(section.entries);
	return error;
}

/* The last thing said of a device: there a complaint about several of them belongs. */
static struct origin origin_of(const struct settings *s, const struct setup_device *d,
			       const char *path)
{
	char name[64];

	section_of(name, d);
	for (size_t i = s->count; i-- > 0;)
		if (!strcmp(s->all[i].section, name))
			return s->all[i].at;
	return (struct origin){ path, 0 };
}

static int check_mount(const struct setup *to, u32 i, const struct settings *s, const char *path,
		       struct err *e)
{
	const struct setup_device *d = &to->device[i];
	struct origin at = origin_of(s, d, path);

	if (!d->mount)
		return err_set(e, at.file, at.line,
			       "section [device %s] needs \"mount\", the folder its files are in",
			       d->name);
	for (u32 j = 1; j < i; j++)
		if (!strcmp(to->device[j].mount, d->mount))
			return err_set(e, at.file, at.line,
				       "devices \"%s\" and \"%s\" have the same mount, %s",
				       to->device[j].name, d->name, d->mount);
	return 0;
}

/* Bytes of a device's part of the limit as what they will be: a ratio (engine_set_bdi()). */
static u64 ratio_of(u64 bytes, u32 ratio, u64 thresh)
{
	if (!bytes)
		return ratio;
	return thresh ? bytes / PAGE_SIZE * BDI_RATIO_ALL / thresh : BDI_RATIO_ALL + 1;
}

u64 setup_limit(const struct setup *to)
{
	const struct limits_config c = { to->vm.dirty_ratio, to->vm.dirty_background_ratio,
					 to->vm.dirty_bytes, to->vm.dirty_background_bytes };

	return limits_of(&c,
			 limits_avail(to->memory_bytes / PAGE_SIZE, to->reserve_bytes / PAGE_SIZE,
				      0, 0),
			 false, 0)
		.thresh;
}

/* What engine_set_bdi() would refuse, where it was written. */
static int check_parts(const struct setup *to, const struct settings *s, const char *path,
		       struct err *e)
{
	u64 thresh = setup_limit(to), sum = 0;

	for (u32 i = 0; i < to->device_count; i++) {
		const struct setup_device *d = &to->device[i];
		u64 min = ratio_of(d->bdi.min_bytes, d->bdi.min_ratio, thresh);
		u64 max = ratio_of(d->bdi.max_bytes, d->bdi.max_ratio, thresh);
		struct origin at = origin_of(s, d, path);
		char limit[UNITS_TEXT_MAX];

		units_print_bytes(limit, thresh * PAGE_SIZE);
		if (max > BDI_RATIO_ALL || min > BDI_RATIO_ALL)
			return err_set(e, at.file, at.line,
				       "%s cannot be more than the limit of all devices, %s",
				       max > BDI_RATIO_ALL ? "max_bytes" : "min_bytes", limit);
		if (min > max)
			return err_set(e, at.file, at.line,
				       "the device's part of the limit: min is above max");
		sum += min;
		if (sum >= BDI_RATIO_ALL)
			return err_set(
				e, at.file, at.line,
				"the devices' min parts come to all of the limit: nothing is "
				"left to share");
	}
	return 0;
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

int setup_check_section(const char *section, const struct origin *at, struct err *e)
{
	const char *name = device_of(section);

	if (setup_tenant_of(section))
		return setup_check_tenant(section, at, e);
	if (!name || !*name)
		return 0;
	if (strlen(name) >= sizeof(((struct setup_device *)0)->name) || strpbrk(name, ". \t/"))
		return err_set(e, at->file, at->line,
			       "[%s]: the name of a device has at most 31 characters, and no dot, "
			       "slash or blank",
			       section);
	return 0;
}

static int apply_all(struct setup *out, const struct settings *s, struct err *e)
{
	for (size_t i = 0; i < s->count; i++) {
		const struct setting *one = &s->all[i];
		const char *device = device_of(one->section);

		assert(setup_has_section(one->section));
		if (setup_check_section(one->section, &one->at, e))
			return -EINVAL;
		if (device && !device_at(out, device))
			return err_set(e, one->at.file, one->at.line,
				       "there are more than %d devices", ENGINE_DEVICES_MAX);
		if (device && !knob_find("device", one->key) && !is_name_key(one->key))
			continue; /* its model's */
		if (setup_tenant_of(one->section) ? setup_apply_tenant(out, one, e)
						  : apply(out, one, e))
			return -EINVAL;
	}
	return 0;
}

int setup_read(struct setup *out, const struct settings *s, const char *path, struct err *e)
{
	int error;

	*out = (struct setup){ .fs = FS_XFS };
	sim_config_init(&out->sim);
	out->sim.hz = 250;
	vm_settings_init(&out->vm);
	device_at(out, "");
	error = apply_all(out, s, e);
	if (!error)
		error = check_whole(out, s, path, e);
	for (u32 i = 0; i < out->device_count && !error; i++) {
		error = read_device(&out->device[i], s, path, e);
		if (!error && i)
			error = check_mount(out, i, s, path, e);
	}
	for (u32 i = 0; i < out->device_count && !error; i++) {
		struct origin at = origin_of(s, &out->device[i], path);

		error = setup_check_backing(out, i, &at, e);
	}
	return error ? error : check_parts(out, s, path, e);
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
