/* SPDX-License-Identifier: MIT */
/* The options of the commands that run fio job files, and what they do with results. */
#include "cli/jobs.h"
#include "base/outfile.h"
#include <errno.h>
#include <string.h>

static int choose_policy(const struct command *self, struct jobs_request *r)
{
	const char *names[32];
	size_t count = 0;
	char buf[160];

	r->preset = policy_find(r->policy);
	if (r->preset)
		return 0;
	while (count < ARRAY_SIZE(names) && policy_preset(count)) {
		names[count] = policy_preset(count)->name;
		count++;
	}
	return usage_error(self, "unknown policy \"%s\"%s", r->policy,
			   hint(buf, err_nearest(r->policy, names, count), ""));
}

int jobs_request_check(const struct command *self, struct jobs_request *r,
		       const struct words *files)
{
	r->json = !strcmp(r->format, "json");
	if (!r->json && strcmp(r->format, "normal") != 0)
		return usage_error(self, "--output-format cannot be \"%s\", only normal or json",
				   r->format);
	if (choose_policy(self, r))
		return EXIT_USAGE;
	for (size_t i = 0; i < files->count; i++)
		if (check_apart(self, "output", r->output, files->word[i]))
			return EXIT_USAGE;
	return r->output ? check_place(self, "output", r->output) : 0;
}

void jobs_print_notes(const struct jobs_request *r, const struct jobs *jobs)
{
	for (size_t i = 0; jobs_note(jobs, i) && !r->quiet; i++)
		fprintf(stderr, "note: %s\n", jobs_note(jobs, i));
}

int jobs_report(const struct jobs_request *r, int (*print)(FILE *out, void *ctx), void *ctx,
		struct err *e)
{
	return r->output ? outfile_write(r->output, print, ctx, e) : print(stdout, ctx);
}

bool jobs_failed(const struct command *self, const struct jobs_request *r, const struct jobs *jobs,
		 const struct job_results *results)
{
	bool failed = false, table = !r->json && !r->output;
	char place[256];

	for (size_t i = 0; i < results->count; i++) {
		const struct job_result *row = &results->rows[i];

		if (!row->error)
			continue;
		failed = true;
		if (!table)
			usage_error(self, "%s: %s",
				    job_result_place(jobs, row, place, sizeof(place)),
				    row->error_text);
	}
	return failed;
}
