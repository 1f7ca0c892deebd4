/* SPDX-License-Identifier: MIT */
/* uncached=1 on our own cache, simulated: it leaves nothing there, and all else is as it was. */
#include "file/engine.h"
#include "job/engine_sluice.h"
#include "job/job.h"
#include "world/sim.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct case_run {
	const char *text;
	u64 cached, debt; /* pages, a second later */
	u64 device_reads, device_writes;
	struct job_results results;
};

static void run_case(void *arg)
{
	struct case_run *c = arg;
	struct engine_config config = { .memory_bytes = 256ull << 20,
					.policy = *policy_find("linux-7.4") };
	struct device_config device;
	struct jobs_options o = { .seed = 1 };
	struct engine_stats stats;
	struct device_stats io;
	struct job_engine *files;
	struct err e = { "" };
	struct engine *engine;
	struct device *d;
	struct jobs *jobs;

	vm_settings_init(&config.vm);
	assert_int_equal(device_config_init(&device, "nvme"), 0);
	assert_int_equal(device_create(&device, &d), 0);
	assert_int_equal(engine_create(&config, &engine), 0);
	assert_int_equal(engine_add_device(engine, d, 128, false), 0);
	assert_int_equal(engine_sluice_create(engine, 0, 4096, &files), 0);
	assert_int_equal(jobs_parse("t", c->text, &jobs, &e), 0);
	assert_int_equal(jobs_check_engine(jobs, files, &e), 0);
	assert_int_equal(jobs_run(jobs, files, &o, &c->results), 0);
	/* what is in flight lands; whoever waited for a folio would hold it just then */
	world_sleep_until(world_now() + NSEC_PER_SEC);
	engine_stats(engine, &stats);
	c->debt = stats.debt;
	device_stats(d, &io);
	c->cached = stats.cached;
	c->device_reads = io.read_bytes;
	c->device_writes = io.write_bytes;
	for (size_t i = 0; i < c->results.count; i++)
		assert_int_equal(c->results.rows[i].error, 0);
	job_results_finish(&c->results);
	jobs_free(jobs);
	engine_sluice_destroy(files);
	engine_discard(engine);
	device_destroy(d);
}

static struct case_run run(const char *text)
{
	struct case_run c = { .text = text };
	struct sim_config config;
	struct world *w;
	char why[256];

	sim_config_init(&config);
	config.seed = 1;
	w = sim_create(&config);
	assert_non_null(w);
	assert_int_equal(sim_run(w, run_case, &c, why, sizeof(why)), 0);
	sim_destroy(w);
	return c;
}

static void reads_leave_nothing(void **state)
{
	struct case_run c;

	(void)state;
	c = run("[j]\nrw=read\nsize=16m\nbs=64k\n");
	assert_int_equal(c.cached, 4096);
	assert_int_equal(c.device_reads, 16 << 20);
	c = run("[j]\nrw=read\nsize=16m\nbs=64k\nuncached=1\n");
	assert_int_equal(c.cached, 0);
	assert_int_equal(c.device_reads, 16 << 20);
}

static void writes_leave_nothing_and_are_written(void **state)
{
	struct case_run c;

	(void)state;
	c = run("[j]\nrw=write\nsize=16m\nbs=64k\n");
	assert_int_equal(c.cached, 4096);
	assert_int_equal(c.debt, 4096);
	assert_int_equal(c.device_writes, 0);
	c = run("[j]\nrw=write\nsize=16m\nbs=64k\nuncached=1\n");
	assert_int_equal(c.cached, 0);
	assert_int_equal(c.debt, 0);
	assert_int_equal(c.device_writes, 16 << 20);
}

/* What others had cached before stays for them. */
static void what_was_cached_stays(void **state)
{
	struct case_run c;

	(void)state;
	c = run("[global]\nfilename=f\nsize=8m\nbs=64k\nrw=read\n[warm]\n"
		"[cold]\nstonewall\nuncached=1\ninvalidate=0\n");
	assert_int_equal(c.cached, 2048);
	assert_int_equal(c.device_reads, 8 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_leave_nothing),
		cmocka_unit_test(writes_leave_nothing_and_are_written),
		cmocka_unit_test(what_was_cached_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
