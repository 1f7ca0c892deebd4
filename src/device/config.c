// SPDX-License-Identifier: MIT
/*
 * Device configurations, as a table of keys: which models take a key, which field it
 * fills, and what it may be. Reading a section, refusing what is wrong in it, and checking
 * a configuration that a program made by itself all walk this table; docs/devices.md is its
 * manual. A field holds a key's value times `scale`.
 */
#include "base/units.h"
#include "device/lognormal.h"
#include "device/model.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum model_bit { RATE = 1, EBS = 2, NVME = 4, MEMORY = 8, REAL = 16, FUSE = 32 };
#define TIMED (RATE | EBS | NVME)

enum key_kind {
	KEY_REAL,  /* a number; the field is a double */
	KEY_SIZE,  /* a number with a unit of bytes; the field is a double */
	KEY_WHOLE, /* a whole number; the field is a u32 */
	KEY_TIME,  /* a number; the field is a u64 of nanoseconds */
	KEY_NAME,  /* one of io_engine_names; the field is a u32, its place there */
	KEY_TEXT,  /* so many characters; the field is a char[32] */
};

static const char *const io_engine_names[] = { "auto", "uring", "threads" };

struct key {
	const char *name;
	unsigned models;
	enum key_kind kind;
	size_t field;
	double min, max, scale;
	const char *unit; /* for messages */
};

#define FIELD(name) offsetof(struct device_config, name)
#define RATE_MIN    1e3 /* bytes a second */
#define RATE_MAX    1e12
#define KB_MIN      4
#define KB_MAX      1048576

static const struct key keys[] = {
	{ "max_sectors_kb", TIMED | MEMORY, KEY_WHOLE, FIELD(max_io_bytes), KB_MIN, KB_MAX, 1024,
	  "KiB" },
	{ "max_io_kb", REAL, KEY_WHOLE, FIELD(max_io_bytes), KB_MIN, KB_MAX, 1024, "KiB" },
	{ "queue_depth", REAL, KEY_WHOLE, FIELD(queue_depth), 1, 4096, 1, "requests" },
	{ "io_engine", REAL, KEY_NAME, FIELD(io_engine), 0, 2, 1, "auto, uring or threads" },
	{ "direct", REAL, KEY_WHOLE, FIELD(direct), 0, 1, 1, "(0: leave O_DIRECT alone)" },
	{ "nr_requests", TIMED | FUSE, KEY_WHOLE, FIELD(queue_depth), 1, 65536, 1, "requests" },
	{ "wbt_lat_us", TIMED, KEY_TIME, FIELD(wbt_latency_ns), 0, 6e7, 1e3, "microseconds" },
	{ "write_cache", TIMED, KEY_WHOLE, FIELD(write_cache), 0, 1, 1, "(1: it has one)" },
	{ "iops", RATE | EBS, KEY_REAL, FIELD(iops), 1, 1e9, 1, "I/Os a second" },
	{ "mbps", RATE | EBS, KEY_REAL, FIELD(bytes_per_s), RATE_MIN / 1e6, RATE_MAX / 1e6, 1e6,
	  "million bytes a second" },
	{ "bandwidth", RATE | EBS, KEY_SIZE, FIELD(bytes_per_s), RATE_MIN, RATE_MAX, 1,
	  "bytes a second, or with a unit as in 125MiB" },
	{ "latency_us", RATE | EBS, KEY_TIME, FIELD(latency_ns), 0, 6e7, 1e3, "microseconds" },
	{ "path_us", RATE, KEY_TIME, FIELD(path_ns), 0, 6e7, 1e3, "microseconds" },
	{ "io_unit_kb", EBS, KEY_WHOLE, FIELD(io_unit_bytes), 1, KB_MAX, 1024, "KiB" },
	{ "channels", NVME, KEY_WHOLE, FIELD(channels), 1, 1024, 1, "channels" },
	{ "read_bandwidth", NVME, KEY_SIZE, FIELD(read_bytes_per_s), RATE_MIN, RATE_MAX, 1,
	  "bytes a second, or with a unit as in 3GiB" },
	{ "write_bandwidth", NVME, KEY_SIZE, FIELD(write_bytes_per_s), RATE_MIN, RATE_MAX, 1,
	  "bytes a second, or with a unit as in 3GiB" },
	{ "read_latency_us", NVME, KEY_TIME, FIELD(read_latency_ns), 0.001, 6e7, 1e3,
	  "microseconds" },
	{ "write_latency_us", NVME, KEY_TIME, FIELD(write_latency_ns), 0.001, 6e7, 1e3,
	  "microseconds" },
	{ "shared", NVME, KEY_WHOLE, FIELD(shared), 0, 1, 1,
	  "(1: all requests in flight share the flash)" },
	{ "latency_sigma", NVME, KEY_REAL, FIELD(latency_sigma), 0, LOGNORMAL_SIGMA_MAX, 1,
	  "(log-normal sigma)" },
	{ "backing", FUSE, KEY_TEXT, FIELD(backing), 1, 31, 1, "characters, a device's name" },
	{ "threads", FUSE, KEY_WHOLE, FIELD(threads), 1, 1024, 1, "threads" },
	{ "max_write_kb", FUSE, KEY_WHOLE, FIELD(max_write_bytes), 4, 262140, 1024, "KiB" },
	{ "max_read_kb", FUSE, KEY_WHOLE, FIELD(max_read_bytes), 4, 262140, 1024, "KiB" },
	{ "max_pages", FUSE, KEY_WHOLE, FIELD(max_pages), 1, 65535, 1, "pages" },
	{ "max_background", FUSE, KEY_WHOLE, FIELD(max_background), 1, 65535, 1, "requests" },
	{ "congestion_threshold", FUSE, KEY_WHOLE, FIELD(congestion_threshold), 1, 65535, 1,
	  "requests" },
	{ "large_folios", FUSE, KEY_WHOLE, FIELD(large_folios), 0, 1, 1,
	  "(1: folios as large as a request)" },
	{ "writeback_cache", FUSE, KEY_WHOLE, FIELD(writeback), 0, 1, 1,
	  "(0: each write goes through)" },
	{ "handle_killpriv", FUSE, KEY_WHOLE, FIELD(killpriv), 0, 1, 1,
	  "(0: each write first asks for security.capability)" },
	{ "splice", FUSE, KEY_WHOLE, FIELD(splice), 0, 1, 1, "(0: one more copy)" },
};

static const struct defaults {
	enum model_bit bit;
	struct device_config config;
} defaults[] = {
	{ RATE,
	  { .model = "rate",
	    .max_io_bytes = 256 << 10,
	    .queue_depth = 128,
	    .iops = 3000,
	    .bytes_per_s = 125 << 20 } },
	{ EBS,
	  { .model = "ebs",
	    .max_io_bytes = 256 << 10,
	    .queue_depth = 128,
	    .iops = 3000,
	    .bytes_per_s = 125 << 20,
	    .latency_ns = 500 * NSEC_PER_USEC,
	    .io_unit_bytes = 256 << 10 } },
	{ NVME,
	  { .model = "nvme",
	    .max_io_bytes = 1280 << 10,
	    .queue_depth = 1023,
	    .channels = 64,
	    .read_bytes_per_s = 3e9,
	    .write_bytes_per_s = 2e9,
	    .read_latency_ns = 80 * NSEC_PER_USEC,
	    .write_latency_ns = 20 * NSEC_PER_USEC,
	    .latency_sigma = 0.25 } },
	{ MEMORY, { .model = "memory", .max_io_bytes = 1280 << 10, .queue_depth = 1023 } },
	{ FUSE,
	  { .model = "fuse",
	    .max_io_bytes = 128 << 10,
	    .queue_depth = 16384,
	    .threads = 10,
	    .max_write_bytes = 1024 << 10,
	    .max_read_bytes = 1024 << 10,
	    .max_pages = 256,
	    .max_background = 12,
	    .congestion_threshold = 9,
	    .large_folios = 0,
	    .writeback = 1,
	    .killpriv = 0,
	    .splice = 1 } },
	{ REAL,
	  { .model = "file",
	    .max_io_bytes = 1024 << 10,
	    .queue_depth = 128,
	    .io_engine = IO_ENGINE_AUTO,
	    .direct = 1 } },
};
#define MODELS "rate, ebs, nvme, memory, fuse" /* that a machine can have */

static const struct defaults *defaults_of(const char *model)
{
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
		if (!strcmp(defaults[i].config.model, model))
			return &defaults[i];
	return NULL;
}

int device_config_init(struct device_config *c, const char *model)
{
	const struct defaults *d = defaults_of(model);

	if (!d)
		return -EINVAL;
	*c = d->config;
	memcpy(c->name, c->model, sizeof(c->model));
	return 0;
}

static double key_load(const struct key *k, const struct device_config *c)
{
	const char *field = (const char *)c + k->field;

	switch (k->kind) {
	case KEY_WHOLE:
	case KEY_NAME:
		return *(const u32 *)field / k->scale;
	case KEY_TIME:
		return (double)*(const u64 *)field / k->scale;
	case KEY_TEXT:
		return (double)strnlen(field, sizeof(c->backing));
	case KEY_REAL:
	case KEY_SIZE:
		break;
	}
	return *(const double *)field / k->scale;
}

static void key_store(const struct key *k, struct device_config *c, double value)
{
	char *field = (char *)c + k->field;

	switch (k->kind) {
	case KEY_WHOLE:
	case KEY_NAME:
		*(u32 *)field = (u32)(value * k->scale);
		break;
	case KEY_TIME:
		*(u64 *)field = (u64)llround(value * k->scale);
		break;
	case KEY_REAL:
	case KEY_SIZE:
		*(double *)field = value * k->scale;
		break;
	case KEY_TEXT: /* set_key() */
		break;
	}
}

bool device_config_valid(const struct device_config *c)
{
	const struct defaults *d = defaults_of(c->model);

	for (size_t i = 0; d && i < ARRAY_SIZE(keys); i++) {
		const struct key *k = &keys[i];
		double value = key_load(k, c);

		/* Written so that a NaN fails. */
		bool absent = k->kind == KEY_TEXT && value == 0; /* text may be */

		if ((k->models & d->bit) && !absent && !(value >= k->min && value <= k->max))
			return false;
	}
	return d && memchr(c->name, 0, sizeof(c->name));
}

/* The value of an entry in the key's own unit; false: not what the key can be. */
static bool key_parse(const struct key *k, const char *text, double *value)
{
	u64 bytes;

	if (k->kind == KEY_NAME) {
		for (size_t i = 0; i < ARRAY_SIZE(io_engine_names); i++)
			if (!strcmp(text, io_engine_names[i])) {
				*value = (double)i;
				return true;
			}
		return false;
	}
	if (k->kind == KEY_TEXT) {
		*value = (double)strlen(text);
	} else if (k->kind == KEY_SIZE) {
		if (units_parse_bytes(text, &bytes))
			return false;
		*value = (double)bytes;
	} else if (units_parse_double(text, value)) {
		return false;
	}
	if (k->kind == KEY_WHOLE && floor(*value) != *value)
		return false;
	return *value >= k->min && *value <= k->max;
}

/* `file` may be NULL, for a key that stands in none. */
static int set_key(struct device_config *c, const struct key *k, const char *text, const char *file,
		   int line, struct err *e)
{
	double value;

	if (key_parse(k, text, &value)) {
		if (k->kind == KEY_TEXT)
			memcpy((char *)c + k->field, text, strlen(text) + 1);
		key_store(k, c, value);
		return 0;
	}
	if (k->kind == KEY_NAME)
		return err_set(e, file, line, "%s = %s: must be %s", k->name, text, k->unit);
	return err_set(e, file, line, "%s = %s: must be a %snumber from %.15g to %.15g %s", k->name,
		       text, k->kind == KEY_WHOLE ? "whole " : "", k->min, k->max, k->unit);
}

static int refuse(const char *key, const char *file, int line, const struct defaults *d,
		  struct err *e)
{
	const char *names[ARRAY_SIZE(keys) + 2] = { "model", "name" };
	size_t count = 2;
	const char *nearest;
	char takes[256] = "model, name";

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const struct key *k = &keys[i];
		size_t length = strlen(takes);

		if (!(k->models & d->bit))
			continue;
		names[count++] = k->name;
		snprintf(takes + length, sizeof(takes) - length, ", %s", k->name);
	}
	nearest = err_nearest(key, names, count);
	return err_set(e, file, line,
		       "unknown key \"%s\"%s%s%s for a device of model \"%s\", which takes %s", key,
		       nearest ? " (did you mean \"" : "", nearest ? nearest : "",
		       nearest ? "\"?)" : "", d->config.model, takes);
}

int device_config_set(struct device_config *c, const char *key, const char *value, struct err *e)
{
	const struct defaults *d = defaults_of(c->model);

	assert(d);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if ((keys[i].models & d->bit) && !strcmp(keys[i].name, key))
			return set_key(c, &keys[i], value, NULL, 0, e);
	return refuse(key, NULL, 0, d, e);
}

static int read_model(const struct ini *ini, struct ini_section *section,
		      const struct defaults **out, struct err *e)
{
	const struct ini_entry *entry = ini_get(section, "model");
	const char *names[ARRAY_SIZE(defaults)], *nearest;

	if (!entry)
		return err_set(e, ini->path, section->line,
			       "section [%s] says no model; the models are " MODELS, section->name);
	*out = defaults_of(entry->value);
	if (*out && (*out)->bit == REAL)
		return err_set(e, ini->path, entry->line,
			       "model = %s: exists in the real world only; the models are " MODELS,
			       entry->value);
	if (*out)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
		names[i] = defaults[i].config.model;
	nearest = err_nearest(entry->value, names, ARRAY_SIZE(names) - 1); /* file is the last */
	return err_set(e, ini->path, entry->line,
		       "model = %s: no such model%s%s%s; the models are " MODELS, entry->value,
		       nearest ? ", did you mean " : "", nearest ? nearest : "",
		       nearest ? "?" : "");
}

static int read_name(struct device_config *c, const struct ini *ini, struct ini_section *section,
		     struct err *e)
{
	const struct ini_entry *entry = ini_get(section, "name");
	size_t length = entry ? strlen(entry->value) : 0;

	if (!entry)
		return 0;
	if (!length || length >= sizeof(c->name))
		return err_set(e, ini->path, entry->line,
			       "name = %s: must have 1 to %zu characters", entry->value,
			       sizeof(c->name) - 1);
	memcpy(c->name, entry->value, length + 1);
	return 0;
}

int device_config_read(struct device_config *c, const struct ini *ini, struct ini_section *section,
		       struct err *e)
{
	const struct ini_entry *entry, *speed = NULL;
	const struct defaults *d = NULL;
	int error = read_model(ini, section, &d, e);

	if (error)
		return error;
	assert(d);
	error = device_config_init(c, d->config.model);
	if (!error)
		error = read_name(c, ini, section, e);
	for (size_t i = 0; !error && i < ARRAY_SIZE(keys); i++) {
		const struct key *k = &keys[i];

		if (!(k->models & d->bit))
			continue;
		entry = ini_get(section, k->name);
		if (!entry)
			continue;
		error = set_key(c, k, entry->value, ini->path, entry->line, e);
		if (error || k->field != FIELD(bytes_per_s))
			continue;
		if (speed)
			return err_set(e, ini->path, entry->line,
				       "%s: the speed stands in line %d already, as %s", k->name,
				       speed->line, speed->key);
		speed = entry;
	}
	for (size_t i = 0; !error && i < section->entry_count; i++)
		if (!section->entries[i].used)
			error = refuse(section->entries[i].key, ini->path, section->entries[i].line,
				       d, e);
	return error;
}

const struct device_config *device_config(const struct device *d)
{
	return &d->config;
}

void device_describe(const struct device *d, char *text, size_t size)
{
	if (d->ops->describe)
		d->ops->describe(d, text, size);
	else
		snprintf(text, size, "%s", d->ops->name);
}
