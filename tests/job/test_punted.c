/* SPDX-License-Identifier: MIT */
/* Buffered writes by io_uring are a queue before one writer; all else is as many as iodepth. */
#include "fake_engine.h"

#define MS NSEC_PER_MSEC

struct figures {
	u32 at_once;
	u64 min_ns, max_ns, total_ns;
	double mean_ns;
};

/* Sixteen I/Os, each of which takes 1 ms. */
static struct figures run(const char *options)
{
	struct job_dir_stats *s;
	struct job_results r;
	struct figures out;
	char text[256];
	struct fake k;

	snprintf(text, sizeof(text), "[j]\nfilename=f\nbs=64k\nsize=1m\nuncached=1\n%s", options);
	fake_init(&k);
	k.latency_ns = MS;
	fake_run(&k, text, &r);
	s = &r.rows[0].dir[strstr(options, "read") ? JOB_DIR_READ : JOB_DIR_WRITE];
	assert_int_equal(s->ios, 16);
	out = (struct figures){ k.most_in_flight, s->clat.min_ns, s->clat.max_ns,
				r.ended_ns - r.started_ns, hist_mean(&s->clat) };
	job_results_finish(&r);
	fake_finish(&k);
	return out;
}

/* Each write's latency is its time in the queue, too: the first four wait for less than four. */
static void buffered_writes_wait_in_a_queue(void **state)
{
	struct figures f;

	(void)state;
	f = run("rw=write\nioengine=io_uring\niodepth=4\n");
	assert_int_equal(f.at_once, 1);
	assert_int_equal(f.total_ns, 16 * MS);
	assert_int_equal(f.min_ns, MS);
	assert_int_equal(f.max_ns, 4 * MS);
	assert_true(f.mean_ns == (1 + 2 + 3 + 13 * 4) / 16.0 * (double)MS);
	f = run("rw=randwrite\nioengine=io_uring\niodepth=16\n");
	assert_int_equal(f.at_once, 1);
	assert_int_equal(f.max_ns, 16 * MS);
}

/* Of one place there is no queue. */
static void a_queue_of_one_is_a_writer(void **state)
{
	struct figures f;

	(void)state;
	f = run("rw=write\nioengine=io_uring\niodepth=1\n");
	assert_int_equal(f.at_once, 1);
	assert_int_equal(f.min_ns, MS);
	assert_int_equal(f.max_ns, MS);
}

static void others_are_done_together(void **state)
{
	static const char *const others[] = {
		"rw=write\nioengine=io_uring\niodepth=4\ndirect=1\nuncached=0\n",
		"rw=read\nioengine=io_uring\niodepth=4\n",
		"rw=write\nioengine=posixaio\niodepth=4\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct figures f = run(others[i]);

		assert_int_equal(f.at_once, 4);
		assert_int_equal(f.total_ns, 4 * MS);
		assert_int_equal(f.max_ns, MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffered_writes_wait_in_a_queue),
		cmocka_unit_test(a_queue_of_one_is_a_writer),
		cmocka_unit_test(others_are_done_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
