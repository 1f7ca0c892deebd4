/* SPDX-License-Identifier: MIT */
/* The engine of system calls: what each call does to real files, and jobs that check contents. */
#include "job/engine_posix.h"
#include "job/job.h"
#include "world/world.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/var/tmp/sluice-posix-XXXXXX";
static struct job_engine *engine;

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || chdir(folder))
		return -1;
	return engine_posix_create(&engine);
}

static int tear_down(void **state)
{
	static const char *const names[] = { "f", "g", "a", "b", "own.0.0", "own.1.0", "own.2.0" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlink(names[i]);
	engine_posix_destroy(engine);
	return chdir("/") || rmdir(folder);
}

static struct job_file *opened(const char *path, unsigned flags)
{
	struct job_file *f = NULL;

	assert_int_equal(engine->open(engine, path, flags, &f), 0);
	return f;
}

static u64 size_of(const char *path)
{
	struct stat s;

	assert_int_equal(stat(path, &s), 0);
	return (u64)s.st_size;
}

static u64 blocks_of(const char *path)
{
	struct stat s;

	assert_int_equal(stat(path, &s), 0);
	return (u64)s.st_blocks;
}

static void files_are_the_systems(void **state)
{
	struct job_file *f;
	char text[8] = "";

	(void)state;
	assert_int_equal(engine->open(engine, "f", JOB_READ, &f), -ENOENT);
	f = opened("f", JOB_READ | JOB_WRITE | JOB_CREATE);
	assert_int_equal(engine->pwrite(f, "sluice", 6, 10), 6);
	assert_int_equal(engine->size(f), 16);
	assert_int_equal(engine->pread(f, text, 8, 10), 6);
	assert_string_equal(text, "sluice");
	assert_int_equal(engine->pread(f, text, 8, 16), 0);
	assert_int_equal(engine->fsync(f, false), 0);
	assert_int_equal(engine->fsync(f, true), 0);
	assert_int_equal(engine->sync_range(f, 0, 0, JOB_RANGE_WRITE | JOB_RANGE_WAIT_AFTER), 0);
	for (int advice = JOB_ADV_NORMAL; advice <= JOB_ADV_NOREUSE; advice++)
		assert_int_equal(engine->advise(f, 0, 16, (enum job_advice)advice), 0);
	assert_int_equal(engine->truncate(f, 12), 0);
	assert_int_equal(size_of("f"), 12);
	engine->close(f);
	f = opened("f", JOB_READ);
	assert_int_equal(engine->pwrite(f, "x", 1, 0), -EBADF);
	engine->close(f);
	f = opened("f", JOB_READ | JOB_WRITE | JOB_TRUNCATE);
	assert_int_equal(engine->size(f), 0);
	engine->close(f);
	assert_int_equal(engine->unlink(engine, "f"), 0);
	assert_int_equal(engine->unlink(engine, "f"), -ENOENT);
}

/* The descriptor of this process that has the file in our folder open, or -1. */
static int descriptor_of(const char *name)
{
	for (int fd = 0; fd < 1024; fd++) {
		char link[64], path[256];
		ssize_t length;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, path, sizeof(path) - 1);
		path[length > 0 ? length : 0] = 0;
		if (strstr(path, folder + 1) && !strcmp(strrchr(path, '/') + 1, name))
			return fd;
	}
	return -1;
}

static void flags_reach_the_system(void **state)
{
	static const struct {
		unsigned job;
		int system;
	} flags[] = { { JOB_SYNC, O_SYNC }, { JOB_DSYNC, O_DSYNC }, { JOB_DIRECT, O_DIRECT } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct job_file *f;
		int found;

		if (engine->open(engine, "f", JOB_READ | JOB_WRITE | JOB_CREATE | flags[i].job,
				 &f)) {
			assert_int_equal(flags[i].job, JOB_DIRECT); /* not on every file system */
			continue;
		}
		found = fcntl(descriptor_of("f"), F_GETFL);
		assert_int_equal(found & flags[i].system, flags[i].system);
		engine->close(f);
	}
	engine->unlink(engine, "f");
}

static void space_can_be_had_before(void **state)
{
	struct job_file *f = opened("f", JOB_READ | JOB_WRITE | JOB_CREATE);
	int rc;

	(void)state;
	rc = engine->allocate(f, 0, 1 << 20, true);
	if (rc) {
		assert_int_equal(rc, -EOPNOTSUPP);
	} else {
		assert_int_equal(size_of("f"), 0);
		assert_true(blocks_of("f") >= 2048);
		assert_int_equal(engine->allocate(f, 0, 1 << 20, false), 0);
		assert_int_equal(size_of("f"), 1 << 20);
	}
	engine->close(f);
	engine->unlink(engine, "f");
}

static void laying_out_writes_what_is_missing(void **state)
{
	const u64 size = (3 << 20) + 123;
	struct job_file *f;
	char head[4] = "", byte[2];

	(void)state;
	f = opened("g", JOB_READ | JOB_WRITE | JOB_CREATE);
	assert_int_equal(engine->pwrite(f, "mine", 4, 0), 4);
	assert_int_equal(engine->lay_out(engine, "g", size), 0);
	assert_int_equal(engine->size(f), size);
	assert_true(blocks_of("g") * 512 >= size);
	assert_int_equal(engine->pread(f, head, 4, 0), 4);
	assert_memory_equal(head, "mine", 4);
	assert_int_equal(engine->pread(f, byte, 1, size - 1), 1);
	/* never shorter */
	assert_int_equal(engine->lay_out(engine, "g", 100), 0);
	assert_int_equal(engine->size(f), size);
	engine->close(f);
	assert_int_equal(engine->lay_out(engine, "no/g", 100), -ENOENT);
	assert_int_equal(engine->folder(engine, "."), 0);
	assert_int_equal(engine->folder(engine, "no"), -ENOENT);
	assert_int_equal(engine->folder(engine, "g"), -ENOTDIR);
	engine->unlink(engine, "g");
}

/* Rows of a run; none of them may have failed. */
static void run(const char *text, struct jobs_stop *stop, struct job_results *r)
{
	struct jobs_options o = { .seed = 1, .contents = true, .stop = stop };
	struct err e = { "" };
	struct jobs *jobs;

	assert_int_equal(jobs_parse("t", text, &jobs, &e), 0);
	assert_int_equal(jobs_check_engine(jobs, engine, &e), 0);
	assert_int_equal(jobs_run(jobs, engine, &o, r), 0);
	for (size_t i = 0; i < r->count; i++) {
		r->rows[i].job = NULL;
		assert_string_equal(r->rows[i].error_text, "");
	}
	jobs_free(jobs);
}

static void jobs_check_what_they_wrote(void **state)
{
	struct job_results r;

	(void)state;
	run("[global]\nsize=1m\nverify=crc32c\nrw=randwrite\n[own]\nnumjobs=3\ngroup_reporting\n"
	    "[deep]\nnew_group\nfilename=a:b\nioengine=io_uring\niodepth=4\nbs=8k\nfsync=9\n",
	    NULL, &r);
	assert_int_equal(r.count, 2);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 3 * 256);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 3 * 256);
	assert_int_equal(r.rows[1].dir[JOB_DIR_WRITE].ios, 128);
	assert_int_equal(r.rows[1].sync_ios, 14);
	assert_true(r.date_ns > 1500000000 * NSEC_PER_SEC);
	assert_false(r.stopped);
	job_results_finish(&r);
	assert_int_equal(size_of("own.2.0"), 1 << 20);
}

/* Stops the run as soon as something has been written. */
static void stopper_main(void *arg)
{
	struct stat s;

	while (stat("f", &s) || !s.st_blocks)
		world_sleep_until(world_now() + NSEC_PER_MSEC);
	jobs_stop(arg);
}

static void a_run_can_be_stopped(void **state)
{
	struct jobs_stop stop = { 0 };
	struct task *stopper = world_spawn("stopper", stopper_main, &stop);
	struct job_results r;

	(void)state;
	assert_non_null(stopper);
	run("[endless]\nfilename=f\nsize=1m\nrw=randwrite\nfallocate=none\ntime_based\nruntime=1h\n"
	    "fsync=1\n"
	    "[asleep]\nfilename=g\nsize=1m\nrw=write\nfallocate=none\nrate_iops=1\n"
	    "[late]\nfilename=a\nsize=4k\nrw=write\nstartdelay=1h\n"
	    "[behind]\nstonewall\nfilename=a\nsize=4k\nrw=write\n",
	    &stop, &r);
	world_join(stopper);
	assert_true(r.stopped);
	assert_int_equal(r.count, 4);
	assert_true(r.rows[0].dir[JOB_DIR_WRITE].ios >= 1);
	assert_int_equal(r.rows[2].dir[JOB_DIR_WRITE].ios, 0);
	assert_int_equal(r.rows[3].dir[JOB_DIR_WRITE].ios, 0);
	job_results_finish(&r);
}

static void a_stop_before_the_start_runs_nothing(void **state)
{
	struct jobs_stop stop = { 0 };
	struct job_results r;

	(void)state;
	unlink("f");
	jobs_stop(&stop);
	run("[j]\nfilename=f\nsize=1g\nrw=read\n", &stop, &r);
	assert_true(r.stopped);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 0);
	job_results_finish(&r);
	assert_int_equal(access("f", F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_the_systems),
		cmocka_unit_test(flags_reach_the_system),
		cmocka_unit_test(space_can_be_had_before),
		cmocka_unit_test(laying_out_writes_what_is_missing),
		cmocka_unit_test(jobs_check_what_they_wrote),
		cmocka_unit_test(a_run_can_be_stopped),
		cmocka_unit_test(a_stop_before_the_start_runs_nothing),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
