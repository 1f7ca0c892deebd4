/* SPDX-License-Identifier: MIT */
/* Errors that a job goes on after: which, how they are counted, and what still ends it. */
#include "fake_engine.h"

#define HEAD "[j]\nfilename=f\nrw=write\nsize=64k\nfallocate=none\n"

/* The only row of a job whose I/O number fail_at fails, and all past `limit` bytes, with ENOSPC. */
static struct job_result run(const char *text, u64 fail_at, int error, u64 limit)
{
	struct job_results r;
	struct job_result row;
	struct fake k;

	fake_init(&k);
	k.fail_at = fail_at;
	k.fail_error = error;
	k.limit_bytes = limit;
	fake_run(&k, text, &r);
	assert_int_equal(r.count, 1);
	row = r.rows[0];
	row.job = NULL;
	job_results_finish(&r);
	fake_finish(&k);
	return row;
}

static void without_a_word_the_first_one_ends_it(void **state)
{
	struct job_result r;

	(void)state;
	r = run(HEAD, 5, -EIO, 0);
	assert_int_equal(r.error, -EIO);
	assert_int_equal(r.total_errors, 0);
	assert_int_equal(r.dir[JOB_DIR_WRITE].ios, 4);
	r = run(HEAD "continue_on_error=read\n", 5, -EIO, 0);
	assert_int_equal(r.error, -EIO);
	assert_int_equal(r.dir[JOB_DIR_WRITE].ios, 4);
}

static void it_goes_on_after_an_io_error(void **state)
{
	static const char *const words[] = { "write", "io", "all", "1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		struct job_result r;
		char text[128];

		snprintf(text, sizeof(text), HEAD "continue_on_error=%s\n", words[i]);
		r = run(text, 5, -EIO, 0);
		assert_int_equal(r.error, 0);
		assert_int_equal(r.total_errors, 1);
		assert_int_equal(r.first_error, -EIO);
		assert_string_equal(r.first_error_text, "write f at 16384: Input/output error");
		/* what failed is no I/O that was done */
		assert_int_equal(r.dir[JOB_DIR_WRITE].ios, 15);
		assert_int_equal(r.dir[JOB_DIR_WRITE].bytes, 15 * 4096);
		/* an error that is not in the list */
		r = run(text, 5, -ENOMEM, 0);
		assert_int_equal(r.error, -ENOMEM);
		assert_int_equal(r.dir[JOB_DIR_WRITE].ios, 4);
	}
}

/* To name an error is to go on after it, and after no other of its kind. */
static void the_list_can_be_given(void **state)
{
	struct job_result r;

	(void)state;
	r = run(HEAD "ignore_error=,ENOSPC\n", 0, 0, 40 << 10);
	assert_int_equal(r.error, 0);
	assert_int_equal(r.total_errors, 6);
	assert_int_equal(r.first_error, -ENOSPC);
	assert_int_equal(r.dir[JOB_DIR_WRITE].ios, 10);
	r = run(HEAD "ignore_error=,12:28\n", 0, 0, 40 << 10);
	assert_int_equal(r.total_errors, 6);
	r = run(HEAD "ignore_error=,ENOSPC\n", 3, -EIO, 0);
	assert_int_equal(r.error, -EIO);
	r = run(HEAD "ignore_error=ENOSPC\n", 0, 0, 40 << 10);
	assert_int_equal(r.error, -ENOSPC);
	/* a full device is what fill_device waits for */
	r = run(HEAD "ignore_error=,ENOSPC\nfill_device=1\n", 0, 0, 40 << 10);
	assert_int_equal(r.error, 0);
	assert_int_equal(r.total_errors, 0);
}

static void errors_of_all_clones_are_counted(void **state)
{
	struct job_result r;

	(void)state;
	r = run(HEAD "ignore_error=,ENOSPC\nnumjobs=3\ngroup_reporting\n", 0, 0, 40 << 10);
	assert_int_equal(r.clones, 3);
	assert_int_equal(r.total_errors, 18);
	assert_int_equal(r.error, 0);
	/* several tasks of one clone */
	r = run(HEAD "ignore_error=,ENOSPC\nioengine=io_uring\niodepth=4\n", 0, 0, 40 << 10);
	assert_int_equal(r.total_errors, 6);
	assert_int_equal(r.dir[JOB_DIR_WRITE].ios, 10);
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const lines[][2] = {
		{ "ignore_error=EWHAT",
		  "t:2: ignore_error=EWHAT: names or numbers of errors are needed, as "
		  "EIO,ENOSPC:EIO" },
		{ "ignore_error=EIO,EIO:,",
		  "t:2: ignore_error=EIO,EIO:,: names or numbers of errors "
		  "are needed, as EIO,ENOSPC:EIO" },
		{ "ignore_error=EIO,5,EIO,5",
		  "t:2: ignore_error=EIO,5,EIO,5: at most three lists are possible: "
		  "reads,writes,verification" },
		{ "continue_on_error=reads", "t:2: continue_on_error=reads is unknown, did you "
					     "mean read? (none, read, write, io, "
					     "verify, all, 0, 1)" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct err e = { "" };
		struct jobs *jobs;
		char text[128];

		snprintf(text, sizeof(text), "[j]\n%s\nsize=4k\n", lines[i][0]);
		assert_int_equal(jobs_parse("t", text, &jobs, &e), -EINVAL);
		assert_string_equal(e.text, lines[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_word_the_first_one_ends_it),
		cmocka_unit_test(it_goes_on_after_an_io_error),
		cmocka_unit_test(the_list_can_be_given),
		cmocka_unit_test(errors_of_all_clones_are_counted),
		cmocka_unit_test(what_is_no_list_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
