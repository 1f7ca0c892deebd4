/* SPDX-License-Identifier: MIT */
/*
 * Records of sweeps under libFuzzer: a line of a journal is entered, or is no record. What was
 * entered comes out as a record that says the same.
 */
#include "lab/sweep.h"
#include <stdlib.h>
#include <string.h>

#define POINTS 4

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void check(struct sweep *s, size_t point)
{
	char *record = sweep_record(s, point), *again;
	long entered;

	assert(s->done[point] && s->results[point].c == &s->plan.cases[point]);
	if (!record) /* figures that JSON has no numbers for */
		return;
	s->done[point] = false;
	entered = sweep_enter(s, record);
	assert(entered == (long)point && s->done[point]);
	again = sweep_record(s, point);
	assert(again && !strcmp(record, again));
	free(record);
	free(again);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static struct experiment_case cases[POINTS];
	static struct lab_result results[POINTS];
	bool done[POINTS] = { false };
	struct sweep s = { .count = POINTS, .results = results, .done = done };
	char *text = strndup((const char *)data, size);
	long point;

	if (!text)
		return 0;
	for (size_t i = 0; i < POINTS; i++)
		cases[i].policy = *policy_preset(0);
	s.plan.cases = cases;
	s.plan.count = POINTS;
	point = sweep_enter(&s, text);
	assert(point >= -1 && point < POINTS);
	if (point >= 0)
		check(&s, (size_t)point);
	free(text);
	return 0;
}
