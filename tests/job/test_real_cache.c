/* SPDX-License-Identifier: MIT */
/*
 * Jobs through our cache on real files: contents are checked by the jobs, and again through
 * the system when the cache is gone.
 */
#include "job/engine_cache.h"
#include "job/engine_posix.h"
#include "job/job.h"
#include "world/world.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/var/tmp/sluice-cache-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	return !mkdtemp(folder) || chdir(folder) ? -1 : 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "own.0.0", "own.1.0", "own.2.0", "a", "b", "c", "d" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlink(names[i]);
	return chdir("/") || rmdir(folder);
}

/* A cache of 16 MiB. */
static struct job_engine *make_cache(const char *policy)
{
	char setting[64];
	const char *settings[] = { "memory=16M", setting };
	struct lib_config config;
	struct job_engine *je;
	struct err e = { "" };

	snprintf(setting, sizeof(setting), "policy=%s", policy);
	lib_config_init(&config);
	assert_int_equal(lib_config_read(&config, settings, ARRAY_SIZE(settings), &e), 0);
	assert_int_equal(engine_cache_create(&config, &je, &e), 0);
	return je;
}

static void run(struct job_engine *je, const char *text, struct job_results *r)
{
	struct jobs_options o = { .seed = 1, .contents = true };
	struct err e = { "" };
	struct jobs *jobs;

	assert_int_equal(jobs_parse("t", text, &jobs, &e), 0);
	assert_int_equal(jobs_check_engine(jobs, je, &e), 0);
	assert_int_equal(jobs_run(jobs, je, &o, r), 0);
	for (size_t i = 0; i < r->count; i++) {
		r->rows[i].job = NULL;
		assert_string_equal(r->rows[i].error_text, "");
	}
	jobs_free(jobs);
}

static u64 size_of(const char *path)
{
	struct stat s;

	assert_int_equal(stat(path, &s), 0);
	return (u64)s.st_size;
}

/* More than the cache holds, so it has to write and to reclaim. */
static void jobs_check_what_they_wrote(void **state)
{
	static const char *const policies[] = { "sluice", "linux-7.4" };
	static const char check[] =
		"[own]\nnumjobs=3\nsize=4m\nrw=read\nverify=crc32c\n"
		"[deep]\nfilename=a:b\nsize=8m\nbs=8k\nrw=read\nverify=crc32c\n";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		struct job_engine *cache = make_cache(policies[i]), *system;
		struct engine_losses losses = { 0 };
		struct job_results r;
		char why[256];

		run(cache,
		    "[global]\nverify=crc32c\nrw=randwrite\n"
		    "[own]\nsize=4m\nnumjobs=3\ngroup_reporting\n"
		    "[deep]\nnew_group\nfilename=a:b\nsize=8m\nbs=8k\nioengine=io_uring\n"
		    "iodepth=4\nfsync=50\n",
		    &r);
		assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 3 * 1024);
		assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 3 * 1024);
		assert_int_equal(r.rows[1].dir[JOB_DIR_WRITE].ios, 1024);
		assert_int_equal(r.rows[1].sync_ios, 20);
		job_results_finish(&r);
		assert_int_equal(engine_sync(engine_cache_engine(cache)), 0);
		if (!engine_audit(engine_cache_engine(cache), why, sizeof(why)))
			fail_msg("%s", why);
		assert_int_equal(engine_cache_destroy(cache, &losses), 0);
		assert_int_equal(losses.files, 0);

		assert_int_equal(engine_posix_create(&system), 0);
		run(system, check, &r);
		assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 1024);
		job_results_finish(&r);
		engine_posix_destroy(system);
	}
}

/* Each kind of call, and all of it seen through the system in the end. */
static void each_call_reaches_the_file(void **state)
{
	struct job_engine *cache = make_cache("sluice");
	struct job_file *f, *direct;
	char text[8] = "", *block = aligned_alloc(4096, 4096);

	(void)state;
	assert_non_null(block);
	memset(block, 'x', 4096);
	assert_int_equal(cache->open(cache, "c", JOB_READ, &f), -ENOENT);
	assert_int_equal(cache->open(cache, "c", JOB_READ | JOB_WRITE | JOB_CREATE, &f), 0);
	assert_int_equal(cache->pwrite(f, "sluice", 6, 10), 6);
	assert_int_equal(cache->size(f), 16);
	assert_int_equal(cache->pread(f, text, 8, 10), 6);
	assert_string_equal(text, "sluice");
	assert_int_equal(cache->sync_range(f, 0, 0, JOB_RANGE_WRITE | JOB_RANGE_WAIT_AFTER), 0);
	assert_int_equal(cache->fsync(f, true), 0);
	assert_int_equal(size_of("c"), 16);
	for (int advice = JOB_ADV_NORMAL; advice <= JOB_ADV_NOREUSE; advice++)
		assert_int_equal(cache->advise(f, 0, 0, (enum job_advice)advice), 0);
	assert_int_equal(cache->advise(f, 0, 0, (enum job_advice)77), -EINVAL);
	assert_int_equal(cache->truncate(f, 12), 0);
	assert_int_equal(cache->allocate(f, 0, 20, false), 0);
	assert_int_equal(cache->size(f), 20);
	assert_int_equal(
		cache->open(cache, "c", JOB_READ | JOB_WRITE | JOB_DIRECT | JOB_DSYNC, &direct), 0);
	assert_int_equal(cache->pwrite(direct, block, 4096, 4096), 4096);
	cache->close(direct);
	assert_int_equal(cache->size(f), 8192);
	cache->close(f);
	assert_int_equal(cache->open(cache, "c", JOB_READ, &f), 0);
	assert_int_equal(cache->pwrite(f, "x", 1, 0), -EBADF);
	cache->close(f);
	assert_int_equal(cache->lay_out(cache, "d", 100000), 0);
	assert_int_equal(size_of("d"), 100000);
	assert_int_equal(cache->open(cache, "d", JOB_READ, &f), 0);
	assert_int_equal(cache->size(f), 100000);
	cache->close(f);
	/* laid out again while it is known here, but not open */
	assert_int_equal(cache->lay_out(cache, "d", 200000), 0);
	assert_int_equal(cache->open(cache, "d", JOB_READ, &f), 0);
	assert_int_equal(cache->size(f), 200000);
	assert_int_equal(cache->pread(f, block, 4096, 199000), 1000);
	cache->close(f);
	assert_int_equal(cache->unlink(cache, "d"), 0);
	assert_int_equal(cache->unlink(cache, "d"), -ENOENT);
	assert_int_equal(cache->folder(cache, "no"), -ENOENT);
	assert_int_equal(engine_cache_destroy(cache, NULL), 0);
	assert_int_equal(size_of("c"), 8192);
	free(block);
}

static void uncached_jobs_leave_nothing(void **state)
{
	struct job_engine *cache = make_cache("sluice");
	struct engine_stats stats;
	struct job_results r;

	(void)state;
	run(cache, "[j]\nfilename=a\nsize=4m\nrw=read\nbs=64k\nuncached=1\n", &r);
	engine_stats(engine_cache_engine(cache), &stats);
	/* readahead may have brought in what nobody came for */
	assert_in_range(stats.cached, 0, 64);
	job_results_finish(&r);
	run(cache, "[j]\nfilename=a\nsize=4m\nrw=read\nbs=64k\n", &r);
	engine_stats(engine_cache_engine(cache), &stats);
	assert_int_equal(stats.cached, 1024);
	job_results_finish(&r);
	assert_int_equal(engine_cache_destroy(cache, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_check_what_they_wrote),
		cmocka_unit_test(each_call_reaches_the_file),
		cmocka_unit_test(uncached_jobs_leave_nothing),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
