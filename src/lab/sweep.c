/* SPDX-License-Identifier: MIT */
/*
 * A sweep is a plan: the experiment's selection is planned once for each combination
 * of the axes' values, and the cases of all these plans are laid into one array, row
 * by row. From there on a point is a case like any other. A point's place among the
 * steps of its row is a number whose digits are its values' indices.
 *
 * What goes into the points (files, settings, policies, seed, version) is boiled down
 * to a name, by which ranks and journals recognise that they are about the same. It
 * is a hash (FNV-1a, 64 bits): it tells mistakes, not attacks.
 */
#include "lab/sweep.h"
#include "base/units.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int read_numbers(struct sweep_axis *a)
{
	a->numbers = calloc(a->count, sizeof(*a->numbers));
	if (!a->numbers)
		return -ENOMEM;
	a->numeric = true;
	for (size_t i = 0; i < a->count && a->numeric; i++) {
		u64 bytes;

		if (!units_parse_bytes(a->values[i], &bytes))
			a->numbers[i] = (double)bytes;
		else if (units_parse_double(a->values[i], &a->numbers[i]))
			a->numeric = false;
	}
	for (size_t i = 0; i < a->count && a->numeric; i++)
		for (size_t j = 0; j < i; j++)
			if (a->numbers[i] == a->numbers[j])
				a->numeric = false;
	return 0;
}

static int add_value(struct sweep_axis *a, const char *value, size_t len, struct err *e)
{
	char *setting;

	for (size_t i = 0; i < a->count; i++)
		/* NOLINTNEXTLINE: each of the values so far is there */
		if (strlen(a->values[i]) == len && !strncmp(a->values[i], value, len))
			return err_set(e, NULL, 0, "-s %s=...: the value \"%s\" stands twice",
				       a->key, a->values[i]);
	if (!len)
		return err_set(e, NULL, 0, "-s %s=...: a value is missing", a->key);
	if (asprintf(&setting, "%s=%.*s", a->key, (int)len, value) < 0)
		return experiment_no_memory(e);
	a->settings[a->count] = setting;
	a->values[a->count] = setting + strlen(a->key) + 1;
	a->count++;
	return 0;
}

/* "KEY=A,B,..." */
static int read_axis(struct sweep_axis *a, const char *text, struct err *e)
{
	const char *equals = strchr(text, '='), *value;
	size_t values = 1, len;
	int error = 0;

	if (!equals || equals == text)
		return err_set(e, NULL, 0, "-s %s: a setting is KEY=VALUE,VALUE,...", text);
	for (value = equals; *value; value++)
		values += *value == ',';
	a->key = strndup(text, (size_t)(equals - text));
	a->values = calloc(values, sizeof(*a->values));
	a->settings = calloc(values, sizeof(*a->settings));
	if (!a->key || !a->values || !a->settings)
		return experiment_no_memory(e);
	value = equals;
	do {
		value++;
		len = strcspn(value, ",");
		error = add_value(a, value, len, e);
		value += len;
	} while (!error && *value);
	if (!error && read_numbers(a))
		error = experiment_no_memory(e);
	return error;
}

static int read_axes(struct sweep *s, const struct selection *selection, struct err *e)
{
	if (selection->setting_count > SWEEP_AXES_MAX)
		return err_set(e, NULL, 0, "more than %d settings", SWEEP_AXES_MAX);
	s->steps = 1;
	for (size_t i = 0; i < selection->setting_count; i++) {
		struct sweep_axis *a = &s->axes[i];
		int error;

		s->axis_count++;
		error = read_axis(a, selection->settings[i], e);
		if (error)
			return error;
		for (size_t j = 0; j < i; j++)
			if (!strcmp(s->axes[j].key, a->key))
				return err_set(e, NULL, 0, "-s %s: is given twice", a->key);
		if (s->steps * a->count > SWEEP_POINTS_MAX)
			return err_set(e, NULL, 0, "these are more than %d points",
				       SWEEP_POINTS_MAX);
		s->steps *= a->count;
	}
	return 0;
}

/* Keys that set the same thing in different ways, each line of them in one section. */
static const char *const rivals[][3] = {
	{ "dirty_ratio", "dirty_bytes" },
	{ "dirty_background_ratio", "dirty_background_bytes" },
	{ "min_ratio", "min_ratio_fine", "min_bytes" },
	{ "max_ratio", "max_ratio_fine", "max_bytes" },
};

static bool same_thing(const char *a, const char *b)
{
	const char *x = strrchr(a, '.'), *y = strrchr(b, '.');

	if (!x || !y || x - a != y - b || strncmp(a, b, (size_t)(x - a)) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(rivals); i++) {
		unsigned both = 0;

		for (size_t j = 0; j < ARRAY_SIZE(rivals[0]) && rivals[i][j]; j++)
			both |= (unsigned)!strcmp(x + 1, rivals[i][j]) |
				(unsigned)!strcmp(y + 1, rivals[i][j]) << 1;
		if (both == 3)
			return true;
	}
	return false;
}

bool sweep_rivals(const struct sweep *s, size_t *a, size_t *b)
{
	for (*b = 0; *b < s->axis_count; ++*b)
		for (*a = 0; *a < *b; ++*a)
			if (same_thing(s->axes[*a].key, s->axes[*b].key))
				return true;
	return false;
}

size_t sweep_value(const struct sweep *s, size_t point, size_t axis)
{
	size_t step = point % s->steps;

	assert(point < s->count && axis < s->axis_count);
	for (size_t i = s->axis_count - 1; i > axis; i--)
		step /= s->axes[i].count;
	return step % s->axes[axis].count;
}

size_t sweep_moved(const struct sweep *s, size_t point, size_t axis, size_t value)
{
	size_t stride = 1;

	assert(value < s->axes[axis].count);
	for (size_t i = axis + 1; i < s->axis_count; i++)
		stride *= s->axes[i].count;
	return point - sweep_value(s, point, axis) * stride + value * stride;
}

/* The plan of one step, its cases laid into their rows. */
static int plan_step(struct sweep *s, const struct selection *selection, size_t step, struct err *e)
{
	const char *settings[SWEEP_AXES_MAX];
	struct selection one = *selection;
	struct plan p;
	size_t rest = step;
	int error;

	for (size_t i = s->axis_count; i-- > 0;) {
		settings[i] = s->axes[i].settings[rest % s->axes[i].count];
		rest /= s->axes[i].count;
	}
	one.settings = settings;
	error = plan_make(&p, s->x, &one, e);
	if (error)
		return error;
	if (!s->plan.cases) {
		s->rows = p.count;
		s->plan.cases = calloc(s->rows * s->steps, sizeof(*s->plan.cases));
		if (!s->plan.cases) {
			plan_finish(&p);
			return experiment_no_memory(e);
		}
		s->plan.count = s->rows * s->steps;
	}
	assert(p.count == s->rows);
	for (size_t row = 0; row < s->rows; row++)
		s->plan.cases[row * s->steps + step] = p.cases[row];
	free(p.cases); /* what they own lives on in the large plan */
	return 0;
}

static int plan_steps(struct sweep *s, const struct selection *selection, struct err *e)
{
	size_t cases = selection->case_count ? selection->case_count : s->x->case_count;
	size_t policies = selection->policy_count ? selection->policy_count : 1;
	int error = 0;

	if (cases * policies * s->steps > SWEEP_POINTS_MAX)
		return err_set(e, NULL, 0, "these are %zu points, more than %d",
			       cases * policies * s->steps, SWEEP_POINTS_MAX);
	s->plan = (struct plan){ .experiment = s->x };
	for (size_t step = 0; step < s->steps && !error; step++)
		error = plan_step(s, selection, step, e);
	s->count = s->plan.count;
	return error;
}

static u64 hash_bytes(u64 hash, const void *bytes, size_t count)
{
	const unsigned char *b = bytes;

	for (size_t i = 0; i < count; i++)
		hash = (hash ^ b[i]) * 0x100000001b3ull;
	return hash;
}

/* With the 0 at its end, so that "ab", "c" is not "a", "bc". */
static u64 hash_text(u64 hash, const char *text)
{
	return hash_bytes(hash, text, strlen(text) + 1);
}

static u64 hash_file(u64 hash, const char *path)
{
	char buf[4096];
	FILE *f = path && *path ? fopen(path, "re") : NULL;
	size_t n;

	while (f && (n = fread(buf, 1, sizeof(buf), f)) > 0)
		hash = hash_bytes(hash, buf, n);
	if (f)
		fclose(f);
	return hash_text(hash, f ? "file" : "none");
}

static int give_name(struct sweep *s)
{
	u64 hash = hash_text(0xcbf29ce484222325ull, SLUICE_VERSION);
	char policy[256];

	hash = hash_bytes(hash, &s->seed, sizeof(s->seed));
	hash = hash_file(hash, s->x->path);
	hash = hash_file(hash, s->x->machine.path);
	for (size_t i = 0; i < s->x->loaded_count; i++)
		hash = hash_file(hash, s->x->loaded[i].path);
	for (size_t i = 0; i < s->axis_count; i++)
		for (size_t v = 0; v < s->axes[i].count; v++)
			hash = hash_text(hash, s->axes[i].settings[v]);
	for (size_t i = 0; i < s->count; i += s->steps) {
		policy_label(&s->plan.cases[i].policy, policy, sizeof(policy));
		hash = hash_text(hash_text(hash, s->plan.cases[i].name), policy);
	}
	return asprintf(&s->code_name, "%016jx", (uintmax_t)hash) < 0 ? -ENOMEM : 0;
}

int sweep_make(struct sweep *s, struct experiment *x, const struct selection *selection, u64 seed,
	       struct err *e)
{
	int error;

	*s = (struct sweep){ .x = x, .seed = seed };
	error = read_axes(s, selection, e);
	if (!error)
		error = plan_steps(s, selection, e);
	if (!error) {
		s->results = calloc(s->count, sizeof(*s->results));
		s->done = calloc(s->count, sizeof(*s->done));
		if (!s->results || !s->done || give_name(s))
			error = experiment_no_memory(e);
	}
	if (error)
		sweep_finish(s);
	return error;
}

void sweep_finish(struct sweep *s)
{
	for (size_t i = 0; i < s->axis_count; i++) {
		struct sweep_axis *a = &s->axes[i];

		for (size_t v = 0; v < a->count; v++)
			free(a->settings[v]);
		free(a->settings);
		free(a->values);
		free(a->numbers);
		free(a->key);
	}
	plan_finish(&s->plan);
	free(s->results);
	free(s->done);
	free(s->code_name);
	*s = (struct sweep){ 0 };
}
