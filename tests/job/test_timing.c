/* SPDX-License-Identifier: MIT */
/* When things happen: rates, runtimes, ramps, delays and stonewalls, to the nanosecond. */
#include "fake_engine.h"

#define SPAWN_NS 20000

/* The n-th read or write (from 0), of one file if `file` is not ~0. */
static struct fake_call *nth(struct fake *k, u32 file, size_t n)
{
	for (size_t i = 0; i < k->count; i++) {
		struct fake_call *c = &k->calls[i];

		if (c->kind != FAKE_READ && c->kind != FAKE_WRITE)
			continue;
		if (file != ~0u && c->file != file)
			continue;
		if (!n--)
			return c;
	}
	fail_msg("there is no such call");
	return NULL;
}

/* 312 I/Os a second are due every 3205.128... us, in whole microseconds from the epoch. */
static void rate_is_kept_to_the_microsecond(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=randwrite\nrate_iops=312\nsize=1m\nruntime=10\ntime_based\n", &r);
	assert_int_equal(nth(&k, ~0u, 0)->start_ns, 0);
	assert_int_equal(nth(&k, ~0u, 1)->start_ns, 3205000);
	assert_int_equal(nth(&k, ~0u, 2)->start_ns, 6410000);
	assert_int_equal(nth(&k, ~0u, 8)->start_ns, 25641000);
	assert_int_equal(nth(&k, ~0u, 312)->start_ns, 1000000000);
	assert_int_equal(nth(&k, ~0u, 313)->start_ns, 1003205000);
	assert_int_equal(nth(&k, ~0u, 3119)->start_ns, 9996794000);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 3120);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].runtime_ns, 10 * NSEC_PER_SEC);
	assert_int_equal(r.ended_ns - r.started_ns, 10 * NSEC_PER_SEC);
	job_results_finish(&r);
	fake_finish(&k);
}

static void rate_in_bytes(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nrate=1m,300k\nbs=64k\nsize=1m\n", &r);
	for (u64 n = 0; n < 16; n++)
		assert_int_equal(nth(&k, ~0u, n)->start_ns, n * 64 * 1000000 / 300 * 1000);
	job_results_finish(&r);
	fake_finish(&k);
}

/* A write that hangs for 10 ms: what became due meanwhile follows without a pause. */
static void late_job_catches_up(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.slow_number = 3;
	k.slow_ns = 10500000;
	fake_run(&k, "[j]\nrw=write\nrate_iops=1000\nsize=1m\n", &r);
	assert_int_equal(nth(&k, ~0u, 2)->start_ns, 2000000);
	for (size_t n = 3; n <= 12; n++)
		assert_int_equal(nth(&k, ~0u, n)->start_ns, 12500000);
	assert_int_equal(nth(&k, ~0u, 13)->start_ns, 13000000);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].clat.max_ns, 10500000);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].clat.min_ns, 0);
	job_results_finish(&r);
	fake_finish(&k);
}

/* Reads at 100 and writes at 50 a second, each by its own clock, whatever the draw says. */
static void mixed_rates_are_kept_apart(void **state)
{
	u64 count[2] = { 0, 0 };
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=randrw\nrate_iops=100,50\nsize=64m\nruntime=4\ntime_based\n", &r);
	for (size_t i = 0; i < k.count; i++) {
		struct fake_call *c = &k.calls[i];
		int dir = c->kind == FAKE_WRITE;

		if (c->kind == FAKE_READ || c->kind == FAKE_WRITE)
			assert_true(c->start_ns >= count[dir]++ * (dir ? 20000000 : 10000000));
	}
	assert_int_equal(count[0], 400);
	assert_int_equal(count[1], 200);
	job_results_finish(&r);
	fake_finish(&k);
}

static void latency_is_the_time_of_the_call(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = 1000;
	k.slow_number = 5;
	k.slow_ns = 60;
	fake_run(&k, "[j]\nrw=read\nsize=400k\n", &r);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].clat.samples, 100);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].clat.min_ns, 60);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].clat.max_ns, 1000);
	assert_true(r.rows[0].dir[JOB_DIR_READ].clat.sum_ns == 99 * 1000 + 60);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].runtime_ns, 99 * 1000 + 60);
	job_results_finish(&r);
	fake_finish(&k);
}

static void clones_start_one_after_the_other(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nrate_iops=1000\nsize=16k\nnumjobs=5\n", &r);
	for (u32 n = 0; n < 5; n++) {
		assert_int_equal(nth(&k, n, 0)->start_ns, n * SPAWN_NS);
		assert_int_equal(nth(&k, n, 3)->start_ns, n * SPAWN_NS + 3000000);
	}
	assert_int_equal(r.ended_ns, 4 * SPAWN_NS + 3000000);
	job_results_finish(&r);
	fake_finish(&k);
}

static void runtime_stops_and_data_stops(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k, "[a]\nrw=read\nsize=64m\nruntime=100ms\n[b]\nrw=read\nsize=40k\nruntime=9s\n",
		 &r);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 100);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].runtime_ns, 100 * NSEC_PER_MSEC);
	assert_int_equal(r.rows[1].dir[JOB_DIR_READ].ios, 10);
	assert_int_equal(r.rows[1].dir[JOB_DIR_READ].runtime_ns, 10 * NSEC_PER_MSEC);
	job_results_finish(&r);
	fake_finish(&k);
}

/* By time, the file begins anew: one file in place, several by opening them again. */
static void time_based_goes_round(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k, "[j]\nrw=read\nsize=8k\nfilename=f\ntime_based\nruntime=3ms\n", &r);
	assert_string_equal(fake_trace(&k, "oalr"),
			    "l f 0+8192; o f 0+0; a f 0+8192; a f 0+8192; r f 0+4096; "
			    "r f 4096+4096; a f 0+8192; r f 0+4096");
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k, "[j]\nrw=read\nsize=8k\nfilename=f:g\ntime_based\nruntime=3ms\ninvalidate=0\n",
		 &r);
	assert_string_equal(fake_trace(&k, "oacr"),
			    "o f 0+0; a f 0+4096; r f 0+4096; o g 0+0; a g 0+4096; r g 0+4096; "
			    "c f 0+0; c g 0+0; o f 0+0; a f 0+4096; r f 0+4096; c f 0+0");
	job_results_finish(&r);
	fake_finish(&k);

	/* nor does their number end it */
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k,
		 "[j]\nrw=read\nsize=8k\nnumber_ios=3\ntime_based\nramp_time=5ms\nruntime=7ms\n",
		 &r);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 7);
	job_results_finish(&r);
	fake_finish(&k);
}

/* Nothing counts to the I/O that ends the ramp; with its end, rate and runtime begin. */
static void ramp_is_not_counted(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = 2 * NSEC_PER_MSEC;
	fake_run(&k,
		 "[j]\nrw=randwrite\nrate_iops=100\nsize=1m\n"
		 "ramp_time=1s\nruntime=2s\ntime_based\n",
		 &r);
	/* The I/O due at 1 s ends at 1.002 s, the last not to count; its successor is at once. */
	assert_int_equal(nth(&k, ~0u, 100)->start_ns, 1000 * NSEC_PER_MSEC);
	assert_int_equal(nth(&k, ~0u, 101)->start_ns, 1002 * NSEC_PER_MSEC);
	assert_int_equal(nth(&k, ~0u, 102)->start_ns, 1012 * NSEC_PER_MSEC);
	assert_int_equal(nth(&k, ~0u, 103)->start_ns, 1022 * NSEC_PER_MSEC);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 200);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].clat.samples, 200);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].runtime_ns, 2 * NSEC_PER_SEC);
	assert_int_equal(r.ended_ns, 3002 * NSEC_PER_MSEC);
	job_results_finish(&r);
	fake_finish(&k);
}

static void thinktime_pauses(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=24k\nthinktime=1000\nthinktime_blocks=2\n", &r);
	for (size_t n = 0; n < 6; n++)
		assert_int_equal(nth(&k, ~0u, n)->start_ns, n / 2 * NSEC_PER_MSEC);
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=24k\nthinktime=10s\nruntime=2s\n", &r);
	assert_int_equal(r.ended_ns, 2 * NSEC_PER_SEC);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 1);
	job_results_finish(&r);
	fake_finish(&k);
}

static void stonewalls_wait_for_all_before(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(
		&k,
		"[global]\nrw=write\n[a]\nsize=8k\n[b]\nsize=20k\n"
		"[c]\nstonewall\nsize=4k\nnumjobs=2\n[d]\nsize=4k\n[e]\nwait_for_previous\nsize=4k",
		&r);
	assert_int_equal(nth(&k, 0, 0)->start_ns, 0);
	assert_int_equal(nth(&k, 1, 0)->start_ns, SPAWN_NS);
	assert_int_equal(nth(&k, 1, 4)->end_ns, SPAWN_NS + 5 * NSEC_PER_MSEC);
	assert_int_equal(nth(&k, 2, 0)->start_ns, SPAWN_NS + 5 * NSEC_PER_MSEC);
	assert_int_equal(nth(&k, 3, 0)->start_ns, 2 * SPAWN_NS + 5 * NSEC_PER_MSEC);
	assert_int_equal(nth(&k, 4, 0)->start_ns, 3 * SPAWN_NS + 5 * NSEC_PER_MSEC);
	assert_int_equal(nth(&k, 5, 0)->start_ns, 3 * SPAWN_NS + 6 * NSEC_PER_MSEC);
	job_results_finish(&r);
	fake_finish(&k);
}

/* fio asks for the delay before the stonewall, so c overtakes b, and b waits for c. */
static void delays_count_from_the_start(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k,
		 "[global]\nrw=write\n[a]\nsize=8k\n[b]\nstonewall\nstartdelay=6ms\nsize=4k\n"
		 "[c]\nstonewall\nsize=20k\n[d]\nstartdelay=1s\nsize=4k\n",
		 &r);
	assert_int_equal(nth(&k, 0, 0)->start_ns, 0);
	assert_int_equal(nth(&k, 2, 0)->start_ns, 2 * NSEC_PER_MSEC);
	assert_int_equal(nth(&k, 1, 0)->start_ns, 7 * NSEC_PER_MSEC);
	assert_int_equal(nth(&k, 3, 0)->start_ns, 1000 * NSEC_PER_MSEC);
	job_results_finish(&r);
	fake_finish(&k);
}

static void group_runtime_is_of_its_slowest(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k, "[global]\nrw=read\ngroup_reporting\n[a]\nsize=8k\n[b]\nsize=20k\nrw=rw\n",
		 &r);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].runtime_ns, 5 * NSEC_PER_MSEC);
	job_results_finish(&r);
	fake_finish(&k);
}

struct ticks {
	u64 at[32];
	u32 count;
};

static void tick(void *ctx, u64 now_ns)
{
	struct ticks *t = ctx;

	assert_true(t->count < ARRAY_SIZE(t->at));
	t->at[t->count++] = now_ns;
}

static void progress_is_told_on_time(void **state)
{
	struct ticks t = { .count = 0 };
	struct jobs_options o = { .progress = tick, .progress_ctx = &t, .progress_ns = 300000000 };
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run_with(&k, "[j]\nrw=read\nsize=4k\nrate_iops=10\nruntime=1\ntime_based\n", &o, &r);
	assert_int_equal(t.count, 3);
	for (u32 i = 0; i < 3; i++)
		assert_int_equal(t.at[i], (i + 1) * 300000000ull);
	job_results_finish(&r);
	fake_finish(&k);
}

static u64 trace_of(const char *text, u64 seed)
{
	struct jobs_options o = { .seed = seed };
	struct job_results r;
	struct fake k;
	u64 hash;

	fake_init(&k);
	k.latency_ns = 7000;
	fake_run_with(&k, text, &o, &r);
	hash = fake_hash(&k);
	job_results_finish(&r);
	fake_finish(&k);
	return hash;
}

static void same_seed_same_trace(void **state)
{
	static const char *const texts[] = {
		"[j]\nrw=randrw\nsize=4m\nnumjobs=4\nfilename=a:b:c\n",
		"[j]\nrw=randread\nsize=4m\nrandom_distribution=zipf:1.2\nnorandommap\n",
		"[j]\nrw=randwrite\nsize=4m\nioengine=io_uring\niodepth=16\nrandrepeat=0\n",
		"[j]\nrw=randwrite\nsize=4m\nnrfiles=5\nfile_service_type=random\nfsync=7\n",
	};
	char other[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_true(trace_of(texts[i], 1) == trace_of(texts[i], 1));
		assert_true(trace_of(texts[i], 1) != trace_of(texts[i], 2));
		snprintf(other, sizeof(other), "%srandseed=77\n", texts[i]);
		assert_true(trace_of(texts[i], 1) != trace_of(other, 1));
	}
}

/* Clones of a job and files of a clone do not go the same way. */
static void streams_are_independent(void **state)
{
	struct job_results r;
	u64 same[2] = { 0, 0 };
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=randread\nsize=8m\nnumjobs=2\nnrfiles=2\n", &r);
	for (size_t n = 0; n < 1024; n++) {
		same[0] += nth(&k, 0, n)->offset == nth(&k, 1, n)->offset;
		same[1] += nth(&k, 0, n)->offset == nth(&k, 2, n)->offset;
	}
	/* two permutations of n agree in one place on average */
	assert_in_range(same[0], 0, 6);
	assert_in_range(same[1], 0, 6);
	job_results_finish(&r);
	fake_finish(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_is_kept_to_the_microsecond),
		cmocka_unit_test(rate_in_bytes),
		cmocka_unit_test(late_job_catches_up),
		cmocka_unit_test(mixed_rates_are_kept_apart),
		cmocka_unit_test(latency_is_the_time_of_the_call),
		cmocka_unit_test(clones_start_one_after_the_other),
		cmocka_unit_test(runtime_stops_and_data_stops),
		cmocka_unit_test(time_based_goes_round),
		cmocka_unit_test(ramp_is_not_counted),
		cmocka_unit_test(thinktime_pauses),
		cmocka_unit_test(stonewalls_wait_for_all_before),
		cmocka_unit_test(delays_count_from_the_start),
		cmocka_unit_test(group_runtime_is_of_its_slowest),
		cmocka_unit_test(progress_is_told_on_time),
		cmocka_unit_test(same_seed_same_trace),
		cmocka_unit_test(streams_are_independent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
