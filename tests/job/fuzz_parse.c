/* SPDX-License-Identifier: MIT */
/*
 * The parser under libFuzzer: any text must be read or refused in words. The first letter
 * chooses how to read it; what was read is asked for what can be known before a run.
 */
#include "job/jobs.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static u64 odd_size(void *ctx, const char *path)
{
	(void)ctx;
	return (u64)strlen(path) * 12345;
}

static void ask(const struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++) {
		const struct job *j = &jobs->list[i];
		struct file_plans plans;
		struct err e = { "" };

		assert(j->o.name && j->o.bs_bytes[0] && j->o.bs_max_bytes[0] >= j->o.bs_bytes[0]);
		assert(job_origin(jobs, j, "rw")->line > 0);
		if (j->o.nrfiles > 64)
			continue;
		if (!files_plan(&plans, j, 0, odd_size, NULL, &e))
			files_plan_finish(&plans);
	}
	jobs_duration_ns(jobs);
	for (size_t i = 0; jobs_note(jobs, i); i++)
		assert(jobs_note(jobs, i)[0]);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct jobs_reading how = { .no_includes = true, .memory_bytes = 1ull << 34, .cpus = 4 };
	struct err e = { "" };
	struct jobs *jobs = NULL;
	char *text;
	int rc;

	if (!size)
		return 0;
	how.lenient = data[0] & 1;
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	rc = jobs_parse_as("fuzz.fio", text, &how, &jobs, &e);
	free(text);
	assert(rc ? !jobs && e.text[0] : jobs && !e.text[0]);
	if (jobs)
		ask(jobs);
	jobs_free(jobs);
	return 0;
}
