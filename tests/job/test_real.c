/* SPDX-License-Identifier: MIT */
/* The runner in the real world: threads, on an engine that counts. For thread sanitizer too. */
#include "job/job.h"
#include "world/world.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define BLOCKS 4096

struct job_file {
	u32 number;
};

static _Atomic u32 visits[4][BLOCKS];
static _Atomic u32 exits;
static _Atomic u32 begun;   /* a bit for each file that was written to */
static u32 first_waits_for; /* of those bits: no write to the first file is done before */
static struct job_file files[4] = { { 0 }, { 1 }, { 2 }, { 3 } };

static int count_open(struct job_engine *e, const char *path, unsigned flags, struct job_file **out)
{
	(void)e;
	(void)flags;
	assert_in_range(path[0], 'a', 'd');
	*out = &files[path[0] - 'a'];
	return 0;
}

static void count_close(struct job_file *f)
{
	(void)f;
}

static ssize_t count_pwrite(struct job_file *f, const void *buf, size_t len, u64 offset)
{
	const u8 *byte = buf;
	u32 set = 0;

	assert_true(offset / 4096 < BLOCKS);
	for (size_t i = 0; i < len; i++)
		set += byte[i] != 0;
	assert_true(set > len / 2);
	atomic_fetch_or(&begun, 1u << f->number);
	world_unpark(&begun, ~0u);
	for (u32 seen; !f->number && ~(seen = atomic_load(&begun)) & first_waits_for;)
		world_park(&begun, seen, WORLD_NEVER);
	atomic_fetch_add(&visits[f->number][offset / 4096], 1);
	return (ssize_t)len;
}

static int count_fsync(struct job_file *f, bool data_only)
{
	(void)f;
	(void)data_only;
	return 0;
}

static int count_advise(struct job_file *f, u64 offset, u64 len, enum job_advice advice)
{
	(void)f;
	(void)offset;
	(void)len;
	(void)advice;
	return 0;
}

static u64 count_size(struct job_file *f)
{
	(void)f;
	return BLOCKS * 4096ull;
}

static void count_exit(struct job_engine *e)
{
	(void)e;
	atomic_fetch_add(&exits, 1);
}

static struct job_engine counting = {
	.name = "counting",
	.open = count_open,
	.close = count_close,
	.pwrite = count_pwrite,
	.fsync = count_fsync,
	.advise = count_advise,
	.size = count_size,
	.task_exit = count_exit,
};

static void threads_share_the_work(void **state)
{
	static const char text[] =
		"[global]\nrw=randwrite\n"
		"[deep]\nfilename=a:b\nioengine=io_uring\niodepth=8\n"
		"[wide]\nfilename=c\nnumjobs=4\nfsync=100\n"
		"[late]\nstonewall\nfilename=d\nrate_iops=1000000\nend_fsync=1\n";
	struct jobs_options o = { .seed = 1, .contents = true };
	struct job_results r;
	struct err e = { 0 };
	struct jobs *jobs;

	(void)state;
	assert_int_equal(jobs_parse("t", text, &jobs, &e), 0);
	assert_int_equal(jobs_run(jobs, &counting, &o, &r), 0);
	assert_int_equal(r.count, 6);
	assert_int_equal(exits, 9 + 4 + 1);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 2 * BLOCKS);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].clat.samples, 2 * BLOCKS);
	assert_int_equal(r.rows[4].sync_ios, 40);
	for (u32 i = 0; i < BLOCKS; i++) {
		assert_int_equal(visits[0][i], 1);
		assert_int_equal(visits[1][i], 1);
		assert_int_equal(visits[2][i], 4);
		assert_int_equal(visits[3][i], 1);
	}
	for (size_t i = 0; i < r.count; i++)
		assert_int_equal(r.rows[i].error, 0);
	assert_true(r.ended_ns > r.started_ns);
	job_results_finish(&r);
	jobs_free(jobs);
}

/* Flows, depths that are looked for, and jobs that are ended, with real threads. */
static void threads_meet(void **state)
{
	static const char text[] =
		"[global]\nrw=randwrite\nexitall\nexit_what=stonewall\n"
		"[a]\nfilename=a\nflow=3\nsize=8m\n[b]\nfilename=b\nflow=1\ntime_based\nruntime="
		"60\n"
		"[c]\nfilename=c\nrate_iops=1\n"
		"[d]\nfilename=d\nioengine=io_uring\niodepth=8\nlatency_target=10s\n"
		"latency_window=1ms\nlatency_run=1\ntime_based\nruntime=60\nthinktime=10\n"
		"[e]\nwait_for=a\nfilename=c\nsize=400k\n";
	struct jobs_options o = { .seed = 1, .contents = true };
	struct job_results r;
	struct err e = { 0 };
	struct jobs *jobs;

	(void)state;
	/* the end of the first job ends the others: they have begun before it goes on */
	begun = 0;
	first_waits_for = 1u << 1 | 1u << 2 | 1u << 3;
	assert_int_equal(jobs_parse("t", text, &jobs, &e), 0);
	assert_int_equal(jobs_run(jobs, &counting, &o, &r), 0);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 2048);
	assert_true(r.rows[1].dir[JOB_DIR_WRITE].ios >= 680);
	assert_true(r.rows[2].dir[JOB_DIR_WRITE].ios >= 1);
	assert_true(r.rows[3].dir[JOB_DIR_WRITE].ios > 0);
	/* it may be ended by the end of those that were ended before it began */
	assert_true(r.rows[4].dir[JOB_DIR_WRITE].ios <= 100);
	for (size_t i = 0; i < r.count; i++)
		assert_int_equal(r.rows[i].error, 0);
	job_results_finish(&r);
	jobs_free(jobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_share_the_work),
		cmocka_unit_test(threads_meet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
