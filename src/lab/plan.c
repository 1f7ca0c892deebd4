/* SPDX-License-Identifier: MIT */
/*
 * A plan is what one run of the lab does: the selected cases, each copied once for
 * every policy it shall run under, with the command line's settings laid over it.
 * All of it is checked before the first case runs.
 */
#include "lab/experiment.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct experiment_case *find_case(const struct experiment *x, const char *name,
					       struct err *e)
{
	const struct experiment_case *c = experiment_find(x, name);
	const char **names, *near;

	if (c)
		return c;
	names = calloc(x->case_count, sizeof(*names));
	for (size_t i = 0; names && i < x->case_count; i++)
		names[i] = x->cases[i].name;
	near = names ? err_nearest(name, names, x->case_count) : NULL;
	err_set(e, x->path, 0, "there is no case \"%s\"%s%s%s", name,
		near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	free(names);
	return NULL;
}

/* "-s KEY=VALUE": the halves, and an origin to complain about. */
static int apply_setting(struct experiment *x, struct experiment_case *c, const char *text,
			 struct err *e)
{
	const char *equals = strchr(text, '=');
	const char *key, *at;
	char *name;

	if (!equals || equals == text)
		return err_set(e, NULL, 0, "-s %s: a setting is KEY=VALUE", text);
	name = malloc(strlen(text) + 4);
	if (name)
		stpcpy(stpcpy(name, "-s "), text);
	at = experiment_keep(x, name);
	key = experiment_keep(x, strndup(text, (size_t)(equals - text)));
	if (!at || !key)
		return experiment_no_memory(e);
	if (!strcmp(key, "policy"))
		return err_set(e, at, 0, "a policy is chosen with -p");
	return case_set(x, c, key, equals + 1, &(struct origin){ at, 0 }, e);
}

/* The settings that *to, a copy of *from, may add to become its own. */
static int own_settings(struct experiment_case *to, const struct experiment_case *from)
{
	int error;

	to->settings = (struct settings){ 0 };
	memset(to->phase_devices, 0, sizeof(to->phase_devices));
	memset(to->phase_settings, 0, sizeof(to->phase_settings));
	error = settings_append(&to->settings, &from->settings);
	for (size_t i = 0; i < PHASES_MAX && !error; i++)
		error = settings_append(&to->phase_settings[i], &from->phase_settings[i]);
	return error;
}

static int add_case(struct plan *p, struct experiment *x, const struct selection *s,
		    const struct experiment_case *from, const struct policy *policy, struct err *e)
{
	struct experiment_case *c = &p->cases[p->count];
	int error;

	*c = *from;
	p->count++;
	error = own_settings(c, from);
	if (error)
		return experiment_no_memory(e);
	if (policy)
		c->policy = *policy;
	for (size_t i = 0; i < s->setting_count; i++) {
		error = apply_setting(x, c, s->settings[i], e);
		if (error)
			return error;
	}
	/* The same bytes, name included: both started as copies of rows of one table. */
	if (memcmp(&c->policy, &from->policy, sizeof(c->policy)) != 0)
		c->reference = NULL;
	return case_check(x, c, e);
}

static int add_policies(struct plan *p, struct experiment *x, const struct selection *s,
			const struct experiment_case *from, struct err *e)
{
	int error = 0;

	if (!s->policy_count)
		return add_case(p, x, s, from, NULL, e);
	for (size_t i = 0; i < s->policy_count && !error; i++) {
		const struct policy *policy =
			case_policy(s->policies[i], &(struct origin){ "-p", 0 }, e);

		error = policy ? add_case(p, x, s, from, policy, e) : -EINVAL;
	}
	return error;
}

int plan_make(struct plan *p, struct experiment *x, const struct selection *s, struct err *e)
{
	size_t cases = s->case_count ? s->case_count : x->case_count;
	size_t policies = s->policy_count ? s->policy_count : 1;
	int error = 0;

	*p = (struct plan){ .experiment = x };
	p->cases = calloc(cases * policies, sizeof(*p->cases));
	if (!p->cases)
		return experiment_no_memory(e);
	for (size_t i = 0; i < cases && !error; i++) {
		const struct experiment_case *from =
			s->case_count ? find_case(x, s->cases[i], e) : &x->cases[i];

		error = from ? add_policies(p, x, s, from, e) : -EINVAL;
	}
	if (error)
		plan_finish(p);
	return error;
}

void plan_finish(struct plan *p)
{
	for (size_t i = 0; i < p->count; i++)
		case_finish(&p->cases[i]);
	free(p->cases);
	*p = (struct plan){ 0 };
}
