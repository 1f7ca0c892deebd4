/* SPDX-License-Identifier: MIT */
/*
 * What the job runner costs beside the engine: wall time per simulated I/O, on an
 * engine that does nothing, in the simulated world; at full speed, and with a rate, so
 * that every I/O is a sleep and a switch between fibers.
 */
#include "job/job.h"
#include "bench.h"
#include "world/sim.h"
#include <string.h>

struct job_file {
	u64 size;
};

static struct job_file the_file = { 64ull << 30 };

static int null_open(struct job_engine *e, const char *path, unsigned flags, struct job_file **out)
{
	(void)e;
	(void)path;
	(void)flags;
	*out = &the_file;
	return 0;
}

static void null_close(struct job_file *f)
{
	(void)f;
}

static ssize_t null_pread(struct job_file *f, void *buf, size_t len, u64 offset)
{
	(void)f;
	(void)buf;
	(void)offset;
	return (ssize_t)len;
}

static ssize_t null_pwrite(struct job_file *f, const void *buf, size_t len, u64 offset)
{
	return null_pread(f, (void *)buf, len, offset);
}

static int null_fsync(struct job_file *f, bool data_only)
{
	(void)f;
	(void)data_only;
	return 0;
}

static int null_advise(struct job_file *f, u64 offset, u64 len, enum job_advice advice)
{
	(void)f;
	(void)offset;
	(void)len;
	(void)advice;
	return 0;
}

static int null_truncate(struct job_file *f, u64 size)
{
	(void)f;
	(void)size;
	return 0;
}

static u64 null_size(struct job_file *f)
{
	return f->size;
}

static int null_unlink(struct job_engine *e, const char *path)
{
	(void)e;
	(void)path;
	return 0;
}

static int null_lay_out(struct job_engine *e, const char *path, u64 size)
{
	(void)e;
	(void)path;
	(void)size;
	return 0;
}

static void null_task_exit(struct job_engine *e)
{
	(void)e;
}

static struct job_engine null_engine = {
	.name = "null",
	.open = null_open,
	.close = null_close,
	.pread = null_pread,
	.pwrite = null_pwrite,
	.fsync = null_fsync,
	.advise = null_advise,
	.truncate = null_truncate,
	.size = null_size,
	.unlink = null_unlink,
	.lay_out = null_lay_out,
	.task_exit = null_task_exit,
};

struct bench_run {
	const struct jobs *jobs;
	u64 ios;
};

static void run_jobs(void *arg)
{
	struct bench_run *b = arg;
	struct job_dir_stats total;
	struct job_results r;

	if (jobs_run(b->jobs, &null_engine, NULL, &r))
		abort();
	job_results_total(&r, JOB_DIR_READ, &total);
	b->ios = total.ios;
	job_results_total(&r, JOB_DIR_WRITE, &total);
	b->ios += total.ios;
	job_results_finish(&r);
}

static void bench_job(const char *name, const char *text)
{
	double ns[BENCH_RUNS];
	struct bench_run b = { 0 };
	struct err e = { 0 };
	struct jobs *jobs;

	if (jobs_parse(name, text, &jobs, &e)) {
		fprintf(stderr, "%s\n", e.text);
		exit(1);
	}
	b.jobs = jobs;
	for (int i = 0; i < BENCH_RUNS; i++) {
		struct sim_config config;
		struct world *w;
		u64 start;

		sim_config_init(&config);
		config.cpus = 32;
		w = sim_create(&config);
		start = bench_now();
		if (!w || sim_run(w, run_jobs, &b, NULL, 0))
			abort();
		ns[i] = (double)(bench_now() - start) / (double)b.ios;
		sim_destroy(w);
	}
	jobs_free(jobs);
	qsort(ns, BENCH_RUNS, sizeof(ns[0]), bench_compare);
	printf("%-32s %10.2f ns (%.2f to %.2f) per I/O, %llu I/Os\n", name, ns[BENCH_RUNS / 2],
	       ns[0], ns[BENCH_RUNS - 1], (unsigned long long)b.ios);
	fflush(stdout);
}

int main(void)
{
	bench_job("job read", "[j]\nrw=read\nfilename=f\nsize=4g\n");
	bench_job("job randwrite", "[j]\nrw=randwrite\nfilename=f\nsize=4g\n");
	bench_job("job randwrite 16 files",
		  "[j]\nrw=randwrite\nfilename=a:b:c:d:e:f:g:h:i:j:k:l:m:n:o:p\nsize=4g\n");
	bench_job("job randrw norandommap", "[j]\nrw=randrw\nnorandommap\nfilename=f\nsize=4g\n");
	bench_job("job randread zipf",
		  "[j]\nrw=randread\nrandom_distribution=zipf:1.1\nfilename=f\nsize=4g\n");
	bench_job("job 32 clones with a rate",
		  "[j]\nrw=randwrite\nrate_iops=312\nnumjobs=32\ntime_based\nruntime=100\n"
		  "filename=a:b:c:d:e:f:g:h:i:j:k:l:m:n:o:p\nfilesize=3g\n");
	bench_job("job io_uring depth 16",
		  "[j]\nrw=randwrite\nioengine=io_uring\niodepth=16\nfilename=f\nsize=4g\n");
	return 0;
}
