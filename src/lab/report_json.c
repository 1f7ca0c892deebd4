/* SPDX-License-Identifier: MIT */
/*
 * Results as JSON, keys in the order of the list in metric.h, so that two runs can
 * be compared as text. Counts and bytes are whole numbers; what never happened is
 * null; what is no question in this experiment is left out.
 */
#include "base/outfile.h"
#include "lab/explain.h"
#include "lab/lab.h"
#include "lab/metric_json.h"
#include <errno.h>
#include <jansson.h>

static int put_reference(json_t *to, const struct reference *r)
{
	json_t *reference = json_object();

	if (json_object_set_new(to, "reference", reference) ||
	    json_object_set_new(reference, "source", json_string(r->source)) ||
	    metrics_to_json(reference, &r->values))
		return -1;
	for (size_t i = 0; i < r->device_count; i++) {
		json_t *one = json_object();
		char key[64];

		snprintf(key, sizeof(key), "device.%s", r->device[i].name);
		if (json_object_set_new(reference, key, one) ||
		    metrics_to_json(one, &r->device[i].values))
			return -1;
	}
	return 0;
}

/* Adds a part's figures to a list, under its name. */
static int put_part(json_t *list, const char *key, const char *name, const struct metrics *m)
{
	json_t *one = json_pack("{s:s}", key, name);

	return json_array_append_new(list, one) || metrics_to_json(one, m);
}

/* Each device's figures, where there are several, and each tenant's. */
static int put_parts(json_t *to, const struct lab_result *r)
{
	const struct setup *s = &r->c->setup;
	json_t *devices = json_array(), *tenants = json_array();
	int error = 0;

	for (u32 i = 0; i < s->device_count && s->device_count > 1 && !error; i++)
		error = put_part(devices, "device", setup_device_name(&s->device[i]),
				 &r->device[i]);
	for (u32 i = 0; i < s->tenant_count && !error; i++)
		error = put_part(tenants, "tenant", s->tenant[i].name, &r->tenant[i]);
	if (!error && json_array_size(devices))
		error = json_object_set(to, "devices", devices);
	if (!error && json_array_size(tenants))
		error = json_object_set(to, "tenants", tenants);
	json_decref(devices);
	json_decref(tenants);
	return error;
}

static int put_explanation(json_t *to, const struct lab_result *r)
{
	json_t *sentences = json_array();
	struct explanation why;
	int error = json_object_set_new(to, "explanation", sentences);

	explain(r, &why);
	for (size_t i = 0; i < why.count && !error; i++)
		error = json_array_append_new(sentences, json_string(why.sentence[i]));
	return error ? error
		     : json_object_set_new(to, "decided_by",
					   json_string(verdict_name(why.verdict)));
}

static json_t *case_json(const struct lab_result *r)
{
	json_t *c = json_pack("{s:s, s:s, s:f, s:f}", "case", r->c->name, "policy", r->policy,
			      "wall_s", r->wall_s, "virtual_s", r->virtual_s);
	json_t *predicted;
	int error = 0;

	if (!c)
		return NULL;
	if (r->error) {
		error = json_object_set_new(c, "error", json_string(r->text));
	} else {
		predicted = json_object();
		error = json_object_set_new(c, "predicted", predicted) ||
			metrics_to_json(predicted, &r->predicted) || put_parts(c, r);
	}
	if (!error && r->c->reference)
		error = put_reference(c, r->c->reference);
	if (!error && r->series)
		error = put_explanation(c, r);
	if (error) {
		json_decref(c);
		return NULL;
	}
	return c;
}

int report_json(FILE *out, const struct experiment *x, u64 seed, const struct lab_result *results,
		size_t count)
{
	json_t *root = json_pack("{s:s, s:I, s:[]}", "experiment", x->name, "seed",
				 (json_int_t)seed, "cases");
	json_t *cases = json_object_get(root, "cases");
	int error = root ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !error; i++)
		if (json_array_append_new(cases, case_json(&results[i])))
			error = -ENOMEM;
	if (!error && (json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) ||
		       fputc('\n', out) == EOF))
		error = -EIO;
	json_decref(root);
	return error;
}

struct output {
	const struct experiment *x;
	u64 seed;
	const struct lab_result *results;
	size_t count;
};

static int put(FILE *out, void *ctx)
{
	const struct output *o = ctx;

	return report_json(out, o->x, o->seed, o->results, o->count);
}

int report_json_file(const char *path, const struct experiment *x, u64 seed,
		     const struct lab_result *results, size_t count, struct err *e)
{
	struct output o = { x, seed, results, count };

	return outfile_write(path, put, &o, e);
}
