/* SPDX-License-Identifier: MIT */
/* When jobs do what: pauses, arrivals, flows, depths, and what jobs are to each other. */
#include "fake_engine.h"
#include <math.h>

#define SPAWN_NS (20 * NSEC_PER_USEC)
#define HEAD     "[j]\nfilename=f\ninvalidate=0\nfadvise_hint=0\n"

static const struct fake_call *nth_write(const struct fake *k, u32 file, size_t n)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->calls[i].kind == FAKE_WRITE && k->calls[i].file == file && !n--)
			return &k->calls[i];
	fail_msg("there are not so many writes");
	return NULL;
}

static u64 start_of(const struct fake *k, size_t n)
{
	return nth_write(k, 0, n)->start_ns;
}

/* Gaps of an exponential distribution: mean and deviation are the same, and 1/e are longer. */
static void arrivals_can_be_random(void **state)
{
	double sum = 0, squares = 0;
	struct job_results r;
	const int n = 20000;
	u64 longer = 0;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k,
		 HEAD "rw=write\nsize=1g\nrate_iops=1000\nrate_process=poisson\n"
		      "number_ios=20001\n",
		 &r);
	for (size_t i = 0, before = 0, seen = 0; i < k.count; i++) {
		double gap;

		if (k.calls[i].kind != FAKE_WRITE)
			continue;
		gap = (double)(k.calls[i].start_ns - before) / NSEC_PER_MSEC;
		before = k.calls[i].start_ns;
		if (!seen++)
			continue;
		sum += gap;
		squares += gap * gap;
		longer += gap > 1;
	}
	assert_in_range(sum / n * 1000, 970, 1030);
	assert_in_range(sqrt(squares / n - sum / n * sum / n) * 1000, 960, 1040);
	assert_in_range(longer * 1000 / n, 355, 380);
	job_results_finish(&r);
	fake_finish(&k);
}

static void pauses_by_count_and_by_time(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k, HEAD "rw=write\nsize=64k\nthinktime=10ms\nthinktime_iotime=4ms\n", &r);
	for (size_t n = 0; n < 16; n++) /* four I/Os of a millisecond, then ten of nothing */
		assert_int_equal(start_of(&k, n), (n / 4 * 14 + n % 4) * NSEC_PER_MSEC);
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k,
		 HEAD "rw=write\nsize=32k\nthinktime=10ms\nthinktime_iotime=4ms\n"
		      "thinktime_blocks=2\n",
		 &r);
	for (size_t n = 0; n < 8; n++)
		assert_int_equal(start_of(&k, n), (n / 2 * 12 + n % 2) * NSEC_PER_MSEC);
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run(&k,
		 HEAD "rw=write\nsize=32k\nthinktime=10ms\nthinktime_blocks=3\n"
		      "thinktime_blocks_type=issue\nthinktime_spin=4ms\n",
		 &r);
	for (size_t n = 0; n < 8; n++)
		assert_int_equal(start_of(&k, n), n / 3 * 10 * NSEC_PER_MSEC);
	job_results_finish(&r);
	fake_finish(&k);
}

/* 1,000 a second, and after the second I/O a pause of 10 ms. */
static void pauses_are_caught_up_on_or_not(void **state)
{
	static const u64 caught[] = { 0, 1, 11, 11, 21, 21 }, not [] = { 0, 1, 12, 13, 24, 25 };
	struct job_results r;
	struct fake k;

	(void)state;
	for (int ignore = 0; ignore < 2; ignore++) {
		fake_init(&k);
		fake_run(&k,
			 ignore ? HEAD "rw=write\nsize=24k\nrate_iops=1000\nthinktime=10ms\n"
				       "thinktime_blocks=2\nrate_ignore_thinktime=1\n"
				: HEAD "rw=write\nsize=24k\nrate_iops=1000\nthinktime=10ms\n"
				       "thinktime_blocks=2\n",
			 &r);
		for (size_t n = 0; n < 6; n++)
			assert_int_equal(start_of(&k, n),
					 (ignore ? not : caught)[n] * NSEC_PER_MSEC);
		job_results_finish(&r);
		fake_finish(&k);
	}
}

static void delays_can_be_drawn(void **state)
{
	u64 least = ~0ull, most = 0;
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nrw=write\nsize=4k\nnumjobs=64\nstartdelay=1-5\n", &r);
	for (u32 i = 0; i < 64; i++) {
		u64 at = nth_write(&k, i, 0)->start_ns;

		least = min_u64(least, at);
		most = max_u64(most, at);
	}
	assert_in_range(least, NSEC_PER_SEC, 3 * NSEC_PER_SEC / 2);
	assert_in_range(most, 9 * NSEC_PER_SEC / 2, 5 * NSEC_PER_SEC + NSEC_PER_MSEC);
	job_results_finish(&r);
	fake_finish(&k);
}

static void jobs_wait_for_others_by_name(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k,
		 "[global]\nrw=write\n[a]\nsize=12k\nnumjobs=2\n[b]\nsize=40k\n"
		 "[c]\nwait_for=a\nsize=4k\n[d]\nwait_for=c\nsize=4k\n",
		 &r);
	assert_int_equal(nth_write(&k, 3, 0)->start_ns, 3 * NSEC_PER_MSEC + SPAWN_NS);
	assert_int_equal(nth_write(&k, 4, 0)->start_ns, 4 * NSEC_PER_MSEC + SPAWN_NS);
	assert_int_equal(nth_write(&k, 2, 9)->end_ns, 10 * NSEC_PER_MSEC + 2 * SPAWN_NS);
	job_results_finish(&r);
	fake_finish(&k);
}

static u64 ios_of(const struct job_results *r, size_t row)
{
	return r->rows[row].dir[JOB_DIR_WRITE].ios;
}

/* a ends after 2 ms; b writes on, c sleeps for its rate, d waits behind a stonewall. */
static void the_end_of_one_ends_others(void **state)
{
	static const struct {
		const char *what;
		u64 ios[4];
	} cases[] = {
		{ "exit_what=group", { 2, 2, 1, 4 } },
		{ "exit_what=stonewall", { 2, 2, 1, 4 } },
		{ "exit_what=all", { 2, 2, 1, 0 } },
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct job_results r;
		struct fake k;

		snprintf(text, sizeof(text),
			 "[global]\nrw=write\nexitall\n%s\n[a]\nsize=8k\n[b]\nsize=1m\n"
			 "[c]\nsize=1m\nrate_iops=1\n[d]\nstonewall\nsize=16k\n",
			 cases[i].what);
		fake_init(&k);
		k.latency_ns = NSEC_PER_MSEC;
		fake_run(&k, text, &r);
		for (size_t row = 0; row < 4; row++) {
			assert_int_equal(r.rows[row].error, 0);
			assert_in_range(ios_of(&r, row), cases[i].ios[row],
					cases[i].ios[row] + (row == 1));
		}
		assert_true(r.ended_ns < 20 * NSEC_PER_MSEC); /* nobody slept on */
		job_results_finish(&r);
		fake_finish(&k);
	}
}

/* In two groups: only that of the one that ended. And on errors only, if told so. */
static void groups_end_together(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k,
		 "[global]\nrw=write\n[a]\nexitall\nsize=8k\n[b]\nsize=400k\n"
		 "[c]\nnew_group\nsize=80k\n",
		 &r);
	assert_in_range(ios_of(&r, 1), 2, 3);
	assert_int_equal(ios_of(&r, 2), 20);
	job_results_finish(&r);
	fake_finish(&k);

	for (int fail = 0; fail < 2; fail++) {
		fake_init(&k);
		k.latency_ns = NSEC_PER_MSEC;
		k.fail_at = fail ? 5 : 0;
		k.fail_error = -EIO;
		fake_run(&k,
			 "[global]\nrw=write\nexitall_on_error\n[a]\nsize=80k\n[b]\nsize=400k\n",
			 &r);
		assert_int_equal(r.rows[0].error, fail ? -EIO : 0);
		assert_in_range(ios_of(&r, 1), fail ? 2 : 100, fail ? 4 : 100);
		job_results_finish(&r);
		fake_finish(&k);
	}
}

/* 3 to 1, while both run; then the rest alone. */
static void flows_share(void **state)
{
	static const char *const sleeps[] = { "", "flow_sleep=100us\n" };
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sleeps); i++) {
		u64 first = 0, second = 0;
		struct job_results r;
		struct fake k;

		snprintf(text, sizeof(text),
			 "[global]\nrw=write\nflow_id=7\n%s[a]\nflow=3\nsize=1200k\n"
			 "[b]\nflow=1\nsize=2m\n[c]\nsize=4k\n",
			 sleeps[i]);
		fake_init(&k);
		k.latency_ns = 10 * NSEC_PER_USEC;
		fake_run(&k, text, &r);
		for (size_t n = 0; n < k.count && first < 300; n++) {
			first += k.calls[n].kind == FAKE_WRITE && k.calls[n].file == 0;
			second += k.calls[n].kind == FAKE_WRITE && k.calls[n].file == 1;
		}
		assert_in_range(second, 98, 103);
		assert_int_equal(ios_of(&r, 0), 300);
		assert_int_equal(ios_of(&r, 1), 512);
		job_results_finish(&r);
		fake_finish(&k);
	}
}

/* A flow that is cut short: the one that is left goes on, and times are kept. */
static void flows_end(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k,
		 "[global]\nrw=write\nflow=1\nruntime=1\ntime_based\nsize=1m\n"
		 "[a]\nrate_iops=1\n[b]\n",
		 &r);
	assert_in_range(ios_of(&r, 0), 1, 2);
	assert_in_range(ios_of(&r, 1), 1, 5);
	assert_in_range(r.ended_ns, NSEC_PER_SEC, NSEC_PER_SEC + 5 * NSEC_PER_MSEC);
	job_results_finish(&r);
	fake_finish(&k);
}

/* Latency of n in flight is n times 100 us: what a device that does one at a time gives. */
struct serial {
	struct fake k;
	u64 free_ns;
};

static ssize_t serial_pread(struct job_file *f, void *buf, size_t len, u64 offset)
{
	struct serial *s = container_of(f->fake, struct serial, k);

	(void)buf;
	s->free_ns = max_u64(s->free_ns, world_now()) + 100 * NSEC_PER_USEC;
	world_sleep_until(s->free_ns);
	return offset < f->inode->size ? (ssize_t)len : 0;
}

static void the_depth_of_a_latency_is_found(void **state)
{
	struct serial s = { .free_ns = 0 };
	struct job_results r;

	(void)state;
	fake_init(&s.k);
	s.k.engine.pread = serial_pread;
	fake_run(&s.k,
		 HEAD "rw=randread\nsize=64m\nioengine=io_uring\niodepth=64\ndirect=1\n"
		      "latency_target=1050us\nlatency_window=50ms\nlatency_percentile=99\n"
		      "time_based\nruntime=60\n",
		 &r);
	assert_int_equal(r.rows[0].error, 0);
	assert_in_range(r.rows[0].latency_depth, 9, 10);
	assert_true(r.ended_ns < 2 * NSEC_PER_SEC);
	/* only the last window counts */
	assert_in_range(r.rows[0].dir[JOB_DIR_READ].ios, 490, 520);
	assert_in_range(r.rows[0].dir[JOB_DIR_READ].clat.max_ns, 900000, 1050000);
	job_results_finish(&r);
	fake_finish(&s.k);
}

static void latencies_can_be_too_long(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	k.slow_number = 5;
	k.slow_ns = 20 * NSEC_PER_MSEC;
	fake_run(&k, HEAD "rw=write\nsize=1m\nmax_latency=10ms\n", &r);
	assert_int_equal(r.rows[0].error, -ETIMEDOUT);
	assert_string_equal(r.rows[0].error_text,
			    "max_latency of 10000 us is exceeded: an I/O took 20000 us");
	assert_int_equal(ios_of(&r, 0), 5);
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k, HEAD "rw=write\nsize=1m\nlatency_target=500us\nlatency_window=10ms\n", &r);
	assert_int_equal(r.rows[0].error, -ETIMEDOUT);
	assert_string_equal(r.rows[0].error_text,
			    "latency_target cannot be met with one I/O in flight");
	job_results_finish(&r);
	fake_finish(&k);
}

/* 100 a second for 1.7 s, from 0.3 s on: windows from 0.5 to 2 s are whole. */
static void windows_are_sampled(void **state)
{
	const struct job_samples *s;
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k,
		 HEAD "rw=write\nsize=1m\nbs=1k\nrate_iops=100\nruntime=1700ms\ntime_based\n"
		      "startdelay=300ms\n",
		 &r);
	s = &r.rows[0].dir[JOB_DIR_WRITE].iops;
	assert_int_equal(s->count, 3);
	assert_true(s->min == 100 && s->max == 100 && s->mean == 100 && s->deviation == 0);
	s = &r.rows[0].dir[JOB_DIR_WRITE].bw;
	assert_true(s->mean == 100 && s->deviation == 0);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].iops.count, 0);
	job_results_finish(&r);
	fake_finish(&k);

	fake_init(&k);
	fake_run(&k,
		 "[global]\nrw=write\nsize=8m\nruntime=1\ntime_based\ngroup_reporting\n"
		 "[a]\nrate_iops=100\n[b]\nrate_iops=300,300\n[c]\nrw=read\nrate_iops=40\n",
		 &r);
	assert_int_equal(r.count, 1);
	s = &r.rows[0].dir[JOB_DIR_WRITE].iops;
	assert_true(s->count == 2 && s->mean == 400);
	assert_true(r.rows[0].dir[JOB_DIR_READ].iops.mean == 40);
	job_results_finish(&r);
	fake_finish(&k);
}

static void depths_and_latencies_are_classed(void **state)
{
	struct job_results r;
	struct fake k;
	u64 sum = 0;

	(void)state;
	fake_init(&k);
	k.latency_ns = 30 * NSEC_PER_USEC;
	k.slow_number = 7;
	k.slow_ns = 3 * NSEC_PER_SEC;
	fake_run(&k, HEAD "rw=randread\nsize=400k\nioengine=io_uring\niodepth=5\n", &r);
	for (int i = 0; i < JOB_DEPTHS; i++)
		sum += r.rows[0].levels.depth[i];
	assert_int_equal(sum, 100);
	assert_int_equal(r.rows[0].levels.depth[0], 1); /* only the first was alone */
	assert_in_range(r.rows[0].levels.depth[2], 90, 99);
	assert_int_equal(r.rows[0].levels.us[4], 99); /* 20 to 50 */
	assert_int_equal(r.rows[0].levels.ms[11], 1); /* 2 s and more */
	job_results_finish(&r);
	fake_finish(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrivals_can_be_random),
		cmocka_unit_test(pauses_by_count_and_by_time),
		cmocka_unit_test(pauses_are_caught_up_on_or_not),
		cmocka_unit_test(delays_can_be_drawn),
		cmocka_unit_test(jobs_wait_for_others_by_name),
		cmocka_unit_test(the_end_of_one_ends_others),
		cmocka_unit_test(groups_end_together),
		cmocka_unit_test(flows_share),
		cmocka_unit_test(flows_end),
		cmocka_unit_test(the_depth_of_a_latency_is_found),
		cmocka_unit_test(latencies_can_be_too_long),
		cmocka_unit_test(windows_are_sampled),
		cmocka_unit_test(depths_and_latencies_are_classed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
