// SPDX-License-Identifier: MIT
/*
 * The table of answers: what was published of a case, what is predicted for it, and what a policy
 * of ours makes of the same, side by side: a line for each figure that somebody published. Which
 * case is the answer to which is said in the experiment (answers = NAME).
 */
#include "lab/answers.h"
#include <string.h>

static const struct lab_result *answer_to(const struct lab_result *r,
					  const struct lab_result *results, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (results[i].c->answers && !results[i].error &&
		    !strcmp(results[i].c->answers, r->c->name))
			return &results[i];
	return NULL;
}

static bool is_shown(const struct lab_result *r, const struct lab_result *ours, enum metric m)
{
	return report_known(report_reference(r), m) ||
	       (m == METRIC_MAX_DIRTY && report_known(&ours->predicted, m));
}

static const char *figure(char buf[METRIC_TEXT_MAX], const struct metrics *of, enum metric m)
{
	return report_known(of, m) ? metric_print(buf, m, of->value[m]) : "-";
}

static void write_case(FILE *out, const struct lab_result *r, const struct lab_result *ours)
{
	char publ[METRIC_TEXT_MAX], pred[METRIC_TEXT_MAX], own[METRIC_TEXT_MAX];
	bool first = true;

	for (enum metric m = 0; m < METRIC_MAX; m++) {
		if (!is_shown(r, ours, m))
			continue;
		fprintf(out, "%-16s %-20s %10s %10s %10s\n", first ? r->c->name : "", metric_key(m),
			figure(publ, report_reference(r), m), figure(pred, &r->predicted, m),
			figure(own, &ours->predicted, m));
		first = false;
	}
}

void answers_table(FILE *out, const struct lab_result *results, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		const struct lab_result *ours = answer_to(&results[i], results, count);

		if (!ours || results[i].error || !results[i].c->reference)
			continue;
		if (!any)
			fprintf(out, "\n%-16s %-20s %10s %10s %10s\n", "case", "figure",
				"published", "predicted", "ours");
		any = true;
		write_case(out, &results[i], ours);
	}
}
