/* SPDX-License-Identifier: MIT */
/*
 * References are figures that somebody published or measured; tolerances say how
 * far a prediction may be from them before "sluice lab --check" complains:
 *
 *	write_iops = 3 %		so much of the reference, either way; of 0, nothing
 *	write_p99_ms = factor 1.6	not more than so many times as large or as small
 *	write_p99_ms = factor 1.6 above 1	the same, but a reference below 1 only
 *					wants a prediction that is below 1 too
 *	first_throttle_s = 2		so much in the figure's own unit, either way
 *	write_iops = at least 90 %	so much of the reference or more; also "at most"
 *
 * A figure of one of several devices is device.NAME.write_bytes, and has the tolerance of that of
 * all, device_write_bytes.
 */
#include "base/units.h"
#include "lab/experiment.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int refuse_metric(const char *key, const char *section, const struct origin *at,
			 struct err *e)
{
	const char *near = metric_nearest(key);

	return origin_error(e, at, "unknown figure \"%s\" in section [%s]%s%s%s", key, section,
			    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static struct metrics *values_of_device(struct reference *r, const char *name, size_t len)
{
	struct reference_device *d = r->device;

	for (size_t i = 0; i < r->device_count; i++, d++)
		if (strlen(d->name) == len && !strncmp(d->name, name, len))
			return &d->values;
	assert(r->device_count < ARRAY_SIZE(r->device) && len < sizeof(d->name));
	r->device_count++;
	memcpy(d->name, name, len);
	return &d->values;
}

/* "device.fast.write_bytes": which figure of which device; METRIC_MAX with `e` set if none. */
static enum metric device_figure(const struct experiment *x, struct reference *r, const char *key,
				 const struct origin *at, struct metrics **values, struct err *e)
{
	const char *name = key + strlen("device."), *dot = strchr(name, '.');
	char section[64], figure[64];
	enum metric m;

	snprintf(section, sizeof(section), "device %.*s", dot ? (int)(dot - name) : 0, name);
	if (!dot || dot - name >= 32 || !setup_has_device(&x->settings, section)) {
		origin_error(e, at,
			     "\"%s\" is no figure of a device: device.NAME.FIGURE is, with a "
			     "[device NAME]",
			     key);
		return METRIC_MAX;
	}
	snprintf(figure, sizeof(figure), "device_%s", dot + 1);
	m = metric_find(figure);
	if (m == METRIC_MAX)
		origin_error(e, at, "\"%s\": a device has no figure \"%s\"", key, dot + 1);
	*values = values_of_device(r, name, (size_t)(dot - name));
	return m;
}

int reference_read(const struct experiment *x, struct reference *r, struct ini_section *section,
		   struct err *e)
{
	r->at = (struct origin){ x->path, section->line };
	for (size_t i = 0; i < section->entry_count; i++) {
		const struct ini_entry *entry = &section->entries[i];
		struct origin at = { x->path, entry->line };
		struct metrics *values = &r->values;
		enum metric m = metric_find(entry->key);
		double value;

		if (!strcmp(entry->key, "source")) {
			r->source = entry->value;
			continue;
		}
		if (!strncmp(entry->key, "device.", 7)) {
			m = device_figure(x, r, entry->key, &at, &values, e);
			if (m == METRIC_MAX)
				return -EINVAL;
		}
		if (m == METRIC_MAX)
			return refuse_metric(entry->key, section->name, &at, e);
		if (metric_parse(m, entry->value, &value))
			return origin_error(e, &at, "%s cannot be \"%s\", only %s", entry->key,
					    entry->value,
					    metric_unit(m) == UNIT_BYTES ? "a size, as 23.5G"
									 : "a number of 0 or more");
		metric_put(values, m, value);
	}
	if (!r->source)
		return origin_error(e, &r->at, "[%s] needs a source: who published it",
				    section->name);
	return 0;
}

static bool positive(double value)
{
	return isfinite(value) && value >= 0;
}

/* Reads one tolerance; the whole text must be one of the forms above. */
static int parse_tolerance(const char *text, struct tolerance *t)
{
	int end = 0;

	*t = (struct tolerance){ 0 };
	if (sscanf(text, "factor %lf%n", &t->amount, &end) == 1 && positive(t->amount) &&
	    t->amount >= 1) {
		t->kind = TOLERANCE_FACTOR;
		if (!text[end])
			return 0;
		text += end;
		end = 0;
		if (sscanf(text, " above %lf%n", &t->above, &end) == 1 && positive(t->above) &&
		    !text[end])
			return 0;
		return -EINVAL;
	}
	for (size_t i = 0; i < 2; i++) {
		static const char *const forms[] = { "at least %lf %%%n", "at most %lf %%%n" };

		if (sscanf(text, forms[i], &t->amount, &end) != 1 || !end || text[end] ||
		    !positive(t->amount))
			continue;
		t->kind = i ? TOLERANCE_MOST : TOLERANCE_LEAST;
		return 0;
	}
	if (sscanf(text, "%lf %%%n", &t->amount, &end) == 1 && end && !text[end] &&
	    positive(t->amount)) {
		t->kind = TOLERANCE_PERCENT;
		return 0;
	}
	if (units_parse_double(text, &t->amount) || !positive(t->amount))
		return -EINVAL;
	t->kind = TOLERANCE_ABSOLUTE;
	return 0;
}

int tolerance_read(struct experiment *x, struct ini_section *section, struct err *e)
{
	for (size_t i = 0; i < section->entry_count; i++) {
		const struct ini_entry *entry = &section->entries[i];
		struct origin at = { x->path, entry->line };
		enum metric m = metric_find(entry->key);

		if (m == METRIC_MAX)
			return refuse_metric(entry->key, section->name, &at, e);
		if (parse_tolerance(entry->value, &x->tolerance[m]))
			return origin_error(
				e, &at,
				"the tolerance of %s cannot be \"%s\", only \"3 %%\", "
				"\"factor 1.6\", \"factor 1.6 above 1\", \"at least 90 %%\", "
				"\"at most 110 %%\" or a number",
				entry->key, entry->value);
	}
	return 0;
}

static bool factor_holds(const struct tolerance *t, double reference, double prediction, char *why,
			 size_t why_size)
{
	double larger = fmax(reference, prediction), smaller = fmin(reference, prediction);

	if (reference < t->above) {
		snprintf(why, why_size, "it should be below %g", t->above);
		return prediction < t->above;
	}
	snprintf(why, why_size, "%.2f times off, %g are allowed",
		 smaller > 0 ? larger / smaller : INFINITY, t->amount);
	return larger <= t->amount * smaller;
}

bool tolerance_holds(const struct tolerance *t, double reference, double prediction, char *why,
		     size_t why_size)
{
	double off = fabs(prediction - reference);

	why[0] = 0;
	switch (t->kind) {
	case TOLERANCE_NONE:
		break;
	case TOLERANCE_FACTOR:
		return factor_holds(t, reference, prediction, why, why_size);
	case TOLERANCE_PERCENT:
		if (reference > 0)
			snprintf(why, why_size, "%.1f %% off, %g %% are allowed",
				 100 * off / reference, t->amount);
		else
			snprintf(why, why_size, "it should be 0");
		return off <= reference * t->amount / 100;
	case TOLERANCE_LEAST:
	case TOLERANCE_MOST:
		snprintf(why, why_size, "it should be at %s %g %% of it",
			 t->kind == TOLERANCE_LEAST ? "least" : "most", t->amount);
		return t->kind == TOLERANCE_LEAST ? prediction >= reference * t->amount / 100
						  : prediction <= reference * t->amount / 100;
	case TOLERANCE_ABSOLUTE:
		snprintf(why, why_size, "%g off, %g is allowed", off, t->amount);
		return off <= t->amount;
	}
	return true;
}
