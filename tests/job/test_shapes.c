/* SPDX-License-Identifier: MIT */
/* Where I/O goes and how much it is, beyond plain blocks; and what is done with the files. */
#include "fake_engine.h"

/* Runs a job and returns its reads and writes as text; the job must end well. */
static const char *trace(const char *text, const char *kinds)
{
	static char copy[16384];
	struct job_results r;
	struct fake k;

	fake_init(&k);
	fake_run(&k, text, &r);
	for (size_t i = 0; i < r.count; i++)
		if (r.rows[i].error)
			fail_msg("%s", r.rows[i].error_text);
	snprintf(copy, sizeof(copy), "%s", fake_trace(&k, kinds));
	job_results_finish(&r);
	fake_finish(&k);
	return copy;
}

static const char *io(const char *text)
{
	return trace(text, "rw");
}

#define HEAD "[j]\nfilename=f\ninvalidate=0\nfadvise_hint=0\n"

/* Holes wrap at the end of the file; as much is read as without them. */
static void sequential_io_skips(void **state)
{
	(void)state;
	assert_string_equal(io(HEAD "rw=read:8k\nsize=20k\n"),
			    "r f 0+4096; r f 12288+4096; r f 0+4096; r f 12288+4096; r f 0+4096");
	assert_string_equal(io(HEAD "rw=read:-8k\nsize=20k\n"),
			    "r f 0+4096; r f 12288+4096; r f 8192+4096; r f 4096+4096; r f 0+4096");
}

/* Of eight I/Os one is drawn; the others follow the one before. */
static void random_io_comes_in_bursts(void **state)
{
	u64 jumps = 0, before = 0;
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, HEAD "rw=randread:8\nsize=4m\n", &r);
	for (size_t i = 0, n = 0; i < k.count; i++) {
		const struct fake_call *c = &k.calls[i];

		if (c->kind != FAKE_READ)
			continue;
		if (++n % 8)
			assert_int_equal(c->offset, before);
		else
			jumps += c->offset != before;
		before = c->offset + c->length < 4 << 20 ? c->offset + c->length : 0;
		if (!before)
			break; /* at the end of the file it draws anew */
	}
	assert_true(jumps > 3);
	job_results_finish(&r);
	fake_finish(&k);
	assert_string_equal(
		io(HEAD "rw=randread:3\nrw_sequencer=identical\nsize=32k\nnumber_ios=2\n"),
		"r f 0+4096; r f 0+4096");
}

struct sizes {
	u64 count[9]; /* by the size in KiB, up to 8 */
	u64 ios, bytes, beyond;
};

static void count_sizes(const char *text, char kind, struct sizes *s)
{
	struct job_results r;
	struct fake k;

	memset(s, 0, sizeof(*s));
	fake_init(&k);
	fake_run(&k, text, &r);
	assert_int_equal(r.rows[0].error, 0);
	for (size_t i = 0; i < k.count; i++) {
		const struct fake_call *c = &k.calls[i];

		if (c->kind != kind)
			continue;
		s->ios++;
		s->bytes += c->length;
		s->beyond += c->offset + c->length > 64 << 20;
		if (c->length <= 8192)
			s->count[c->length / 1024]++;
	}
	job_results_finish(&r);
	fake_finish(&k);
}

/* 1k to 4k in steps of 1k, each as often. */
static void ranges_of_sizes_are_even(void **state)
{
	struct sizes s;

	(void)state;
	count_sizes(HEAD "rw=randwrite\nbsrange=1k-4k\nnorandommap\nsize=64m\nnumber_ios=8000\n",
		    'w', &s);
	assert_int_equal(s.ios, 8000);
	for (int kib = 1; kib <= 4; kib++)
		assert_in_range(s.count[kib], 1850, 2150);
	count_sizes(HEAD "rw=write\nbsrange=1k-4k\nsize=64m\n", 'w', &s);
	assert_int_equal(s.bytes, 64 << 20);
	assert_int_equal(s.beyond, 0);
	count_sizes(HEAD "rw=write\nbsrange=1k-4k\nbs_unaligned\nsize=1m\n", 'w', &s);
	assert_in_range(s.bytes, (1 << 20) - 1023, 1 << 20); /* what is left is too small */
	assert_true(s.count[1] + s.count[2] + s.count[3] + s.count[4] > 300);
}

static void splits_have_their_shares(void **state)
{
	struct sizes s;

	(void)state;
	count_sizes(HEAD "rw=randrw\nbssplit=4k/,1k/10:2k/20:8k/\nnorandommap\nsize=640m\n"
			 "number_ios=20000\n",
		    'w', &s);
	assert_in_range(s.ios, 9600, 10400);
	assert_in_range(s.count[1] * 100 / s.ios, 9, 11);
	assert_in_range(s.count[2] * 100 / s.ios, 18, 21);
	assert_in_range(s.count[8] * 100 / s.ios, 68, 71);
	count_sizes(HEAD "rw=randrw\nbssplit=4k/,1k/10:2k/20:8k/\nnorandommap\nsize=640m\n"
			 "number_ios=20000\n",
		    'r', &s);
	assert_int_equal(s.count[4], s.ios);
}

/* As often as fio 3.33 does over 64 MiB: 8,282 to 8,399 I/Os, 2,613 to 2,695, 13,825 to 14,259. */
static void what_was_visited_cuts_an_io(void **state)
{
	static const struct {
		const char *sizes;
		u64 least, most, unit;
	} cases[] = {
		{ "bssplit=4k/50:16k/50\n", 8150, 8450, 4096 },
		{ "bsrange=4k-64k\n", 2600, 2720, 4096 },
		{ "bssplit=512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10\n", 13500, 14500, 512 },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		u8 *visits = calloc(64 << 20, 1);
		struct job_results r;
		struct fake k;

		assert_non_null(visits);
		snprintf(text, sizeof(text), HEAD "rw=randread\nsize=64m\nloops=2\n%s",
			 cases[i].sizes);
		fake_init(&k);
		fake_run(&k, text, &r);
		assert_int_equal(r.rows[0].dir[JOB_DIR_READ].bytes, 128 << 20);
		assert_in_range(r.rows[0].dir[JOB_DIR_READ].ios, 2 * cases[i].least,
				2 * cases[i].most);
		for (size_t n = 0; n < k.count; n++)
			for (u64 at = 0; k.calls[n].kind == FAKE_READ && at < k.calls[n].length;
			     at += cases[i].unit)
				visits[k.calls[n].offset + at]++;
		for (u64 at = 0; at < 64 << 20; at += cases[i].unit)
			assert_int_equal(visits[at], 2);
		job_results_finish(&r);
		fake_finish(&k);
		free(visits);
	}
}

static void offsets_are_aligned_as_told(void **state)
{
	struct job_results r;
	bool seen[64] = { false };
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, HEAD "rw=randread\nbs=4k\nba=1k\nsize=32k\nio_size=116k\n", &r);
	for (size_t i = 0; i < k.count; i++) {
		if (k.calls[i].kind != FAKE_READ)
			continue;
		assert_int_equal(k.calls[i].offset % 1024, 0);
		assert_true(k.calls[i].offset + 4096 <= 32 << 10);
		assert_false(seen[k.calls[i].offset / 1024]);
		seen[k.calls[i].offset / 1024] = true;
	}
	/* all 29 places a block of 4k can begin at */
	for (int i = 0; i < 29; i++)
		assert_true(seen[i]);
	job_results_finish(&r);
	fake_finish(&k);
}

static u64 count_jumps(const char *text)
{
	u64 jumps = 0, before = 0, last = 0;
	struct job_results r;
	struct fake k;

	fake_init(&k);
	fake_run(&k, text, &r);
	for (size_t i = 0; i < k.count; i++) {
		if (k.calls[i].kind != FAKE_READ)
			continue;
		jumps += k.calls[i].offset != before;
		last = k.calls[i].offset;
		before = last + k.calls[i].length;
	}
	job_results_finish(&r);
	fake_finish(&k);
	return jumps;
}

static void some_offsets_are_random(void **state)
{
	(void)state;
	assert_int_equal(count_jumps(HEAD "rw=randread\npercentage_random=0\nsize=4m\n"), 0);
	assert_in_range(count_jumps(HEAD "rw=randread\npercentage_random=30\nnorandommap\n"
					 "size=400m\nnumber_ios=10000\n"),
			2850, 3150);
}

static void ios_are_counted(void **state)
{
	(void)state;
	assert_string_equal(io(HEAD "rw=write\nsize=1m\nnumber_ios=2\n"),
			    "w f 0+4096; w f 4096+4096");
	assert_string_equal(io(HEAD "rw=write\nsize=4k\nnumber_ios=5\n"), "w f 0+4096");
}

/* Where clones begin in a file of a million bytes. */
static const char *of_a_million(const char *options)
{
	static char copy[1024];
	struct job_results r;
	char text[512];
	struct fake k;

	snprintf(text, sizeof(text), HEAD "rw=read\nnumber_ios=1\n%s", options);
	fake_init(&k);
	fake_file(&k, "f", 1000000);
	fake_run(&k, text, &r);
	snprintf(copy, sizeof(copy), "%s", fake_trace(&k, "r"));
	job_results_finish(&r);
	fake_finish(&k);
	return copy;
}

static void clones_begin_further_on(void **state)
{
	(void)state;
	assert_string_equal(
		io(HEAD "rw=write\nsize=4k\noffset=8k\noffset_increment=16k\nnumjobs=3\n"),
		"w f 8192+4096; w f 24576+4096; w f 40960+4096");
	/* shares are added up and then rounded, to blocks or as told; these are fio's places */
	assert_string_equal(of_a_million("offset=4k\noffset_increment=5%\nnumjobs=3\n"),
			    "r f 4096+4096; r f 57344+4096; r f 106496+4096");
	assert_string_equal(of_a_million("offset=10%\noffset_align=512\noffset_increment=5k\n"
					 "numjobs=2\n"),
			    "r f 100352+4096; r f 105472+4096");
	assert_string_equal(of_a_million("offset=5000\noffset_align=4k\n"), "r f 5000+4096");
}

/* 8k of each 16k, twice; then on, 24k further. */
static void zones_are_kept(void **state)
{
	u64 zones[4] = { 0 };
	struct job_results r;
	struct fake k;

	(void)state;
	assert_string_equal(io(HEAD "rw=read\nsize=64k\nzonesize=8k\nzoneskip=16k\nio_size=28k\n"),
			    "r f 0+4096; r f 4096+4096; r f 24576+4096; r f 28672+4096; "
			    "r f 49152+4096; r f 53248+4096; r f 0+4096");
	assert_string_equal(io(HEAD "rw=read\nsize=64k\nzonemode=strided\nzonesize=12k\n"
				    "zonerange=8k\nzoneskip=8k\nio_size=16k\n"),
			    "r f 0+4096; r f 4096+4096; r f 0+4096; r f 16384+4096");
	assert_string_equal(io(HEAD "rw=read\nsize=8k\nzonemode=none\nzonesize=4k\nzoneskip=4k\n"),
			    "r f 0+4096; r f 4096+4096");
	fake_init(&k);
	fake_run(&k,
		 HEAD "rw=randread\nsize=4m\nzonesize=64k\nzonerange=256k\nzoneskip=768k\n"
		      "io_size=1m\n",
		 &r);
	for (size_t i = 0, n = 0; i < k.count; i++) {
		u64 zone = k.calls[i].offset >> 20;

		if (k.calls[i].kind != FAKE_READ)
			continue;
		assert_int_equal(zone, n / 16 % 4);
		assert_true((k.calls[i].offset & ((1 << 20) - 1)) < 256 << 10);
		zones[zone]++;
		n++;
	}
	for (int i = 0; i < 4; i++)
		assert_int_equal(zones[i], 64);
	job_results_finish(&r);
	fake_finish(&k);
}

static void zones_of_reads_and_writes_differ(void **state)
{
	u64 first[2] = { 0 }, all[2] = { 0 };
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k,
		 HEAD "rw=randrw\nsize=40m\nnumber_ios=4000\nnorandommap\n"
		      "random_distribution=zoned_abs:90/4m:10/36m,20/20m:80/20m\n",
		 &r);
	for (size_t i = 0; i < k.count; i++) {
		int dir = k.calls[i].kind == FAKE_WRITE;

		if (k.calls[i].kind != FAKE_READ && k.calls[i].kind != FAKE_WRITE)
			continue;
		all[dir]++;
		first[dir] += k.calls[i].offset < (dir ? 20u << 20 : 4u << 20);
	}
	assert_in_range(first[0] * 100 / all[0], 88, 92);
	assert_in_range(first[1] * 100 / all[1], 18, 22);
	job_results_finish(&r);
	fake_finish(&k);
}

static void files_are_served_as_told(void **state)
{
	(void)state;
	assert_string_equal(io("[j]\nfilename=a:b\nrw=write\nsize=24k\n"
			       "file_service_type=roundrobin:2\n"),
			    "w a 0+4096; w a 4096+4096; w b 0+4096; w b 4096+4096; w a 8192+4096; "
			    "w b 8192+4096");
	/* two are open at a time; the third follows when one is done */
	assert_string_equal(trace("[j]\nfilename=a:b:c\nrw=write\nsize=24k\nopenfiles=2\n"
				  "create_on_open=1\nfadvise_hint=0\ninvalidate=0\n",
				  "owc"),
			    "o a 0+0; w a 0+4096; o b 0+0; w b 0+4096; w a 4096+4096; "
			    "w b 4096+4096; c a 0+0; c b 0+0; o c 0+0; w c 0+4096; w c 4096+4096; "
			    "c c 0+0");
}

/* The first file gets most, and all get theirs in the end. */
static void files_are_served_unevenly(void **state)
{
	static const char *const kinds[] = { "zipf:1.5", "pareto:0.1", "normal:5" };
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		u64 count[16] = { 0 }, most = 0;
		struct job_results r;
		struct fake k;

		snprintf(text, sizeof(text),
			 "[j]\nnrfiles=16\nrw=randwrite\nsize=16m\nnorandommap\nnumber_ios=1000\n"
			 "file_service_type=%s\n",
			 kinds[i]);
		fake_init(&k);
		fake_run(&k, text, &r);
		for (size_t n = 0; n < k.count; n++)
			count[k.calls[n].file] += k.calls[n].kind == FAKE_WRITE;
		for (int n = 0; n < 16; n++)
			most = max_u64(most, count[n]);
		assert_in_range(most, 250, 1000);
		job_results_finish(&r);
		fake_finish(&k);
	}
}

static void files_have_sizes_of_a_range(void **state)
{
	u64 least = ~0ull, most = 0;
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nnrfiles=40\nrw=write\nfilesize=8k-128k\n", &r);
	for (u32 i = 0; i < k.inode_count; i++) {
		assert_int_equal(k.inodes[i].size % 4096, 0);
		least = min_u64(least, k.inodes[i].size);
		most = max_u64(most, k.inodes[i].size);
	}
	assert_in_range(least, 8 << 10, 24 << 10);
	assert_in_range(most, 112 << 10, 128 << 10);
	job_results_finish(&r);
	fake_finish(&k);
}

static void ranges_are_synced(void **state)
{
	const char *text = HEAD "rw=write\nsize=20k\nsync_file_range=wait_before,write:2\n";
	struct job_results r;
	struct fake k;

	(void)state;
	assert_string_equal(trace(text, "wg"),
			    "w f 0+4096; w f 4096+4096; g f 0+8192; w f 8192+4096; "
			    "w f 12288+4096; g f 8192+8192; w f 16384+4096");
	fake_init(&k);
	fake_run(&k, text, &r);
	for (size_t i = 0; i < k.count; i++)
		if (k.calls[i].kind == FAKE_RANGE)
			assert_int_equal(k.calls[i].flags, JOB_RANGE_WAIT_BEFORE | JOB_RANGE_WRITE);
	assert_int_equal(r.rows[0].sync_ios, 2);
	job_results_finish(&r);
	fake_finish(&k);
}

static void files_are_synced_as_they_close(void **state)
{
	(void)state;
	assert_string_equal(trace(HEAD "rw=write\nsize=4k\nfsync_on_close=1\n", "wsc"),
			    "c f 0+0; w f 0+4096; s f 0+0; c f 0+0");
	assert_string_equal(trace(HEAD "rw=read\nsize=4k\nfsync_on_close=1\n", "rsc"),
			    "r f 0+4096; c f 0+0");
}

static void space_is_reserved_as_told(void **state)
{
	static const char *const wanted[][2] = {
		{ "none", "" },
		{ "truncate", "t f 0+8192" },
		{ "native", "f f 0+8192; t f 0+8192" },
		{ "posix", "f f 0+8192; t f 0+8192" },
		{ "keep", "f f 0+8192" },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		snprintf(text, sizeof(text), HEAD "rw=write\nsize=8k\nfallocate=%s\n",
			 wanted[i][0]);
		assert_string_equal(trace(text, "ft"), wanted[i][1]);
	}
}

static void files_are_removed(void **state)
{
	(void)state;
	assert_string_equal(trace(HEAD "rw=write\nsize=4k\nunlink=1\nnumjobs=2\n", "wcu"),
			    "c f 0+0; c f 0+0; w f 0+4096; c f 0+0; u f 0+0; w f 0+4096; c f 0+0; "
			    "u f 0+0");
	assert_string_equal(trace(HEAD "rw=write\nsize=4k\nunlink_each_loop=1\nloops=2\n", "wu"),
			    "w f 0+4096; u f 0+0; w f 0+4096");
}

/* Before its time begins, and it is not dropped from the cache then. */
static void files_are_read_before(void **state)
{
	const char *text = "[j]\nfilename=f\nrw=write\nsize=8k\noverwrite=1\npre_read=1\n"
			   "fadvise_hint=0\n";
	struct job_results r;
	struct fake k;

	(void)state;
	assert_string_equal(trace(text, "lrwa"), "l f 0+8192; r f 0+4096; r f 4096+4096; "
						 "w f 0+4096; w f 4096+4096");
	fake_init(&k);
	k.latency_ns = NSEC_PER_MSEC;
	fake_run(&k, text, &r);
	assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].runtime_ns, 2 * NSEC_PER_MSEC);
	assert_int_equal(r.rows[0].dir[JOB_DIR_READ].ios, 0);
	job_results_finish(&r);
	fake_finish(&k);
}

static void files_are_only_made(void **state)
{
	(void)state;
	assert_string_equal(trace("[j]\nfilename=f\nrw=read\nsize=8k\ncreate_only=1\n", "lorw"),
			    "l f 0+8192");
}

/* The null engine moves nothing and needs no file, but takes its time. */
static void null_engine_does_nothing(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, "[j]\nioengine=null\nrw=randrw\nsize=1m\nruntime=1ms\ntime_based\nfsync=4\n",
		 &r);
	assert_int_equal(r.rows[0].error, 0);
	assert_int_equal(k.inode_count, 0);
	assert_in_range(r.rows[0].dir[0].ios + r.rows[0].dir[1].ios, 500, 1001);
	assert_true(r.rows[0].sync_ios > 50);
	job_results_finish(&r);
	fake_finish(&k);
}

static void full_devices_end_jobs_well_if_told(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	for (int told = 0; told < 2; told++) {
		fake_init(&k);
		k.limit_bytes = 16 << 10;
		fake_run(&k,
			 told ? HEAD "rw=write\nsize=1m\nfill_device=1\n"
			      : HEAD "rw=write\nsize=1m\n",
			 &r);
		assert_int_equal(r.rows[0].error, told ? 0 : -ENOSPC);
		assert_int_equal(r.rows[0].dir[JOB_DIR_WRITE].ios, 4);
		job_results_finish(&r);
		fake_finish(&k);
	}
}

/* What an engine cannot do is refused by name, and other jobs run. */
static void lacking_engines_are_named(void **state)
{
	static const char *const lines[][2] = {
		{ "sync_file_range=write:8", "sync_file_range" },
		{ "fallocate=keep", "fallocate" },
		{ "uncached=1", "uncached" },
	};
	char text[256], wanted[160];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct err e = { "" };
		struct jobs *jobs;
		struct job_results r;
		struct fake k;

		snprintf(text, sizeof(text), HEAD "rw=write\nsize=4k\n%s\n[k]\nrw=write\nsize=4k\n",
			 lines[i][0]);
		snprintf(wanted, sizeof(wanted),
			 "test.fio:7: the engine fake cannot do %s in job j", lines[i][1]);
		fake_init(&k);
		assert_int_equal(jobs_parse("test.fio", text, &jobs, &e), 0);
		assert_int_equal(jobs_check_engine(jobs, &k.engine, &e), 0);
		k.engine.features = 0;
		k.engine.sync_range = NULL;
		k.engine.allocate = NULL;
		assert_int_equal(jobs_check_engine(jobs, &k.engine, &e), -ENOTSUP);
		assert_string_equal(e.text, wanted);
		fake_run(&k, text, &r);
		assert_int_equal(r.rows[0].error, -ENOTSUP);
		assert_string_equal(r.rows[0].error_text, wanted);
		assert_int_equal(r.rows[1].error, 0);
		assert_int_equal(r.rows[1].dir[JOB_DIR_WRITE].ios, 1);
		job_results_finish(&r);
		fake_finish(&k);
		jobs_free(jobs);
	}
}

static void dontcache_is_said_at_open(void **state)
{
	struct job_results r;
	struct fake k;

	(void)state;
	fake_init(&k);
	fake_run(&k, HEAD "rw=read\nsize=4k\nuncached=1\n", &r);
	for (size_t i = 0; i < k.count; i++)
		if (k.calls[i].kind == FAKE_OPEN)
			assert_int_equal(k.calls[i].flags, JOB_READ | JOB_DONTCACHE);
	job_results_finish(&r);
	fake_finish(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequential_io_skips),
		cmocka_unit_test(random_io_comes_in_bursts),
		cmocka_unit_test(ranges_of_sizes_are_even),
		cmocka_unit_test(splits_have_their_shares),
		cmocka_unit_test(what_was_visited_cuts_an_io),
		cmocka_unit_test(offsets_are_aligned_as_told),
		cmocka_unit_test(some_offsets_are_random),
		cmocka_unit_test(ios_are_counted),
		cmocka_unit_test(clones_begin_further_on),
		cmocka_unit_test(zones_are_kept),
		cmocka_unit_test(zones_of_reads_and_writes_differ),
		cmocka_unit_test(files_are_served_as_told),
		cmocka_unit_test(files_are_served_unevenly),
		cmocka_unit_test(files_have_sizes_of_a_range),
		cmocka_unit_test(ranges_are_synced),
		cmocka_unit_test(files_are_synced_as_they_close),
		cmocka_unit_test(space_is_reserved_as_told),
		cmocka_unit_test(files_are_removed),
		cmocka_unit_test(files_are_read_before),
		cmocka_unit_test(files_are_only_made),
		cmocka_unit_test(null_engine_does_nothing),
		cmocka_unit_test(full_devices_end_jobs_well_if_told),
		cmocka_unit_test(lacking_engines_are_named),
		cmocka_unit_test(dontcache_is_said_at_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
