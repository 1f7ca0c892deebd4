/* SPDX-License-Identifier: MIT */
/*
 * Remarks on an experiment that is right but perhaps not what was meant: what its job files
 * say that does not count, and devices that no job of any case has a file on, whose mount is
 * probably misspelt.
 */
#include "lab/experiment.h"
#include <stdio.h>

const char *experiment_note(const struct experiment *x, size_t i)
{
	if (i < x->note_count)
		return x->notes[i];
	i -= x->note_count;
	for (size_t j = 0; j < x->loaded_count; j++) {
		size_t n = 0;

		for (; jobs_note(x->loaded[j].jobs, n); n++)
			if (n == i)
				return jobs_note(x->loaded[j].jobs, n);
		i -= n;
	}
	return NULL;
}

int experiment_take_notes(struct experiment *x, struct err *e)
{
	bool used[ENGINE_DEVICES_MAX] = { true };
	const struct setup *s = &x->cases[0].setup;

	for (size_t c = 0; c < x->case_count; c++)
		case_mark_devices(x, &x->cases[c], used);
	for (u32 i = 0; i < s->device_count; i++) {
		int backing = setup_backing(s, &s->device[i].config);

		if (backing >= 0)
			used[backing] = true;
	}
	for (u32 i = 1; i < s->device_count; i++) {
		char *note;

		if (used[i])
			continue;
		if (asprintf(&note, "%s: no job has a file in %s, where device \"%s\" is mounted",
			     x->path, s->device[i].mount, s->device[i].name) < 0)
			return experiment_no_memory(e);
		x->notes[x->note_count] = experiment_keep(x, note);
		if (!x->notes[x->note_count])
			return experiment_no_memory(e);
		x->note_count++;
	}
	return 0;
}
