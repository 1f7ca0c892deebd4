/* SPDX-License-Identifier: MIT */
/*
 * How fast the lab simulates: random 4 KiB buffered writes of 32 rate-limited clones over 16 files
 * that stand in large folios, all of it: fibers, locks, throttle polls, index, ledgers and the
 * flusher writing behind. `./dev bench` prints simulated writes a wall second, on one core.
 */
#include "bench.h"
#include "file/file.h"
#include "job/engine_sluice.h"
#include "job/job.h"

static const char job_text[] = "[global]\n"
			       "filename=0:1:2:3:4:5:6:7:8:9:10:11:12:13:14:15\n"
			       "filesize=1g\n"
			       "[load]\n"
			       "rw=read\n"
			       "bs=1m\n"
			       "size=16g\n"
			       "[write]\n"
			       "stonewall\n"
			       "rw=randwrite\n"
			       "bs=4k\n"
			       "invalidate=0\n"
			       "numjobs=32\n"
			       "rate_iops=300\n"
			       "time_based\n"
			       "runtime=100\n"
			       "group_reporting\n";

struct run {
	const char *policy;
	double writes_per_s; /* of wall time */
};

static void simulate(void *arg)
{
	struct run *run = arg;
	struct engine_config c = { .memory_bytes = 64ull << 30,
				   .policy = *policy_find(run->policy) };
	struct jobs_options options = { .seed = 1 };
	struct device_config dc;
	struct device *device;
	struct engine *engine;
	struct job_engine *files;
	struct job_results results;
	struct job_dir_stats writes;
	struct jobs *jobs;
	u64 start;

	vm_settings_init(&c.vm);
	if (device_config_init(&dc, "ebs") || device_create(&dc, &device) ||
	    engine_create(&c, &engine) || engine_add_device(engine, device, 128, false) ||
	    engine_sluice_create(engine, 0, PAGE_SIZE, &files) ||
	    jobs_parse("bench", job_text, &jobs, NULL))
		abort();
	start = bench_now();
	if (jobs_run(jobs, files, &options, &results))
		abort();
	start = bench_now() - start;
	job_results_total(&results, JOB_DIR_WRITE, &writes);
	run->writes_per_s = (double)writes.ios * NSEC_PER_SEC / (double)start;
	job_results_finish(&results);
	jobs_free(jobs);
	engine_sluice_destroy(files);
	engine_discard(engine);
	device_destroy(device);
}

int main(void)
{
	static const char *const policies[] = { "linux-7.4", "sluice" };

	for (unsigned p = 0; p < ARRAY_SIZE(policies); p++) {
		double rates[5];

		for (unsigned i = 0; i < ARRAY_SIZE(rates); i++) {
			struct run run = { .policy = policies[p] };
			struct sim_config config;
			struct world *w;

			sim_config_init(&config);
			config.cpus = 32;
			w = sim_create(&config);
			if (!w || sim_run(w, simulate, &run, NULL, 0))
				abort();
			sim_destroy(w);
			rates[i] = run.writes_per_s;
		}
		qsort(rates, ARRAY_SIZE(rates), sizeof(rates[0]), bench_compare);
		printf("engine, %s: %.2f million simulated writes a wall second (median of %zu, "
		       "%.2f to %.2f)\n",
		       policies[p], rates[2] / 1e6, ARRAY_SIZE(rates), rates[0] / 1e6,
		       rates[4] / 1e6);
	}
	return 0;
}
