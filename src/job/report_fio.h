/* SPDX-License-Identifier: MIT */
/*
 * Results of jobs as fio prints them: JSON with fio's keys and structure, for tools that read
 * fio's, and a table for people.
 */
#ifndef SLUICE_JOB_REPORT_FIO_H
#define SLUICE_JOB_REPORT_FIO_H

#include "job/job.h"
#include <stdio.h>

/* What one device did meanwhile. */
struct report_disk {
	const char *name;
	u64 reads, writes, busy_ns, elapsed_ns;
	const struct report_disk *next; /* the other devices, or NULL */
};

/* What a page cache of ours did meanwhile. */
struct report_cache {
	u64 max_dirty_bytes; /* as its policy counts */
	u64 max_debt_bytes;  /* what had to be written */
	u64 max_pinned_bytes;
	u64 sleep_ns, sleeps; /* of writers in the throttle */
};

/*
 * fio's JSON. Times are of the world the jobs ran in: a simulated run says the same each time.
 * `disk` and `cache` may be NULL. 0, -ENOMEM, or the error of writing.
 */
int report_fio_json(FILE *out, const struct jobs *jobs, const struct job_results *r,
		    const struct report_disk *disk, const struct report_cache *cache);
void report_fio_table(FILE *out, const struct job_results *r, const struct report_disk *disk,
		      const struct report_cache *cache);

#endif
