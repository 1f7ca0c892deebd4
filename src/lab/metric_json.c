/* SPDX-License-Identifier: MIT */
/*
 * Figures as JSON. Counts and bytes are whole numbers, the rest are doubles, which
 * come back to the last bit if they are written with 17 digits.
 */
#include "lab/metric_json.h"

static json_t *figure(const struct metrics *m, enum metric metric)
{
	if (m->state[metric] == METRIC_NEVER)
		return json_null();
	if (metric_unit(metric) == UNIT_BYTES || metric_unit(metric) == UNIT_COUNT)
		return json_integer((json_int_t)m->value[metric]);
	return json_real(m->value[metric]);
}

int metrics_to_json(json_t *to, const struct metrics *m)
{
	int error = 0;

	for (enum metric i = 0; i < METRIC_MAX; i++)
		if (m->state[i] != METRIC_ABSENT)
			error |= json_object_set_new(to, metric_key(i), figure(m, i));
	return error;
}

int metrics_from_json(const json_t *from, struct metrics *m)
{
	const char *key;
	const json_t *value;

	*m = (struct metrics){ 0 };
	/* jansson's iterators want an object they could change, and do not */
	json_object_foreach((json_t *)from, key, value)
	{
		enum metric i = metric_find(key);

		if (i == METRIC_MAX || !(json_is_null(value) || json_is_number(value)))
			return -1;
		if (json_is_null(value))
			m->state[i] = METRIC_NEVER;
		else
			metric_put(m, i, json_number_value(value));
	}
	return json_is_object(from) ? 0 : -1;
}
