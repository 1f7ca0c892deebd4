/* SPDX-License-Identifier: MIT */
/* What is written is checked: well, damaged, lost, misplaced and of somebody else. */
#include "fake_engine.h"

#define FILE_BYTES (1 << 20)
#define HEAD       "[j]\nfilename=f\nsize=64k\nfallocate=none\n"

/* The fake with bytes in its files. */
struct store {
	struct fake k;
	u8 bytes[4][FILE_BYTES];
	u64 writes;
	u64 lose;      /* the write with this number is lost, from 1 */
	u64 misplace;  /* ... goes 4096 further on */
	bool damage;   /* a byte flips as the file is dropped from the cache */
	u64 damage_at; /* where */
};

static ssize_t store_pwrite(struct job_file *f, const void *buf, size_t len, u64 offset)
{
	struct store *s = container_of(f->fake, struct store, k);
	u64 to = offset;

	s->writes++;
	assert_non_null(buf);
	assert_true(offset + len <= FILE_BYTES - 4096);
	if (s->writes == s->misplace)
		to += 4096;
	if (s->writes != s->lose)
		memcpy(s->bytes[f->number] + to, buf, len);
	return fake_pwrite(f, buf, len, offset);
}

static ssize_t store_pread(struct job_file *f, void *buf, size_t len, u64 offset)
{
	struct store *s = container_of(f->fake, struct store, k);

	memcpy(buf, s->bytes[f->number] + offset, len);
	return fake_pread(f, buf, len, offset);
}

static int store_fsync(struct job_file *f, bool data_only)
{
	struct store *s = container_of(f->fake, struct store, k);

	if (s->damage)
		s->bytes[f->number][s->damage_at] ^= 4;
	return fake_fsync(f, data_only);
}

static struct store *store_new(void)
{
	struct store *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	fake_init(&s->k);
	s->k.engine.pread = store_pread;
	s->k.engine.pwrite = store_pwrite;
	s->k.engine.fsync = store_fsync;
	return s;
}

static void store_free(struct store *s)
{
	fake_finish(&s->k);
	free(s);
}

/* The jobs' errors, in order; row 0's text in `why`. */
static int run(struct store *s, const char *text, struct job_results *r)
{
	struct jobs_options o = { .seed = 3, .contents = true };

	fake_run_with(&s->k, text, &o, r);
	return r->rows[r->count - 1].error;
}

static void expect(struct store *s, const char *text, int error, const char *why)
{
	struct job_results r;

	assert_int_equal(run(s, text, &r), error);
	assert_string_equal(r.rows[r.count - 1].error_text, why);
	job_results_finish(&r);
	store_free(s);
}

static void good_data_is_read_back(void **state)
{
	static const char *const texts[] = {
		HEAD "rw=write\nverify=crc32c\n",
		HEAD "rw=randwrite\nverify=md5\nbsrange=1k-8k\nverify_interval=512\n",
		HEAD "rw=randwrite\nverify=xxhash\nnorandommap\nnumber_ios=100\nio_size=1m\n",
		HEAD "rw=write\nverify=pattern\nverify_pattern=0xdeadbeef\n",
		HEAD "rw=write\nverify=sha256\nverify_pattern=\"ab\"%o-3\n",
		HEAD "rw=randwrite\nverify=crc16\nioengine=io_uring\niodepth=8\nloops=3\n",
		HEAD "rw=randwrite\nverify=crc7\nverify_backlog=5\nverify_backlog_batch=3\n",
		HEAD "rw=write\nbs=16\nsize=4k\nverify=crc32\n",
		HEAD "rw=randrw\nverify=crc64\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct store *s = store_new();
		struct job_results r;

		if (run(s, texts[i], &r))
			fail_msg("%s: %s", texts[i], r.rows[0].error_text);
		assert_true(r.rows[0].dir[JOB_DIR_READ].ios > 0);
		job_results_finish(&r);
		store_free(s);
	}
}

static void reading_back_is_counted_apart(void **state)
{
	struct store *s = store_new();
	struct job_results r;

	(void)state;
	s->k.latency_ns = NSEC_PER_MSEC;
	assert_int_equal(run(s, HEAD "rw=write\nverify=crc32c\n", &r), 0);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 16);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].runtime_ns, 16 * NSEC_PER_MSEC);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 16);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].runtime_ns, 16 * NSEC_PER_MSEC);
	assert_int_equal(r.rows[0].sync_ios, 0);
	job_results_finish(&r);
	store_free(s);

	s = store_new();
	assert_int_equal(run(s, HEAD "rw=write\nverify=crc32c\ndo_verify=0\n", &r), 0);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 0);
	job_results_finish(&r);
	store_free(s);

	s = store_new();
	assert_int_equal(run(s, HEAD "rw=write\nverify=null\n", &r), 0);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 0);
	job_results_finish(&r);
	store_free(s);
}

static void damage_is_found(void **state)
{
	struct store *s = store_new();

	(void)state;
	s->damage = true;
	s->damage_at = 20000;
	expect(s, HEAD "rw=write\nverify=crc32c\n", -EILSEQ,
	       "verify f at 16384: the contents are damaged");
	s = store_new();
	s->damage = true;
	s->damage_at = 16385;
	expect(s, HEAD "rw=write\nverify=crc32c\n", -EILSEQ,
	       "verify f at 16384: no header is there");
	s = store_new();
	s->damage = true;
	s->damage_at = 16384 + 32;
	expect(s, HEAD "rw=write\nverify=crc32c\n", -EILSEQ,
	       "verify f at 16384: the header is damaged");
	s = store_new();
	s->damage = true;
	s->damage_at = 20100;
	expect(s, HEAD "rw=write\nverify=crc32c\nverify_interval=512\n", -EILSEQ,
	       "verify f at 19968: the contents are damaged");
	s = store_new();
	s->damage = true;
	s->damage_at = 20000;
	expect(s, HEAD "rw=write\nverify=pattern\nverify_pattern=7\n", -EILSEQ,
	       "verify f at 16384: the contents are damaged");
	s = store_new();
	s->lose = 5;
	expect(s, HEAD "rw=write\nverify=crc32c\n", -EILSEQ,
	       "verify f at 16384: no header is there");
}

/* A block lands on the place of the next, which is written after it, or where none will be. */
static void lost_and_misplaced_writes_are_found(void **state)
{
	struct store *s = store_new();

	(void)state;
	s->misplace = 5;
	expect(s, HEAD "rw=write\nverify=crc32c\n", -EILSEQ,
	       "verify f at 16384: no header is there");
	s = store_new();
	s->misplace = 2;
	expect(s, HEAD "rw=write:8k\nverify=crc32c\nio_size=8k\n", -EILSEQ,
	       "verify f at 12288: no header is there");
	s = store_new();
	s->lose = 20; /* of the second pass: the first pass's block stands there */
	expect(s, HEAD "rw=write\nverify=crc32c\nloops=2\n", -EILSEQ,
	       "verify f at 12288: it is of another write");
}

/* Before the next pass writes over it; its time is not that of the writes. */
static void each_pass_is_read_back(void **state)
{
	static const char *const passes[] = {
		HEAD "rw=write\nverify=crc32c\nloops=3\n",
		HEAD "rw=randwrite\nverify=md5\nio_size=192k\n",
		HEAD "rw=randwrite\nverify=md5\nioengine=posixaio\niodepth=4\nloops=3\n",
		HEAD "nrfiles=4\nrw=write\nverify=md5\nloops=3\n",
		HEAD "rw=write\nverify=md5\nloops=3\nrate_iops=1000\n",
	};
	struct job_results r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(passes); i++) {
		struct store *s = store_new();
		u64 at_a_time = i == 2 ? 4 : 1;

		s->k.latency_ns = NSEC_PER_MSEC;
		assert_int_equal(run(s, passes[i], &r), 0);
		assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 48);
		assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].runtime_ns,
				 48 * NSEC_PER_MSEC / at_a_time);
		assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 48);
		assert_int_equal(r.rows[0].dir[JOB_DIR_READ].runtime_ns, 48 * NSEC_PER_MSEC);
		job_results_finish(&r);
		store_free(s);
	}
	struct store *s = store_new();

	s->lose = 5; /* the second pass writes there */
	expect(s, HEAD "rw=write\nverify=crc32c\nloops=2\n", -EILSEQ,
	       "verify f at 16384: no header is there");
}

/* A job by time writes a block many times, and reads it once. */
static void the_last_of_many_writes_is_read_back(void **state)
{
	struct store *s = store_new();
	struct job_results r;

	(void)state;
	s->k.latency_ns = NSEC_PER_MSEC;
	assert_int_equal(run(s, HEAD "rw=randwrite\nverify=crc32c\ntime_based\nruntime=2\n", &r),
			 0);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 2000);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 16);
	job_results_finish(&r);
	store_free(s);

	s = store_new();
	s->k.latency_ns = NSEC_PER_MSEC;
	s->lose = 1990;
	assert_int_equal(run(s, HEAD "rw=randwrite\nverify=crc32c\ntime_based\nruntime=2\n", &r),
			 -EILSEQ);
	assert_non_null(strstr(r.rows[0].error_text, "it is of another write"));
	job_results_finish(&r);
	store_free(s);
}

static void differences_are_counted_or_fatal(void **state)
{
	struct store *s = store_new();
	struct job_results r;

	(void)state;
	assert_int_equal(run(s,
			     HEAD "rw=write\nverify=pattern\nverify_pattern=7\n[k]\nstonewall\n"
				  "filename=f\nsize=64k\nrw=read\nverify=crc32c\n",
			     &r),
			 -EILSEQ);
	assert_int_equal(r.rows[0].error, 0);
	assert_string_equal(r.rows[1].error_text,
			    "verify f at 0: no header is there; 16 blocks in all");
	assert_int_equal(r.rows[1].dir[JOB_DIR_READ].ios, 16);
	job_results_finish(&r);
	store_free(s);

	s = store_new();
	assert_int_equal(run(s,
			     HEAD "rw=write\nverify=pattern\nverify_pattern=7\n[k]\nstonewall\n"
				  "filename=f\nsize=64k\nrw=read\nverify=crc32c\nverify_fatal=1\n",
			     &r),
			 -EILSEQ);
	assert_string_equal(r.rows[1].error_text, "verify f at 0: no header is there");
	assert_int_equal(r.rows[1].dir[JOB_DIR_READ].ios, 1);
	job_results_finish(&r);
	store_free(s);
}

/* continue_on_error=verify: they are counted, and fail the job not even with verify_fatal. */
static void differences_can_be_gone_on_after(void **state)
{
	static const struct {
		const char *option;
		int error;
		u64 total;
	} cases[] = {
		{ "continue_on_error=verify\nverify_fatal=1\n", 0, 16 },
		{ "continue_on_error=all\n", 0, 16 },
		{ "ignore_error=,,EILSEQ\n", 0, 16 },
		{ "continue_on_error=io\n", -EILSEQ, 0 },
		{ "ignore_error=,,EIO\n", -EILSEQ, 0 },
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct store *s = store_new();
		struct job_results r;

		snprintf(text, sizeof(text),
			 HEAD "rw=write\nverify=pattern\nverify_pattern=7\n[k]\nstonewall\n"
			      "filename=f\nsize=64k\nrw=read\nverify=crc32c\n%s",
			 cases[i].option);
		assert_int_equal(run(s, text, &r), cases[i].error);
		assert_int_equal(r.rows[1].total_errors, cases[i].total);
		assert_int_equal(r.rows[1].first_error, cases[i].total ? -EILSEQ : 0);
		assert_int_equal(r.rows[1].dir[JOB_DIR_READ].ios, 16);
		job_results_finish(&r);
		store_free(s);
	}
}

/* What one job wrote, another checks, in whatever order; or the same without writing. */
static void others_can_check(void **state)
{
	static const char *const readers[] = {
		"rw=read\n",
		"rw=randread\n",
		"rw=randwrite\nverify_only\n",
		"rw=write\nverify_only=1\n",
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		for (int damage = 0; damage < 2; damage++) {
			struct store *s = store_new();
			struct job_results r;

			s->damage = damage;
			s->damage_at = 12345;
			snprintf(text, sizeof(text),
				 HEAD "rw=randwrite\nverify=md5\ndo_verify=0\nend_fsync=1\n"
				      "[k]\nstonewall\nfilename=f\nsize=64k\nverify=md5\n%s",
				 readers[i]);
			assert_int_equal(run(s, text, &r), damage ? -EILSEQ : 0);
			assert_int_equal(s->writes, 16);
			assert_int_equal(r.rows[1].dir[JOB_DIR_READ].ios, 16);
			job_results_finish(&r);
			store_free(s);
		}
	}
}

/* Where contents are not real there is nothing to check. */
static void simulations_do_not_check(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, HEAD "rw=write\nverify=crc32c\n", &r);
	assert_int_equal(r.rows[0].error, 0);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 0);
	job_results_finish(&r);
	fake_finish(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_data_is_read_back),
		cmocka_unit_test(reading_back_is_counted_apart),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(lost_and_misplaced_writes_are_found),
		cmocka_unit_test(each_pass_is_read_back),
		cmocka_unit_test(the_last_of_many_writes_is_read_back),
		cmocka_unit_test(differences_are_counted_or_fatal),
		cmocka_unit_test(differences_can_be_gone_on_after),
		cmocka_unit_test(others_can_check),
		cmocka_unit_test(simulations_do_not_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
