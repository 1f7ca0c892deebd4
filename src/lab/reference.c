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

int reference_read(const struct experiment *x, struct reference *r, struct ini_section *section,
		   struct err *e)
{
	r->at = (struct origin){ x->path, section->line };
	for (size_t i = 0; i < section->entry_count; i++) {
		const struct ini_entry *entry = &section->entries[i];
		struct origin at = { x->path, entry->line };
		enum metric m = metric_find(entry->key);
		double value;

		if (!strcmp(entry->key, "source")) {
			r->source = entry->value;
			continue;
		}
		if (m == METRIC_MAX)
			return refuse_metric(entry->key, section->name, &at, e);
		if (metric_parse(m, entry->value, &value))
			return origin_error(e, &at, "%s cannot be \"%s\", only %s", entry->key,
					    entry->value,
					    metric_unit(m) == UNIT_BYTES ? "a size, as 23.5G"
									 : "a number of 0 or more");
		metric_put(&r->values, m, value);
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
			return origin_error(e, &at,
					    "the tolerance of %s cannot be \"%s\", only \"3 %%\", "
					    "\"factor 1.6\", \"factor 1.6 above 1\" or a number",
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
	case TOLERANCE_ABSOLUTE:
		snprintf(why, why_size, "%g off, %g is allowed", off, t->amount);
		return off <= t->amount;
	}
	return true;
}
