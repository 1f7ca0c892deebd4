// SPDX-License-Identifier: MIT
/*
 * Making a failing run short: delta debugging (Zeller and Hildebrandt, "Simplifying and isolating
 * failure-inducing input", 2002). Chunks of operations are left out, half of all at first, then
 * ever smaller ones down to one; what can go is gone. A run that then fails in another way than the
 * first one did fails, too: it is as good a find.
 */
#include "torture/child.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct shrink {
	struct torture_config config;
	u8 *keep, *trial;
	struct torture_report *report;
};

/* Leaves out kept operations number [from, to); true if the run still fails. */
static bool fails_without(struct shrink *s, u32 from, u32 to, struct torture_report *best)
{
	u32 number = 0;

	for (u32 i = 0; i < s->config.steps; i++) {
		s->trial[i] = s->keep[i];
		if (s->keep[i] && number >= from && number < to)
			s->trial[i] = 0;
		number += s->keep[i];
	}
	s->config.keep = s->trial;
	if (child_try(&s->config, true, s->report) != 1)
		return false;
	*best = *s->report;
	memcpy(s->keep, s->trial, s->config.steps);
	return true;
}

int torture_shrink(const struct torture_config *c, u8 *keep, struct torture_report *report)
{
	struct shrink s = { .config = *c, .keep = keep };
	u32 kept = 0, chunk = c->steps;

	s.report = child_share(sizeof(*s.report));
	s.trial = malloc(c->steps);
	if (!s.report || !s.trial) {
		free(s.trial);
		return -ENOMEM;
	}
	for (u32 i = 0; i < c->steps; i++)
		keep[i] = !c->keep || c->keep[i];
	for (u32 i = 0; i < c->steps; i++)
		kept += keep[i];
	while (chunk > 1) {
		chunk = (chunk + 1) / 2;
		for (u32 from = 0; from < kept;) {
			u32 to = (u32)min_u64(from + chunk, kept);

			if (fails_without(&s, from, to, report))
				kept -= to - from;
			else
				from = to;
		}
	}
	child_unshare(s.report, sizeof(*s.report));
	free(s.trial);
	return (int)kept;
}
