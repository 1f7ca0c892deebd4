/* SPDX-License-Identifier: MIT */
/*
 * The table behind metric.h: each figure's key, unit and sentence, in the order of
 * the enum. Figures are kept as doubles: counts and bytes stay exact up to 2^53.
 */
#include "lab/metric.h"
#include "base/err.h"
#include "base/units.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const keys[] = {
#define METRIC_KEY(name, key, unit, text) #key,
	METRICS(METRIC_KEY)
#undef METRIC_KEY
};

static const struct {
	enum metric_unit unit;
	const char *about;
} table[] = {
#define METRIC_ROW(name, key, unit, text) { UNIT_##unit, text },
	METRICS(METRIC_ROW)
#undef METRIC_ROW
};

const char *metric_key(enum metric m)
{
	assert(m < METRIC_MAX);
	return keys[m];
}

enum metric_unit metric_unit(enum metric m)
{
	assert(m < METRIC_MAX);
	return table[m].unit;
}

const char *metric_about(enum metric m)
{
	assert(m < METRIC_MAX);
	return table[m].about;
}

enum metric metric_find(const char *key)
{
	enum metric m = 0;

	while (m < METRIC_MAX && strcmp(keys[m], key) != 0)
		m++;
	return m;
}

const char *metric_nearest(const char *key)
{
	return err_nearest(key, keys, METRIC_MAX);
}

const char *metric_device_key(enum metric m)
{
	static const char prefix[] = "device_";

	assert(m < METRIC_MAX);
	return strncmp(keys[m], prefix, strlen(prefix)) != 0 ? NULL : keys[m] + strlen(prefix);
}

void metric_put(struct metrics *into, enum metric m, double value)
{
	assert(m < METRIC_MAX);
	into->value[m] = value;
	into->state[m] = METRIC_KNOWN;
}

int metric_parse(enum metric m, const char *text, double *out)
{
	double value;
	u64 bytes;

	if (metric_unit(m) == UNIT_BYTES) {
		if (units_parse_bytes(text, &bytes))
			return -EINVAL;
		*out = (double)bytes;
		return 0;
	}
	if (units_parse_double(text, &value) || !isfinite(value) || value < 0)
		return -EINVAL;
	*out = value;
	return 0;
}

const char *metric_print(char buf[METRIC_TEXT_MAX], enum metric m, double value)
{
	if (metric_unit(m) == UNIT_BYTES)
		return units_print_bytes(buf, (u64)value);
	if (metric_unit(m) == UNIT_RATE || metric_unit(m) == UNIT_COUNT || value >= 99.95)
		snprintf(buf, METRIC_TEXT_MAX, "%.0f", value);
	else if (value >= 9.995)
		snprintf(buf, METRIC_TEXT_MAX, "%.1f", value);
	else if (value > 0)
		snprintf(buf, METRIC_TEXT_MAX, "%.*f", value < 0.0995 ? 3 : 2, value);
	else
		snprintf(buf, METRIC_TEXT_MAX, "0");
	return buf;
}
