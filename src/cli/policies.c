/* SPDX-License-Identifier: MIT */
/* sluice policies: the presets, and what each of them chooses. */
#include "cli/cli.h"
#include "writeback/policy.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct request {
	bool json;
};

static const struct option options[] = {
	OPTION(struct request, json, FLAG, "json", 0, NULL, "print JSON"),
	{ 0 },
};

static void print_list(void)
{
	for (size_t i = 0; policy_preset(i); i++)
		printf("%-11s %s\n", policy_preset(i)->name, policy_about(i));
}

static void print_one(const struct policy *p)
{
	char buf[16];

	printf("%s\n\n", p->name);
	for (size_t i = 0; policy_key(i); i++)
		printf("%-12s %-10s  %s\n", policy_key(i), policy_value(p, i, buf),
		       policy_meaning(p, i));
}

static json_t *choice_json(const struct policy *p, size_t key)
{
	char buf[16];

	return json_pack("{s:s, s:s, s:s, s:s}", "key", policy_key(key), "value",
			 policy_value(p, key, buf), "meaning", policy_meaning(p, key), "values",
			 policy_values(key));
}

static json_t *policy_json(size_t preset, bool choices)
{
	const struct policy *p = policy_preset(preset);
	json_t *o = json_pack("{s:s, s:s}", "name", p->name, "about", policy_about(preset));
	json_t *list = choices ? json_array() : NULL;

	for (size_t i = 0; list && policy_key(i); i++)
		json_array_append_new(list, choice_json(p, i));
	if (list)
		json_object_set_new(o, "choices", list);
	return o;
}

static int print_json(const struct policy *one)
{
	json_t *root = one ? NULL : json_array();
	int error;

	for (size_t i = 0; policy_preset(i); i++) {
		if (!one)
			json_array_append_new(root, policy_json(i, false));
		else if (policy_preset(i) == one)
			root = policy_json(i, true);
	}
	error = !root || json_dumpf(root, stdout, JSON_INDENT(2)) || puts("") == EOF;
	json_decref(root);
	return error ? EXIT_FAILED : EXIT_OK;
}

static int unknown(const struct command *self, const char *name)
{
	const char *names[32];
	size_t count = 0;
	char buf[160];

	for (; policy_preset(count) && count < ARRAY_SIZE(names); count++)
		names[count] = policy_preset(count)->name;
	return usage_error(self, "unknown policy \"%s\"%s", name,
			   hint(buf, err_nearest(name, names, count), ""));
}

static int run(const struct command *self, int argc, char **argv)
{
	const struct policy *one = NULL;
	struct request r = { 0 };
	struct words plain = { 0 };
	int status;

	if (!args_read(self, argc, argv, &r, &plain, &status))
		return status;
	if (plain.count > 1)
		return usage_error(self, "one policy at a time, not \"%s\" too", plain.word[1]);
	if (plain.count) {
		one = policy_find(plain.word[0]);
		if (!one)
			return unknown(self, plain.word[0]);
	}
	if (r.json)
		return print_json(one);
	if (one)
		print_one(one);
	else
		print_list();
	return EXIT_OK;
}

const struct command command_policies = {
	.name = "policies",
	.arguments = "[NAME]",
	.about = "list the writeback policies, or explain one",
	.text = "Lists the presets, or all choices of one with their meaning. A case of an\n"
		"experiment names a preset and may change single choices of it; \"sluice lab -s\n"
		"KEY=VALUE\" changes them for a run.",
	.examples = "  sluice policies\n  sluice policies linux-7.4\n"
		    "  sluice policies --json sluice\n",
	.options = options,
	.run = run,
};
